"""The recommended policy on every shape, without a reserve of executors and with one."""

from __future__ import annotations

from typing import Any

from benchmarks.elasticity.loop import with_reserves
from workbench.elastic import SHAPES
from workbench.elastic.shapes import SEED as SEED

ID = "elasticity-reserve"
WHAT = (
    "the recommended policy in a closed loop on every shape, without and with an executor in reserve: zones,"
    " cores, latency"
)
SMOKED_BY = "elasticity-spike"


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each shape and each reserve."""
    shapes = ("spike",) if smoke else tuple(SHAPES)
    rows: list[dict[str, Any]] = []
    for shape in shapes:
        rows += with_reserves(shape, smoke=smoke)
    return {"runs": rows}
