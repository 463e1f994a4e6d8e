"""The tables `passing` and `seeds`: keys that come and go, and every claim over twenty seeds with its
range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from benchmarks.own_grid.hard_streams import HARD, generated_once
from benchmarks.own_grid.measuring import Size, full_windows, scenario_of

SEEDS = range(1, 21)
_SMALLER = 4
"""Twenty seeds of the usual size would take hours."""
OURS = "evenflow"
PASSING = (
    *(f"runs:length={length}" for length in (5, 10, 20, 50, 200, 500, 1000, 5000)),
    "runs:length=2000,longest=9000",
    "flash",
    "sessions",
    "sessions:alive=5000",
    "disjoint",
    "few",
)
"""Streams of `evenflow simulate`. Their period is a slide."""
SEVERAL = ("runs:length=200", "runs:length=2000,longest=9000", "disjoint")
"""Those of them that go through five sources too."""
RIVALS = ("d-choices:head=window", "w-choices:head=window", "cg", "cam")
RIVAL = "d-choices:head=window"
"""The form of `d-choices` that forgets. The cumulative one is further from level where hot keys change
(the table `hard`).
"""


class Cell(NamedTuple):
    """One routing: what to route through whom."""

    stream: str
    """A law of `evenflow simulate` with its options."""
    zipf: float
    """Exponent of the law."""
    period: int
    """Slides."""
    sources: int
    """Instances that route the stream."""
    name: str
    """The partitioner with its options."""
    seed: int
    """Seed of the stream and the hashes."""


def passing(size: Size) -> Iterator[str]:
    """Keys that come and go, n = 64, slides of a quarter: medians over the seeds with the range, imbalance
    / KSR.
    """
    size = size._replace(slide=size.slide // _SMALLER)
    lines = [*((stream, 1.0, 1, 1) for stream in PASSING), *((stream, 1.0, 1, 5) for stream in SEVERAL)]
    found = _pairs(size, lines, (OURS, *RIVALS))
    yield "| stream | sources | evenflow | " + " | ".join(RIVALS) + " |"
    yield "|---" * (len(RIVALS) + 3) + "|"
    for line in lines:
        cells = compared([found[line, name] for name in (OURS, *RIVALS)])
        yield f"| `{line[0]}` | {line[3]} | {cells} |"


def seeds(size: Size) -> Iterator[str]:
    """The streams that change over all seeds, n = 64, slides of a quarter: imbalance / KSR with their
    range.
    """
    size = size._replace(slide=size.slide // _SMALLER)
    lines = [(*stream, sources) for stream in HARD for sources in (1, 5)]
    found = _pairs(size, lines, (OURS, RIVAL))
    yield f"| stream | sources | evenflow | {RIVAL} | times nearer |"
    yield "|---|---|---|---|---|"
    for line in lines:
        ours, others = found[line, OURS], found[line, RIVAL]
        times = others[:, 0] / ours[:, 0]
        shown = f"{np.median(times):.2g} ({times.min():.2g}-{times.max():.2g})"
        yield f"| {line[0]} {line[1]:g} | {line[3]} | {as_range(ours)} | {as_range(others)} | {shown} |"


def seeds_of(size: Size) -> Sequence[int]:
    """The seeds of a table that has twenty: all of them, or two in a quick run."""
    return SEEDS if len(size.seeds) > 1 else SEEDS[:2]


def compared(names: Iterable[np.ndarray]) -> str:
    """The cells of a row: the first of these with its range, medians of the others. names: each of shape
    (seeds, 2).
    """
    ours, *others = names
    return " | ".join(
        [as_range(ours), *("{:.1e} / {:.3f}".format(*np.median(pairs, axis=0)) for pairs in others)]
    )


def as_range(pairs: np.ndarray) -> str:
    """The medians of imbalance and KSR over the seeds, each with its range. pairs: shape (seeds, 2)."""
    (level, ksr), (low, few), (high, many) = np.median(pairs, axis=0), pairs.min(axis=0), pairs.max(axis=0)
    return f"{level:.1e} ({low:.1e}-{high:.1e}) / {ksr:.3f} ({few:.3f}-{many:.3f})"


Line = tuple[str, float, int, int]
"""Stream, exponent, slides of a period, sources."""


def _pairs(size: Size, lines: Sequence[Line], names: Sequence[str]) -> dict[tuple[Line, str], np.ndarray]:
    """Imbalance and KSR of every seed, shape (seeds, 2), by line and name."""
    chosen = seeds_of(size)
    cells = [(size, Cell(*line, name, seed)) for line, seed, name in product(lines, chosen, names)]
    # Names of the same stream and seed lie together, so that a process generates few streams twice.
    found = in_processes(_measured, cells, at_once=len(names), size=size)
    pairs = found.reshape(len(lines), len(chosen), len(names), 2)
    return {
        (line, name): pairs[row, :, column]
        for row, line in enumerate(lines)
        for column, name in enumerate(names)
    }


def in_processes(
    measure: Callable[[Any], tuple[float, ...]], cells: Sequence[Any], *, at_once: int, size: Size
) -> np.ndarray:
    """What `measure` gives for each cell, shape (cells, figures of a cell). at_once: cells in a row that one
    process measures.
    """
    if len(size.seeds) == 1:
        return np.array([measure(cell) for cell in cells])
    with ProcessPoolExecutor() as pool:
        return np.array(list(pool.map(measure, cells, chunksize=at_once)))


def _measured(one: tuple[Size, Cell]) -> tuple[float, float]:
    size, cell = one
    made = generated_once(size, cell.stream, cell.zipf, cell.period, cell.seed)
    figures = full_windows(made, cell.name, scenario_of(size, cell.seed, cell.sources, exchange=False))
    return float(figures.imbalance.mean()), float(figures.ksr.mean())
