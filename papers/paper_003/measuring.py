"""Plays a cell of 003 with every seed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from evenflow import elasticity
from evenflow.elasticity.simulated.arrivals import Arrivals, Pareto, Poisson, Trace
from evenflow.elasticity.simulated.driving import Trajectory, drive
from evenflow.elasticity.simulated.environments import ElasticStage
from evenflow.elasticity.simulated.operators import Operator
from evenflow.text.options import parse_choice
from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import Values
from papers.data import read_dataset
from papers.paper_003.baselines import is_installed, learned
from papers.paper_003.grid import BEST_FIXED, KMAX, LEARNERS, OPERATORS, UNKNOWN

GOAL = -0.3
"""The paper's mark of a good reward."""
WINDOW = 100
"""Steps over which a reward is averaged."""
MEAN_RATE = 100.0
STEP_S = 10.0
LMAX_MS = 1000.0
POINTS = 24
# Even 4 instances of 10 tuples/s are far too few for 100 tuples/s, so fewer need not be tried.
_TRIED = range(4, KMAX + 1)
_HOUR_MS = 3_600_000


def measurable(cell: Cell) -> bool:
    """Whether everything that the cell needs is installed."""
    return cell.partitioner not in LEARNERS or is_installed()


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed. `curve` has the mean reward over the seeds between each two of `edges`."""
    if cell.partitioner == BEST_FIXED:
        return _best_fixed(cell, plan)
    played = [_played(cell, plan, seed) for seed in plan.seeds]
    rewards = np.array([trajectory.rewards for trajectory in played])
    tenth = max(1, rewards.shape[1] // 10)
    # The load of the cell `doubling` doubles here.
    half = rewards.shape[1] // 2
    series = {
        "first": [float(row[:WINDOW].mean()) for row in rewards],
        "all": [float(row.mean()) for row in rewards],
        "last": [float(row[-tenth:].mean()) for row in rewards],
        "after": [float(row[half : half + WINDOW].mean()) for row in rewards],
        "reached": [_reached(row) for row in rewards],
        "p": [float(trajectory.p[-tenth:].mean()) for trajectory in played],
        "latency": [float(np.nanmedian(trajectory.latencies_ms[-tenth:])) for trajectory in played],
    }
    bounds = edges(rewards.shape[1])
    series["curve"] = [float(rewards[:, low:high].mean()) for low, high in pairwise(bounds)]
    return series


def edges(steps: int) -> list[int]:
    """Steps at which the points of a curve begin and end. The stretches grow geometrically."""
    return sorted({0, *np.geomspace(min(10, steps), steps, POINTS).round().astype(int).tolist()})


def _played(cell: Cell, plan: RunPlan, seed: int) -> Trajectory:
    environment = _environment(cell, plan)
    steps = cell.stream.tuples
    if cell.partitioner in LEARNERS:
        return learned(cell.partitioner, environment, steps=steps, seed=seed)
    name, options = parse_choice(cell.partitioner)
    if "mu" in options:
        # The paper's policy knows the speed of the operator that it practises for.
        options["mu"] = environment.operators[0].mu
    if plan.quick and name == "mblinucb":
        options["samples"] = 100
    if name != "fixed":
        # The reward of the environment is the paper's, so every policy learns by it.
        options |= {"lmax_ms": LMAX_MS, "rho": environment.operators[0].rho, "objective": "paper"}
        if (bound := environment.objectives[0].most_queue) is not None:
            options["omega_max"] = bound
    policy = elasticity.create(name, bounds=environment.bounds, seed=seed, **options)
    return drive(policy, environment, steps=steps, seed=seed)


def _environment(cell: Cell, plan: RunPlan) -> ElasticStage:
    options: dict[str, Any] = dict((OPERATORS | UNKNOWN).get(cell.experiment, {}))
    bound = options.pop("omega_max", None)
    operator = Operator(**options)
    return ElasticStage(
        arrivals=_arrivals(cell, plan), operator=operator, kmax=KMAX, step_s=STEP_S, omega_max=bound
    )


def _arrivals(cell: Cell, plan: RunPlan) -> Arrivals:
    steps = cell.stream.tuples
    if cell.experiment == "doubling":
        rates = np.where(np.arange(steps + 1) <= steps // 2, MEAN_RATE, 2 * MEAN_RATE)
        return Trace(rates * STEP_S, period_s=STEP_S, step_s=STEP_S)
    if cell.stream.kind == "flights-by-hour":
        return _flights(plan)
    drawn: dict[str, Arrivals] = {
        "poisson": Poisson(MEAN_RATE),
        "pareto": Pareto(alpha=2.0, least=MEAN_RATE / 2),
    }
    return drawn[cell.stream.kind]


def _flights(plan: RunPlan) -> Trace:
    """Each step has an hour of 2013. Each flight stands for so many tuples that 100 tuples/s come on
    average.
    """
    times = read_dataset("flights-carrier", plan.data).times
    counts = np.bincount((times - times[0]) // _HOUR_MS).astype(np.float64)
    return Trace(
        counts,
        period_s=_HOUR_MS / 1000,
        step_s=STEP_S,
        speed=_HOUR_MS / 1000 / STEP_S,
        copies=MEAN_RATE * STEP_S / float(counts.mean()),
    )


def _reached(rewards: np.ndarray) -> float:
    """Steps until the mean of the last `WINDOW` rewards is above the goal. If it never is: one more than
    all steps.
    """
    window = min(WINDOW, len(rewards))
    means = np.convolve(rewards, np.ones(window) / window, "valid")
    above = np.flatnonzero(means > GOAL)
    return float(above[0] + window if len(above) else len(rewards) + 1)


def _best_fixed(cell: Cell, plan: RunPlan) -> Values:
    steps = min(cell.stream.tuples, plan.pick(2_000, 50))
    environment = _environment(cell, plan)
    means = []
    for p in _TRIED:
        policy = elasticity.create("fixed", bounds=environment.bounds, p=p)
        means.append(float(drive(policy, environment, steps=steps, seed=1).rewards.mean()))
    best = int(np.argmax(means))
    return {"all": [means[best]], "p": [float(_TRIED[best])]}
