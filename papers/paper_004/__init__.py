"""004, "A Holistic View of Stream Partitioning Costs" (PVLDB 10(11), 2017): CM, AM, cAM, LM on real keys.

The paper's data (TPC-H 10 GB, DEBS 2015, Google cluster) is replaced by what is at hand, see `data` and
`drawn`. Windows tumble and every rule forgets at their end, as in the paper's Alg. 1. Figures are means over
the complete windows. The paper measures throughput and latency. Here their causes are measured, tuple
imbalance (eq. 1) and aggregation cost (eq. 2), and the time of a window is priced from them.

    grid          the settings: which cells there are
    measuring     a cell, with every seed
    claims        what the paper says of the causes, and how it is judged
    page          tables and charts
    window_times  figures 5, 6, 8 and 9: what a window takes
    time_claims   what the paper says of these times, with their table
"""

from __future__ import annotations

from papers.cells.parts import Part, all_cells, measured
from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.markdown import joined
from papers.paper_004 import claims, grid, measuring, page, time_claims, window_times
from papers.paper_004.grid import NAME
from papers.paper_004.page import TITLE, pictures

__all__ = ["CLAIMS", "NAME", "TITLE", "cells", "measure", "pictures", "text"]
_MEASURED = (Part(grid.cells, measuring.measure), Part(window_times.cells, window_times.measure))
CLAIMS = (*claims.CLAIMS, *time_claims.CLAIMS)


def cells(plan: RunPlan) -> list[Cell]:
    """The cells of all parts."""
    return all_cells(_MEASURED, plan)


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """Measure the cell by the part that asks for it."""
    return measured(_MEASURED, cell, opened, plan)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and tables."""
    return joined(part.text(figures, plan) for part in (page, time_claims))
