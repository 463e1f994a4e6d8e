"""Streams and sizes of own_grid, and the figures of a routed stream."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evenflow.generation.rank_laws import Zipf
from evenflow.metrics import window_figures
from evenflow.numeric.arrays import Float64s, Int32s, Int64s
from evenflow.partitioners import Partitioner, create
from evenflow.partitioners.fitting import fitted
from evenflow.simulation import Channel, Entrant, KeyedStream, Scenario, entrant
from evenflow.simulation.routing import route
from evenflow.simulation.streams import rank_hashes


class Size(NamedTuple):
    """How much is measured. A stream has one tuple per ms. Figures are of the slides from the first full
    window on.
    """

    keys: int
    """Distinct keys of a stream."""
    slide: int
    """Tuples in a slide."""
    slides: int
    """Slides of a whole stream."""
    window: int
    """Slides in a window."""
    change: int
    """Slide at which the stream `shift` changes."""
    seeds: tuple[int, ...]
    """Seeds of streams and hashes. Figures are medians over them."""
    plot: Path
    """Where the price curve is drawn."""

    @property
    def few(self) -> Size:
        """This size with three seeds at most, for figures that depend little on the hash."""
        return self._replace(seeds=self.seeds[:3])

    @property
    def tuples(self) -> int:
        """Tuples of a whole stream."""
        return self.slides * self.slide

    def created(self, who: Entrant, workers: int, seed: int, **more: Any) -> Partitioner:
        """The partitioner. If its rule knows of windows, it is told this size's window and slide."""
        window, slide = self.window * self.slide, self.slide
        # `fitted` adds the window only if the rule knows of windows.
        options = fitted(who.name, {**who.options, **more}, window_ms=window, slide_ms=slide)
        return create(who.name, workers=workers, seed=seed, **options)


FULL = Size(100_000, 10_000, 180, 60, 120, tuple(range(1, 11)), Path("docs/evenflow-partitioner/price.svg"))
QUICK = Size(500, 200, 24, 6, 12, (1,), Path(".evenflow/own_grid/price.svg"))


class Figures(NamedTuple):
    """Figures of the window that ends with each slide. Shapes (slides,)."""

    imbalance: Float64s
    """(max load - mean load) / tuples."""
    ksr: Float64s
    """Replicas of keys over distinct keys."""


@lru_cache(maxsize=12)
def ranks(size: Size, kind: str, seed: int) -> Int64s:
    """Key number of each tuple. `kind`: `uniform`, a Zipf exponent, or `shift` (uniform, Zipf 1.5 from
    `change` on).
    """
    # The tables of the page are of these draws. `simulation.generated` draws from other sequences.
    rng = np.random.default_rng(seed)
    if kind == "shift":
        before = rng.integers(0, size.keys, size.change * size.slide)
        return np.concatenate([before, _zipf(rng, size.keys, size.tuples - len(before), 1.5)])
    if kind == "uniform":
        return rng.integers(0, size.keys, size.tuples)
    return _zipf(rng, size.keys, size.tuples, float(kind))


hashes_of = cache(rank_hashes)


def _zipf(rng: np.random.Generator, keys: int, tuples: int, exponent: float) -> Int64s:
    return Zipf(keys, exponent).ranks(rng.random(tuples), 0)


def measured(size: Size, keys: Int64s, out: Int32s, n: int) -> Figures:
    """Figures of a routing. keys: key number of each tuple. out: worker of each tuple."""
    panes = np.arange(len(keys), dtype=np.int64) // size.slide
    found = window_figures(out, keys, panes, n, panes_per_window=size.window)
    return Figures(found.imbalance[: size.slides], (found.gamma / found.distinct)[: size.slides])


def routed(size: Size, name: str, kind: str, n: int, seed: int, **more: Any) -> Int32s:
    """Worker of each tuple of the stream, routed by one instance."""
    keys = ranks(size, kind, seed)
    p = size.created(entrant(name), n, seed, **more)
    return p.assign(hashes_of(size.keys)[keys], np.arange(len(keys)))


@cache
def run(
    size: Size, name: str, kind: str, n: int, seed: int, more: tuple[tuple[str, Any], ...] = ()
) -> Figures:
    """Route the stream and measure it."""
    return measured(size, ranks(size, kind, seed), routed(size, name, kind, n, seed, **dict(more)), n)


def median(size: Size, name: str, kind: str, n: int, **more: Any) -> tuple[float, float]:
    """Imbalance and KSR, as medians over the seeds of the means over the slides that count."""
    return medians(size, [run(size, name, kind, n, seed, tuple(more.items())) for seed in size.seeds])


def medians(size: Size, runs: list[Figures]) -> tuple[float, float]:
    """Imbalance and KSR, as medians over the runs of the means over the slides that count."""
    first = size.window
    return (
        float(np.median([figures.imbalance[first:].mean() for figures in runs])),
        float(np.median([figures.ksr[first:].mean() for figures in runs])),
    )


def scenario_of(size: Size, seed: int, sources: int, exchange: bool) -> Scenario:
    """The scenario of this size with 64 workers. `exchange`: the sources hear each other every slide."""
    return Scenario(
        workers=64,
        sources=sources,
        seed=seed,
        exchange=Channel() if exchange else None,
        window_ms=size.window * size.slide,
        slide_ms=size.slide,
    )


def full_windows(stream: KeyedStream, name: str, scenario: Scenario, *, blind: bool = False) -> Figures:
    """Figures of a routing, of the windows that are full alone: not of the first ones, and not after a
    silence.

    They are of costs, if tuples have some. blind: the partitioner is not told what tuples cost.
    """
    workers = route(replace(stream, costs=None) if blind else stream, entrant(name), scenario).workers
    panes, window = scenario.panes(stream.times), scenario.panes_per_window
    figures = window_figures(
        workers, stream.codes, panes, scenario.workers, panes_per_window=window, costs=stream.costs
    )
    # Tuples come without a silence of a window in each stretch of panes from `first` to `last`.
    present = np.unique(panes)
    breaks = np.flatnonzero(np.diff(present) > window) + 1
    first, last = present[np.concatenate([[0], breaks])], present[np.concatenate([breaks - 1, [-1]])]
    stretch = np.searchsorted(first, figures.ends, side="right") - 1
    full = (figures.ends - window + 1 >= first[stretch]) & (figures.ends <= last[stretch])
    if not full.any():  # so few tuples that one silence follows the other
        full[:] = True
    return Figures(figures.imbalance[full], figures.ksr[full])
