"""Streams, rules and cells of the section `micro-batch`."""

from __future__ import annotations

from itertools import product

from papers.cells.run_plan import Cell, RunPlan, Stream
from papers.drawn_streams import TPCH_PARTS

NAME = "micro-batch"
WORKERS = 16
BUCKETS = 16
BATCHES = 5
RULES = (
    "shuffle",
    "time-based",
    "hashing",
    "pkg",
    "pk5",
    "cam",
    "prompt",
    "prompt:order=quasi",
    "prompt:rest=roomiest",
)
RIVALS = ("pkg", "pk5", "cam")
OTHERS = ("shuffle", "time-based", *RIVALS)
"""All rules but hashing and Prompt."""


def streams(plan: RunPlan) -> dict[str, Stream]:
    """By name. TPC-H is lineitem by its part at scale 1."""
    batch = batch_tuples(plan)
    keys = plan.pick(100_000, 2_000)
    return {
        **{f"Zipf {z}": Stream("zipf", BATCHES * batch, keys, z) for z in (0.5, 1.0, 1.5)},
        "words": Stream("words", BATCHES * batch),
        "TPC-H": Stream(TPCH_PARTS, BATCHES * batch, plan.pick(200_000, 4_000)),
        "flights-tailnum": Stream("flights-tailnum", plan.pick(3 * batch, BATCHES * batch)),
    }


def batch_tuples(plan: RunPlan) -> int:
    """Tuples of a micro-batch."""
    return plan.pick(100_000, 2_000)


def block_cell(plan: RunPlan, stream: str, rule: str) -> Cell:
    """A rule on a stream."""
    return Cell(NAME, "blocks", streams(plan)[stream], WORKERS, rule)


def cells(plan: RunPlan) -> list[Cell]:
    """Every stream with every rule."""
    return [block_cell(plan, *at) for at in product(streams(plan), RULES)]
