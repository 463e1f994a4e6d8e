"""The partitioner `evenflow` against its goals: `python -m benchmarks.own_grid [part ...]`, about twenty minutes.

Streams: 100,000 keys, 180 slides of 10,000 tuples, windows of 60 slides, seeds 1 to 10 (1 to 3 where only options
of evenflow change, and where streams change). A figure is the median over the seeds of the mean over slides 60-179 of
window_imbalance, (max - mean load) / tuples in the window of the last 60 complete slides, and of KSR, Gamma / distinct keys
in it.
Prints Markdown tables. `--write` puts them into docs/evenflow-partitioner.md, each below its comment
`<!-- own_grid PART -->`.
`--quick`: small streams and one seed, to see that it runs. Its figures mean nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from inspect import getdoc
from itertools import dropwhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import pictures
from benchmarks.pictures import SPLIT_LEAST, keep
from evenflow.arrays import Float64s, Int32s, Int64s
from evenflow.metrics import fragmentation, window_figures, worker_loads
from evenflow.partitioners import Partitioner, create
from evenflow.partitioners.fitting import fitted
from evenflow.simulation import Entrant, KeyedStream, Scenario, entrant, generated
from evenflow.simulation.routing import route
from evenflow.simulation.streams import rank_hashes

WORKERS = (5, 16, 64, 256)
PAGE = Path("docs/evenflow-partitioner.md")


class Size(NamedTuple):
    """How much is measured. One tuple per ms. Figures are of the slides from the first full window on."""

    keys: int
    slide: int
    """Tuples in a slide."""
    slides: int
    window: int
    """Slides in a window."""
    change: int
    """Slide at which the stream `shift` changes."""
    seeds: tuple[int, ...]
    plot: Path
    """Where the price curve is drawn."""

    @property
    def few(self) -> Size:
        """The same with three seeds at most, for figures that depend little on the hash."""
        return self._replace(seeds=self.seeds[:3])

    @property
    def tuples(self) -> int:
        """Of a whole stream."""
        return self.slides * self.slide

    def created(self, who: Entrant, workers: int, seed: int, **more: Any) -> Partitioner:
        """The partitioner with these windows, wherever its rule knows of windows."""
        window, slide = self.window * self.slide, self.slide
        options = fitted(who.name, {**who.options, **more}, window_ms=window, slide_ms=slide)
        return create(who.name, workers=workers, seed=seed, **options)


FULL = Size(100_000, 10_000, 180, 60, 120, tuple(range(1, 11)), Path("docs/evenflow-partitioner/price.svg"))
QUICK = Size(500, 200, 24, 6, 12, (1,), Path(".evenflow/own_grid/price.svg"))


class Figures(NamedTuple):
    """Of every slide: imbalance and KSR of the window that ends with it."""

    imbalance: Float64s
    ksr: Float64s


@lru_cache(maxsize=12)
def ranks(size: Size, kind: str, seed: int) -> Int64s:
    """The stream: `uniform`, a Zipf exponent, or `shift` (uniform, Zipf 1.5 from slide 120 on)."""
    rng = np.random.default_rng(seed)
    if kind == "shift":
        before = rng.integers(0, size.keys, size.change * size.slide)
        return np.concatenate([before, _zipf(rng, size.keys, size.tuples - len(before), 1.5)])
    if kind == "uniform":
        return rng.integers(0, size.keys, size.tuples)
    return _zipf(rng, size.keys, size.tuples, float(kind))


_hashes = cache(rank_hashes)


def _zipf(rng: np.random.Generator, keys: int, tuples: int, exponent: float) -> Int64s:
    shares = np.cumsum(np.arange(1, keys + 1) ** -exponent)
    return np.searchsorted(shares / shares[-1], rng.random(tuples), side="right").clip(0, keys - 1)


def measured(size: Size, keys: Int64s, out: Int32s, n: int) -> Figures:
    """Figures of this routing."""
    panes = np.arange(len(keys), dtype=np.int64) // size.slide
    found = window_figures(out, keys, panes, n, panes_per_window=size.window)
    return Figures(found.imbalance[: size.slides], (found.gamma / found.distinct)[: size.slides])


def routed(size: Size, name: str, kind: str, n: int, seed: int, **more: Any) -> Int32s:
    """Worker of each tuple of the stream, by one instance."""
    keys = ranks(size, kind, seed)
    p = size.created(entrant(name), n, seed, **more)
    return p.assign(_hashes(size.keys)[keys], np.arange(len(keys)))


@cache
def run(
    size: Size, name: str, kind: str, n: int, seed: int, more: tuple[tuple[str, Any], ...] = ()
) -> Figures:
    """Route the stream and measure it."""
    return measured(size, ranks(size, kind, seed), routed(size, name, kind, n, seed, **dict(more)), n)


def median(size: Size, name: str, kind: str, n: int, **more: Any) -> tuple[float, float]:
    """(imbalance, KSR): medians over the seeds of the means over the slides that count."""
    return _median(size, [run(size, name, kind, n, seed, tuple(more.items())) for seed in size.seeds])


def _median(size: Size, runs: list[Figures]) -> tuple[float, float]:
    first = size.window
    return (
        float(np.median([figures.imbalance[first:].mean() for figures in runs])),
        float(np.median([figures.ksr[first:].mean() for figures in runs])),
    )


def suite(size: Size) -> Iterator[str]:
    """000's windowed suite at n = 64."""
    names = (
        *("hashing", "pkg", "d-choices", "d-choices:distinct=true", "w-choices", "rr-head", "pstream", "cg"),
        *("dagreedy", "dalton", "cam", "evenflow"),
    )
    yield from _compared(size, names, {kind: _title(kind) for kind in ("uniform", "1.0", "1.5", "shift")})


