"""Streams, rules and cells of the section on 001's figures 2.7 to 2.9.

The thesis gives no rates. Its second is replayed as two milliseconds: every kept cost is taken 500 times.
Then a micro-batch has 10,000 to 1,000,000 tuples. The thesis speaks of up to millions, with 10,000 to 100,000
keys.
"""

from __future__ import annotations

from itertools import product

from papers.cells.run_plan import Cell, RunPlan, Stream
from papers.drawn_streams import TPCH_PARTS
from papers.paper_000.grid import CAM
from papers.unit_costs import planning_unit_costs, unit_costs

NAME = "micro-batch-queue"
MAPS = REDUCES = 16
INTERVALS = (1, 2, 3)
"""Batch intervals in seconds."""
LONGEST = INTERVALS[-1]
EXPONENTS = (0.1, 0.5, 1.0, 1.5, 2.0)
PERIOD, AMPLITUDE = 6, 0.5
"""Of the sine, in seconds and in shares of the mean rate. A whole number of batches is a period."""
RULES = (
    "time-based",
    "shuffle",
    "hashing",
    "pkg",
    "pk5",
    *CAM,
    "dalton-batch",
    "evenflow",
    "prompt",
    "prompt:rest=roomiest",
)
RIVALS = ("time-based", "shuffle", "hashing", "pkg", "pk5")
"""The thesis's other rules, besides cAM."""
_ODD = 9_999
"""Of the 10,000 rides. A batch has more. With an odd number, round robin takes a ride elsewhere in each
circle.
"""
LEARNING = ("dalton-batch", "evenflow")
"""Rules that know something of the batches before."""
SORTED, QUASI = "post-sort", "quasi-sort"
PLANNED = {SORTED: "prompt", QUASI: "prompt:order=quasi"}
"""Figure 2.9: how the list of keys comes about if it is made when the batch has ended, and the rule that
does so.
"""


def slower(plan: RunPlan) -> int:
    """How many times a kept cost is taken. A quick run has a fortieth of the tuples."""
    return plan.pick(500, 20_000)


def zipf(exponent: float) -> str:
    """The name of a Zipf stream."""
    return f"Zipf {exponent:g}"


def streams(plan: RunPlan) -> dict[str, Stream]:
    """What is read in a circle, by name."""
    most, keys = plan.pick(1_000_000, 20_000), plan.pick(100_000, 2_000)
    return {
        **{zipf(z): Stream("zipf", most, keys, z) for z in EXPONENTS},
        "TPC-H": Stream(TPCH_PARTS, most, plan.pick(200_000, 4_000)),
        "words": Stream("words", most),
        "flights-tailnum": Stream("flights-tailnum", plan.pick(0, 20_000)),
        "debs-taxis": Stream("debs-taxis", _ODD),
    }


def queue_cell(plan: RunPlan, stream: str, interval: int, rule: str) -> Cell:
    """A rule at one batch interval. Planning is hidden, as with the thesis's early release."""
    return Cell(NAME, f"{interval} s, costs {unit_costs().mark}", streams(plan)[stream], MAPS, rule)


def planned_cell(plan: RunPlan, stream: str, interval: int, how: str) -> Cell:
    """Prompt, if the list of keys is made, and planned, after the batch has ended. how: a name of
    `PLANNED`.
    """
    experiment = f"{interval} s, {how}, costs {unit_costs().mark} {planning_unit_costs().mark}"
    return Cell(NAME, experiment, streams(plan)[stream], MAPS, PLANNED[how])


def cells(plan: RunPlan) -> list[Cell]:
    """Every stream and interval with every rule, and Prompt with its planning."""
    every = list(product(streams(plan), INTERVALS))
    return [
        *(queue_cell(plan, *at, rule) for at, rule in product(every, RULES)),
        *(planned_cell(plan, *at, how) for at, how in product(every, PLANNED)),
    ]
