"""The table `reach`: what placements reach that know the future, each source that of its own tuples alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.own_grid.hard_streams import generated_once
from benchmarks.own_grid.measuring import Size, full_windows, scenario_of
from benchmarks.own_grid.seed_ranges import OURS, RIVAL, as_range, seeds_of
from evenflow.metrics import window_figures
from evenflow.numeric.arrays import Float64s, Int32s, Int64s
from evenflow.simulation import KeyedStream

WORKERS = 64
_GOLDEN = (5**0.5 - 1) / 2
_HOT = 0.5
"""Keys with at least this share of a worker's tuples lie on the ring."""
RUNS = (
    ("runs:length=10", 1),
    ("runs:length=1000", 1),
    ("runs:length=200", 5),
    ("runs:length=150,longest=250", 5),
)
"""Streams with the number of their sources."""
REPLACED = ("replaced", 1.5, 5)
"""Stream, exponent, slides of a period."""


def reach(size: Size) -> Iterator[str]:
    """Windows of the whole stream / without its first window, and what is reachable: imbalance / KSR, with
    the range.
    """
    chosen = seeds_of(size)
    small = size._replace(slide=size.slide // 4)
    yield (
        "| stream | sources | evenflow | evenflow, later | d-choices:head=window, later | knows its own"
        " future |"
    )
    yield "|---" * 6 + "|"
    for stream, sources in RUNS:
        rows = [_runs(small, stream, sources, seed) for seed in chosen]
        yield f"| `{stream}` | {sources} | {_cells(rows)} |"
    rows = [_replaced(size, seed, sources=5) for seed in chosen]
    yield f"| {REPLACED[0]} {REPLACED[1]:g} | 5 | {_cells(rows)} |"


def _cells(rows: list[list[tuple[float, float]]]) -> str:
    return " | ".join(as_range(column) for column in np.array(rows).swapaxes(0, 1))


def _runs(size: Size, stream: str, sources: int, seed: int) -> list[tuple[float, float]]:
    made = generated_once(size, stream, 1.0, 1, seed)
    return [*_routed(size, made, sources, seed), _pair(size, made, whole_runs(made.codes, size, sources))]


def _replaced(size: Size, seed: int, sources: int) -> list[tuple[float, float]]:
    made = generated_once(size, *REPLACED, seed)
    out = on_rings(made, size, sources, REPLACED[2])
    return [*_routed(size, made, sources, seed), _pair(size, made, out)]


def _routed(size: Size, made: KeyedStream, sources: int, seed: int) -> list[tuple[float, float]]:
    """evenflow in all full windows and in later ones, and its rival in later ones."""
    ours, rival = (
        full_windows(made, name, scenario_of(size, seed, sources, exchange=False)) for name in (OURS, RIVAL)
    )
    later = slice(size.window, None)
    return [
        (float(figures.imbalance[part].mean()), float(figures.ksr[part].mean()))
        for figures, part in ((ours, slice(None)), (ours, later), (rival, later))
    ]


def _pair(size: Size, made: KeyedStream, out: Int32s) -> tuple[float, float]:
    panes = np.arange(len(out), dtype=np.int64) // size.slide
    found = window_figures(out, made.codes, panes, WORKERS, panes_per_window=size.window)
    later = slice(2 * size.window - 1, size.slides)
    return float(found.imbalance[later].mean()), float((found.gamma / found.distinct)[later].mean())


def whole_runs(codes: Int32s, size: Size, sources: int) -> Int32s:
    """Each source puts each run whole on the worker with the least load of its window. Workers, shape (m,).

    codes: key number of each tuple, shape (m,). Source t mod `sources` sees tuple t, and knows how long a run
    will be.
    """
    out = np.empty(len(codes), np.int32)
    for source in range(sources):
        mine, window = codes[source::sources], size.window * size.slide // sources
        begins = np.concatenate([[0], np.flatnonzero(np.diff(mine)) + 1])
        lengths = np.diff(begins, append=len(mine))
        workers, loads, oldest = np.empty(len(begins), np.int32), np.zeros(WORKERS, np.int64), 0
        for run, (begin, length) in enumerate(zip(begins.tolist(), lengths.tolist(), strict=True)):
            # A run counts until all of it has left the window.
            while oldest < run and begins[oldest] + lengths[oldest] <= begin + length - window:
                loads[workers[oldest]] -= lengths[oldest]
                oldest += 1
            workers[run] = loads.argmin()
            loads[workers[run]] += length
        out[source::sources] = np.repeat(workers, lengths)
    return out


def on_rings(stream: KeyedStream, size: Size, sources: int, period: int) -> Int32s:
    """Each source knows how many of its tuples each key will have in a period of so many slides. Workers,
    shape (m,).

    In the order of their hashes, which all sources share, hot keys fill one worker after the other, up to
    what the other keys leave of it. The others stay on the worker of their hash.
    """
    codes, out = stream.codes, np.empty(len(stream), np.int32)
    hashes = np.zeros(stream.key_count, np.uint64)
    hashes[codes] = stream.keys
    homes, order = (hashes % WORKERS).astype(np.int64), hashes.argsort()
    for first in range(0, len(codes), period * size.slide):
        for source in range(sources):
            rows = np.arange(first + source, min(first + period * size.slide, len(codes)), sources)
            out[rows] = _ring(codes[rows], homes, order)
    return out


def _ring(mine: Int32s, homes: Int64s, order: Int64s) -> Int32s:
    counts = np.bincount(mine, minlength=len(homes))
    hot = order[counts[order] >= _HOT * len(mine) / WORKERS]
    is_hot = np.zeros(len(homes), bool)
    is_hot[hot] = True
    rest = np.bincount(homes[mine[~is_hot[mine]]], minlength=WORKERS)
    room = np.maximum(0.0, len(mine) / WORKERS - rest)
    edges = np.cumsum(room) * counts[hot].sum() / room.sum()
    begins = np.zeros(len(homes))
    begins[hot] = np.cumsum(counts[hot]) - counts[hot]
    # The tuples of a key go to all of its stretch in turn.
    places = begins[mine] + counts[mine] * (_turn(mine) * _GOLDEN % 1.0)
    ringed = np.minimum(np.searchsorted(edges, places, side="right"), WORKERS - 1)
    return np.where(is_hot[mine], ringed, homes[mine]).astype(np.int32)


def _turn(mine: Int32s) -> Float64s:
    """How many tuples of its key come before each tuple. Shape (m,)."""
    by_key = mine.argsort(kind="stable")
    begins = np.concatenate([[0], np.flatnonzero(np.diff(mine[by_key])) + 1])
    turns = np.empty(len(mine))
    turns[by_key] = np.arange(len(mine)) - np.repeat(begins, np.diff(begins, append=len(mine)))
    return turns
