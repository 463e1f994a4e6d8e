"""The settings of 001's figures 3.6 and 3.7: one cell each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from papers.cells.run_plan import Cell, RunPlan, Stream
from papers.group_ahead.loads import LOADS, SPIKES
from papers.group_ahead.queue import WAYS, Scheduling, Way

NAME = "group-ahead"
SEEDS = 20
GROUP = 10
GROUPS = (2, 5, 10, 20)
COST = 0.5
"""Cost of scheduling in intervals of 1 s. A trigger costs Spark 0.3 s here on an idle machine, and 0.7 s
on a busy one.
"""
COSTS = (0.2, 0.5, 0.8)
PARTITIONERS = ("hashing", "prompt", "evenflow")
TAKEN = (1, 2, 5, 10)
"""Batches a trigger that are measured on Spark."""
WORKERS = 4
"""Workers before the spike of figure 3.6."""
MOST = 32
"""Most workers."""
FAST, DEFAULT = "fast", "default"
POLICIES: dict[str, dict[str, Any]] = {FAST: {"d": 1, "proportional": True}, DEFAULT: {}}
"""Options of `prompt-plus`. In figure 3.6 everything is set to restore stability as fast as possible."""
SPIKE_BATCHES = 80


@dataclass(frozen=True)
class Setting:
    """One point of the grid."""

    experiment: str
    """"spike" (figure 3.6) or "late" (figure 3.7b)."""
    load: str
    """Name of the load that comes."""
    scheduling: Scheduling
    """How batches are scheduled."""
    options: str = FAST
    """Name of the policy's options in `POLICIES`."""

    def cell(self, plan: RunPlan) -> Cell:
        """The cell of this setting."""
        batches = SPIKE_BATCHES if self.experiment == "spike" else plan.pick(180, 90)
        how = self.scheduling
        name = f"{how.way}:G={how.size},cost={how.cost:g},options={self.options}"
        return Cell(NAME, self.experiment, Stream(self.load, batches), MOST, name)


def spike(kind: str, way: Way, options: str = FAST) -> Setting:
    """Figure 3.6."""
    return Setting("spike", kind, Scheduling(way, GROUP, COST), options)


def late(load: str, way: Way, *, group: int = GROUP, cost: float = COST, options: str = FAST) -> Setting:
    """Figure 3.7b."""
    return Setting("late", load, Scheduling(way, group, cost), options)


def settings() -> Iterator[Setting]:
    """All settings that are played, each once."""
    for kind, way in product(SPIKES, WAYS):
        yield spike(kind, way)
        yield spike(kind, way, DEFAULT)
    for load, way in product(LOADS, WAYS):
        for cost in COSTS:
            yield late(load, way, cost=cost)
        yield late(load, way, options=DEFAULT)
    for load, way, group in product(LOADS, WAYS[1:], GROUPS):
        if group != GROUP:
            yield late(load, way, group=group)


def trigger_cell(partitioner: str) -> Cell:
    """Figure 3.7a, as measured on Spark."""
    return Cell(NAME, "triggers", Stream("micro-batches", max(TAKEN)), 8, partitioner)


def cells(plan: RunPlan) -> list[Cell]:
    """Everything that is played, and what Spark took for its triggers."""
    return [*(setting.cell(plan) for setting in settings()), *map(trigger_cell, PARTITIONERS)]


def setting_of(cell: Cell, plan: RunPlan) -> Setting:
    """The setting of a cell. KeyError for a cell of another kind."""
    return {setting.cell(plan): setting for setting in settings()}[cell]


def beside(setting: Setting, way: Way) -> Setting:
    """The same setting, scheduled in another way."""
    return replace(setting, scheduling=replace(setting.scheduling, way=way))
