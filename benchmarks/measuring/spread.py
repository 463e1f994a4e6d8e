"""Comparisons side by side. Ways are measured in turns, and every figure has its spread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from benchmarks.measuring.cpu import Used, budget, occupancy, total
from benchmarks.measuring.step_lines import step

Figure = TypeVar("Figure")


def in_turns(
    ways: Mapping[str, Callable[[], Figure]], repetitions: int, *, tell: bool = False
) -> dict[str, list[Figure]]:
    """Figures of each way, measured in turns (A B A B ...), so that a passing load meets all ways alike.

    `tell`: say on standard error when each turn begins and ends. That is for turns that take seconds.
    """
    figures: dict[str, list[Figure]] = {name: [] for name in ways}
    for turn in range(repetitions):
        for name, measure in ways.items():
            with step(f"{name}, turn {turn + 1} of {repetitions}") if tell else nullcontext():
                figures[name].append(measure())
    return figures


@dataclass(frozen=True)
class Speed:
    """How fast tuples went through."""

    tuples_per_second: float
    """The speed over all of `tuples`."""
    tuples: int
    """How many were measured."""
    used: Used
    """CPU seconds by process that these tuples took."""

    @property
    def cpu(self) -> float:
        """CPU seconds of all processes per million tuples."""
        return 1e6 * total(self.used) / self.tuples


def beside(ours: Sequence[Speed], theirs: Sequence[Speed], names: tuple[str, str]) -> dict[str, object]:
    """Both speeds with their ratio, and both CPU times with their ratio.

    The ratio of CPU times is theirs over ours: above 1 ours needs less.
    """
    comparison: dict[str, object] = {}
    for name, speeds in zip(names, (ours, theirs), strict=True):
        comparison[f"{name}_tuples_per_second"] = spread([speed.tuples_per_second for speed in speeds])
        comparison[f"{name}_cpu_seconds_per_million_tuples"] = spread([speed.cpu for speed in speeds])
        by_process = budget(_sum(speeds), tuples=sum(speed.tuples for speed in speeds))
        seconds = sum(speed.tuples / speed.tuples_per_second for speed in speeds)
        comparison[f"{name}_by_process"] = by_process | occupancy(_sum(speeds), seconds)
    comparison["ratio"] = _speed_ratios(ours, theirs)
    comparison["cpu_ratio"] = ratios([speed.cpu for speed in theirs], [speed.cpu for speed in ours])
    return comparison


def judged(ours: Sequence[Speed], theirs: Sequence[Speed], goal: float) -> dict[str, object]:
    """The least ratio of our speed to theirs, and whether the median over the turns meets it."""
    ratio = _speed_ratios(ours, theirs)
    return {"goal": goal, "met": ratio["median"] >= goal}


def _speed_ratios(ours: Sequence[Speed], theirs: Sequence[Speed]) -> dict[str, float]:
    return ratios([speed.tuples_per_second for speed in ours], [speed.tuples_per_second for speed in theirs])


def _sum(speeds: Sequence[Speed]) -> Used:
    labels = {label for speed in speeds for label in speed.used}
    return {label: sum(speed.used.get(label, 0.0) for speed in speeds) for label in sorted(labels)}


def spread(figures: Sequence[float]) -> dict[str, float]:
    """Minimum, median and maximum. Figures from 1,000 on are whole numbers."""
    return {
        name: round(how(figures)) if how(figures) >= 1000 else round(how(figures), 3)
        for name, how in (("min", min), ("median", median), ("max", max))
    }


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> dict[str, float]:
    """Spread of the ratios of neighbours: each repetition over the one that was measured beside it."""
    return spread([a / b for a, b in zip(numerators, denominators, strict=True)])
