"""Every policy on the shape sine."""

from __future__ import annotations

from benchmarks.elasticity.loop import described, measure
from workbench.elastic.shapes import SEED as SEED

ID = "elasticity-sine"
WHAT = described("sine")
SMOKED_BY = "elasticity-spike"


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each policy."""
    return measure("sine", smoke=smoke)
