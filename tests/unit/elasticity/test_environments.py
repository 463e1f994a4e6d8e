"""The Gymnasium environments: Gymnasium's own checker, and what a registered policy sees in them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import evenflow.simulation  # noqa: F401 - registers the environments
from evenflow import elasticity
from evenflow.elasticity.simulated.arrivals import Pareto, Poisson
from evenflow.elasticity.simulated.driving import drive
from evenflow.elasticity.simulated.environments import ElasticChain, ElasticStage
from evenflow.elasticity.simulated.operators import Operator
from evenflow.elasticity.simulated.queues import QueueModel
from evenflow.errors import ConfigError

NAMES = ("evenflow/ElasticStage-v0", "evenflow/ElasticChain-v0", "evenflow/ElasticGraph-v0")


@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_checker_finds_nothing(name: str, recwarn: pytest.WarningsRecorder) -> None:
    check_env(gymnasium.make(name).unwrapped)
    assert [str(warning.message) for warning in recwarn if "gymnasium" in str(warning.filename)] == []


def test_one_import_registers_all() -> None:
    code = f"import gymnasium, evenflow.simulation; [gymnasium.make(name) for name in {NAMES}]"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arrivals", [Poisson(), Pareto()])
def test_same_seed_same_episode(name: str, arrivals: Any) -> None:
    def played() -> list[Any]:
        environment = gymnasium.make(name, arrivals=arrivals, kmax=20)
        environment.reset(seed=5)
        environment.action_space.seed(5)
        return [environment.step(environment.action_space.sample())[:2] for _ in range(20)]

    for (first, reward), (second, again) in zip(played(), played(), strict=True):
        np.testing.assert_array_equal(first, second)
        assert reward == again


def test_an_episode_ends_at_its_horizon_and_by_nothing_else() -> None:
    environment = ElasticStage(horizon=3)
    environment.reset(seed=1)
    ends = [environment.step(64)[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]


def test_the_observation_of_a_policy_says_what_the_queue_does() -> None:
    environment = ElasticStage(operator=Operator(mu=10, rho=1), start=5)
    _, info = environment.reset(seed=1)
    seen = info["observation"]
    stage = seen.stage("combine")
    assert (seen.p, seen.r, seen.step, seen.interval_ms) == (5, 1, 1, 10_000)
    assert stage.capacity == 50
    assert stage.arrivals == seen.rate == pytest.approx(100, rel=0.2)
    assert stage.load == seen.load == pytest.approx(2, rel=0.2)
    assert stage.queue == pytest.approx(500, rel=0.3)
    assert seen.backlog_ms == pytest.approx(stage.queue / 50 * 1000)
    assert seen.stage("reduce").load is None
    assert seen.wiring == "split", "each operator has units of its own"


def test_what_the_first_operator_puts_out_comes_to_the_second() -> None:
    operators = (Operator(mu=10, rho=1, selectivity=0.5), Operator(mu=10, rho=1))
    environment = ElasticChain(operators=operators)
    environment.reset(seed=1)
    for _ in range(5):
        _, reward, _, _, info = environment.step(np.array([20, 10]))
    seen = info["observation"]
    assert seen.stage("reduce").arrivals == pytest.approx(50, rel=0.2)
    assert reward == pytest.approx(-(20 + 10) / 2 / 64 / 3)


def test_a_reward_of_a_chain_is_the_mean_of_its_operators() -> None:
    environment = ElasticChain()
    environment.reset(seed=1)
    assert environment.step(np.array([64, 1]))[1] == pytest.approx(-(1 / 3 + 2 / 3 + 1 / 64 / 3) / 2)


@pytest.mark.parametrize("name", elasticity.names())
@pytest.mark.parametrize("make", [ElasticStage, ElasticChain])
def test_every_registered_policy_can_be_driven_through_both(name: str, make: Any) -> None:
    environment = make(kmax=16)
    options = {"samples": 100} if name == "mblinucb" else {}
    policy = elasticity.create(name, bounds=environment.bounds, **options)
    result = drive(policy, environment, steps=30, seed=1)
    assert len(result.rewards) == 30
    assert ((result.p >= 1) & (result.p <= 16)).all()
    assert (result.rewards <= 0).all()
    assert (result.rewards >= -1).all()


@pytest.mark.parametrize("make", [ElasticStage, ElasticChain])
def test_ds2_keeps_its_utilisation_in_both(make: Any) -> None:
    environment = (
        make(operator=Operator(rho=1)) if make is ElasticStage else make(operators=(Operator(rho=1),) * 2)
    )
    result = drive(elasticity.create("ds2", bounds=environment.bounds), environment, steps=60, seed=1)
    used = result.p[-10:] if make is ElasticStage else np.concatenate((result.p[-10:], result.r[-10:]))
    assert ((used >= 11) & (used <= 20)).all(), "100 tuples/s at 10 each, of which 0.5 to 0.9 are used"


def test_a_gg1_queue_with_steady_times_hardly_waits() -> None:
    def latency(model: QueueModel) -> float:
        environment = ElasticStage(operator=Operator(rho=1, model=model))
        policy = elasticity.create("fixed", bounds=environment.bounds, p=11)
        return float(np.median(drive(policy, environment, steps=50, seed=1).latencies_ms))

    steady = latency(QueueModel(arrival_cv=0.2, service_cv=0.2))
    assert steady < latency(QueueModel()) / 3


@pytest.mark.parametrize(
    "wrong", [{"kmax": 0}, {"lmax_ms": 0}, {"step_s": -1}, {"start": 65}, {"horizon": 0}]
)
def test_an_environment_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        ElasticStage(**wrong)


def test_overhead_takes_its_share_of_the_time_but_not_of_the_capacity_that_is_measured() -> None:
    environment = ElasticStage(operator=Operator(rho=1, overhead=0.25), arrivals=Poisson(30), start=4)
    environment.reset(seed=1)
    for _ in range(20):
        _, _, _, _, info = environment.step(4)
    stage = info["observation"].stage("combine")
    assert stage.capacity == 40
    assert stage.load > 1, "30 come, and 40 * 0.75 = 30 can be done"
    steady = ElasticStage(operator=Operator(rho=1, overhead=0.25), arrivals=Poisson(15), start=4)
    _, info = steady.reset(seed=1)
    stage = info["observation"].stage("combine")
    assert stage.load == pytest.approx(0.25 + stage.arrivals / 40)
    with pytest.raises(ConfigError, match="overhead"):
        Operator(overhead=1)


@pytest.mark.parametrize("form", ["paper", "linear", "backlog"])
def test_an_environment_pays_by_the_objective_that_it_is_given(form: Any) -> None:
    environment = ElasticStage(operator=Operator(rho=1), objective=form)
    environment.reset(seed=1)
    enough, too_few = environment.step(32)[1], environment.step(2)[1]
    assert -0.3 < enough < 0
    assert too_few < enough
    if form == "backlog":
        assert environment.step(2)[1] < too_few < -1, "the longer the queue, the worse"
    else:
        assert environment.step(2)[1] >= -1
