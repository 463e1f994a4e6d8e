"""The environment of `partly`: Gymnasium's checker, and that it plays what the planner plans."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

import evenflow.training  # noqa: F401 - registers the environment
from evenflow.errors import ConfigError
from evenflow.partitioners.partly.actions import ACTIONS, actions_of
from evenflow.partitioners.partly.network import best_action
from evenflow.partitioners.partly.planner import plan_batch, plan_cost
from evenflow.partitioners.partly.reward import FINAL, Rewards
from evenflow.training.batches import BatchLaw, TrainingBatch
from evenflow.training.environment import PartitionBatch
from evenflow.training.episodes import Episodes
from tests.examples import examples
from tests.unit.partitioners.partly.policies import random_policy

few = examples(25)
LAW = BatchLaw(data_blocks=(2, 9), keys=(5, 300))
NAME = "evenflow/PartitionBatch-v0"
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"stage": 1, "partial": False},
    {"view": "matrix", "law": BatchLaw(data_blocks=(6, 6), keys=(5, 100))},
)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_gymnasiums_checker_finds_nothing(options: dict[str, Any], recwarn: pytest.WarningsRecorder) -> None:
    check_env(gymnasium.make(NAME, **options).unwrapped)
    assert [str(warning.message) for warning in recwarn if "gymnasium" in str(warning.filename)] == []


def test_one_import_registers_it() -> None:
    code = f"import gymnasium, evenflow.training; gymnasium.make({NAME!r})"
    subprocess.run([sys.executable, "-c", code], check=True)


def played(environment: PartitionBatch, actions: Any, **options: Any) -> list[tuple[Any, ...]]:
    """The steps of an episode. actions: called with each observation."""
    seen, _ = environment.reset(**options)
    steps: list[tuple[Any, ...]] = []
    while not (steps and steps[-1][2]):
        steps.append(environment.step(actions(seen)))
        seen = steps[-1][0]
    return steps


@given(seed=st.integers(0, 99))
@few
def test_a_policy_gets_in_the_environment_the_plan_that_the_planner_makes(seed: int) -> None:
    policy = random_policy(seed)
    batch = LAW.draw(np.random.default_rng(seed))
    room = policy.room()

    def act(seen: np.ndarray) -> int:
        room.observation[:] = seen
        return int(best_action(policy.layers, room))

    steps = played(PartitionBatch(law=LAW), act, options={"batch": batch})
    plan = plan_batch(batch.counts, batch.data_blocks, policy)
    assert len(steps) == plan.head
    assert steps[-1][4]["cost"] == pytest.approx(plan_cost(batch.counts, plan, batch.data_blocks))
    assert steps[-1][4]["fragments"] == pytest.approx(plan.cardinalities.sum() / len(batch.counts))


@given(seed=st.integers(0, 99), partial=st.booleans())
@few
def test_partial_rewards_are_at_most_one_together_and_the_final_one_is_a_cost(
    seed: int, partial: bool
) -> None:
    environment = PartitionBatch(law=LAW, partial=partial)
    rng = np.random.default_rng(seed)
    rewards = [step[1] for step in played(environment, lambda _: int(rng.integers(ACTIONS)), seed=seed)]
    assert min(rewards[:-1], default=0) >= 0
    assert sum(rewards[:-1]) <= 1 + 1e-6
    assert partial or sum(rewards[:-1]) == 0
    assert -FINAL <= rewards[-1] <= 1


def test_keys_that_fill_the_data_blocks_evenly_earn_every_partial_reward() -> None:
    batch = TrainingBatch(np.full(12, 7), 4)
    steps = played(PartitionBatch(law=LAW), lambda _: 0, options={"batch": batch})
    assert sum(step[1] for step in steps) == pytest.approx(1)


@given(seed=st.integers(0, 99))
@few
def test_the_matrix_says_which_share_of_each_key_lies_in_which_data_block(seed: int) -> None:
    law = BatchLaw(data_blocks=(5, 5), keys=(5, 60))
    environment = PartitionBatch(law=law, view="matrix")
    rng = np.random.default_rng(seed)
    steps = played(environment, lambda _: int(rng.integers(ACTIONS)), seed=seed)
    head = len(steps)
    for number, step in enumerate(steps, 1):
        matrix = step[0][40:].reshape(40, 5)
        sums = matrix.sum(axis=1)
        np.testing.assert_allclose(sums[:number], 1, atol=1e-6)
        assert not sums[number:].any()
    counts = steps[-1][0][:40]
    assert (np.diff(counts) <= 0).all()
    assert not counts[head:].any()


def test_episodes_side_by_side_are_those_of_the_environment() -> None:
    many = Episodes(3, LAW, keys_each=8, rewards=Rewards(), rng=np.random.default_rng(5))
    seen = many.reset()
    rng = np.random.default_rng(5)
    alone = [PartitionBatch(law=LAW) for _ in range(3)]
    for row, one in enumerate(alone):
        first, _ = one.reset(options={"batch": LAW.draw(rng)})
        np.testing.assert_array_equal(seen[row], first)
    actions = np.random.default_rng(1).integers(0, ACTIONS, (200, 3))
    for chosen in actions:
        stepped = many.step(chosen)
        for row, one in enumerate(alone):
            after, reward, over, _, _ = one.step(chosen[row])
            assert stepped.rewards[row] == pytest.approx(reward, abs=1e-6)
            assert stepped.ended[row] == over
            if over:
                after, _ = one.reset(options={"batch": LAW.draw(rng)})
            np.testing.assert_array_equal(stepped.observations[row], after)


def test_the_actions_grow_by_stages() -> None:
    assert [PartitionBatch(stage=stage).action_space.n for stage in (1, 2, 3)] == [8, 20, ACTIONS]
    with pytest.raises(ValueError, match="stage must be from 1 to 3, not 4"):
        actions_of(4)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"keys_each": 0}, "keys_each"), ({"stage": 4}, "stage"), ({"view": "matrix"}, "one number of columns")],
    ids=str,
)
def test_options_out_of_range_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        PartitionBatch(**options)


@pytest.mark.parametrize("ends", [{"keys": (9, 3)}, {"data_blocks": (0, 4)}, {"exponent": (-1, 1)}], ids=str)
def test_a_law_without_a_range_is_refused(ends: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="is no range to draw from"):
        BatchLaw(**ends)


@given(seed=st.integers(0, 999))
@few
def test_batches_of_a_law_are_within_its_ranges(seed: int) -> None:
    counts, data_blocks = LAW.draw(np.random.default_rng(seed))
    assert 2 <= data_blocks <= 9
    assert 1 <= len(counts) <= 300
    assert counts.min() >= 1
    assert (np.diff(counts) <= 0).all()
