"""Prompt+ with the batches of Prompt (001's own system, chapters 2 and 3), and with evenflow, on the shape
staircase.
"""

from __future__ import annotations

from benchmarks.elasticity.loop import beside
from workbench.elastic.shapes import SEED as SEED

ID = "elasticity-batches"
WHAT = (
    "Prompt+ in a closed loop on a staircase, with Prompt's micro-batches and tuple by tuple: zones, cores,"
    " latency"
)
SMOKED_BY = "elasticity-spike"


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each partitioner."""
    return beside("staircase", ("evenflow", "prompt"), smoke=smoke, picture=ID)
