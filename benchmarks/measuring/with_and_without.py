"""What something costs: the same work with it and without it in turns, as ratios of neighbouring pieces.

A ratio is throughput with it over throughput without it, so 0.98 is a cost of 2 %. While other programs use
the machine, trust the ratio of CPU time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from benchmarks.measuring.cpu import COMPILERS, Used, budget, total

GOAL = 0.98
"""The least ratio: metrics may cost 2 % of the throughput."""


@dataclass(frozen=True)
class Piece:
    """A piece of work, and what it took."""

    having: bool
    """Whether it was done with the thing whose cost is measured."""
    tuples: int
    """Tuples of the piece."""
    seconds: float
    """Wall time from start to end."""
    used: Used
    """CPU seconds by process."""

    @property
    def cpu(self) -> float:
        """CPU seconds per tuple, without those of the JVM's compilers, which run at any time, whatever is
        measured.
        """
        return (total(self.used) - self.used.get(COMPILERS, 0.0)) / self.tuples


Pair = tuple[Piece, Piece]
"""Two neighbouring pieces: (with it, without it)."""


def having(number: int) -> bool:
    """Whether the piece of this number is to be done with it.

    The order is with, without, without, with, so that a drift of the machine meets both alike.
    """
    return number % 4 in (0, 3)


def pairs(pieces: Sequence[Piece], *, warm_up: int = 1) -> list[Pair]:
    """Pairs of neighbouring pieces, from pieces in the order of `having`. The first `warm_up` pairs do not
    count.
    """
    neighbours = list(zip(pieces[::2], pieces[1::2], strict=False))[warm_up:]
    return [(first, second) if first.having else (second, first) for first, second in neighbours]


def cost(measured: Sequence[Pair]) -> dict[str, object]:
    """Ratios of CPU time and of throughput by wall time, and whether the ratio of CPU time meets the goal."""
    assert measured, "it was over before both ways had been measured"
    cpu = [without.cpu / with_it.cpu for with_it, without in measured]
    wall = [
        with_it.tuples / with_it.seconds * without.seconds / without.tuples for with_it, without in measured
    ]
    return {
        "pairs": len(measured),
        "tuples_per_second": round(_rate([with_it for with_it, _ in measured])),
        "tuples_per_second_without": round(_rate([without for _, without in measured])),
        "with": _budget([with_it for with_it, _ in measured]),
        "without": _budget([without for _, without in measured]),
        "cpu_ratio": _spread(cpu),
        "ratio": _spread(wall),
        "goal": GOAL,
        "met": _met(_spread(cpu)),
    }


def _met(ratio: Mapping[str, float]) -> bool | None:
    """Whether the goal is met. None if the goal lies within the interval: the machine was too busy to
    tell.
    """
    if ratio["median_from"] < GOAL <= ratio["median_to"]:
        return None
    return ratio["median"] >= GOAL


def _rate(pieces: Sequence[Piece]) -> float:
    return sum(piece.tuples for piece in pieces) / sum(piece.seconds for piece in pieces)


def _budget(pieces: Sequence[Piece]) -> dict[str, object]:
    labels = {label for piece in pieces for label in piece.used}
    used = {label: sum(piece.used.get(label, 0.0) for piece in pieces) for label in sorted(labels)}
    return budget(used, tuples=sum(piece.tuples for piece in pieces))


def _spread(ratios: Sequence[float]) -> dict[str, float]:
    """Median, its 95 % confidence interval, and the quartiles.

    The interval is made of ranks, so it assumes nothing about the distribution of the ratios.
    """
    ordered = sorted(ratios)
    last = len(ordered) - 1
    # How many values lie below the true median is binomial with p = 1/2: 1.96 standard deviations are 1.96 *
    # sqrt(n) / 2.
    off = 0.98 * sqrt(len(ordered))
    ranks = {
        "median_from": last / 2 - off, "median": last / 2, "median_to": last / 2 + off,
        "quarter": last / 4, "three_quarters": 3 * last / 4,
    }  # fmt: skip
    return {name: round(_at(ordered, rank), 4) for name, rank in ranks.items()}


def _at(ordered: Sequence[float], rank: float) -> float:
    """The value at a rank, between two values if the rank is no whole number."""
    rank = min(max(rank, 0.0), len(ordered) - 1.0)
    low = int(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (rank - low) * (ordered[high] - ordered[low])
