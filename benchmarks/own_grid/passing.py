"""The parts `passing` and `seeds`: keys that come and go, and every claim over twenty seeds with its range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.own_grid.changing import HARD, generated_once
from benchmarks.own_grid.measuring import Size, full_windows, scenario_of

SEEDS = range(1, 21)
_SMALLER = 4
"""Twenty seeds of the usual size would take hours."""
OURS = "evenflow"
PASSING = (
    *(f"runs:length={length}" for length in (5, 20, 50, 200, 500, 1000, 5000)),
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
CHANGING = ("d-choices:head=window",)
"""The form of `d-choices` that forgets. The cumulative one is further from level where hot keys change (the part `hard`)."""


class Cell(NamedTuple):
    """One routing: what to route through whom."""

    stream: str
    zipf: float
    period: int
    """Slides."""
    sources: int
    name: str
    seed: int


class Spread(NamedTuple):
    """A figure over the seeds."""

    median: float
    least: float
    greatest: float


def passing(size: Size) -> Iterator[str]:
    """Keys that come and go, n = 64, slides of a quarter: medians over the seeds with the range, imbalance / KSR."""
    size = size._replace(slide=size.slide // _SMALLER)
    lines = [*((stream, 1.0, 1, 1) for stream in PASSING), *((stream, 1.0, 1, 5) for stream in SEVERAL)]
    found = _spreads(size, lines, (OURS, *RIVALS))
    yield "| stream | sources | evenflow | " + " | ".join(RIVALS) + " |"
    yield "|---" * (len(RIVALS) + 3) + "|"
    for line in lines:
        ours, *others = (found[line, name] for name in (OURS, *RIVALS))
        cells = [_range(ours), *(f"{level.median:.1e} / {ksr.median:.3f}" for level, ksr in others)]
        yield f"| `{line[0]}` | {line[3]} | " + " | ".join(cells) + " |"


def seeds(size: Size) -> Iterator[str]:
    """The streams that change over all seeds, n = 64, slides of a quarter: imbalance / KSR with their range."""
    size = size._replace(slide=size.slide // _SMALLER)
    lines = [(*stream, sources) for stream in HARD for sources in (1, 5)]
    found = _spreads(size, lines, (OURS, *CHANGING))
    every = _pairs(size, lines, (OURS, *CHANGING))
    yield ("| stream | sources | evenflow | " + " | ".join(CHANGING) + " | times nearer |")
    yield "|---" * (len(CHANGING) + 4) + "|"
    for line in lines:
        ours = every[line, OURS][:, 0]
        best = np.min([every[line, name][:, 0] for name in CHANGING], axis=0)
        times = best / ours
        cells = [_range(found[line, name]) for name in (OURS, *CHANGING)]
        shown = f"{np.median(times):.2g} ({times.min():.2g}-{times.max():.2g})"
        yield f"| {line[0]} {line[1]:g} | {line[3]} | " + " | ".join(cells) + f" | {shown} |"


def _range(spread: tuple[Spread, Spread]) -> str:
    level, ksr = spread
    return (
        f"{level.median:.1e} ({level.least:.1e}-{level.greatest:.1e}) / "
        f"{ksr.median:.3f} ({ksr.least:.3f}-{ksr.greatest:.3f})"
    )


Line = tuple[str, float, int, int]
"""Stream, exponent, slides of a period, sources."""


def _spreads(
    size: Size, lines: Sequence[Line], names: Sequence[str]
) -> dict[tuple[Line, str], tuple[Spread, Spread]]:
    return {
        which: (_spread(values[:, 0]), _spread(values[:, 1]))
        for which, values in _pairs(size, lines, names).items()
    }


def _spread(values: np.ndarray) -> Spread:
    return Spread(float(np.median(values)), float(values.min()), float(values.max()))


_KNOWN: dict[tuple[Size, Cell], tuple[float, float]] = {}


def _pairs(size: Size, lines: Sequence[Line], names: Sequence[str]) -> dict[tuple[Line, str], np.ndarray]:
    """Imbalance and KSR of every seed, shape (seeds, 2), by line and name."""
    chosen = SEEDS if len(size.seeds) > 1 else SEEDS[:2]
    cells = [(size, Cell(*line, name, seed)) for line, seed, name in product(lines, chosen, names)]
    missing = [cell for cell in cells if cell not in _KNOWN]
    # Names of the same stream and seed lie together, so that a process generates few streams twice.
    if len(size.seeds) > 1:
        with ProcessPoolExecutor() as pool:
            found = list(pool.map(_measured, missing, chunksize=len(names)))
    else:
        found = [_measured(cell) for cell in missing]
    _KNOWN.update(zip(missing, found, strict=True))
    return {
        (line, name): np.array([_KNOWN[size, Cell(*line, name, seed)] for seed in chosen])
        for line, name in product(lines, names)
    }


def _measured(one: tuple[Size, Cell]) -> tuple[float, float]:
    size, cell = one
    made = generated_once(size, cell.stream, cell.zipf, cell.period, cell.seed)
    figures = full_windows(size, made, cell.name, scenario_of(size, cell.seed, cell.sources, exchange=False))
    return float(figures.imbalance.mean()), float(figures.ksr.mean())
