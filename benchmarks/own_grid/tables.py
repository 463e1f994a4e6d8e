"""The tables of own_grid, each a function that yields its lines. Some functions have a file of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import pictures
from benchmarks.own_grid.cooperation import apart, exchanging_sources
from benchmarks.own_grid.giant_key import giant
from benchmarks.own_grid.hard_streams import hard
from benchmarks.own_grid.measuring import (
    Figures,
    Size,
    hashes_of,
    measured,
    median,
    medians,
    ranks,
    routed,
    run,
    scenario_of,
)
from benchmarks.own_grid.offline_placements import reach
from benchmarks.own_grid.seed_ranges import passing, seeds
from benchmarks.own_grid.source_splits import dealt
from benchmarks.own_grid.unequal_costs import work
from benchmarks.own_grid.words import title, verdict
from benchmarks.own_grid.worst_streams import worst_streams
from benchmarks.pictures import SPLIT_LEAST, keep
from evenflow.metrics import fragmentation, worker_loads
from evenflow.simulation import KeyedStream, entrant
from evenflow.simulation.routing import route

WORKERS = (5, 16, 64, 256)


def suite(size: Size) -> Iterator[str]:
    """000's windowed suite at n = 64."""
    names = (
        *("hashing", "pkg", "d-choices", "d-choices:distinct=true", "w-choices", "rr-head", "pstream", "cg"),
        *("dagreedy", "dalton", "cam", "dkg-rivetti", "mixed", "gedik", "osg", "evenflow"),
    )
    yield from _compared(size, names, {kind: title(kind) for kind in ("uniform", "1.0", "1.5", "shift")})


def _compared(size: Size, names: Sequence[str], streams: Mapping[str, str]) -> Iterator[str]:
    """Imbalance / KSR of each partitioner at n = 64. `streams`: kind -> its name in the table."""
    yield "| stream | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for kind, called in streams.items():
        cells = ["{:.1e} / {:.4f}".format(*median(size, name, kind, 64)) for name in names]
        yield f"| {called} | " + " | ".join(cells) + " |"


def grid(size: Size) -> Iterator[str]:
    """The goals on every stream and number of workers."""
    yield "| stream | n | d-choices | dalton | evenflow | I <= max(d-choices, 1e-5) | KSR <= both |"
    yield "|---|---|---|---|---|---|---|"
    for kind in ("uniform", "0.5", "1.0", "1.5", "2.0"):
        for n in WORKERS:
            found = {name: median(size, name, kind, n) for name in ("d-choices", "dalton", "evenflow")}
            level, ksr = found["evenflow"]
            balanced = level <= max(found["d-choices"][0], 1e-5)
            whole = ksr <= min(found["d-choices"][1], found["dalton"][1])
            cells = " | ".join(f"{i:.2e} / {k:.5f}" for i, k in found.values())
            yield f"| {title(kind)} | {n} | {cells} | {verdict(balanced)} | {verdict(whole)} |"


def many(size: Size) -> Iterator[str]:
    """Ten times as many keys: most of them come and go within a window, n = 64."""
    size = size.few._replace(keys=10 * size.keys)
    names = ("hashing", "pkg", "d-choices", "cam", "evenflow")
    kinds = ("uniform", "0.5", "1.0")
    yield from _compared(size, names, {kind: f"{title(kind)}, {size.keys:,} keys" for kind in kinds})


PRICES = (0.0, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 4e-3, 1e-2, 3e-2, 0.1, 1.0, 1e9)
PRICED = ("uniform", "1.0", "1.5", "2.0")


def price(size: Size) -> Iterator[str]:
    """The trade-off: imbalance / KSR at n = 64, for prices from 0 to one at which no key is ever split."""
    size = size.few
    yield "| price | uniform | Zipf 1.0 | Zipf 1.5 | Zipf 2.0 |"
    yield "|---|---|---|---|---|"
    points = []
    for value in PRICES:
        cells = [median(size, "evenflow", kind, 64, price=value) for kind in PRICED]
        points += [
            {"stream": title(kind), "price": value, "imbalance": i, "replicas": max(k - 1, SPLIT_LEAST)}
            for kind, (i, k) in zip(PRICED, cells, strict=True)
        ]
        yield f"| {value:g} | " + " | ".join(f"{i:.1e} / {k:.4f}" for i, k in cells) + " |"

    keep(points, pictures.price, size.plot)


