"""The loop of a training, with an agent that only remembers: what it is asked for, and what becomes of its
policies.

tests/rl has the real agent, which needs the extra `rl`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from evenflow.partitioners.partly.actions import ACTIONS, actions_of
from evenflow.partitioners.partly.network import TrainedPolicy, load_policy
from evenflow.partitioners.partly.reward import FINAL, Rewards
from evenflow.partitioners.partly.task_times import Prices
from evenflow.training import learner as module
from evenflow.training.batches import BatchLaw
from evenflow.training.curve import Point
from evenflow.training.episodes import Episodes
from evenflow.training.learner import CHECKPOINT, POLICY, Learner, Training
from tests.unit.partitioners.partly.policies import random_policy

LAW = BatchLaw(data_blocks=(2, 4), keys=(5, 40))
PRICES = Prices(80.0, 500.0, 300.0, 900.0, 0.1)
POINT = module._ROLLOUT * module._ROLLOUTS


@dataclass
class Asked:
    actions: int
    stage_actions: int
    rate: float
    entropy: float
    rewards: Rewards


class Agent:
    """Plays a few random actions in the episodes, and has another random policy after each call."""

    def __init__(self, episodes: Episodes, training: Training, done: int) -> None:
        self.episodes, self.calls, self.earned = episodes, done // POINT, np.zeros(0)
        self.rng = np.random.default_rng(training.seed)
        self.asked: list[Asked] = []
        episodes.reset()

    def learn(self, actions: int, *, stage_actions: int, rate: float, entropy: float) -> None:
        self.asked.append(Asked(actions, stage_actions, rate, entropy, self.episodes.rewards))
        drawn = self.rng.integers(0, stage_actions, (40, self.episodes.number))
        self.earned = np.concatenate([self.episodes.step(row).rewards for row in drawn])
        self.calls += 1

    def policy(self, *, keys_each: int, data_blocks: int | None) -> TrainedPolicy:
        return random_policy(self.calls, keys_each=keys_each)

    def save(self, path: Path) -> None:
        path.write_text(str(self.calls))

    def load(self, path: Path) -> None:
        self.calls = int(path.read_text())


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EPISODES", 4)
    monkeypatch.setattr(module, "_HELD_OUT", 20)


def trained(
    folder: Path, training: Training, *, resume: bool = False, minutes: float = 10
) -> tuple[Learner, Agent, list[Point]]:
    agents: list[Agent] = []

    def make(*facts: object) -> Agent:
        agents.append(Agent(*facts))  # type: ignore[arg-type]
        return agents[0]

    points: list[Point] = []
    learner = Learner(training, folder, resume=resume, make=make)
    learner.run(minutes=minutes, tell=points.append)
    return learner, agents[0], points


def test_actions_grow_by_stages_while_the_rates_fall(tmp_path: Path) -> None:
    _, agent, points = trained(tmp_path, Training(law=LAW, steps=20 * POINT))
    stages = [point.stage for point in points]
    assert stages == [1] * 3 + [2] * 4 + [3] * 13, "from 15 % and 35 % on"
    assert [asked.stage_actions for asked in agent.asked] == [actions_of(stage) for stage in stages]
    rates = [asked.rate for asked in agent.asked]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(rates[0] / 20)
    assert all(asked.entropy == pytest.approx(10 * asked.rate) for asked in agent.asked)


def test_the_last_actions_are_whole_rollouts(tmp_path: Path) -> None:
    learner, agent, _ = trained(tmp_path, Training(law=LAW, steps=POINT + 1))
    assert [asked.actions for asked in agent.asked] == [POINT, module._ROLLOUT]
    assert learner.curve.steps == POINT + module._ROLLOUT


@pytest.mark.parametrize("partial", [True, False])
def test_without_prices_every_reward_is_by_the_cost_model(tmp_path: Path, partial: bool) -> None:
    _, agent, points = trained(tmp_path, Training(law=LAW, steps=3 * POINT, partial=partial))
    assert {asked.rewards for asked in agent.asked} == {Rewards(partial)}
    assert all(point.excess is None and not point.by_times for point in points)


def test_with_prices_the_last_rewards_are_by_task_times_in_the_range_of_costs(tmp_path: Path) -> None:
    _, agent, points = trained(tmp_path, Training(law=LAW, steps=10 * POINT, task_times=PRICES))
    by_times = [asked.rewards.by_times for asked in agent.asked]
    assert by_times == [False] * 6 + [True] * 4 == [point.by_times for point in points]
    last = agent.asked[-1].rewards
    assert (last.partial, last.prices) == (False, PRICES)
    assert 0 <= last.scale.least_cost < last.scale.most_cost <= 1
    assert last.scale.most > 0
    assert agent.earned.min() >= -FINAL
    assert (agent.earned[agent.earned != 0] < 1).all()
    assert all(point.excess is not None and point.excess >= 0 for point in points)


@pytest.mark.parametrize("prices", [None, PRICES])
def test_the_policy_of_the_folder_is_the_best_one(tmp_path: Path, prices: Prices | None) -> None:
    learner, _, points = trained(tmp_path, Training(law=LAW, steps=12 * POINT, task_times=prices))
    last = [(number, p) for number, p in enumerate(points, 1) if p.stage == 3 and p.by_times == bool(prices)]
    number, best = min(last, key=lambda at: at[1].cost if prices is None else at[1].excess or 0)
    assert learner.curve.best == best
    assert (tmp_path / POLICY).read_bytes() == random_policy(number).to_bytes()
    assert load_policy(tmp_path / POLICY).layers.first.shape[1] == 16


def test_a_training_that_does_not_grow_has_all_actions_from_the_beginning(tmp_path: Path) -> None:
    _, agent, points = trained(tmp_path, Training(law=LAW, steps=2 * POINT, grow=False))
    assert {asked.stage_actions for asked in agent.asked} == {ACTIONS}
    assert {point.stage for point in points} == {3}


def test_a_training_that_was_stopped_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    training = Training(law=LAW, steps=4 * POINT, task_times=PRICES)
    _, _, before = trained(tmp_path, Training(law=LAW, steps=2 * POINT, task_times=PRICES))
    learner, agent, after = trained(tmp_path, training, resume=True)
    assert learner.curve.points == before + after
    assert [point.steps for point in learner.curve.points] == [POINT * n for n in (1, 2, 3, 4)]
    assert agent.calls == 4
    assert (tmp_path / CHECKPOINT).read_text() == "4"


def test_a_training_without_time_left_stops(tmp_path: Path) -> None:
    training = Training(law=LAW, steps=3 * POINT)
    trained(tmp_path, Training(law=LAW, steps=POINT))
    learner, agent, points = trained(tmp_path, training, resume=True, minutes=0)
    assert (agent.asked, points, learner.curve.steps) == ([], [], POINT)


def test_ended_episodes_are_counted(tmp_path: Path) -> None:
    learner, agent, points = trained(tmp_path, Training(law=LAW, steps=2 * POINT))
    assert 0 < points[0].episodes < points[1].episodes == learner.curve.episodes
    assert agent.episodes.take_ended() == 0
    assert actions_of(3) == ACTIONS
