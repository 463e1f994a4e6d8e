"""How long PartLy takes for a batch (001, fig. 4.8b and 4.9), beside Prompt and cAM."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measuring.spread import in_turns
from benchmarks.partitioners.partly_picture import plan
from benchmarks.partitioners.partly_quality import DATA_BLOCKS, zipf_batch
from benchmarks.partitioners.partly_quality import SEED as SEED
from benchmarks.pictures import PLOTS, keep
from evenflow.partitioners import create
from evenflow.simulation.streams import rank_hashes
from evenflow.text.options import parse_choice

ID = "partitioners-partly-plan"
WHAT = (
    "CPU ms that a micro-batch takes with PartLy, Prompt and cAM, by number of keys and by skew; with a chart"
)
RULES = {
    "partly": "partly:fallback=false",
    "partly:fallback=true": "partly",
    "prompt": "prompt",
    "cam": "cam",
}
_EACH = 10
"""Tuples of a key."""


def run(*, smoke: bool) -> dict[str, Any]:
    """A row for each batch and rule. The least CPU time of several, measured in turns."""
    turns = 2 if smoke else 15
    keys_drawn = (100, 1_000) if smoke else (300, 1_000, 3_000, 10_000, 30_000, 100_000)
    skews = (0.5, 1.0) if smoke else (0.2, 0.5, 0.8, 1.1, 1.4, 1.7, 2.0)
    cells = [("keys", keys, 1.0) for keys in keys_drawn]
    cells += [("zipf", 1_000 if smoke else 10_000, zipf) for zipf in skews]
    rows = []
    for over, keys, zipf in cells:
        times_by_rule = in_turns({name: _timed(rule, keys, zipf) for name, rule in RULES.items()}, turns)
        rows += [
            {"over": over, "partitioner": name, "keys": keys, "zipf": zipf, "batch_ms": round(min(times), 4)}
            for name, times in times_by_rule.items()
        ]
    plot = PLOTS / f"{ID}.svg"
    keep(rows, plan, plot)
    return {"data_blocks": DATA_BLOCKS, "tuples_each": _EACH, "plot": str(plot), "rows": rows}


def _timed(rule: str, keys: int, zipf: float) -> Callable[[], float]:
    """What measures the CPU ms of a batch. Each time a new partitioner gets it."""
    name, options = parse_choice(rule)
    batch = rank_hashes(keys)[zipf_batch(keys, keys * _EACH, zipf, 0)]
    times = np.arange(len(batch))
    create(name, workers=DATA_BLOCKS, **options).assign_batch(batch, times)  # compiles

    def measure() -> float:
        partitioner = create(name, workers=DATA_BLOCKS, **options)
        began = time.thread_time()
        partitioner.assign_batch(batch, times)
        return (time.thread_time() - began) * 1e3

    return measure
