"""The part `work`: tuples that cost differently, over twenty seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from benchmarks.own_grid.changing import generated_once
from benchmarks.own_grid.measuring import Size, full_windows, scenario_of
from benchmarks.own_grid.passing import SEEDS, as_range, in_processes
from evenflow.arrays import Int64s
from evenflow.partitioners.costs import MAX_COST
from evenflow.simulation import KeyedStream

_SMALLER = 4
_OURS, _BLIND = "evenflow", "evenflow, blind"
_RIVALS = ("d-choices:head=window", "w-choices:head=window", "pkg", "hashing")
LAWS = {
    "costly": "a cheap hot key, a dear rare one",
    "wide": "costs of 1 to 100, at random",
    "keys": "costs of 1 to 200, by key",
    "cheap hot key": "the hottest key costs 1, others 50",
    "heavy": "Pareto 1.5, at random: a few tuples cost most",
}
"""Zipf 1.2, but for `costly`."""


def work(size: Size) -> Iterator[str]:
    """Costs of tuples, n = 64, slides of a quarter: imbalance of costs / KSR, medians over the seeds with the range."""
    size = size._replace(slide=size.slide // _SMALLER)
    chosen = SEEDS if len(size.seeds) > 1 else SEEDS[:2]
    names = (_OURS, _BLIND, *_RIVALS)
    lines = [*((law, 1) for law in LAWS), ("costly", 5), ("keys", 5)]
    cells = [(size, *line, name, seed) for line, seed, name in product(lines, chosen, names)]
    pairs = in_processes(_measured, cells, at_once=len(names), size=size)
    found = pairs.reshape(len(lines), len(chosen), len(names), 2)
    yield "| costs | sources | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 2) + "|"
    for row, (law, sources) in enumerate(lines):
        ours, *others = (found[row, :, column] for column in range(len(names)))
        shown = ["{:.1e} / {:.3f}".format(*np.median(pairs, axis=0)) for pairs in others]
        yield f"| {LAWS[law]} | {sources} | " + " | ".join([as_range(ours), *shown]) + " |"


def _measured(cell: tuple[Size, str, int, str, int]) -> tuple[float, float]:
    size, law, sources, name, seed = cell
    made = _stream(size, law, seed)
    scenario = scenario_of(size, seed, sources, exchange=False)
    blind = name == _BLIND
    figures = full_windows(made, _OURS if blind else name, scenario, blind=blind)
    return float(figures.imbalance.mean()), float(figures.ksr.mean())


def _stream(size: Size, law: str, seed: int) -> KeyedStream:
    if law == "costly":
        return generated_once(size, law, 1.2, 1, seed)
    made = generated_once(size, "zipf", 1.2, 1, seed)
    return replace(made, costs=_costs(law, made, np.random.default_rng(seed)))


def _costs(law: str, made: KeyedStream, rng: np.random.Generator) -> Int64s:
    """Cost of each tuple, shape (tuples,)."""
    tuples = len(made)
    if law == "wide":
        return rng.integers(1, 101, tuples)
    if law == "keys":
        return rng.integers(1, 201, made.key_count)[made.codes]
    if law == "cheap hot key":
        hottest = np.bincount(made.codes).argmax()
        return np.where(made.codes == hottest, 1, 50)
    costs: Int64s = np.minimum(MAX_COST, 1 + 10 * rng.pareto(1.5, tuples)).astype(np.int64)
    return costs
