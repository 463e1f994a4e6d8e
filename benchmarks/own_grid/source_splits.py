"""The table `dealt`: runs through five sources, dealt to them by turns, or all tuples of a key to one of
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.own_grid.hard_streams import generated_once
from benchmarks.own_grid.measuring import Size, measured, scenario_of
from benchmarks.own_grid.seed_ranges import OURS, RIVAL, as_range, in_processes, seeds_of
from evenflow.numeric.arrays import Int64s
from evenflow.simulation import KeyedStream, entrant

SOURCES = 5
STREAMS = (
    "runs:length=200",
    "runs:length=150,longest=250",
    "runs:length=1000",
    "runs:length=2000,longest=9000",
)
"""Streams of `evenflow simulate`. Their period is a slide."""
TURNS, KEYS = "by turns", "by key"
"""How tuples are dealt to sources. An input topic that is partitioned by the same key deals them by key."""


class SplitCell(NamedTuple):
    """One routing: what to route, how it is dealt, and through whom."""

    stream: str
    """The stream, with its settings behind its name."""
    dealt: str
    """One of TURNS and KEYS."""
    name: str
    """The partitioner."""
    seed: int
    """Seed of the stream and of the hashes."""


def dealt(size: Size) -> Iterator[str]:
    """Runs through five sources, n = 64, slides of a quarter: medians over the seeds with the range,
    imbalance / KSR.
    """
    size = size._replace(slide=size.slide // 4)
    chosen = seeds_of(size)
    names, lines = (OURS, RIVAL), list(product(STREAMS, (TURNS, KEYS)))
    cells = [
        (size, SplitCell(stream, how, name, seed))
        for (stream, how), seed, name in product(lines, chosen, names)
    ]
    pairs = in_processes(_measured, cells, at_once=len(names), size=size)
    table = pairs.reshape(len(lines), len(chosen), len(names), 2)
    yield f"| stream | dealt | {OURS} | {RIVAL} |"
    yield "|---|---|---|---|"
    for row, (stream, how) in enumerate(lines):
        yield f"| `{stream}` | {how} | {as_range(table[row, :, 0])} | {as_range(table[row, :, 1])} |"


def source_of(stream: KeyedStream, how: str) -> Int64s:
    """The source of each tuple, shape (m,)."""
    if how == TURNS:
        return np.arange(len(stream)) % SOURCES
    return (stream.keys % np.uint64(SOURCES)).astype(np.int64)


def _measured(one: tuple[Size, SplitCell]) -> tuple[float, float]:
    size, cell = one
    stream = generated_once(size, cell.stream, 1.0, 1, cell.seed)
    scenario = scenario_of(size, cell.seed, SOURCES, exchange=False)
    sources, out = source_of(stream, cell.dealt), np.empty(len(stream), np.int32)
    for source, partitioner in enumerate(scenario.partitioners(entrant(cell.name), stream)):
        mine = sources == source
        out[mine] = partitioner.assign(stream.keys[mine], stream.times[mine])
    figures, first = measured(size, stream.codes.astype(np.int64), out, scenario.workers), size.window - 1
    return float(figures.imbalance[first:].mean()), float(figures.ksr[first:].mean())
