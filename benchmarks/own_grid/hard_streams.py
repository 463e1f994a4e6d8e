"""The table `hard`: streams that change, several sources, a wrong clock and a silence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from benchmarks.own_grid.measuring import Figures, Size, full_windows, medians, scenario_of
from evenflow.simulation import KeyedStream, generated

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
    "dkg-rivetti",
    "mixed",
    "gedik",
)
Pair = tuple[float, float]
"""Pair of imbalance and KSR."""


def hard(size: Size) -> Iterator[str]:
    """Streams that change, several sources, a wrong clock and a silence, n = 64. `told`: the sources hear
    each other.
    """
    size = size.few
    yield "| stream | sources | " + " | ".join((*RIVALS, "evenflow", "evenflow, told")) + " | missed |"
    yield "|---" * (len(RIVALS) + 5) + "|"
    for stream in HARD:
        one_source = (0.0, 0.0)
        for count in (1, 2, 5, 16):
            # `count` and `stream` are bound as defaults: a closure would see the values of the loop's last
            # turn.
            def pair_of(
                name: str, *, exchange: bool = False, count: int = count, stream: Any = stream
            ) -> Pair:
                runs = [_figures_of(size, name, stream, seed, count, exchange) for seed in size.seeds]
                # `_figures_of` has left out windows that are not full, so every one that is left counts.
                return medians(size._replace(window=0), runs)

            rivals, ours = [pair_of(name) for name in RIVALS], pair_of("evenflow")
            exchanging = pair_of("evenflow", exchange=True) if count > 1 else None
            one_source = one_source if exchanging else ours
            cells = ["{:.1e} / {:.3f}".format(*pair) if pair else "" for pair in (*rivals, ours, exchanging)]
            missed = "; ".join(_missed(rivals, ours, exchanging, one_source))
            yield f"| {stream[0]} {stream[1]:g} | {count} | " + " | ".join(cells) + f" | {missed} |"


def _missed(rivals: list[Pair], ours: Pair, exchanging: Pair | None, one_source: Pair) -> Iterator[str]:
    """The goals that this row misses, and by how much."""
    whole = [imbalance for imbalance, ksr in rivals if ksr < 1.1]
    if whole and ours[0] > min(whole):
        yield f"{ours[0] / min(whole):.1f}x the best below KSR 1.1"
    worst = max(ours[0], exchanging[0] if exchanging else 0.0)
    if worst > 1e-3:
        yield f"{worst:.1e} is above 1e-3"
    if exchanging and exchanging[0] > 1.5 * one_source[0]:
        yield f"told {exchanging[0] / one_source[0]:.1f}x one source"


@lru_cache(maxsize=3)
def generated_once(size: Size, kind: str, z: float, period: int, seed: int) -> KeyedStream:
    """A stream of `evenflow simulate`. period: slides."""
    return generated(
        kind, tuples=size.tuples, keys=size.keys, zipf=z, seed=seed, period_ms=period * size.slide
    )


def _figures_of(
    size: Size, name: str, stream: tuple[str, float, int], seed: int, count: int, exchange: bool
) -> Figures:
    made = generated_once(size, *stream, seed)
    # Windows that are not full are left out, so every one that is left counts.
    return full_windows(made, name, scenario_of(size, seed, count, exchange))
