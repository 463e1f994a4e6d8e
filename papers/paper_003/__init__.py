"""003, "Model-based Reinforcement Learning for Elastic Stream Processing in Edge Computing": figures 5-10.

One operator runs in `evenflow.elasticity.simulated.environments.ElasticStage` with the paper's defaults. The
paper's taxi trace is replaced by the flights from New York in 2013, hour by hour. Rewards are those of the
steps that were played while the policy learned. Figure 10 is played on a graph of operators.

    grid        the settings: which cells there are
    measuring   a cell, with every seed
    baselines   PPO, A2C and DQN, where the extra `rl` is installed
    claims      what the paper says, and how it is judged
    page        tables and charts
    practice    what the agent practises, and how fast it is then
    taxi_graph  figure 10: the seven operators of figure 4 with an agent each
"""

from __future__ import annotations

from papers.cells.parts import Part, all_cells, measured
from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.markdown import joined
from papers.paper_003 import claims, grid, measuring, page, practice, taxi_graph
from papers.paper_003.grid import NAME
from papers.paper_003.measuring import measurable
from papers.paper_003.page import TITLE, pictures

__all__ = ["CLAIMS", "NAME", "TITLE", "cells", "measurable", "measure", "pictures", "text"]
_MEASURED = (
    Part(grid.cells, measuring.measure),
    Part(practice.cells, measuring.measure),
    Part(taxi_graph.cells, taxi_graph.measure),
)
CLAIMS = (*claims.CLAIMS, *practice.CLAIMS, *taxi_graph.CLAIMS)


def cells(plan: RunPlan) -> list[Cell]:
    """The cells of all parts."""
    return all_cells(_MEASURED, plan)


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """Measure the cell by the part that asks for it."""
    return measured(_MEASURED, cell, opened, plan)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and tables."""
    return joined(part.text(figures, plan) for part in (page, practice, taxi_graph))
