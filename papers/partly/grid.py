"""The settings of PartLy's figures: one cell each."""

from __future__ import annotations

from itertools import product

from papers.cells.run_plan import Cell, RunPlan, Stream
from papers.drawn_streams import TPCH_Q3
from papers.unit_costs import unit_costs

NAME = "partly"
DATA_BLOCKS = 24
BY_TIMES_FILE = "docs/partly/task-times.evenflow"
PARTLY = "partly:fallback=false"
BY_TIMES = f"partly:fallback=false,policy={BY_TIMES_FILE}"
ROOMIEST = "prompt:rest=roomiest"
NAMES = {
    PARTLY: "partly",
    BY_TIMES: "partly, task times",
    "prompt": "prompt",
    ROOMIEST: ROOMIEST,
    "cam": "cam",
    "pk5": "pk5",
    "hashing": "hashing",
    "shuffle": "shuffle",
}
"""Rules, and what the page calls them. Fallback to Prompt is off, so that each batch shows what a policy
does.
"""
RIVALS = ("prompt", "cam", "pk5", "hashing")
EXPONENTS = (0.1, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0)
KEYS, MANY_KEYS = 2_000, 20_000
TRAINED = "training batches"
"""The batches that the training of the shipped policy drew first."""
BATCHES = 3
TRAININGS = {"with": "1.8M steps", "without": "1.8M steps, no bootstrapping"}
"""Kept trainings with partial rewards and without, by their names in docs/partly/training.json."""
PLANNERS = {"partly": "partly", "prompt": "prompt", "cam": "cam"}
"""Rules in docs/partly/plan.json."""
OVER = {"keys": "keys", "zipf": "exponent"}
"""What is varied there, and what the page calls it."""


def batch_tuples(plan: RunPlan) -> int:
    """Tuples of a batch of a stream."""
    return plan.pick(100_000, 2_000)


def streams(plan: RunPlan) -> dict[str, Stream]:
    """What the policy never saw, by the page's name."""
    batch = batch_tuples(plan)
    most = BATCHES * batch
    few, many = plan.pick(KEYS, 200), plan.pick(MANY_KEYS, 1_000)
    return {
        **{f"Zipf {z}": Stream("zipf", most, few, z) for z in EXPONENTS},
        "Zipf 1.0, 20,000 keys": Stream("zipf", most, many, 1.0),
        "words": Stream("words", most),
        "flights-tailnum": Stream("flights-tailnum", most),
        "debs-routes": Stream("debs-routes", plan.pick(0, batch)),
        TPCH_Q3: Stream(TPCH_Q3, most),
    }


def trained(plan: RunPlan) -> Stream:
    """The training batches as a stream. Its cell draws them itself."""
    return Stream("partly-training", plan.pick(4, 1))


def block_cell(plan: RunPlan, stream: str, rule: str) -> Cell:
    """A rule on a stream. The kept costs are in the cell's name, so that other costs mean other cells."""
    source = trained(plan) if stream == TRAINED else streams(plan)[stream]
    return Cell(NAME, f"blocks {unit_costs().mark}", source, DATA_BLOCKS, rule)


def training_cell(plan: RunPlan, which: str) -> Cell:
    """The kept curve of a training."""
    return Cell(NAME, "training", Stream(which, 0), DATA_BLOCKS)


def time_cell(plan: RunPlan, planner: str) -> Cell:
    """The kept times to plan."""
    return Cell(NAME, "plan", Stream("kept", 0), DATA_BLOCKS, planner)


def cells(plan: RunPlan) -> list[Cell]:
    """Every stream with every rule, and what is kept."""
    settings = [block_cell(plan, *at) for at in product((*streams(plan), TRAINED), NAMES)]
    settings += [training_cell(plan, which) for which in TRAININGS]
    return settings + [time_cell(plan, planner) for planner in PLANNERS]
