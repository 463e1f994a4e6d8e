"""Prompt's batch partitioner (Alg. 2) against one sort of the key counts, and what planning a batch costs.

docs/reproducing.md prices the planning of a batch with such costs. They are kept in
docs/reproducing/planning.json, so that the page is the same on every machine. This scenario writes a file
like it into .evenflow/bench, to be copied from there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from benchmarks.measuring.spread import in_turns, ratios, spread
from benchmarks.partitioners.routing import SEED as SEED
from benchmarks.partitioners.routing import WORKERS
from benchmarks.pictures import PLOTS
from evenflow.generation.rank_laws import RANKS, Zipf
from evenflow.numeric.arrays import UInt64s
from evenflow.partitioners.prompt.accumulator import Accumulator
from evenflow.partitioners.prompt.data_blocks import plan_data_blocks
from evenflow.simulation.streams import rank_hashes

ID = "partitioners-prompt-plan"
WHAT = (
    "Alg. 2 of Prompt for a batch of 1e6 tuples and 1e5 keys (Zipf 1.0, n = 64) against one sort of the key"
    " counts"
)
GOAL = 3.0
COSTS = {
    "buffer": "a tuple is counted while the batch fills",
    "renew": "the same, and the key's place in the quasi-sorted list is renewed now and then (Alg. 1)",
    "sort": "a key is listed when the batch has ended, by sorting",
    "read": "a key is listed when the batch has ended, by reading the quasi-sorted list",
    "plan": "a key is placed on data blocks (Alg. 2)",
}
"""What each cost is the price of, in nanoseconds of CPU: of a tuple the first two, of a key the others."""


def run(*, smoke: bool) -> dict[str, Any]:
    """Milliseconds of the plan and of the sort, their ratio, and the costs. The costs are also written as
    a file to keep.
    """
    tuples, keys = (20_000, 2_000) if smoke else (1_000_000, 100_000)
    ranks = Zipf(keys, 1.0).ranks(np.random.default_rng([SEED, RANKS]).random(tuples), 0)
    # Counts in the order in which keys happen to come: sorting sorted counts would be cheaper.
    arrived = np.maximum(np.bincount(ranks, minlength=keys), 1)[np.random.default_rng(SEED).permutation(keys)]
    counts = np.sort(arrived)[::-1].copy()

    def milliseconds(work: Callable[[], object]) -> Callable[[], float]:
        def measure() -> float:
            began = time.thread_time()
            work()
            return (time.thread_time() - began) * 1e3

        # The first call compiles the kernel.
        work()
        return measure

    milliseconds_by_step = in_turns(
        {
            "plan": milliseconds(lambda: plan_data_blocks(counts, WORKERS)),
            "sort": milliseconds(lambda: np.sort(arrived)),
        },
        3 if smoke else 21,
    )
    ratio = min(milliseconds_by_step["plan"]) / min(milliseconds_by_step["sort"])
    ns = planning_costs(rank_hashes(keys)[ranks], repetitions=2 if smoke else 15)
    ns["plan"] = round(1e6 * min(milliseconds_by_step["plan"]) / keys, 2)
    PLOTS.mkdir(parents=True, exist_ok=True)
    (PLOTS / "planning.json").write_text(json.dumps({"ns": ns}, indent=1) + "\n", encoding="utf-8")
    return {
        "tuples": tuples,
        "keys": keys,
        "plan_ms": spread(milliseconds_by_step["plan"]),
        "sort_ms": spread(milliseconds_by_step["sort"]),
        "ratio": ratios(milliseconds_by_step["plan"], milliseconds_by_step["sort"]),
        "ratio_of_the_best": round(ratio, 2),
        "goal": GOAL,
        "met": ratio <= GOAL,
        "ns": ns,
    }


def planning_costs(hashes: UInt64s, *, repetitions: int) -> dict[str, float]:
    """Nanoseconds of buffering a batch with these key hashes, and of listing its keys, by the names of
    `COSTS`.
    """
    keys = len(np.unique(hashes))
    # One batch interval, through which the tuples are spread.
    times = np.arange(len(hashes), dtype=np.int64) * 1_000 // len(hashes)
    ns: dict[str, float] = {}
    orders: tuple[tuple[Literal["exact", "quasi"], str, str], ...] = (
        ("exact", "buffer", "sort"),
        ("quasi", "renew", "read"),
    )
    for order, adding, listing in orders:
        buffer = Accumulator(order=order)
        added, listed = [], []
        # The first batches compile the kernels, make room and learn the usual size. The least time is theirs
        # in no case.
        for _ in range(2 + repetitions):
            began = time.thread_time()
            buffer.add(hashes, times, end_ms=1_000)
            full = time.thread_time()
            buffer.finish()
            added.append(full - began)
            listed.append(time.thread_time() - full)
        ns[adding] = round(1e9 * min(added[2:]) / len(hashes), 2)
        ns[listing] = round(1e9 * min(listed[2:]) / keys, 2)
    return ns
