"""The bandit policies: their regressions, what they learn from, and how fast."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from evenflow import elasticity
from evenflow.elasticity import Bounds, Observation, Policy, StageObservation
from evenflow.elasticity.learning.agents import Agent, Load
from evenflow.elasticity.learning.disjoint import DisjointLinUCB
from evenflow.elasticity.simulated.arrivals import Trace
from evenflow.elasticity.simulated.driving import Trajectory, drive
from evenflow.elasticity.simulated.environments import ElasticChain, ElasticStage
from evenflow.elasticity.simulated.objective import Objective
from evenflow.elasticity.simulated.operators import Operator
from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.numeric.arrays import Float64s

QUICK = {"lmax_ms": 1000, "samples": 2_000}
BOUNDS = Bounds(p_max=8, r_max=4)


def seen(step: int = 1, *, p: int = 4, r: int = 2, rate: float | None = 30.0, **more: Any) -> Observation:
    """Workers and reducers that do 10 tuples/s each."""
    stages = {
        "combine": StageObservation(arrivals=rate, capacity=10.0 * p, queue=0),
        "reduce": StageObservation(arrivals=None if rate is None else rate / 3, capacity=10.0 * r, queue=0),
    }
    return Observation(step=step, interval_ms=5000, p=p, r=r, load=0.8, stages=stages, **more)


def practised(name: str, **options: Any) -> tuple[Policy, Trajectory]:
    environment = ElasticStage(kmax=32)
    policy = elasticity.create(name, bounds=environment.bounds, seed=1, **QUICK_OF[name], **options)
    return policy, drive(policy, environment, steps=60, seed=2)


QUICK_OF = {"linucb": {"lmax_ms": 1000}, "mblinucb": QUICK}


def coefficients(bandit: DisjointLinUCB) -> Float64s:
    """theta of each arm, shape (arms, width)."""
    return np.reshape(bandit.state()["_theta"], (len(bandit.plays), -1))


def test_rank_one_updates_are_a_ridge_regression() -> None:
    rng = np.random.default_rng(1)
    bandit = DisjointLinUCB(arms=3, width=4, alpha=0.7)
    rows: list[list[Any]] = [[], [], []]
    for _ in range(1_000):
        arm, context, reward = int(rng.integers(3)), rng.random(4), float(rng.normal())
        bandit.learn(arm, context, reward)
        rows[arm].append((context, reward))
    contexts = rng.random((3, 4))
    for arm, played in enumerate(rows):
        design = np.array([context for context, _ in played])
        gram = design.T @ design + np.eye(4)
        theta = np.linalg.solve(gram, design.T @ np.array([reward for _, reward in played]))
        np.testing.assert_allclose(coefficients(bandit)[arm], theta, rtol=1e-9)
        assert bandit.expected(contexts)[arm] == pytest.approx(contexts[arm] @ theta)
        width = np.sqrt(contexts[arm] @ np.linalg.solve(gram, contexts[arm]))
        assert bandit.doubt(contexts)[arm] == pytest.approx(0.7 * width)


def test_updates_stay_sound_over_a_hundred_thousand_steps() -> None:
    rng = np.random.default_rng(1)
    bandit = DisjointLinUCB(arms=1, width=3, alpha=1)
    contexts = np.column_stack((np.ones(100_000), 1e-4 * rng.random(100_000), np.zeros(100_000)))
    rewards = -0.1 + 50 * contexts[:, 1]
    for context, reward in zip(contexts, rewards, strict=True):
        bandit.learn(0, context, reward)
    theta = np.linalg.solve(contexts.T @ contexts + np.eye(3), contexts.T @ rewards)
    np.testing.assert_allclose(coefficients(bandit)[0], theta, rtol=1e-6)
    assert bandit.doubt(contexts[:1])[0] >= 0


def test_of_equal_arms_the_last_is_chosen_which_overloads_least() -> None:
    assert DisjointLinUCB(arms=5, width=2, alpha=1).choose(np.ones((5, 2))) == 4


def test_the_context_is_linear_in_the_latency_bound_and_never_leaves_0_to_1() -> None:
    agent = Agent(least=1, most=20, rho=1, alpha=1)
    contexts = agent.contexts(Load(arrivals=100, mu=10, queue=5), Objective(latency_s=1, most_units=20))
    assert contexts[14].tolist() == pytest.approx([1, np.log(20) / 50, 5 * np.log(20) / 150])
    assert (contexts[:10, 1] == 1).all(), "not stable"
    assert ((contexts >= 0) & (contexts <= 1)).all()


def test_the_units_that_were_in_force_are_judged_not_those_that_were_asked_for() -> None:
    agent = Agent(least=2, most=5, rho=1, alpha=1)
    load = Load(arrivals=10, mu=10, queue=0)
    agent.await_outcome(load)
    agent.judge(3, load, Objective(latency_s=1, most_units=5))
    agent.judge(7, load, Objective(latency_s=1, most_units=5))
    assert agent.bandit.plays.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("name", ["linucb", "mblinucb"])
def test_same_seed_same_trajectory(name: str) -> None:
    (_, first), (_, second) = practised(name), practised(name)
    assert first.p.tolist() == second.p.tolist()
    assert first.rewards.tolist() == second.rewards.tolist()


@pytest.mark.parametrize("name", ["linucb", "mblinucb"])
@pytest.mark.parametrize("after", [3, 40])
def test_a_snapshot_continues_exactly(name: str, after: int) -> None:
    policy = elasticity.create(name, bounds=BOUNDS)
    rng = np.random.default_rng(4)
    p, r = 4, 2
    for step in range(1, after + 1):
        decision = policy.decide(seen(step, p=p, r=r, rate=float(rng.uniform(10, 90))))
        p, r = decision.p, decision.r
    other = elasticity.restore(policy.snapshot(), like=policy)
    for step in range(after + 1, after + 30):
        observation = seen(step, p=p, r=r, rate=float(rng.uniform(10, 90)))
        decision = policy.decide(observation)
        assert other.decide(observation) == decision
        p, r = decision.p, decision.r
    assert other.snapshot() == policy.snapshot()


def test_a_snapshot_of_other_arms_is_refused() -> None:
    policy = elasticity.create("linucb", bounds=BOUNDS)
    wider = elasticity.create("linucb", bounds=Bounds(p_max=9, r_max=4))
    with pytest.raises(IncompatibleStateError):
        elasticity.restore(policy.snapshot(), like=wider)


DAMAGE: list[tuple[tuple[str, ...], Any]] = [
    (("mu",), {"combine": "nan"}),
    (("mu",), {"combine": 0}),
    (("came",), {"reduce": "-inf"}),
    (("seen",), -1),
    (("shares",), {"combine": 0.5}),
    (("agents", "reduce", "before"), {"arrivals": 1, "mu": "inf", "queue": 0}),
    (("agents", "reduce", "bandit", "plays"), [10**30] * 4),
    (("agents", "reduce", "bandit", "_design"), [0] * 36),
]


@pytest.mark.parametrize(("where", "value"), DAMAGE)
def test_a_damaged_snapshot_is_refused_and_nothing_of_it_is_taken(where: tuple[str, ...], value: Any) -> None:
    policy = elasticity.create("mblinucb", bounds=BOUNDS, watch=1, samples=10)
    for step in range(1, 5):
        policy.decide(seen(step))
    damaged = json.loads(policy.snapshot())
    at = damaged["state"]
    for name in where[:-1]:
        at = at[name]
    at[where[-1]] = value
    other = elasticity.create("mblinucb", bounds=BOUNDS, watch=1, samples=10)
    first = other.snapshot()
    with pytest.raises(IncompatibleStateError):
        other.resume(json.dumps(damaged).encode())
    assert other.snapshot() == first


def test_arrivals_that_no_selectivity_can_be_made_of_are_practised_with_none() -> None:
    policy = elasticity.create("mblinucb", bounds=BOUNDS, watch=1, samples=10)
    stages = {
        "combine": StageObservation(arrivals=5e-324, capacity=10.0, queue=0),
        "reduce": StageObservation(arrivals=1e18, capacity=10.0, queue=0),
    }
    decision = policy.decide(Observation(step=1, interval_ms=5000, p=4, r=2, load=0.8, stages=stages))
    assert not decision.held


@pytest.mark.parametrize("name", ["linucb", "mblinucb"])
def test_an_observation_without_loads_of_the_parts_decides_nothing(name: str) -> None:
    for rate in (None, float("nan"), -1.0):
        decision = elasticity.create(name, bounds=BOUNDS).decide(seen(rate=rate))
        assert decision.held
        assert (decision.p, decision.r) == (4, 2)
        assert "not known" in decision.reason


def test_only_the_part_that_is_known_is_decided_on() -> None:
    whole = seen(1)
    known = Observation(step=1, interval_ms=5000, p=4, r=2, stages={"combine": whole.stage("combine")})
    assert elasticity.create("linucb", bounds=BOUNDS).decide(known).r == 2


def test_a_reward_is_of_one_step_a_gap_in_the_data_teaches_nothing() -> None:
    policy: Any = elasticity.create("linucb", bounds=BOUNDS)
    policy.decide(seen(1))
    policy.decide(seen(2, stale=("no telemetry",)))
    policy.decide(seen(3))
    assert policy._agents["combine"].bandit.plays.sum() == 0
    policy.decide(seen(4))
    assert policy._agents["combine"].bandit.plays.sum() == 1


def test_what_is_decided_is_judged_after_the_plan_is_realised() -> None:
    policy: Any = elasticity.create("linucb", bounds=BOUNDS)
    wanted = policy.decide(seen(1, p=4))
    policy.decide(seen(2, p=4, settling=True))
    policy.decide(seen(3, p=wanted.p))
    plays = policy._agents["combine"].bandit.plays
    assert plays.sum() == 1
    assert plays[wanted.p - 1] == 1


def test_one_decision_in_so_many_observations() -> None:
    policy = elasticity.create("linucb", bounds=BOUNDS, every=3)
    reasons = [policy.decide(seen(step)).reason for step in range(1, 7)]
    assert [reason.startswith("observation") for reason in reasons] == [True, True, False] * 2


def test_mblinucb_watches_first_and_changes_nothing_meanwhile() -> None:
    policy = elasticity.create("mblinucb", bounds=BOUNDS, watch=3, samples=500)
    decisions = [policy.decide(seen(step)) for step in range(1, 4)]
    assert [decision.held for decision in decisions] == [True, True, False]
    assert {(decision.p, decision.r) for decision in decisions[:2]} == {(4, 2)}


def test_mblinucb_waits_for_a_load_to_practise_on() -> None:
    policy = elasticity.create("mblinucb", bounds=BOUNDS, watch=1, samples=500)
    assert policy.decide(seen(1, rate=0.0)).held
    assert not policy.decide(seen(2)).held


def test_a_part_that_is_known_later_is_practised_for_when_it_is() -> None:
    policy: Any = elasticity.create("mblinucb", bounds=BOUNDS, watch=2, samples=500)
    whole = seen(1)
    combiner = Observation(step=1, interval_ms=5000, p=4, r=2, stages={"combine": whole.stage("combine")})
    held = [policy.decide(observation).held for observation in (combiner, combiner, whole, whole, whole)]
    assert held == [True, False, True, False, False]
    assert policy._practised == ["combine", "reduce"]


def test_mblinucb_knows_at_once_what_is_enough() -> None:
    policy = elasticity.create("mblinucb", bounds=BOUNDS, watch=1, alpha=0, rho=1)
    decision = policy.decide(seen(1, p=8, r=4))
    assert 4 <= decision.p <= 6, "three workers' worth of tuples, and some room"
    assert 2 <= decision.r <= 3, "one reducer's worth"


def test_mblinucb_starts_better_than_linucb() -> None:
    result: dict[str, list[float]] = {"linucb": [], "mblinucb": []}
    for seed in range(3):
        for name, rewards in result.items():
            environment = ElasticStage()
            policy = elasticity.create(name, bounds=environment.bounds, seed=seed, **QUICK_OF[name])
            rewards.append(float(drive(policy, environment, steps=100, seed=seed).rewards.mean()))
    assert min(result["mblinucb"]) > max(result["linucb"]) + 0.1
    assert min(result["mblinucb"]) > -0.3


def test_mblinucb_meets_a_load_that_doubles_within_a_few_steps() -> None:
    environment = ElasticStage(
        arrivals=Trace(np.array([1000.0] * 40 + [2000.0] * 40), period_s=10, step_s=10)
    )
    policy = elasticity.create("mblinucb", bounds=environment.bounds, **QUICK)
    result = drive(policy, environment, steps=79, seed=1)
    assert np.median(result.p[20:38]) < 21 < np.median(result.p[45:])
    assert np.median(result.latencies_ms[45:]) < 1000


def test_the_same_policy_serves_a_chain_of_two() -> None:
    operators = (Operator(mu=9_000, selectivity=0.1), Operator(mu=900))
    rates = np.array([45_000.0 * 5])
    environment = ElasticChain(
        arrivals=Trace(rates, period_s=5, step_s=5), operators=operators, kmax=8, step_s=5, lmax_ms=40_000
    )
    policy = elasticity.create("mblinucb", bounds=environment.bounds, samples=2_000)
    result = drive(policy, environment, steps=40, seed=1)
    assert set(result.p[20:]) <= {6, 7}
    assert set(result.r[20:]) <= {6, 7}


def test_an_option_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigError, match="rho"):
        elasticity.create("linucb", bounds=BOUNDS, rho=2)
