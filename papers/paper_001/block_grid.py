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
TPCH = "TPC-H"
COMBINED = "combined buckets"
ONE_TASK = "buckets of one task"
"""The experiment in which one map task places the clusters of all data blocks."""
RIVALS = ("pkg", "pk5", "cam")
OTHERS = ("shuffle", "time-based", *RIVALS)
"""All rules but hashing and Prompt."""
BY_SIZE = ("hashing", "prompt", *OTHERS)
"""Rules that are compared in other sizes, too."""


def streams(plan: RunPlan) -> dict[str, Stream]:
    """By name. TPC-H is lineitem by its part at scale 1."""
    batch = batch_tuples(plan)
    keys = plan.pick(100_000, 2_000)
    return {
        **{f"Zipf {z}": Stream("zipf", BATCHES * batch, keys, z) for z in (0.5, 1.0, 1.5)},
        "words": Stream("words", BATCHES * batch),
        TPCH: Stream(TPCH_PARTS, BATCHES * batch, plan.pick(200_000, 4_000)),
        "flights-tailnum": Stream("flights-tailnum", plan.pick(3 * batch, BATCHES * batch)),
    }


def sizes(plan: RunPlan) -> dict[str, tuple[int, int]]:
    """Tuples of a batch and its data blocks, by the page's name. The other settings of TPC-H have 100,000 and
    16.
    """
    few, many = plan.pick(20_000, 500), plan.pick(500_000, 10_000)
    at = ((few, WORKERS), (many, WORKERS), (batch_tuples(plan), 4), (batch_tuples(plan), 64))
    return {f"{tuples:,} tuples, {blocks} blocks": (tuples, blocks) for tuples, blocks in at}


def batch_tuples(plan: RunPlan) -> int:
    """Tuples of a micro-batch."""
    return plan.pick(100_000, 2_000)


def block_cell(plan: RunPlan, stream: str, rule: str) -> Cell:
    """A rule on a stream."""
    return Cell(NAME, "blocks", streams(plan)[stream], WORKERS, rule)


def size_cell(plan: RunPlan, size: str, rule: str) -> Cell:
    """A rule on TPC-H, in data blocks of another size or number."""
    tuples, blocks = sizes(plan)[size]
    return Cell(NAME, f"blocks, batches of {tuples}", streams(plan)[TPCH], blocks, rule)


def combined_cell(plan: RunPlan, stream: str) -> Cell:
    """Prompt's data blocks, whose map tasks combine."""
    return Cell(NAME, COMBINED, streams(plan)[stream], WORKERS, "prompt")


def one_task_cell(plan: RunPlan, stream: str) -> Cell:
    """Prompt's data blocks, whose clusters one map task places."""
    return Cell(NAME, ONE_TASK, streams(plan)[stream], WORKERS, "prompt")


def cells(plan: RunPlan) -> list[Cell]:
    """Every stream with every rule, TPC-H in other sizes, and buckets of partial results and of one task."""
    cells_of_page = [block_cell(plan, *at) for at in product(streams(plan), RULES)]
    cells_of_page += [size_cell(plan, *at) for at in product(sizes(plan), BY_SIZE)]
    return cells_of_page + [
        cell(plan, stream) for cell, stream in product((combined_cell, one_task_cell), streams(plan))
    ]
