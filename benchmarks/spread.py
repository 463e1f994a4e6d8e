"""Comparing side by side: in turns, and every figure with its spread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median


def in_turns(ways: Mapping[str, Callable[[], float]], repetitions: int) -> dict[str, list[float]]:
    """Figures of each way, measured in turns (A B A B ...), so that a passing load meets all alike."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repetitions):
        for name, measure in ways.items():
            found[name].append(measure())
    return found


def spread(figures: Sequence[float]) -> dict[str, float]:
    """Minimum, median and maximum; large figures as whole numbers."""
    return {
        name: round(how(figures)) if how(figures) >= 1000 else round(how(figures), 3)
        for name, how in (("min", min), ("median", median), ("max", max))
    }


def ratios(of: Sequence[float], to: Sequence[float]) -> dict[str, float]:
    """Spread of the ratios of neighbours: each repetition against the one measured beside it."""
    return spread([a / b for a, b in zip(of, to, strict=True)])
