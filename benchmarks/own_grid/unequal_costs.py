"""The table `work`: tuples that cost differently, over twenty seeds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from benchmarks.own_grid.costs import LAWS, with_costs
from benchmarks.own_grid.hard_streams import generated_once
from benchmarks.own_grid.measuring import Size, full_windows, scenario_of
from benchmarks.own_grid.seed_ranges import compared, in_processes, seeds_of
from evenflow.simulation import KeyedStream

_SMALLER = 4
_OURS, _BLIND = "evenflow", "evenflow, blind"
_RIVALS = ("d-choices:head=window", "w-choices:head=window", "pkg", "hashing")
_LAWS = {"costly": "a cheap hot key, a dear rare one", **LAWS}
"""Zipf 1.2, but for `costly`."""


def work(size: Size) -> Iterator[str]:
    """Costs of tuples, n = 64, slides of a quarter: imbalance of costs / KSR, medians over the seeds with
    the range.
    """
    size = size._replace(slide=size.slide // _SMALLER)
    chosen = seeds_of(size)
    names = (_OURS, _BLIND, *_RIVALS)
    lines = [*((law, 1) for law in _LAWS), ("costly", 5), ("keys", 5)]
    cells = [(size, *line, name, seed) for line, seed, name in product(lines, chosen, names)]
    pairs = in_processes(_measured, cells, at_once=len(names), size=size)
    found = pairs.reshape(len(lines), len(chosen), len(names), 2)
    yield "| costs | sources | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 2) + "|"
    for row, (law, sources) in enumerate(lines):
        yield f"| {_LAWS[law]} | {sources} | {compared(found[row].swapaxes(0, 1))} |"


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
    return with_costs(generated_once(size, "zipf", 1.2, 1, seed), law, seed)
