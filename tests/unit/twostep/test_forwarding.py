"""Windows that are finished at home, with those that go through a reducer, are those of a direct aggregation."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.twostep.forwarding_model import World
from tests.unit.twostep.pipe import EVERYTHING, INVERTIBLE, plan_of


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