def watch(size: Size) -> Iterator[str]:
    """What nearly even streams need: rarer keys may be split, n = 64."""
    size = size.few
    yield "| watch | price | Zipf 0.5 | uniform | state, MB |"
    yield "|---|---|---|---|---|"
    for watched, value in ((8, 5e-4), (30, 2e-4), (100, 2e-4), (300, 1e-4), (300, 2e-5)):
        options = {"watch": watched, "price": value}
        cells = [median(size, "evenflow", kind, 64, **options) for kind in ("0.5", "uniform")]
        p = size.created(entrant("evenflow"), 64, 1, **options)
        pairs = " | ".join(f"{i:.1e} / {k:.4f}" for i, k in cells)
        yield f"| {watched} | {value:g} | {pairs} | {p.observe().state_bytes / 1e6:.1f} |"


def shift(size: Size) -> Iterator[str]:
    """Imbalance slide by slide after the change from uniform to Zipf 1.5, n = 64."""
    yield "| partitioner | stationary Zipf 1.5 | before | 1 | 2 | 3 | 4 | 5 | 8 | slides until below 2x |"
    yield "|---" * 10 + "|"
    for name in ("d-choices", "dalton", "evenflow"):
        level = median(size, name, "1.5", 64)[0]
        every = [run(size, name, "shift", 64, seed).imbalance for seed in size.seeds]
        after = np.median(every, axis=0)[size.change - 1 :]
        below = np.flatnonzero(after[1:] < 2 * level)
        shown = " | ".join(f"{after[slides]:.1e}" for slides in (0, 1, 2, 3, 4, 5, 8))
        yield f"| {name} | {level:.1e} | {shown} | {below[0] + 1 if len(below) else 'never'} |"


def sources(size: Size) -> Iterator[str]:
    """Four independent instances, each with every fourth tuple. `mixed`: three of them uniform, one Zipf
    1.5.
    """
    size = size.few
    yield "| streams | one instance | four | four that hear each other every slide | d-choices, four |"
    yield "|---|---|---|---|---|"
    for kinds in (("uniform",) * 4, ("1.0",) * 4, ("1.5",) * 4, ("uniform", "uniform", "uniform", "1.5")):
        cells = []
        for name, count, exchange in (
            ("evenflow", 1, False),
            ("evenflow", 4, False),
            ("evenflow", 4, True),
            ("d-choices", 4, False),
        ):
            runs = [_together(size, name, kinds, s, count=count, exchange=exchange) for s in size.seeds]
            cells.append("{:.1e} / {:.4f}".format(*medians(size, runs)))
        yield f"| {title(kinds[0]) if len(set(kinds)) == 1 else 'mixed'} | " + " | ".join(cells) + " |"


def _together(
    size: Size, name: str, kinds: tuple[str, ...], seed: int, *, count: int, exchange: bool
) -> Figures:
    # Tuple t is of stream t mod 4. Where there are four instances, instance t mod 4 gets it.
    keys = np.choose(np.arange(size.tuples) % len(kinds), [ranks(size, kind, seed) for kind in kinds])
    hashes = hashes_of(size.keys)[keys]
    stream = KeyedStream(hashes, keys.astype(np.int32), np.arange(len(keys)), size.keys, len(keys))
    scenario = scenario_of(size, seed, count, exchange)
    return measured(size, keys, route(stream, entrant(name), scenario).workers, 64)


def cost(size: Size) -> Iterator[str]:
    """ns per tuple inside `assign` with warm state, the best of six rounds in turns."""
    yield "| stream, n = 64 | hashing | pkg | d-choices | evenflow | evenflow : d-choices |"
    yield "|---|---|---|---|---|---|"
    names = ("hashing", "pkg", "d-choices", "evenflow")
    for kind in ("uniform", "1.0", "1.5"):
        keys = hashes_of(size.keys)[ranks(size, kind, 1)]
        times, half, best = np.arange(len(keys)), len(keys) // 2, dict.fromkeys(names, np.inf)
        for _ in range(6):
            for name in names:
                p = size.created(entrant(name), 64, 1)
                p.assign(keys[:half], times[:half])
                began = time.perf_counter()
                p.assign(keys[half:], times[half:])
                best[name] = min(best[name], (time.perf_counter() - began) / half * 1e9)
        ratio = best["evenflow"] / best["d-choices"]
        yield f"| {title(kind)} | " + " | ".join(f"{best[name]:.1f}" for name in names) + f" | {ratio:.2f} |"


