"""PPO itself: it learns, what it has learned plans without torch, and a stopped training goes on."""

from pathlib import Path

import numpy as np
import pytest

from evenflow.numeric.arrays import Int64s
from evenflow.partitioners.partly.actions import ACTIONS, actions_of
from evenflow.partitioners.partly.network import best_action, read_policy
from evenflow.partitioners.partly.reward import Rewards
from evenflow.partitioners.partly.task_times import Prices
from evenflow.training import learner as module
from evenflow.training.batches import BatchLaw
from evenflow.training.episodes import Episodes, StepOutcome
from evenflow.training.learner import POLICY, Learner, Training, ppo

LAW = BatchLaw(data_blocks=(4, 4), keys=(20, 60), exponent=(0.8, 1.2))
PRICES = Prices(80.0, 500.0, 300.0, 900.0, 0.0)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EPISODES", 32)
    monkeypatch.setattr(module, "STEPS", 64)
    monkeypatch.setattr(module, "_ROLLOUT", 32 * 64)
    monkeypatch.setattr(module, "_ROLLOUTS", 4)
    monkeypatch.setattr(module, "_HELD_OUT", 40)


def episodes() -> Episodes:
    return Episodes(32, LAW, keys_each=8, rewards=Rewards(), rng=np.random.default_rng(1))


def test_a_short_training_plans_at_a_lower_cost_than_it_began_with(tmp_path: Path) -> None:
    learner = Learner(Training(law=LAW, steps=60_000), tmp_path, resume=False)
    learner.run(minutes=2, tell=lambda point: None)
    costs = [point.cost for point in learner.curve.points]
    assert min(costs) < costs[0]
    assert min(costs) < learner.prompt_cost


def test_rewards_by_task_times_are_learned_from(tmp_path: Path) -> None:
    learner = Learner(Training(law=LAW, steps=60_000, task_times=PRICES), tmp_path, resume=False)
    learner.run(minutes=2, tell=lambda point: None)
    assert [point.by_times for point in learner.curve.points][-1]
    assert learner.curve.best is not None
    assert read_policy((tmp_path / POLICY).read_bytes()).data_blocks == 4


def test_the_exported_policy_decides_as_the_network_does() -> None:
    import torch

    played = episodes()
    agent = ppo(played, Training(law=LAW), 0)
    agent.learn(32 * 64, stage_actions=ACTIONS, rate=1e-3, entropy=0.01)
    seen = played.reset()
    policy = agent.policy(keys_each=8, data_blocks=4)
    room = policy.room()
    with torch.no_grad():
        actions = agent._model.policy.get_distribution(torch.as_tensor(seen)).distribution.logits.argmax(1)  # type: ignore[attr-defined]
    for observation, action in zip(seen, actions.tolist(), strict=True):
        room.observation[:] = observation
        assert best_action(policy.layers, room) == action


def test_actions_of_a_later_stage_are_never_played(monkeypatch: pytest.MonkeyPatch) -> None:
    played = episodes()
    taken: list[int] = []
    step = played.step

    def recorded(actions: Int64s) -> StepOutcome:
        taken.extend(actions.tolist())
        return step(actions)

    monkeypatch.setattr(played, "step", recorded)
    agent = ppo(played, Training(law=LAW), 0)
    agent.learn(32 * 64, stage_actions=actions_of(1), rate=1e-3, entropy=0.01)
    assert max(taken) < actions_of(1)
    assert len(set(taken)) > 1


def test_a_checkpoint_brings_weights_and_optimizer_back(tmp_path: Path) -> None:
    one, other = (ppo(episodes(), Training(law=LAW, seed=seed), 0) for seed in (1, 2))
    one.learn(32 * 64, stage_actions=ACTIONS, rate=1e-3, entropy=0.01)
    one.save(tmp_path / "checkpoint.pt")
    other.load(tmp_path / "checkpoint.pt")
    first, second = (agent.policy(keys_each=8, data_blocks=None) for agent in (one, other))
    assert first.to_bytes() == second.to_bytes()


def test_the_same_seed_trains_the_same_policy(tmp_path: Path) -> None:
    for name in ("a", "b"):
        Learner(Training(law=LAW, steps=10_000), tmp_path / name, resume=False).run(
            minutes=2, tell=lambda point: None
        )
    assert (tmp_path / "a" / POLICY).read_bytes() == (tmp_path / "b" / POLICY).read_bytes()
