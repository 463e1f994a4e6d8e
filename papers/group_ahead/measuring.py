"""Plays a cell of the queue, or reads what was measured on Spark."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from evenflow.elasticity import Bounds, Policy, create
from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import Values
from papers.group_ahead.grid import MOST, POLICIES, SEEDS, TAKEN, WORKERS, Setting, setting_of
from papers.group_ahead.loads import LOADS, SPIKES, drawn
from papers.group_ahead.queue import QueueCourse, Scheduling, play

TRIGGERS = Path(__file__).parents[2] / "docs/measurements/spark-batches-a-trigger.json"
"""Rows of `evenflow bench spark-batches-a-trigger`."""
THRESHOLD = 0.9
"""W above which zone 3 (overload) begins."""
TARGET = 1.0
"""Intervals from the completion of a batch to the end of its work, at most: then no batch waits for long."""
BASE = 3.0
"""What one worker would need for a batch of the base load of figure 3.7b, in intervals."""
_ROUNDING = 1e-9


def measurable(cell: Cell) -> bool:
    """Whether what was measured on Spark is kept."""
    return cell.experiment != "triggers" or TRIGGERS.exists()


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per figure for a spike (`W` and `delay`: one per batch), one per seed for a load that is
    drawn.
    """
    if cell.experiment == "triggers":
        return _triggers(cell.partitioner)
    setting = setting_of(cell, plan)
    return _spike(setting, cell) if cell.experiment == "spike" else _late(setting, cell, plan)


def _triggers(partitioner: str) -> Values:
    rows = json.loads(TRIGGERS.read_text(encoding="utf-8"))
    row = next(row for row in rows if row["partitioner"] == partitioner)
    seconds = [row["seconds_a_trigger"][str(many)]["median"] for many in TAKEN]
    speeds = [row["speed"][str(many)] for many in TAKEN]
    once = {name: [row[name]] for name in ("fixed_s", "batch_s", "factor")}
    return {"seconds": seconds, "speed": speeds, **once}


def _spike(setting: Setting, cell: Cell) -> Values:
    how = setting.scheduling
    # As much data as the stability line allows. Less by a rounding error, or W would be above it.
    base = (THRESHOLD - how.share - _ROUNDING) * WORKERS
    course = play(base * SPIKES[setting.load](cell.stream.tuples), how, _policy(setting), p=WORKERS)
    return {
        "W": course.loads.tolist(),
        "delay": course.delays.tolist(),
        "changed": [float(_changed(course))],
        "stable": [float(_after(course.loads > THRESHOLD + _ROUNDING))],
        "caught": [float(_after(course.delays > TARGET + _ROUNDING))],
        "most": [float(course.delays.max())],
    }


def _late(setting: Setting, cell: Cell, plan: RunPlan) -> Values:
    seeds = range(1, plan.pick(SEEDS, 2) + 1)
    batches = cell.stream.tuples
    p = fewest(setting.scheduling, BASE * float(LOADS[setting.load](batches)[0]))
    courses = [
        play(BASE * drawn(setting.load, batches, seed=seed), setting.scheduling, _policy(setting), p=p)
        for seed in seeds
    ]
    return {
        "late": [float((course.delays > TARGET).mean()) for course in courses],
        "p": [float(course.p.mean()) for course in courses],
    }


def fewest(scheduling: Scheduling, data: float) -> int:
    """The fewest workers with which W of such a batch is not above the threshold, at most `MOST`."""
    return min(MOST, max(1, math.ceil(data / (THRESHOLD - scheduling.share) - _ROUNDING)))


def _policy(setting: Setting) -> Policy:
    return create("prompt-plus", bounds=Bounds(p_max=MOST), **POLICIES[setting.options])


def _changed(course: QueueCourse) -> int:
    """The first batch with another number of workers, one more than all batches if there is none."""
    changes = np.flatnonzero(course.p != course.p[0])
    return int(changes[0]) + 1 if len(changes) else len(course.p) + 1


def _after(bad: np.ndarray) -> int:
    """The first batch after the last one for which this is true, 1 if it never is."""
    rows = np.flatnonzero(bad)
    return int(rows[-1]) + 2 if len(rows) else 1
