"""The tables `told` and `apart`: sources that hear each other against one source, and against what ideal
sources reach; and how far from level ideal sources are together that hear nobody.

An *ideal* source is a placement to compare with, and no bound: no rare key is split. It hears the others once
a slide. It knows from the beginning which keys are hot, and a replica costs nothing. Each tuple of a hot key
goes to the least loaded of all workers: by what all sources had sent when the slide began, of which each
source levels an equal share, and by what the source itself has sent since. What a worker has too much on
average is known as well, and is taken off. So what is left is what the *others* have sent since the slide
began, which a source cannot know.

Sources that are *apart* hear nobody. Each levels its own tuples by its own loads alone, and each has an
order of its own among equally loaded workers. All split the keys that one source with all tuples would split,
so the share of whole keys is that of one source.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from benchmarks.own_grid.hard_streams import generated_once
from benchmarks.own_grid.measuring import Size, full_windows, scenario_of
from benchmarks.own_grid.seed_ranges import OURS, as_range, in_processes, seeds_of
from benchmarks.pages.tables import median_and_range
from evenflow.numeric.arrays import Bools, Float64s, Int32s, Int64s
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.evenflow.holders import fewest_of
from evenflow.partitioners.evenflow.water_filling import EvenflowOptions, watch_factor
from evenflow.simulation import KeyedStream

STREAMS = (
    ("zipf", 0.0, 1),
    ("zipf", 0.5, 1),
    ("zipf", 1.0, 1),
    ("zipf", 1.5, 1),
    ("zipf", 2.0, 1),
    ("replaced", 1.0, 5),
    ("replaced", 1.5, 5),
    ("drift", 1.0, 1),
    ("drift", 1.5, 1),
    ("wandering-exponent", 1.0, 5),
    ("giant", 1.0, 1),
)
"""Streams of `evenflow simulate` with their exponent and the slides of a period. `wandering-load` has few
full windows.
"""
GOALS = {2: 1.5, 16: 3.0}
"""Times the imbalance of one source that so many sources may have."""
_AFTER = 50
"""Slides after the first full window."""
_PASSES = 2
"""The first pass finds what a worker has too much on average."""
Stream = tuple[str, float, int]


class Ideal(NamedTuple):
    """Ideal sources, and what they are worse or better at."""

    sources: int
    """How many there are."""
    first: int = 0
    """Tuples of a hot key that a source sends to the key's home before it knows that the key is hot."""
    parts: int = 1
    """Times in a slide that the sources hear each other."""
    apart: bool = False
    """The sources hear nobody, and split the keys that one source with all tuples would split."""


OURS_WITH = (1, *GOALS)
IDEAL = (Ideal(2), Ideal(16), Ideal(16, first=fewest_of(16)), Ideal(16, parts=4))


def exchanging_sources(size: Size) -> Iterator[str]:
    """Sources that hear each other every slide, n = 64, 110 slides: imbalance / KSR, medians over the seeds
    with the range.

    `times`: the imbalance as a multiple of that of one source, on the same seed. `ideal`: the same multiple
    for ideal sources, for those that know a key as hot after four of its tuples alone, and for those that
    hear four times a slide.
    """
    size = size._replace(slides=size.window + _AFTER)
    chosen = seeds_of(size)
    ways = (*OURS_WITH, *IDEAL)
    cells = [(size, stream, seed, way) for stream, seed, way in product(STREAMS, chosen, ways)]
    pairs = in_processes(_measured, cells, at_once=len(ways), size=size)
    of_streams = pairs.reshape(len(STREAMS), len(chosen), len(ways), 2)
    yield (
        "| stream | one source | two | times | ideal | sixteen | times | ideal | "
        "ideal, after 4 tuples of a key | ideal, heard 4 times a slide | missed |"
    )
    yield "|---" * 11 + "|"
    for (kind, z, _), found in zip(STREAMS, of_streams, strict=True):
        times = found[:, :, 0] / found[:, :1, 0]
        column = dict(zip(ways, times.T, strict=True))
        single, two, sixteen = (as_range(found[:, at]) for at in range(len(OURS_WITH)))
        missed = [
            f"{sources}: {goal:g}x" for sources, goal in GOALS.items() if np.median(column[sources]) > goal
        ]
        best_two, *best_sixteen = (f"{np.median(column[way]):.2f}" for way in IDEAL)
        yield (
            f"| {kind} {z:g} | {single} | {two} | {median_and_range(column[2], 2)} | {best_two} | "
            f"{sixteen} | {median_and_range(column[16], 2)} | {' | '.join(best_sixteen)} | "
            f"{', '.join(missed)} |"
        )


APART = (1, *GOALS)
"""Numbers of sources that are apart."""


def apart(size: Size) -> Iterator[str]:
    """Ideal sources that hear nobody: how far from level they are together. n = 64, 110 slides, medians over
    the seeds with the range.

    `deviation`: the standard deviation of a worker's tuples above the mean of a window, over workers and
    windows. `fullest`: those of the fullest worker, mean over the windows. With several sources both are
    multiples of those of one ideal source on the same seed, the deviation also divided by the root of S.
    """
    size = size._replace(slides=size.window + _AFTER)
    chosen = seeds_of(size)
    ways = [Ideal(count, apart=True) for count in APART]
    cells = [(size, stream, seed, way) for stream, seed, way in product(STREAMS, chosen, ways)]
    pairs = in_processes(_unevenness, cells, at_once=len(ways), size=size)
    of_streams = pairs.reshape(len(STREAMS), len(chosen), len(ways), 2)
    heads = [f"{what}, S = {count}" for what in ("deviation / root", "fullest") for count in APART[1:]]
    yield f"| stream | deviation, one | fullest, one | {' | '.join(heads)} |"
    yield "|---" * (3 + len(heads)) + "|"
    for (kind, z, _), found in zip(STREAMS, of_streams, strict=True):
        times = found[:, 1:] / found[:, :1]
        columns = [*found[:, 0].T, *(times[:, :, 0] / np.sqrt(APART[1:])).T, *times[:, :, 1].T]
        yield f"| {kind} {z:g} | {' | '.join(median_and_range(column, 2) for column in columns)} |"


