"""What it costs Dalton to count keys, by the length of the statistics window (figures 10a and 10b of 000)."""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np

from benchmarks.measuring.spread import in_turns
from benchmarks.partitioners.routing import SEED, WORKERS, RoutingSize, Warm
from evenflow.generation.rank_laws import RANKS, Zipf
from evenflow.numeric.arrays import UInt64s
from evenflow.simulation.streams import rank_hashes

ID = "partitioners-statistics"
WHAT = (
    "ns per tuple of dalton by heavy_hitters and statistics window, n = 64, a million keys, uniform and"
    " Zipf 1.5"
)
_WAYS = ("exact", "sketch", "hybrid")
_LAWS = {"uniform": 0.0, "Zipf 1.5": 1.5}


def run(*, smoke: bool) -> dict[str, Any]:
    """A row for each law and length of the statistics window, with ns per tuple of each way to count."""
    how_much = RoutingSize(20_000, 20_000, 1) if smoke else RoutingSize(2_000_000, 1_000_000, 3)
    rows = []
    for law, exponent in _LAWS.items():
        keys = _keys(how_much.warm, 1_000 if smoke else 1_000_000, exponent)
        for stats_ms in (100,) if smoke else (1_000, 10_000, 100_000):
            labels = [f"dalton:heavy_hitters={way},stats_ms={stats_ms}" for way in _WAYS]
            ways = {label: Warm(label, keys, how_much) for label in labels}
            ns = in_turns(ways, how_much.repetitions)
            tuples = 10 * stats_ms
            rows.append(
                {
                    "law": law,
                    "tuples_in_a_window": tuples,
                    "keys_in_a_window": len(np.unique(keys[:tuples])),
                    **{way: round(median(ns[label]), 1) for way, label in zip(_WAYS, labels, strict=True)},
                }
            )
    return {"workers": WORKERS, "windows": rows}


def _keys(tuples: int, count: int, exponent: float) -> UInt64s:
    """Key hashes of a stream, shape (tuples,)."""
    ranks = Zipf(count, exponent).ranks(np.random.default_rng([SEED, RANKS]).random(tuples), 0)
    return rank_hashes(count)[ranks]
