"""The tables of the grid, from the figures of all runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean, median

from benchmarks.elasticity.grid.loads import LOADS, STATED
from benchmarks.elasticity.grid.measuring import POLICIES, Figures
from benchmarks.pages.tables import median_and_range, table

Grid = Mapping[str, Mapping[str, Figures]]
"""Policy -> name of a load -> figures."""
RECOMMENDED = "ds2"
"""The one policy that docs/elasticity.md recommends by default."""


def loads_table() -> str:
    """What each load is."""
    return table(("load", "what comes"), [(load.name, load.words) for load in LOADS])


def late_table(grid: Grid) -> str:
    """Steps with a late latency, in percent: the median over the seeds, and the range."""
    return _by_load(grid, lambda figures: median_and_range([100 * late for late in figures["late"]], 0))


def units_table(grid: Grid) -> str:
    """Units in use: the median over the seeds, and the range."""
    return _by_load(grid, lambda figures: median_and_range(figures["units"], 0))


def summary_table(grid: Grid) -> str:
    """One row for each policy, over the stated loads; collapsed runs over all loads."""
    rows = []
    for policy in POLICIES:
        stated = [grid[policy][name] for name in STATED]
        collapsed = [int(sum(figures["collapsed"])) for figures in grid[policy].values()]
        runs = sum(len(figures["collapsed"]) for figures in grid[policy].values())
        rows.append(
            (
                _name(policy),
                f"{100 * fmean(median(figures['late']) for figures in stated):.1f} %",
                f"{100 * max(median(figures['late']) for figures in stated):.1f} %",
                f"{fmean(median(figures['units']) for figures in stated):.1f}",
                f"{fmean(median(figures['changes']) for figures in stated):.1f}",
                f"{max(max(figures['longest']) for figures in stated):,.0f}",
                f"{sum(collapsed)} of {runs}",
            )
        )
    head = (
        "policy",
        "late, mean",
        "late, worst load",
        "units",
        "changes in 100 steps",
        "most waiting",
        "collapsed",
    )
    return table(head, rows)


def _by_load(grid: Grid, cell: Callable[[Figures], str]) -> str:
    rows = [(_name(policy), *(cell(grid[policy][load.name]) for load in LOADS)) for policy in POLICIES]
    return table(("policy", *(load.name for load in LOADS)), rows)


def _name(policy: str) -> str:
    return f"**`{policy}`**" if policy == RECOMMENDED else f"`{policy}`"


PARTS: dict[str, Callable[[Grid], str]] = {
    "loads": lambda grid: loads_table(),
    "summary": summary_table,
    "late": late_table,
    "units": units_table,
}
"""Tables of the page, by the comment that they stand below."""
