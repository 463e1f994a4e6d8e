"""A simulation straight from its definition, tuple by tuple in plain Python."""

from collections import Counter, defaultdict

import numpy as np

from evenflow.partitioners import create
from evenflow.simulation import KeyedStream, Scenario


def imbalance(workers: list[int], n: int) -> float:
    return max(Counter(workers).values()) / len(workers) - 1 / n


def held(pairs: list[tuple[int, int]]) -> tuple[int, int, int]:
    """(Gamma, distinct keys, most holders) of (worker, key) pairs."""
    holders = defaultdict(set)
    for worker, key in pairs:
        holders[key].add(worker)
    return sum(map(len, holders.values())), len(holders), max(map(len, holders.values()))


def route(stream: KeyedStream, scenario: Scenario, name: str, options: dict) -> list[int]:
    instances = [
        create(
            name,
            workers=scenario.workers,
            seed=scenario.seed,
            source=source,
            sources=scenario.sources,
            **options,
        )
        for source in range(scenario.sources)
    ]
    out = []
    for t in range(len(stream)):
        one = slice(t, t + 1)
        out.append(int(instances[t % scenario.sources].assign(stream.keys[one], stream.times[one])[0]))
    return out


def figures(stream: KeyedStream, scenario: Scenario, workers: list[int]) -> dict[str, float | None]:
    n, m = scenario.workers, len(stream)
    keys = stream.codes.tolist()
    samples = sorted({m * at // 100 for at in range(1, 101)} - {0})
    result: dict[str, float | None] = {
        "imbalance": imbalance(workers, n),
        "imbalance_mean": float(np.mean([imbalance(workers[:t], n) for t in samples])),
    }
    if scenario.window_ms is None:
        gamma, distinct, most = held(list(zip(workers, keys, strict=True)))
        return result | {
            "window_imbalance": None,
            "gamma": gamma,
            "distinct": distinct,
            "ksr": gamma / distinct,
            "max_holders": most,
        }
    slides = []
    for time in stream.times.tolist():
        slides.append(max([time // scenario.slide_ms, *slides[-1:]]))
    last = slides[-1]
    if (stream.next_time is None or stream.next_time < (last + 1) * scenario.slide_ms) and last > slides[0]:
        last -= 1
    width = scenario.window_ms // scenario.slide_ms
    rows = []
    for end in range(slides[0], last + 1):
        inside = [
            (w, k) for w, k, slide in zip(workers, keys, slides, strict=True) if end - width < slide <= end
        ]
        if inside:
            gamma, distinct, most = held(inside)
            values = (imbalance([w for w, _ in inside], n), gamma, distinct, gamma / distinct, most)
            rows.append((end - slides[0], values))
    warmup = width if scenario.warmup_slides is None else scenario.warmup_slides
    after = [values for number, values in rows if number >= warmup]
    if scenario.warmup_slides is None and not after:
        after = [values for _, values in rows]
    names = ("window_imbalance", "gamma", "distinct", "ksr", "max_holders")
    return result | dict(zip(names, np.mean(after, axis=0).tolist(), strict=True))
