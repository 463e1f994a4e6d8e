"""Prompt's batch partitioner (Alg. 2) against one sort of the key counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.partitioners import SEED, WORKERS
from benchmarks.spread import in_turns, ratios, spread
from evenflow.partitioners.prompt.data_blocks import plan_data_blocks
from evenflow.rank_laws import RANKS, Zipf

ID = "partitioners-prompt-plan"
WHAT = "Alg. 2 of Prompt for a batch of 1e6 tuples and 1e5 keys (Zipf 1.0, n = 64) against one sort of the key counts"
GOAL = 3.0


def run(*, smoke: bool) -> dict[str, Any]:
    """Milliseconds of the plan and of the sort, and their ratio."""
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

    found = in_turns(
        {
            "plan": milliseconds(lambda: plan_data_blocks(counts, WORKERS)),
            "sort": milliseconds(lambda: np.sort(arrived)),
        },
        3 if smoke else 21,
    )
    ratio = min(found["plan"]) / min(found["sort"])
    return {
        "tuples": tuples,
        "keys": keys,
        "plan_ms": spread(found["plan"]),
        "sort_ms": spread(found["sort"]),
        "ratio": ratios(found["plan"], found["sort"]),
        "ratio_of_the_best": round(ratio, 2),
        "goal": GOAL,
        "met": ratio <= GOAL,
    }
