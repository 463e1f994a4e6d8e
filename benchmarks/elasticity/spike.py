"""Every policy on the shape spike."""

from __future__ import annotations

from benchmarks.elasticity.loop import described, measure
from workbench.elastic.shapes import SEED as SEED

ID = "elasticity-spike"
WHAT = described("spike")


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each policy."""
    return measure("spike", smoke=smoke)
