"""The variance of task times: the closed form is what repetitions would give, and it can be a reward."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.partitioners.partly.actions import ACTIONS
from evenflow.partitioners.partly.episode import AT, HEAD, begin
from evenflow.partitioners.partly.planner import new_episode, plan_batch, plan_variances
from evenflow.partitioners.partly.reward import FINAL, Rewards, play
from evenflow.partitioners.partly.task_times import Prices, Scale
from evenflow.partitioners.prompt.data_blocks import KeyPlacement, plan_data_blocks
from tests.examples import examples
from tests.unit.partitioners.partly.policies import always, random_policy

few = examples(30)
PRICES = Prices(tuple=80.0, make=500.0, receive=300.0, row=900.0, noise=0.0)
counts_lists = st.lists(st.integers(1, 400), min_size=1, max_size=80).map(
    lambda counts: np.array(sorted(counts, reverse=True), np.int64)
)


def table_of(counts: np.ndarray, plan: KeyPlacement, data_blocks: int) -> np.ndarray:
    """Tuples of each key in each data block, shape (keys, data blocks)."""
    table = np.zeros((len(counts), data_blocks), np.int64)
    for key, place in enumerate(plan.data_block):
        if place >= 0:
            table[key, place] = counts[key]
        else:
            rows = slice(plan.fragment_from[-1 - place], plan.fragment_from[-place])
            np.add.at(table[key], plan.fragment_data_block[rows], plan.fragment_size[rows])
    return table


def repeated(
    table: np.ndarray, prices: Prices, rng: np.random.Generator, repetitions: int
) -> tuple[float, float]:
    """Means over repetitions: each hashes the keys anew, and disturbs the time of every task."""
    keys, tasks = table.shape
    mapped = prices.tuple * table.sum(axis=0) + prices.make * (table > 0).sum(axis=0)
    weights = prices.receive * (table > 0).sum(axis=1) + prices.row
    result = []
    for _ in range(repetitions):
        reduced = np.bincount(rng.integers(0, tasks, keys), weights=weights, minlength=tasks)
        result.append(
            [
                float(np.var(took * (1 + prices.noise * rng.standard_normal(tasks))))
                for took in (mapped, reduced)
            ]
        )
    unit = (prices.tuple * table.sum() + prices.make * keys) / tasks
    return tuple(np.mean(result, axis=0) / unit**2)  # type: ignore[return-value]


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_variance_is_the_mean_of_endless_repetitions(noise: float) -> None:
    rng = np.random.default_rng(3)
    counts = np.sort(rng.integers(1, 200, 60))[::-1].astype(np.int64)
    prices = PRICES._replace(noise=noise)
    for plan in (plan_batch(counts, 6, random_policy(4)), plan_data_blocks(counts, 6)):
        ours = plan_variances(counts, plan, 6, prices)
        assert ours[:2] == pytest.approx(repeated(table_of(counts, plan, 6), prices, rng, 4_000), rel=0.06)


@given(counts=counts_lists, seed=st.integers(0, 20), data_blocks=st.integers(1, 9))
@few
def test_the_final_reward_is_the_variance_of_the_plan_in_the_range_of_costs(
    counts: np.ndarray, seed: int, data_blocks: int
) -> None:
    scale = Scale(most=2.0, least_cost=0.1, most_cost=0.7)
    rewards = Rewards(partial=False, by_times=True, prices=PRICES, scale=scale)
    action = seed % ACTIONS
    episode, passes = new_episode(counts, data_blocks)
    begin(episode, 8)
    rest, earned = np.zeros(len(counts), np.int32), []
    while episode.facts[AT] < episode.facts[HEAD]:
        earned.append(play(episode, passes, rest, np.int64(action), rewards))
    plan = plan_batch(counts, data_blocks, always(action))
    excess = plan_variances(counts, plan, data_blocks, PRICES).excess
    assert not any(earned[:-1])
    assert earned[-1] == pytest.approx(-FINAL * min(1.0, scale.cost(excess)))


def test_the_ends_of_the_excess_are_the_ends_of_the_costs() -> None:
    scale = Scale(most=5.0, least_cost=0.2, most_cost=0.6)
    assert [scale.cost(excess) for excess in (0.0, 2.5, 5.0)] == pytest.approx([0.2, 0.4, 0.6])


def test_equal_data_blocks_have_no_variance_of_map_tasks_and_noise_gives_them_one() -> None:
    counts = np.full(12, 7)
    plan = plan_batch(counts, 4, always(0))
    assert plan_variances(counts, plan, 4, PRICES).map == pytest.approx(0)
    assert plan_variances(counts, plan, 4, PRICES._replace(noise=0.2)).map == pytest.approx(0.75 * 0.04)


@given(counts=counts_lists, data_blocks=st.integers(2, 9))
@few
def test_the_unit_of_the_prices_does_not_matter(counts: np.ndarray, data_blocks: int) -> None:
    plan = plan_data_blocks(counts, data_blocks)
    in_us = Prices(*(price / 1e3 for price in PRICES[:4]), noise=0.1)
    ours = plan_variances(counts, plan, data_blocks, PRICES._replace(noise=0.1))
    assert ours == pytest.approx(plan_variances(counts, plan, data_blocks, in_us))


@given(counts=counts_lists, data_blocks=st.integers(2, 9))
@few
def test_fewer_fragments_never_raise_the_variance_of_the_reduce_tasks(
    counts: np.ndarray, data_blocks: int
) -> None:
    whole = KeyPlacement(
        data_block=np.arange(len(counts), dtype=np.int32) % data_blocks,
        fragment_from=np.zeros(1, np.int64),
        fragment_data_block=np.zeros(0, np.int32),
        fragment_size=np.zeros(0, np.int64),
    )
    cut = plan_data_blocks(counts, data_blocks)
    ours, theirs = (plan_variances(counts, plan, data_blocks, PRICES) for plan in (whole, cut))
    assert ours.reduce == pytest.approx(ours.floor) == pytest.approx(theirs.floor)
    assert ours.reduce <= theirs.reduce * (1 + 1e-9)
