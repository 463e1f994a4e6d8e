"""000, Dalton (PVLDB 16(3), 2022): its windowed suite for every registered partitioner, and what else can be counted.

grid           what the parts share
suite          figures 7 and 9 as one suite of four streams, for every partitioner
reducers       figures 7 and 11: Eq. 2, the fullest reducer, with 8 to 64 places
changes        figures 9a and 9d: the keys change again and again
heavy_hitters  figure 10c: how many keys may be split
sources        figures 13 and 15: several partitioners with different distributions
synchronising  figure 14: how often cooperating partitioners synchronise
talking        cooperating partitioners and their reducer, in event time
"""

from __future__ import annotations

from benchmarks.reproducing.paper_000 import changes, heavy_hitters, reducers, sources, suite, synchronising
from benchmarks.reproducing.paper_000.grid import NAME
from benchmarks.reproducing.paper_000.suite import pictures
from benchmarks.reproducing.plan import Cell, Opened, Plan
from benchmarks.reproducing.store import Found, Values

__all__ = ["CLAIMS", "NAME", "TITLE", "cells", "measure", "pictures", "text"]
TITLE = "000: Dalton's windowed suite"
_PARTS = (suite, reducers, changes, heavy_hitters, sources, synchronising)
CLAIMS = tuple(claim for part in _PARTS for claim in part.CLAIMS)


def cells(plan: Plan) -> list[Cell]:
    """The cells of all parts."""
    return [cell for part in _PARTS for cell in part.cells(plan)]


def measure(cell: Cell, opened: Opened, plan: Plan) -> Values:
    """Measure the cell by the part that asks for it."""
    part = next(part for part in _PARTS if cell in part.cells(plan))
    found: Values = part.measure(cell, opened, plan)
    return found


def text(found: Found, plan: Plan) -> list[str]:
    """Tables of all parts, and the pictures of the suite."""
    # Each part ends with an empty line. `report` adds the last one itself.
    return [line for part in _PARTS for line in part.text(found, plan)][:-1]
