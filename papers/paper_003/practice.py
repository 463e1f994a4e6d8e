"""Why MBLinUCB is slower than LinUCB where it is: variants of its practice (Alg. 1)."""

from __future__ import annotations

from itertools import product

from papers.cells.run_plan import Cell, RunPlan
from papers.paper_003.grid import FEWER, WIDER, unknown_cell

VARIANTS = {WIDER: "half and twice the load, and queues", FEWER: "1,000 samples"}
"""One difference each from the paper's practice, in words."""
SETTINGS = (
    ("pareto", "rho=0.7, queue of 1 s"),
    ("flights-by-hour", "rho=0.7, queue of 1 s"),
    ("poisson", "rho=0.5, queue of 10 s"),
)
"""Where they are played: one setting of each load in which MBLinUCB is slower, of those in which both
policies get to the mark."""


def cells(plan: RunPlan) -> list[Cell]:
    """Every setting with all variants."""
    return [unknown_cell(plan, *setting, variant) for setting, variant in product(SETTINGS, VARIANTS)]
