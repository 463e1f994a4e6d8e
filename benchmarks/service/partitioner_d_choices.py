"""The partitioner service with `d-choices` against a bare loop."""

from __future__ import annotations

from benchmarks.measuring.stream import SEED as SEED
from benchmarks.service.data_plane import compare

ID = "service-partitioner-d-choices"
WHAT = (
    "tuples/s of the data plane (d-choices) against a bare consume-produce loop with the same frames and"
    " transactions (goals: 3 times as fast, 0.8 us of CPU a tuple without the broker)"
)


def run(*, smoke: bool) -> dict[str, object]:
    """Rates of both and their ratio, beside the rate of its queues alone."""
    return compare("d-choices", smoke=smoke)
