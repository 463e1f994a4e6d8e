"""A section of several parts, each of which has cells and measures them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import Values


class Part(NamedTuple):
    """What a part of a section measures."""

    cells: Callable[[RunPlan], list[Cell]]
    """The cells of the part."""
    measure: Callable[[Cell, StreamCache, RunPlan], Values]
    """Measures one of them."""


def all_cells(parts: Sequence[Part], plan: RunPlan) -> list[Cell]:
    """The cells of all parts."""
    return [cell for part in parts for cell in part.cells(plan)]


def measured(parts: Sequence[Part], cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """Measure the cell by the first part that has it. StopIteration if none has."""
    part = next(part for part in parts if cell in part.cells(plan))
    return part.measure(cell, opened, plan)