def _compared(size: Size, names: Sequence[str], streams: Mapping[str, str]) -> Iterator[str]:
    """Imbalance / KSR of each partitioner at n = 64. `streams`: kind -> what it is called."""
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
            yield f"| {_title(kind)} | {n} | {cells} | {_verdict(balanced)} | {_verdict(whole)} |"


def many(size: Size) -> Iterator[str]:
    """Ten times as many keys: most of them come and go within a window, n = 64."""
    size = size.few._replace(keys=10 * size.keys)
    names = ("hashing", "pkg", "d-choices", "cam", "evenflow")
    kinds = ("uniform", "0.5", "1.0")
    yield from _compared(size, names, {kind: f"{_title(kind)}, {size.keys:,} keys" for kind in kinds})


PRICES = (0.0, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 4e-3, 1e-2, 3e-2, 0.1, 1.0, 1e9)
PRICED = ("uniform", "1.0", "1.5", "2.0")


def price(size: Size) -> Iterator[str]:
    """The trade-off: imbalance / KSR at n = 64 for prices from nothing to never."""
    size = size.few
    yield "| price | uniform | Zipf 1.0 | Zipf 1.5 | Zipf 2.0 |"
    yield "|---|---|---|---|---|"
    points = []
    for value in PRICES:
        cells = [median(size, "evenflow", kind, 64, price=value) for kind in PRICED]
        points += [
            {"stream": _title(kind), "price": value, "imbalance": i, "replicas": max(k - 1, SPLIT_LEAST)}
            for kind, (i, k) in zip(PRICED, cells, strict=True)
        ]
        yield f"| {value:g} | " + " | ".join(f"{i:.1e} / {k:.4f}" for i, k in cells) + " |"

    keep(points, pictures.price, size.plot)


def watch(size: Size) -> Iterator[str]:
    """Rarer keys may be split: what nearly even streams need, n = 64."""
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
    """Slide by slide after the change from uniform to Zipf 1.5, n = 64."""
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
    """Four independent instances, each with every fourth tuple. `mixed`: three uniform ones, one Zipf 1.5."""
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
            cells.append("{:.1e} / {:.4f}".format(*_median(size, runs)))
        yield f"| {_title(kinds[0]) if len(set(kinds)) == 1 else 'mixed'} | " + " | ".join(cells) + " |"


def _together(
    size: Size, name: str, kinds: tuple[str, ...], seed: int, *, count: int, exchange: bool
) -> Figures:
    keys = np.choose(np.arange(size.tuples) % len(kinds), [ranks(size, kind, seed) for kind in kinds])
    hashes = _hashes(size.keys)[keys]
    stream = KeyedStream(hashes, keys.astype(np.int32), np.arange(len(keys)), size.keys, len(keys))
    scenario = _scenario(size, seed, count, exchange)
    return measured(size, keys, route(stream, entrant(name), scenario).workers, 64)


def _scenario(size: Size, seed: int, sources: int, exchange: bool) -> Scenario:
    return Scenario(
        workers=64,
        sources=sources,
        seed=seed,
        exchange=exchange,
        window_ms=size.window * size.slide,
        slide_ms=size.slide,
    )


