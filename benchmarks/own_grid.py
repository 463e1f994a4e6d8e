"""The partitioner `evenflow` against its goals: `python -m benchmarks.own_grid [part ...]`, about ten minutes.

Streams: 100,000 keys, 180 slides of 10,000 tuples, windows of 60 slides, seeds 1, 2, 3. A figure is the
median over the seeds of the mean over slides 60-179 of window_imbalance, (max - mean load) / tuples in the
window of the last 60 complete slides, and of KSR, Gamma / distinct keys in it. Prints Markdown tables.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evenflow.arrays import Float64s, Int32s, Int64s, UInt64s
from evenflow.metrics import window_figures
from evenflow.partitioners import create
from evenflow.simulation import Entrant, KeyedStream, Scenario
from evenflow.simulation.charts import save
from evenflow.simulation.routing import route
from evenflow.simulation.streams import rank_hashes

KEYS, SLIDE, SLIDES, WINDOW, FIRST = 100_000, 10_000, 180, 60, 60
SEEDS = (1, 2, 3)
WORKERS = (5, 16, 64, 256)
WINDOWED = {"window_ms": WINDOW * SLIDE, "slide_ms": SLIDE}
"""One tuple per ms."""
OPTIONS: dict[str, dict[str, Any]] = {
    "hashing": {},
    "pkg": {"load": "windowed", **WINDOWED},
    "d-choices": {"load": "windowed", **WINDOWED},
    "dalton": WINDOWED,
    "evenflow": WINDOWED,
}


class Figures(NamedTuple):
    """Of every slide: imbalance and KSR of the window that ends with it."""

    imbalance: Float64s
    ksr: Float64s


@lru_cache(maxsize=12)
def ranks(kind: str, seed: int) -> Int64s:
    """The stream: `uniform`, a Zipf exponent, or `shift` (uniform, Zipf 1.5 from slide 120 on)."""
    rng = np.random.default_rng(seed)
    if kind == "shift":
        before = rng.integers(0, KEYS, 120 * SLIDE)
        return np.concatenate([before, _zipf(rng, (SLIDES - 120) * SLIDE, 1.5)])
    if kind == "uniform":
        return rng.integers(0, KEYS, SLIDES * SLIDE)
    return _zipf(rng, SLIDES * SLIDE, float(kind))


@cache
def _hashes() -> UInt64s:
    return rank_hashes(KEYS)


def _zipf(rng: np.random.Generator, tuples: int, exponent: float) -> Int64s:
    shares = np.cumsum(np.arange(1, KEYS + 1) ** -exponent)
    return np.searchsorted(shares / shares[-1], rng.random(tuples), side="right").clip(0, KEYS - 1)


def measured(keys: Int64s, out: Int32s, n: int) -> Figures:
    """Figures of this routing."""
    panes = np.arange(len(keys), dtype=np.int64) // SLIDE
    found = window_figures(out, keys, panes, n, panes_per_window=WINDOW)
    return Figures(found.imbalance[:SLIDES], (found.gamma / found.distinct)[:SLIDES])


@cache
def run(name: str, kind: str, n: int, seed: int, more: tuple[tuple[str, Any], ...] = ()) -> Figures:
    """Route the stream by one instance."""
    keys = ranks(kind, seed)
    p = create(name, workers=n, seed=seed, **OPTIONS[name], **dict(more))
    out = p.assign(_hashes()[keys], np.arange(len(keys)))
    return measured(keys, out, n)


def median(name: str, kind: str, n: int, **more: Any) -> tuple[float, float]:
    """(imbalance, KSR): medians over the seeds of the means over the slides that count."""
    runs = [run(name, kind, n, seed, tuple(more.items())) for seed in SEEDS]
    return (
        float(np.median([figures.imbalance[FIRST:].mean() for figures in runs])),
        float(np.median([figures.ksr[FIRST:].mean() for figures in runs])),
    )


def suite() -> Iterator[str]:
    """000's windowed suite at n = 64."""
    yield "| stream | " + " | ".join(OPTIONS) + " |"
    yield "|---" * (len(OPTIONS) + 1) + "|"
    for kind in ("uniform", "1.0", "1.5", "shift"):
        cells = ["{:.1e} / {:.4f}".format(*median(name, kind, 64)) for name in OPTIONS]
        yield f"| {_title(kind)} | " + " | ".join(cells) + " |"


def grid() -> Iterator[str]:
    """The goals on every stream and number of workers."""
    yield "| stream | n | d-choices | dalton | evenflow | I <= max(d-choices, 1e-5) | KSR <= both |"
    yield "|---|---|---|---|---|---|---|"
    for kind in ("uniform", "0.5", "1.0", "1.5", "2.0"):
        for n in WORKERS:
            found = {name: median(name, kind, n) for name in ("d-choices", "dalton", "evenflow")}
            level, ksr = found["evenflow"]
            balanced = level <= max(found["d-choices"][0], 1e-5)
            whole = ksr <= min(found["d-choices"][1], found["dalton"][1])
            cells = " | ".join(f"{i:.2e} / {k:.5f}" for i, k in found.values())
            yield f"| {_title(kind)} | {n} | {cells} | {_verdict(balanced)} | {_verdict(whole)} |"


PRICES = (0.0, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 4e-3, 1e-2, 3e-2, 0.1, 1.0, 1e9)
PRICED = ("uniform", "1.0", "1.5", "2.0")
PRICE_PLOT = Path("docs/evenflow-partitioner/price.svg")


