"""000, Dalton (PVLDB 16(3), 2022): its windowed suite for every registered partitioner, and what else can be
counted.

grid                  what the parts share
suite                 figures 7 and 9 as one suite of four streams, for every partitioner
places                figures 7 and 12: throughput by places and by input rate, and why Dalton does not double
word_count            what it shares with figure 11: streams, settings and rates
reducers              figures 7 and 11: Eq. 2, the fullest reducer, with 8 to 64 places
changes               figures 9a and 9d: imbalance and copies while the keys change again and again
change_rates          the same figures: throughput
batches               figures 8 and 9b: micro-batches; `rates` measures them, `claims` has their claims
clustering            figure 9c: correlation clustering
overhead              figures 10 and 11: counting keys, number of hot keys, tracking and forwarding
sources               figure 13: two partitioners with different distributions
synchronisation       figure 14: how often cooperating partitioners synchronise
convergence           figure 15: one to eight partitioners, over time
several_partitioners  what these three share: streams, windows, and the rate that a routed stream could have
replay                the queues of combiners and reducers, from counted work
reducer_exchange      cooperating partitioners and their reducer, in event time
variants              partitioners that tell anew while they wait, and the mean of tables as it is printed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from papers.cells.parts import Part, all_cells, measured
from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.markdown import joined
from papers.paper_000 import (
    change_rates,
    changes,
    clustering,
    convergence,
    reducers,
    sources,
    suite,
    synchronisation,
)
from papers.paper_000.batches import batches
from papers.paper_000.grid import NAME
from papers.paper_000.overhead import heavy_hitters, optimisations, statistics
from papers.paper_000.places import scaling, throughput

if TYPE_CHECKING:
    import altair

__all__ = ["CLAIMS", "NAME", "TITLE", "cells", "measure", "pictures", "text"]
TITLE = "000: Dalton's windowed suite"
_PARTS = (
    suite,
    throughput,
    optimisations,
    reducers,
    scaling,
    batches,
    changes,
    change_rates,
    clustering,
    statistics,
    heavy_hitters,
    sources,
    synchronisation,
    convergence,
)
_MEASURED = tuple(Part(part.cells, part.measure) for part in _PARTS)
CLAIMS = tuple(claim for part in _PARTS for claim in part.CLAIMS)


def cells(plan: RunPlan) -> list[Cell]:
    """The cells of all parts."""
    return all_cells(_MEASURED, plan)


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """Measure the cell by the part that asks for it."""
    return measured(_MEASURED, cell, opened, plan)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Tables of all parts."""
    return joined(part.text(figures, plan) for part in _PARTS)


def pictures(figures: SectionFigures, plan: RunPlan) -> dict[str, altair.TopLevelMixin]:
    """Charts by file name."""
    return (
        suite.pictures(figures, plan) | batches.pictures(figures, plan) | convergence.pictures(figures, plan)
    )
