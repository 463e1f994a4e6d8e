"""Windows that are finished at home, with those that go through a reducer, are those of a direct aggregation."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.homes import home_of
from evenflow.keys import hash_keys
from tests.unit.twostep.forwarding_model import INPUTS, KEYS, PLANS, SEED, Instance, World
from tests.unit.twostep.pipe import EVERYTHING, INVERTIBLE, SLIDE, plan_of


@pytest.mark.parametrize("aggregates", [INVERTIBLE, EVERYTHING], ids=["invertible", "tree"])
@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    panes=st.sampled_from([1, 2, 3, 5]),
    steps=st.integers(1, 80),
    anywhere=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
)
def test_results_are_those_of_a_direct_aggregation(
    aggregates: dict[str, str], seed: int, panes: int, steps: int, anywhere: float
) -> None:
    world = World(plan_of(aggregates, panes), Random(seed), anywhere=anywhere)
    for _ in range(steps):
        world.step()
    world.end()
    assert world.results() == world.expected()


def test_with_hashing_every_window_is_finished_at_home() -> None:
    world = World(plan_of(INVERTIBLE, 3), Random(1), anywhere=0.0)
    for _ in range(20):
        world.now += SLIDE
        for instance in world.instances:
            world.block(instance)
    world.end()
    assert world.results() == world.expected()
    assert world.finished
    assert not world.reduced


def test_a_plan_that_was_followed_between_two_owners_of_an_older_plan_is_heard_of() -> None:
    """The home of a key by the plan in between, and the home by the older plan, must not both finish its window."""
    key = next(key for key in KEYS if home(key, PLANS[0]) != home(key, PLANS[1]))
    world = World(plan_of(INVERTIBLE, 1), Random(1), anywhere=0.0)
    first, second = world.instances
    owned_by(world, first)
    world.write(first, [(100, key, 1, None)])
    first.epoch = 1
    world.write(first, [(100, key, 2, None)])
    owned_by(world, second)
    world.write(second, [(100, key, 4, None)])
    world.end()
    assert world.results() == world.expected()
    assert world.results()[100 * SLIDE, key]["s"] == 7


def home(key: bytes, workers: int) -> int:
    return int(home_of(hash_keys([key]), workers, SEED)[0])


def owned_by(world: World, owner: Instance) -> None:
    for instance in world.instances:
        instance.owned = set(range(INPUTS)) if instance is owner else set()
        world.forget(instance)
