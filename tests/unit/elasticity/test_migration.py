"""What moving state costs, and what a rescale of the environments costs by it."""

import numpy as np
import pytest

from evenflow.elasticity.simulated.environments import ElasticChain, ElasticStage
from evenflow.elasticity.simulated.migration import Migration, moved_by_rescale
from evenflow.elasticity.simulated.queues import QueueModel
from evenflow.errors import ConfigError


def test_a_pause_is_a_fixed_time_and_the_bytes_at_their_rate_and_nothing_where_nothing_moves() -> None:
    model = Migration(fixed_s=2.0, rate=1e6)
    assert [model.pause_s(moved) for moved in (0, 1, 5e6)] == [0, 2.000001, 7.0]
    for bad in ({"fixed_s": -1.0}, {"rate": 0.0}, {"rate": float("inf")}):
        with pytest.raises(ConfigError, match="state moves with"):
            Migration(**bad)


def test_a_rescale_moves_the_shares_of_the_units_that_come_or_go() -> None:
    assert moved_by_rescale(120, 3, 4) == 30
    assert moved_by_rescale(120, 4, 3) == 30
    assert moved_by_rescale(120, 4, 4) == 0
    assert moved_by_rescale(120, 1, 60) == 118


def test_in_a_pause_nothing_is_served_and_tuples_wait_for_its_end() -> None:
    model = QueueModel(arrival_cv=0.0, service_cv=0.0)
    steps = [
        model.step(
            np.random.default_rng(1), arrivals=10.0, service=100.0, queue=0, length_s=10.0, pause_s=pause
        )
        for pause in (0.0, 5.0, 10.0, 30.0)
    ]
    assert [step.arrivals for step in steps] == [steps[0].arrivals] * 4
    assert steps[1].departures == steps[0].departures
    assert [step.departures for step in steps[2:]] == [0, 0]
    latencies = [step.latency_s for step in steps]
    assert latencies[0] == pytest.approx(0.01)
    assert latencies == sorted(latencies)
    assert latencies[3] > 20


def test_a_rescale_of_an_environment_with_state_pauses_it_and_one_without_state_does_not() -> None:
    def queues(**options: object) -> list[float]:
        environment = ElasticStage(start=20, step_s=10.0, **options)
        environment.reset(seed=3)
        steps = [environment.step(units) for units in (20, 30, 30, 30, 30)]
        return [info["observation"].stages["combine"].queue for *_, info in steps]

    plain = queues()
    assert queues(migration=Migration(fixed_s=60)) == plain, "without state nothing moves"
    # A third of the state moves: 10 s at this rate, then 15 s, which is a step and a half.
    one = queues(state_bytes=3e6, migration=Migration(rate=1e5))
    assert one[0] == plain[0]
    assert one[1] > 900
    assert one[4] < 100
    two = queues(state_bytes=3e6, migration=Migration(rate=1e5, fixed_s=5.0))
    assert two[2] > one[2]


def test_a_pause_counts_in_the_load_and_in_the_reward_and_only_of_the_part_that_changes() -> None:
    rewards, loads = [], []
    for state in (0.0, 64e6):
        environment = ElasticChain(
            start=40, lmax_ms=8_000.0, state_bytes=state, migration=Migration(rate=32e6 / 8)
        )
        environment.reset(seed=5)
        _, reward, _, _, info = environment.step([20, 40])
        stages = info["observation"].stages
        rewards.append(reward)
        loads.append((stages["combine"].load, stages["reduce"].load))
    assert rewards[1] < rewards[0]
    assert loads[1][0] > loads[0][0] + 0.7
    assert loads[1][1] < 0.7


def test_state_of_fewer_than_no_bytes_is_refused() -> None:
    with pytest.raises(ConfigError, match="state_bytes must be 0 or more"):
        ElasticStage(state_bytes=-1.0)
