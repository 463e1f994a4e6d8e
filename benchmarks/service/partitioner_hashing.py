"""The partitioner service with `hashing` against a bare loop."""

from __future__ import annotations

from benchmarks.measuring.stream import SEED as SEED
from benchmarks.service.data_plane import compare

ID = "service-partitioner-hashing"
WHAT = (
    "tuples/s of the data plane (hashing) against a bare consume-produce loop with the same frames and"
    " transactions"
)


def run(*, smoke: bool) -> dict[str, object]:
    """Rates of both and their ratio."""
    return compare("hashing", smoke=smoke)