def steady(size: Size) -> Iterator[str]:
    """Tuples by which the fullest worker is above the mean, over all slides of all seeds.

    r is the largest inflow of a worker from keys that are on this worker alone, as a share of the mean inflow
    (last window).
    """
    size = size.few
    yield "| stream | n | r | mean | 99 % of the slides below | worst |"
    yield "|---" * 6 + "|"
    for kind in ("0.8", "1.0", "1.5", "2.0"):
        for n in (5, 16, 64):
            runs = [run(size, "evenflow", kind, n, seed) for seed in size.seeds]
            over = np.concatenate([figures.imbalance[size.window :] for figures in runs])
            over *= size.window * size.slide
            r = max(_unsplit(size, kind, n, seed) for seed in size.seeds)
            shown = f"{over.mean():.1f} | {np.quantile(over, 0.99):.0f} | {over.max():.0f}"
            yield f"| {title(kind)} | {n} | {r:.2f} | {shown} |"


def _unsplit(size: Size, kind: str, n: int, seed: int) -> float:
    inside = slice(-size.window * size.slide, None)
    keys, out = ranks(size, kind, seed)[inside], routed(size, "evenflow", kind, n, seed)[inside]
    distinct, holders = fragmentation(out, keys)
    alone = np.isin(keys, distinct[holders == 1])
    return float(worker_loads(out[alone], n).max() * n / len(keys))


SPEEDS = (2.0,) * 4 + (1.0,) * 8 + (0.5,) * 4
"""Speeds of 16 workers. Half of them have speed 1, a quarter is twice as fast, and a quarter is half as
fast.
"""


def weights(size: Size) -> Iterator[str]:
    """Imbalance in time / KSR where workers differ in speed, n = 16 (a quarter at 2, half at 1, a quarter at
    0.5).

    A worker with L tuples of a window and speed v, scaled so that the mean speed is 1, is busy for L / v.
    With m tuples in the window the best is that all workers are busy for m / n, each with a share of the
    tuples by its speed. Imbalance in time is (max L / v - m / n) / m. With equal speeds that is the window
    imbalance.
    """
    size = size.few
    entrants: dict[str, tuple[str, dict[str, Any]]] = {
        "hashing": ("hashing", {}),
        "d-choices": ("d-choices", {}),
        "cg, told the speeds": ("cg", {"capacities": SPEEDS}),
        "evenflow": ("evenflow", {}),
        "evenflow, told the speeds": ("evenflow", {"weights": SPEEDS}),
    }
    yield "| stream | " + " | ".join(entrants) + " |"
    yield "|---" * (len(entrants) + 1) + "|"
    for kind in ("uniform", "1.0", "1.5"):
        cells = []
        for name, more in entrants.values():
            runs = [in_time(size, name, kind, seed, more) for seed in size.seeds]
            cells.append("{:.1e} / {:.4f}".format(*medians(size, runs)))
        yield f"| {title(kind)} | " + " | ".join(cells) + " |"


def in_time(size: Size, name: str, kind: str, seed: int, more: dict[str, Any]) -> Figures:
    """Figures with the imbalance in time instead of the imbalance in tuples."""
    n, speeds = len(SPEEDS), np.array(SPEEDS) / np.mean(SPEEDS)
    out = routed(size, name, kind, n, seed, **more)
    panes = np.arange(size.tuples) // size.slide
    loads = np.bincount(panes * n + out, minlength=size.slides * n).reshape(size.slides, n).cumsum(axis=0)
    # Differences of running sums are the loads of windows. The copy is needed, because both slices overlap.
    loads[size.window :] -= loads[: -size.window].copy()
    busy = (loads / speeds).max(axis=1) / loads.sum(axis=1) - 1 / n
    return Figures(busy, measured(size, ranks(size, kind, seed), out, n).ksr)


TABLES: dict[str, Callable[[Size], Iterator[str]]] = {
    "suite": suite,
    "grid": grid,
    "many": many,
    "price": price,
    "watch": watch,
    "shift": shift,
    "sources": sources,
    "told": exchanging_sources,
    "apart": apart,
    "giant": giant,
    "hard": hard,
    "passing": passing,
    "dealt": dealt,
    "reach": reach,
    "seeds": seeds,
    "weights": weights,
    "work": work,
    "found": worst_streams,
    "steady": steady,
    "cost": cost,
}