HARD = (
    ("zipf", 1.0, 1),
    ("zipf", 1.5, 1),
    ("replaced", 1.0, 5),
    ("replaced", 1.5, 5),
    ("drift", 1.0, 1),
    ("drift", 1.5, 1),
    ("wandering-exponent", 1.0, 5),
    ("wandering-load", 1.0, 1),
    ("giant", 1.0, 1),
    ("wrong-clock", 1.0, 1),
    ("silence", 1.0, 1),
)
"""Streams of `evenflow simulate` with their exponent and the slides of a period."""
RIVALS = (
    "d-choices",
    "d-choices:head=window",
    "d-choices:distinct=true",
    "w-choices",
    "w-choices:head=window",
    "pstream",
    "cg",
    "dagreedy",
)
Pair = tuple[float, float]
"""Imbalance and KSR."""


def hard(size: Size) -> Iterator[str]:
    """Streams that change, several sources, a wrong clock and a silence, n = 64. `told`: sources that hear each other."""
    size = size.few
    yield "| stream | sources | " + " | ".join((*RIVALS, "evenflow", "evenflow, told")) + " | missed |"
    yield "|---" * (len(RIVALS) + 5) + "|"
    for stream in HARD:
        one = (0.0, 0.0)
        for count in (1, 2, 5, 16):

            def found(name: str, *, told: bool = False, count: int = count, stream: Any = stream) -> Pair:
                runs = [_hard(size, name, stream, seed, count, told) for seed in size.seeds]
                return _median(size._replace(window=0), runs)

            rivals, ours = [found(name) for name in RIVALS], found("evenflow")
            told = found("evenflow", told=True) if count > 1 else None
            one = one if told else ours
            cells = ["{:.1e} / {:.3f}".format(*pair) if pair else "" for pair in (*rivals, ours, told)]
            missed = "; ".join(_missed(rivals, ours, told, one))
            yield f"| {stream[0]} {stream[1]:g} | {count} | " + " | ".join(cells) + f" | {missed} |"


def _missed(rivals: list[Pair], ours: Pair, told: Pair | None, one: Pair) -> Iterator[str]:
    """The goals that this row misses, and by how much."""
    whole = [imbalance for imbalance, ksr in rivals if ksr < 1.1]
    if whole and ours[0] > min(whole):
        yield f"{ours[0] / min(whole):.1f}x the best below KSR 1.1"
    worst = max(ours[0], told[0] if told else 0.0)
    if worst > 1e-3:
        yield f"{worst:.1e} is above 1e-3"
    if told and told[0] > 1.5 * one[0]:
        yield f"told {told[0] / one[0]:.1f}x one source"


@lru_cache(maxsize=3)
def _made(size: Size, kind: str, z: float, period: int, seed: int) -> KeyedStream:
    return generated(
        kind, tuples=size.tuples, keys=size.keys, zipf=z, seed=seed, period_ms=period * size.slide
    )


def _hard(
    size: Size, name: str, stream: tuple[str, float, int], seed: int, count: int, told: bool
) -> Figures:
    made = _made(size, *stream, seed)
    scenario = _scenario(size, seed, count, told)
    workers = route(made, entrant(name), scenario).workers
    panes = scenario.panes(made.times)
    found = window_figures(workers, made.codes, panes, 64, panes_per_window=size.window)
    seen = np.unique(panes)
    slides = np.searchsorted(seen, found.ends, side="right") - np.searchsorted(
        seen, found.ends - size.window, side="right"
    )
    full = slides == size.window  # not those that fill after a silence, or before the first one is full
    return Figures(found.imbalance[full], found.ksr[full])


def cost(size: Size) -> Iterator[str]:
    """ns per tuple inside `assign`, state warm, best of six rounds by turns."""
    yield "| stream, n = 64 | hashing | pkg | d-choices | evenflow | evenflow : d-choices |"
    yield "|---|---|---|---|---|---|"
    names = ("hashing", "pkg", "d-choices", "evenflow")
    for kind in ("uniform", "1.0", "1.5"):
        keys = _hashes(size.keys)[ranks(size, kind, 1)]
        times, half, best = np.arange(len(keys)), len(keys) // 2, dict.fromkeys(names, np.inf)
        for _ in range(6):
            for name in names:
                p = size.created(entrant(name), 64, 1)
                p.assign(keys[:half], times[:half])
                began = time.perf_counter()
                p.assign(keys[half:], times[half:])
                best[name] = min(best[name], (time.perf_counter() - began) / half * 1e9)
        ratio = best["evenflow"] / best["d-choices"]
        yield f"| {_title(kind)} | " + " | ".join(f"{best[name]:.1f}" for name in names) + f" | {ratio:.2f} |"