def price() -> Iterator[str]:
    """The trade-off: imbalance / KSR at n = 64 for prices from nothing to never."""
    yield "| price | uniform | Zipf 1.0 | Zipf 1.5 | Zipf 2.0 |"
    yield "|---|---|---|---|---|"
    points = []
    for value in PRICES:
        cells = [median("evenflow", kind, 64, price=value) for kind in PRICED]
        points += [
            {"stream": _title(kind), "price": f"{value:g}", "imbalance": i, "replicas": max(k - 1, 1e-5)}
            for kind, (i, k) in zip(PRICED, cells, strict=True)
        ]
        yield f"| {value:g} | " + " | ".join(f"{i:.1e} / {k:.4f}" for i, k in cells) + " |"

    PRICE_PLOT.parent.mkdir(parents=True, exist_ok=True)
    save(_price_curve(points), PRICE_PLOT)


def _price_curve(points: list[dict[str, Any]]) -> Any:
    import altair as alt

    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X("replicas:Q", scale=alt.Scale(type="log"), title="KSR - 1 (none is drawn at 1e-5)"),
        y=alt.Y("imbalance:Q", scale=alt.Scale(type="log"), title="window imbalance"),
        color=alt.Color("stream:N", title=None),
    )
    marks = base.mark_line(point=True).encode(order="imbalance:Q")
    words = base.mark_text(align="left", dx=6, dy=-5, fontSize=9).encode(text="price:N")
    return (marks + words).properties(width=460, height=340, title="evenflow at n = 64 by price")


def watch() -> Iterator[str]:
    """Rarer keys may be split: what nearly even streams need, n = 64."""
    yield "| watch | price | Zipf 0.5 | uniform | state, MB |"
    yield "|---|---|---|---|---|"
    for watched, value in ((8, 5e-4), (30, 2e-4), (100, 2e-4), (300, 1e-4), (300, 2e-5)):
        cells = [median("evenflow", kind, 64, watch=watched, price=value) for kind in ("0.5", "uniform")]
        size = create("evenflow", workers=64, watch=watched, **WINDOWED).observe().state_bytes / 1e6
        pairs = " | ".join(f"{i:.1e} / {k:.4f}" for i, k in cells)
        yield f"| {watched} | {value:g} | {pairs} | {size:.1f} |"


def shift() -> Iterator[str]:
    """Slide by slide after the change from uniform to Zipf 1.5, n = 64."""
    yield "| partitioner | stationary Zipf 1.5 | before | 1 | 2 | 3 | 4 | 5 | 8 | slides until below 2x |"
    yield "|---" * 10 + "|"
    for name in ("d-choices", "dalton", "evenflow"):
        level = median(name, "1.5", 64)[0]
        after = np.median([run(name, "shift", 64, seed).imbalance for seed in SEEDS], axis=0)
        below = np.flatnonzero(after[120:] < 2 * level)
        shown = " | ".join(f"{after[119 + slides]:.1e}" for slides in (0, 1, 2, 3, 4, 5, 8))
        yield f"| {name} | {level:.1e} | {shown} | {below[0] + 1 if len(below) else 'never'} |"


def sources() -> Iterator[str]:
    """Four independent instances, each with every fourth tuple; `mixed`: three uniform ones, one Zipf 1.5."""
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
            runs = [_together(name, kinds, seed, count=count, exchange=exchange) for seed in SEEDS]
            level, ksr = (
                np.median([figure[FIRST:].mean() for figure in part]) for part in zip(*runs, strict=True)
            )
            cells.append(f"{level:.1e} / {ksr:.4f}")
        yield f"| {_title(kinds[0]) if len(set(kinds)) == 1 else 'mixed'} | " + " | ".join(cells) + " |"


def _together(name: str, kinds: tuple[str, ...], seed: int, *, count: int, exchange: bool) -> Figures:
    keys = np.choose(np.arange(SLIDES * SLIDE) % len(kinds), [ranks(kind, seed) for kind in kinds])
    stream = KeyedStream(_hashes()[keys], keys.astype(np.int32), np.arange(len(keys)), KEYS, len(keys))
    scenario = Scenario(workers=64, sources=count, seed=seed, exchange=exchange, **WINDOWED)
    return measured(keys, route(stream, Entrant(name, name, OPTIONS[name]), scenario).workers, 64)


def cost() -> Iterator[str]:
    """ns per tuple inside `assign`, state warm, best of six rounds by turns."""
    yield "| stream, n = 64 | hashing | pkg | d-choices | evenflow | evenflow : d-choices |"
    yield "|---|---|---|---|---|---|"
    names = ("hashing", "pkg", "d-choices", "evenflow")
    for kind in ("uniform", "1.0", "1.5"):
        keys = _hashes()[ranks(kind, 1)]
        times, half, best = np.arange(len(keys)), len(keys) // 2, dict.fromkeys(names, np.inf)
        for _ in range(6):
            for name in names:
                p = create(name, workers=64, **OPTIONS[name])
                p.assign(keys[:half], times[:half])
                began = time.perf_counter()
                p.assign(keys[half:], times[half:])
                best[name] = min(best[name], (time.perf_counter() - began) / half * 1e9)
        ratio = best["evenflow"] / best["d-choices"]
        yield f"| {_title(kind)} | " + " | ".join(f"{best[name]:.1f}" for name in names) + f" | {ratio:.2f} |"


PARTS = {
    "suite": suite,
    "grid": grid,
    "price": price,
    "watch": watch,
    "shift": shift,
    "sources": sources,
    "cost": cost,
}


def _title(kind: str) -> str:
    return f"Zipf {kind}" if kind[0].isdigit() else kind


def _verdict(met: bool) -> str:
    return "met" if met else "**missed**"


def main(parts: list[str]) -> None:
    """Print the parts named, or all."""
    for part in parts or list(PARTS):
        print(f"\n{part}: {PARTS[part].__doc__}\n")
        for line in PARTS[part]():
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
