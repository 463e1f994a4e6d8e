"""What tuples cost, in streams whose law says nothing of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenflow.numeric.arrays import Int64s
from evenflow.partitioners.costs import MAX_COST
from evenflow.simulation import KeyedStream

LAWS = {
    "wide": "costs of 1 to 100, at random",
    "keys": "costs of 1 to 200, by key",
    "cheap hot key": "the hottest key costs 1, others 50",
    "heavy": "Pareto 1.5, at random: a few tuples cost most",
}


def with_costs(made: KeyedStream, law: str, seed: int) -> KeyedStream:
    """The stream with costs by a law of LAWS."""
    return replace(made, costs=_costs(law, made, np.random.default_rng(seed)))


def _costs(law: str, stream: KeyedStream, rng: np.random.Generator) -> Int64s:
    """Cost of each tuple, shape (tuples,)."""
    tuples = len(stream)
    if law == "wide":
        return rng.integers(1, 101, tuples)
    if law == "keys":
        return rng.integers(1, 201, stream.key_count)[stream.codes]
    if law == "cheap hot key":
        hottest = np.bincount(stream.codes).argmax()
        return np.where(stream.codes == hottest, 1, 50)
    costs: Int64s = np.minimum(MAX_COST, 1 + 10 * rng.pareto(1.5, tuples)).astype(np.int64)
    return costs