def _unevenness(cell: tuple[Size, Stream, int, Ideal]) -> tuple[float, float]:
    """(standard deviation, fullest worker) in tuples above the mean of a window."""
    size, stream, seed, way = cell
    windows = ideal_windows(size, generated_once(size, *stream, seed), seed, way)
    over = windows - windows.mean(axis=1, keepdims=True)
    return float(over.std()), float(over.max(axis=1).mean())


def _measured(cell: tuple[Size, Stream, int, int | Ideal]) -> tuple[float, float]:
    size, stream, seed, way = cell
    keyed_stream = generated_once(size, *stream, seed)
    if isinstance(way, Ideal):
        return float(ideal(size, keyed_stream, seed, way).mean()), 1.0
    figures = full_windows(keyed_stream, OURS, scenario_of(size, seed, way, exchange=way > 1))
    return float(figures.imbalance.mean()), float(figures.ksr.mean())


def ideal(size: Size, stream: KeyedStream, seed: int, way: Ideal) -> Float64s:
    """Imbalance of each full window if ideal sources route the stream, shape (full windows,). Homes are
    hashed.
    """
    windows = ideal_windows(size, stream, seed, way)
    imbalance: Float64s = (windows.max(axis=1) - windows.mean(axis=1)) / windows.sum(axis=1)
    return imbalance


def ideal_windows(size: Size, stream: KeyedStream, seed: int, way: Ideal) -> Float64s:
    """Tuples of each worker in each full window if ideal sources route the stream, shape (full windows,
    workers). Homes are hashed.
    """
    scenario = scenario_of(size, seed, way.sources, exchange=True)
    panes = scenario.panes(stream.times)
    edges = np.searchsorted(panes, np.arange(int(panes[-1]) + 2))
    homes = np.random.default_rng([seed, 1]).integers(0, scenario.workers, stream.key_count).astype(np.int32)
    over = np.zeros((0, scenario.workers))
    surplus = np.zeros(scenario.workers)
    for _ in range(_PASSES):
        surplus += over.mean(axis=0) if len(over) else 0.0
        windows = _windows(stream, edges, homes, surplus, way, scenario.panes_per_window)
        over = windows - windows.mean(axis=1, keepdims=True)
    return windows


def _windows(
    stream: KeyedStream, edges: Int64s, homes: Int32s, surplus: Float64s, way: Ideal, window: int
) -> Float64s:
    """Loads of each full window, (full windows, workers). surplus: what a worker has too much on average,
    (workers,).
    """
    n, sources = len(surplus), way.sources
    turn = (np.arange(n) + np.arange(sources)[:, None]) % sources
    sent = np.zeros((len(edges) - 1, n), np.int64)
    # By source, for sources that are apart: all that such a source knows.
    own = np.zeros((len(edges) - 1 if way.apart else 0, sources, n))
    order = np.random.default_rng(sources)
    counts = np.zeros((sources, stream.key_count), np.int32)
    judges = 1 if way.apart else sources
    rarest = 1 / (EvenflowOptions().watch * n * watch_factor(judges))
    for pane, (low, high) in enumerate(pairwise(edges.tolist())):
        of_pane = np.bincount(stream.codes[low:high], minlength=stream.key_count)
        hot = of_pane >= max(fewest_of(judges), rarest * (high - low))
        recent = slice(max(0, pane - window + 1), pane)
        if way.apart:
            # Among equal loads each source has an order of its own, anew in each slide.
            before = own[recent].sum(axis=0) + surplus / sources + order.random((sources, n))
            share = before.copy()
            _route(stream.codes[low:high], low, homes, hot, way.first, counts, share, sent[pane])
            own[pane] = np.rint(share - before)
            continue
        before = sent[recent].sum(axis=0)
        for first, last in pairwise(np.linspace(low, high, way.parts + 1).astype(np.int64).tolist()):
            # Shares are whole, and together they are all that there is: each source rounds at another point.
            share = (before + sent[pane] + surplus + turn + 0.5) // sources
            _route(stream.codes[first:last], first, homes, hot, way.first, counts, share, sent[pane])
    loads = np.cumsum(np.vstack([np.zeros((1, n), np.int64), sent]), axis=0)
    full: Float64s = (loads[window:] - loads[:-window]).astype(np.float64)
    return full


@kernel
def _route(
    codes: Int32s,
    at: int,
    homes: Int32s,
    hot: Bools,
    first: int,
    counts: Int32s,
    loads: Float64s,
    sent: Int64s,
) -> None:
    """Route tuples from row `at` of the stream on. loads: of each worker as each source knows it,
    (sources, workers).
    """
    for row in range(codes.shape[0]):
        source, key = (at + row) % loads.shape[0], codes[row]
        worker = homes[key]
        if hot[key] and counts[source, key] >= first:
            for other in range(loads.shape[1]):
                if loads[source, other] < loads[source, worker]:
                    worker = other
        counts[source, key] += 1
        loads[source, worker] += 1
        sent[worker] += 1
