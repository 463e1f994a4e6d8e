"""Plays a policy under a load, with every seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.elasticity.grid.loads import KMAX, STEP_S, Load
from evenflow import elasticity
from evenflow.elasticity.simulated.driving import Trajectory, drive
from evenflow.elasticity.simulated.environments import ElasticStage
from evenflow.text.options import parse_choice

STEPS = 400
SEEDS = tuple(range(20))
POLICIES = (
    "fixed:p=64",
    "prompt-plus",
    "prompt-plus:proportional=true",
    "threshold",
    "ds2",
    "ds2:forecast_s=20",
    "dhalion",
    "conttune",
    "linucb",
    "mblinucb",
    "mblinucb:objective=paper",
)
"""Every policy with its defaults, and three with another option. A forecast looks two steps ahead."""
_LATE_MS = STEP_S * 1000
_TAIL = 100
"""A run has collapsed if more than two steps' tuples wait in each of its last steps, this many."""

Figures = dict[str, list[float]]
"""Figure -> one value for each seed: late, units, changes, longest, collapsed."""


def measure(policy: str, load: Load, *, seeds: Sequence[int], steps: int) -> Figures:
    """The figures of a policy under a load. Runs with an even seed begin with all units, the others with
    one.
    """
    runs = [_figures(_played(policy, load, seed=seed, steps=steps)) for seed in seeds]
    return {name: [run[name] for run in runs] for name in runs[0]}


def _played(policy: str, load: Load, *, seed: int, steps: int) -> Trajectory:
    environment = ElasticStage(
        arrivals=load.arrivals,
        operator=load.operator,
        kmax=KMAX,
        step_s=STEP_S,
        start=1 if seed % 2 else KMAX,
    )
    name, options = parse_choice(policy)
    decider = elasticity.create(name, bounds=environment.bounds, seed=seed, **options)
    return drive(decider, environment, steps=steps, seed=seed)


def _figures(run: Trajectory) -> dict[str, float]:
    """late: share of steps. units: mean. changes: of p in 100 steps. longest: most tuples that ever
    waited.
    """
    waiting = float(run.waiting[-_TAIL:].min())
    return {
        "late": float(np.mean(run.latencies_ms > _LATE_MS)),
        "units": float(run.p.mean()),
        "changes": float(100 * np.mean(np.diff(run.p) != 0)),
        "longest": float(run.waiting.max()),
        "collapsed": float(waiting > 2 * 100 * STEP_S),
    }
