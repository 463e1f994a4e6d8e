"""Every policy on the shape flash-crowd."""

from __future__ import annotations

from benchmarks.elasticity.loop import described, measure
from workbench.elastic.shapes import SEED as SEED

ID = "elasticity-flash-crowd"
WHAT = described("flash-crowd")
SMOKED_BY = "elasticity-spike"


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each policy."""
    return measure("flash-crowd", smoke=smoke)
