"""`mblinucb` never collapses: whatever load, parallel share and start, what waits is worked off again
(`backlog`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenflow import elasticity
from evenflow.elasticity import Bounds, Observation, StageObservation
from evenflow.elasticity.policies.mblinucb import MBLinUCBOptions
from evenflow.elasticity.simulated.arrivals import Arrivals, Pareto, Poisson, Trace
from evenflow.elasticity.simulated.driving import Trajectory, drive
from evenflow.elasticity.simulated.environments import ElasticChain, ElasticStage
from evenflow.elasticity.simulated.operators import Operator
from tests.unit.elasticity.observations import BOUNDS, Plant

STEP_S = 10.0
STEPS = 300
TOLD = {"lmax_ms": 1000.0}
"""The paper's budget. `rho` is told, too, where the test says so."""


def trace(rates: list[float]) -> Trace:
    """Tuples/s of each step, for ever repeated."""
    return Trace(np.array(rates) * STEP_S, period_s=STEP_S, step_s=STEP_S)


LOADS: dict[str, Arrivals] = {
    "pareto": Pareto(alpha=2, least=50),
    "poisson": Poisson(100),
    "doubling": trace([80.0] * 50 + [160.0] * 50),
    "outage": trace([100.0] * 60 + [0.0] * 20 + [180.0] * 20),
}


def played(options: dict[str, Any], *, load: str, rho: float, start: int, seed: int) -> Trajectory:
    environment = ElasticStage(
        arrivals=LOADS[load], operator=Operator(rho=rho), kmax=64, start=start, step_s=STEP_S
    )
    policy = elasticity.create("mblinucb", bounds=environment.bounds, seed=seed, **options)
    return drive(policy, environment, steps=STEPS, seed=seed)


def collapsed(found: Trajectory) -> bool:
    """Whether more waits than comes in two steps of the mean load, in each of the last hundred steps."""
    return bool(found.waiting[-100:].min() > 2 * 100 * STEP_S)


@pytest.mark.family
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("rho", [0.3, 0.5, 0.9])
@pytest.mark.parametrize("start", [1, 64])
def test_with_its_defaults_no_load_makes_it_collapse(load: str, rho: float, start: int) -> None:
    result = played({}, load=load, rho=rho, start=start, seed=start + 1)
    assert not collapsed(result), f"{result.waiting[-1]:.0f} wait at p {result.p[-1]}"


@pytest.mark.family
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("rho", [0.3, 0.9])
def test_with_the_papers_budget_and_the_right_rho_no_load_makes_it_collapse(load: str, rho: float) -> None:
    result = played({**TOLD, "rho": rho}, load=load, rho=rho, start=64, seed=3)
    assert not collapsed(result), f"{result.waiting[-1]:.0f} wait at p {result.p[-1]}"


def test_with_the_papers_objective_it_does_collapse_which_is_why_it_is_no_default() -> None:
    assert MBLinUCBOptions().objective == "backlog"
    result = played({**TOLD, "rho": 0.3, "objective": "paper"}, load="pareto", rho=0.3, start=64, seed=0)
    assert collapsed(result)
    assert result.p[-1] < 32, "fewer than the 31 units that the mean load needs"


def test_a_chain_of_two_does_not_collapse_either() -> None:
    operators = (Operator(rho=0.5), Operator(rho=0.5))
    environment = ElasticChain(arrivals=Pareto(alpha=2, least=50), operators=operators, kmax=64, start=1)
    policy = elasticity.create("mblinucb", bounds=environment.bounds, seed=2)
    assert not collapsed(drive(policy, environment, steps=STEPS, seed=2))


def observed(step: int, *, p: int, backlog_ms: float) -> Observation:
    stage = StageObservation(arrivals=20.0, capacity=10.0 * p, queue=backlog_ms / 1000 * 20)
    return Observation(
        step=step,
        interval_ms=5_000,
        p=p,
        r=1,
        wiring="split",
        backlog_ms=backlog_ms,
        stages={"combine": stage},
    )


@pytest.mark.parametrize("name", ["linucb", "mblinucb"])
def test_nothing_scales_in_while_a_backlog_drains(name: str) -> None:
    policy = elasticity.create(name, bounds=Bounds(p_max=16), objective="backlog", rho=1.0, every=1)
    p = 12
    for step in range(1, 60):
        decision = policy.decide(observed(step, p=p, backlog_ms=60_000))
        assert decision.p >= p
        p = decision.p
    assert "nothing scales in" in decision.reason
    later = [policy.decide(observed(step, p=p, backlog_ms=0)).p for step in range(60, 90)]
    assert min(later) < p, "the backlog is gone"


@pytest.mark.parametrize("work", [(6.0, 1.5, 0.0), (2.5, 0.7, 0.1), (1.0, 0.3, 0.2)])
def test_in_the_fused_wiring_it_leaves_no_overload_though_each_part_alone_would_keep_up(work: Any) -> None:
    combine, reduce, fixed = work
    plant = Plant(combine=combine, reduce=reduce, fixed=fixed, p=2, r=2)
    policy = elasticity.create("mblinucb", bounds=BOUNDS)
    waiting = []
    for _ in range(200):
        plant.obey(policy.decide(plant.observe()))
        waiting.append(plant.waiting)
    assert min(waiting[-50:]) < 2, (
        f"{plant.waiting:.0f} micro-batches behind with p {plant.p} and r {plant.r}"
    )
