"""Every policy on the shape staircase."""

from __future__ import annotations

from benchmarks.elasticity.loop import described, measure
from workbench.elastic.shapes import SEED as SEED

ID = "elasticity-staircase"
WHAT = described("staircase")
SMOKED_BY = "elasticity-spike"


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each policy."""
    return measure("staircase", smoke=smoke)
