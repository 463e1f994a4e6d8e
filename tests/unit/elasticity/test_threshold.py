"""Threshold does what a Kubernetes HPA would."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from evenflow.elasticity import Bounds, Policy, create
from tests.examples import examples
from tests.unit.elasticity.observations import BOUNDS, Plant
from tests.unit.elasticity.test_prompt_plus import PLANTS, seen


def made(**options: Any) -> Policy:
    return create("threshold", bounds=BOUNDS, **options)


@pytest.mark.parametrize(
    ("load", "wanted"), [(0.8, 4), (0.87, 4), (0.73, 4), (0.89, 5), (1.2, 6), (1.61, 8), (1.59, 8)]
)
def test_recommended_is_current_times_metric_over_target(load: float, wanted: int) -> None:
    decision = made().decide(seen(1, load))
    assert (decision.p, decision.r) == (wanted, wanted)


def test_scale_out_follows_at_once_but_not_beyond_its_limits() -> None:
    policy = made(up_units=2, up_percent=50)
    wanted = [policy.decide(seen(1, 8.0, p=4)).p, policy.decide(seen(2, 8.0, p=6)).p]
    assert wanted == [6, 6]
    assert policy.decide(seen(5, 8.0, p=6)).p == 9, "the period of 15 s is over"


def test_the_limits_of_scale_out_take_nothing_away() -> None:
    policy = made(up_units=0, up_percent=0)
    assert [policy.decide(seen(step, 0.8, p=p)).p for step, p in ((1, 2), (2, 6), (3, 6))] == [2, 6, 6]


def test_scale_in_goes_to_the_highest_recommendation_of_the_window() -> None:
    policy = made(stabilization_s=15)
    loads = [0.8, 0.6, 0.2, 0.4, 0.2]
    assert [policy.decide(seen(step, load)).p for step, load in enumerate(loads)] == [4, 4, 4, 3, 2]


def test_a_gap_begins_the_window_anew() -> None:
    policy = made(stabilization_s=15)
    steps = [1, 2, 3, 4, 9, 10, 11, 12]
    assert [policy.decide(seen(step, 0.2)).p for step in steps] == [4, 4, 4, 1, 4, 4, 4, 1]


def test_the_busy_share_decides_about_replicas() -> None:
    policy = create("threshold", bounds=Bounds(p_max=6), metric="busy")
    assert policy.decide(seen(1, 0.1, r=1, p=2, busy=1.3)).p == 4
    assert policy.decide(seen(2, 0.1, r=1, p=2, busy=None)).held


@examples(60)
@given(plant=PLANTS)
def test_no_constant_load_makes_p_and_r_swing(plant: Plant) -> None:
    plant.run(made(stabilization_s=30), 60)
    signs = [action > 0 for action in plant.actions]
    assert signs == sorted(signs, reverse=True), f"scaled out after in: {plant.actions}"