def steady(size: Size) -> Iterator[str]:
    """Tuples by which the fullest worker is above the mean, over all slides of all seeds; r is the largest
    inflow of a worker from keys that are on it alone, as a share of the mean inflow (last window)."""
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
            yield f"| {_title(kind)} | {n} | {r:.2f} | {shown} |"


def _unsplit(size: Size, kind: str, n: int, seed: int) -> float:
    inside = slice(-size.window * size.slide, None)
    keys, out = ranks(size, kind, seed)[inside], routed(size, "evenflow", kind, n, seed)[inside]
    distinct, holders = fragmentation(out, keys)
    alone = np.isin(keys, distinct[holders == 1])
    return float(worker_loads(out[alone], n).max() * n / len(keys))


SPEEDS = (2.0,) * 4 + (1.0,) * 8 + (0.5,) * 4
"""Of 16 workers a quarter is twice as fast as half of them, and a quarter half as fast."""


def weights(size: Size) -> Iterator[str]:
    """Imbalance in time / KSR where workers differ in speed, n = 16 (a quarter at 2, half at 1, a quarter at 0.5).

    A worker with L tuples of a window and speed v, scaled so that the mean speed is 1, is busy for L / v. With m
    tuples in the window none can do better than all being busy for m / n, each with a share of the tuples by its
    speed. Imbalance in time is (max L / v - m / n) / m: with equal speeds, the window imbalance.
    """
    size = size.few
    told: dict[str, tuple[str, dict[str, Any]]] = {
        "hashing": ("hashing", {}),
        "d-choices": ("d-choices", {}),
        "cg, told the speeds": ("cg", {"capacities": SPEEDS}),
        "evenflow": ("evenflow", {}),
        "evenflow, told the speeds": ("evenflow", {"weights": SPEEDS}),
    }
    yield "| stream | " + " | ".join(told) + " |"
    yield "|---" * (len(told) + 1) + "|"
    for kind in ("uniform", "1.0", "1.5"):
        cells = []
        for name, more in told.values():
            runs = [_in_time(size, name, kind, seed, more) for seed in size.seeds]
            cells.append("{:.1e} / {:.4f}".format(*_median(size, runs)))
        yield f"| {_title(kind)} | " + " | ".join(cells) + " |"


def _in_time(size: Size, name: str, kind: str, seed: int, more: dict[str, Any]) -> Figures:
    """With the imbalance in time instead of that in tuples."""
    n, speeds = len(SPEEDS), np.array(SPEEDS) / np.mean(SPEEDS)
    out = routed(size, name, kind, n, seed, **more)
    panes = np.arange(size.tuples) // size.slide
    loads = np.bincount(panes * n + out, minlength=size.slides * n).reshape(size.slides, n).cumsum(axis=0)
    loads[size.window :] -= loads[: -size.window].copy()
    busy = (loads / speeds).max(axis=1) / loads.sum(axis=1) - 1 / n
    return Figures(busy, measured(size, ranks(size, kind, seed), out, n).ksr)


PARTS: dict[str, Callable[[Size], Iterator[str]]] = {
    "suite": suite,
    "grid": grid,
    "many": many,
    "price": price,
    "watch": watch,
    "shift": shift,
    "sources": sources,
    "hard": hard,
    "weights": weights,
    "steady": steady,
    "cost": cost,
}


def _title(kind: str) -> str:
    return f"Zipf {kind}" if kind[0].isdigit() else kind


def _verdict(met: bool) -> str:
    return "met" if met else "**missed**"


def into_page(page: str, part: str, table: list[str]) -> str:
    """The page with this table in place of the one below the part's comment. ValueError when there is none."""
    before, comment, after = page.partition(f"<!-- own_grid {part} -->\n")
    if not comment:
        raise ValueError(f"the page has no place for the table {part}")
    rest = list(dropwhile(lambda line: line.startswith("|"), after.split("\n")))
    return before + comment + "\n".join([*table, *rest])


def main(arguments: list[str] | None = None) -> int:
    """Print the parts named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.own_grid", description="evenflow's goals")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument(
        "--quick", action="store_true", help="small streams: shows that it runs, not how well"
    )
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE}")
    options = parser.parse_args(arguments)
    if options.quick and options.write:
        parser.error("the figures of --quick mean nothing: they do not belong into the page")
    if unknown := sorted(set(options.parts) - set(PARTS)):
        parser.error(f"unknown part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    for part in options.parts or PARTS:
        print(f"\n{part}: {getdoc(PARTS[part])}\n")
        table = []
        for line in PARTS[part](QUICK if options.quick else FULL):
            print(line, flush=True)
            table.append(line)
        if options.write:
            PAGE.write_text(into_page(PAGE.read_text(), part, table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
