"""The tables of a soak, from its kept rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.pages.tables import into_page, table
from benchmarks.soak.sizes import thirds_after_start

_MINUTE = 60.0


def run_table(rows: Mapping[str, Any]) -> str:
    """How long, how fast, what was compared, and on which machine."""
    runs = rows["comparisons"]
    seconds = [run["seconds"] for run in runs[:-1]]  # the last one had the machine for itself
    sustained = rows["sustained"]
    cells = (
        ("minutes", f"{rows['seconds'][-1] / _MINUTE:.0f}"),
        ("sustained, tuples/s", "not searched" if sustained is None else f"{sustained:,}"),
        ("tuples/s", f"{rows['rate']:,}"),
        ("tuples", f"{rows['tuples']:,}"),
        ("runs of verify", f"{len(runs)}"),
        ("broken off", f"{rows['interruptions']}"),
        ("a run takes, s", f"{median(seconds):.0f} ({min(seconds):.0f} to {max(seconds):.0f})"),
        ("rows compared", f"{sum(run['rows'] for run in runs):,}"),
        ("differences", f"{sum(run['differences'] for run in runs)}"),
        ("cores", f"{rows['machine']['cores']}"),
    )
    return table([name for name, _ in cells], [[value for _, value in cells]])


def sizes_table(sizes: Mapping[str, Sequence[float]]) -> str:
    """What was looked at: the median of the first third, that of the last, and how much more that is."""
    lines = []
    for name, values in sizes.items():
        first, last = thirds_after_start(values)
        lines.append((name, _short(first), _short(last), f"{last / first if first else 1.0:.2f}"))
    return table(("what", "first third", "last third", "last / first"), lines)


def _short(size: float) -> str:
    return f"{size:,.0f}" if size >= 10 or size == int(size) else f"{size:.1f}"


def cpu_table(costs: Mapping[str, float]) -> str:
    """CPU seconds per million tuples, by process."""
    return table(list(costs), [[f"{seconds:.1f}" for seconds in costs.values()]])


def into(page: str, rows: Mapping[str, Any]) -> str:
    """The page with the tables of these kept rows. ValueError if it has no place for them."""
    page = into_page(page, "soak", "run", run_table(rows))
    page = into_page(page, "soak", "cpu", cpu_table(rows["cpu_seconds_per_million_tuples"]))
    return into_page(page, "soak", "sizes", sizes_table(rows["sizes"]))
