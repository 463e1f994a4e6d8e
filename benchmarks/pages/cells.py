"""Words for a cell of a table: figures of rows as README and docs/measurements.md write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Figures = Mapping[str, Any]
"""Figures of a row by name. Repeated ones are mappings with `min`, `median` and `max`."""
_PROCESSES = {
    "spark_jvm": "JVM",
    "flink_jvm": "JVM",
    "windows_jvm": "JVM",
    "partitioner": "partitioner",
    "data_plane": "partitioner",
    "spark_python": "Python",
    "plain_python": "Python",
    "broker": "broker",
    "replay": "replay",
    "bench": "the benchmark",
    "driver": "driver",
}
"""Kinds of processes as the benchmarks count them -> what the tables call them."""


def met(each: object) -> str:
    """Whether a goal is met, in words."""
    return "met" if each else "not met"


def all_met(each: Iterable[object]) -> str:
    """Whether goals are met, in one word where they agree."""
    words = [met(one) for one in each]
    return words[0] if len(set(words)) == 1 else " / ".join(words)


def middle(figures: Figures, name: str, digits: int = 2) -> str:
    """The median of a figure that was measured several times."""
    return f"{figures[name]['median']:.{digits}f}"


def three(figures: Figures, name: str, digits: int = 2, unit: float = 1) -> str:
    """`LEAST / MEDIAN / GREATEST` of a figure, divided by `unit`."""
    return " / ".join(f"{figures[name][which] / unit:,.{digits}f}" for which in ("min", "median", "max"))


def millions(figures: Figures, who: str, digits: int = 2) -> str:
    """The median of millions of tuples a second."""
    return f"{figures[f'{who}_tuples_per_second']['median'] / 1e6:.{digits}f}"


def rate(tuples: float) -> str:
    """Tuples a second, rounded to thousands, or to hundreds below 100,000."""
    digits = -3 if tuples >= 100_000 else -2
    return f"{round(tuples, digits):,.0f}"


def cpu(figures: Figures) -> str:
    """CPU seconds of all processes per million tuples."""
    used = float(figures["cpu_seconds_per_million_tuples"]["all"])
    return f"{used:.0f}" if used >= 100 else f"{used:.1f}"


def by_process(seconds: Mapping[str, float], digits: int = 1) -> str:
    """CPU time by process, the largest first. What is less than a hundredth of all, or nothing with so many
    digits, is left out.
    """
    named: dict[str, float] = {}
    for process, used in seconds.items():
        if process in _PROCESSES:
            named[_PROCESSES[process]] = named.get(_PROCESSES[process], 0) + used
    shown = [
        (name, used) for name, used in named.items() if used >= seconds["all"] / 100 and round(used, digits)
    ]
    ordered = sorted(shown, key=lambda each: -each[1])
    return ", ".join(f"{name} {used:.{digits}f}" for name, used in ordered)
