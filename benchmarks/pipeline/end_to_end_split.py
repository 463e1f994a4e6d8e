"""The whole pipeline on this machine with the split wiring."""

from __future__ import annotations

from benchmarks.measuring.stream import SEED as SEED
from benchmarks.pipeline.end_to_end import measure

ID = "service-end-to-end-split"
WHAT = (
    "everything on this machine (split): catch-up rate, sustained rate, latency at half of it; Zipf 1.0"
    " and 1.4"
)


def run(*, smoke: bool) -> dict[str, object]:
    """Figures by exponent."""
    return measure("split", smoke=smoke)
