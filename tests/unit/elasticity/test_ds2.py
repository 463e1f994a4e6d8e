"""DS2 reckons parallelism from true processing rates, as the Flink autoscaler does."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.elasticity import Bounds, Decision, Observation, Policy, StageObservation, create, restore
from evenflow.elasticity.policies.ds2 import growth
from evenflow.errors import IncompatibleStateError
from tests.examples import examples
from tests.unit.elasticity.observations import BOUNDS, INTERVAL_MS, Plant
from tests.unit.elasticity.test_prompt_plus import PLANTS


def made(**options: Any) -> Policy:
    return create("ds2", bounds=BOUNDS, **{"window_s": 0, "scale_down_interval_s": 0} | options)


def seen(
    step: int,
    combine: tuple[float | None, ...],
    reduce: tuple[float | None, ...] = (65.0, 100.0),
    *,
    p: int = 4,
    r: int = 4,
    **changed: Any,
) -> Observation:
    """Of each part its arrivals, its capacity and, if it matters, its queue."""
    stages = {
        "combine": StageObservation(arrivals=combine[0], capacity=combine[1], queue=(*combine, None)[2]),
        "reduce": StageObservation(arrivals=reduce[0], capacity=reduce[1], queue=(*reduce, None)[2]),
    }
    fields = {"step": step, "interval_ms": INTERVAL_MS, "p": p, "r": r, "wiring": "split", "stages": stages}
    return Observation(**{**fields, **changed})


def test_a_snapshot_from_before_there_was_a_forecast_fits_if_there_is_none_today() -> None:
    policy = made()
    policy.decide(seen(1, (1_400, 1_000), (60, 100)))
    fields = json.loads(policy.snapshot())
    del fields["options"]["forecast_s"]
    earlier = json.dumps(fields).encode()
    assert restore(earlier, like=made()).snapshot() == policy.snapshot()
    with pytest.raises(IncompatibleStateError, match="another options"):
        restore(earlier, like=made(forecast_s=60))


def test_parallelism_is_reckoned_in_one_step() -> None:
    decision = made().decide(seen(1, (1_400, 1_000), (60, 100)))
    assert (decision.p, decision.r) == (8, 5)


def test_of_a_part_without_a_choice_nothing_has_to_be_known() -> None:
    bounds = Bounds(p_max=16, r_max=1)
    policy = create("ds2", bounds=bounds, window_s=0, scale_down_interval_s=0)
    assert policy.decide(seen(1, (1_400, 1_000), (None, None), r=1)).p == 8
    decision = policy.decide(seen(2, (700, 1_000), (None, None), r=1))
    assert (decision.p, decision.r) == (4, 1)
    assert "reduce" not in decision.reason
    assert policy.decide(seen(3, (1_400, 1_000), (None, None), r=1, wiring="fused")).held, "one pool for both"


@pytest.mark.parametrize(("arrivals", "wanted"), [(520, 4), (880, 4), (920, 6), (480, 3)])
def test_nothing_happens_within_the_boundary(arrivals: float, wanted: int) -> None:
    assert made().decide(seen(1, (arrivals, 1_000), (65, 100))).p == wanted


def test_an_overloaded_combiner_hides_what_the_reducer_will_need() -> None:
    decision = made().decide(seen(1, (2_000, 1_000), (60, 100)))
    assert decision.r == 7, "twice as much will arrive there: 120 of 100, at utilisation 0.7"


def test_a_queue_is_worked_off_in_the_catch_up_time() -> None:
    without, with_queue = (made().decide(seen(1, (880, 1_000, queue))).p for queue in (0.0, 60_000.0))
    assert (without, with_queue) == (4, 10)
    assert made(catch_up_s=0).decide(seen(1, (880, 1_000, 60_000.0))).p == 4


def test_the_fused_wiring_shares_one_pool_so_both_needs_add_up() -> None:
    split = made().decide(seen(1, (600, 1_000), (60, 100)))
    fused = made().decide(seen(1, (600, 1_000), (60, 100), wiring="fused"))
    assert (split.p, split.r) == (4, 4)
    assert (fused.p, fused.r) == (7, 7)


def test_nothing_scales_in_while_a_backlog_drains() -> None:
    policy = made()
    assert [policy.decide(seen(step, (100, 1_000), backlog_ms=60_000.0)).p for step in (1, 2)] == [4, 4]
    assert policy.decide(seen(3, (100, 1_000))).p == 2


def test_scale_in_waits_for_its_interval() -> None:
    policy = made(scale_down_interval_s=15)
    assert [policy.decide(seen(step, (100, 1_000))).p for step in range(1, 5)] == [4, 4, 4, 2]


def test_at_most_a_share_is_taken_away_or_added_at_once() -> None:
    assert made(down_factor=0.25).decide(seen(1, (1, 1_000))).p == 3
    assert made(up_factor=0.5).decide(seen(1, (9_000, 1_000))).p == 6


def test_rates_are_means_of_the_window_and_a_gap_begins_it_anew() -> None:
    policy = made(window_s=15)
    arrivals = [(1, 700), (2, 700), (3, 1_400), (9, 1_400)]
    assert [policy.decide(seen(step, (rate, 1_000))).p for step, rate in arrivals] == [4, 4, 6, 8]


@pytest.mark.parametrize(
    ("combine", "missing"), [((None, 1_000), "arrivals at combine"), ((5, None), "the capacity of combine")]
)
def test_what_is_not_measured_decides_nothing(combine: tuple, missing: str) -> None:
    decision = made().decide(seen(1, combine))
    assert decision.held
    assert missing in decision.reason


def test_a_part_without_input_needs_no_measured_capacity() -> None:
    assert made().decide(seen(1, (0.0, None))).p == 2


def test_capacity_is_kept_for_each_unit_when_p_changes() -> None:
    policy = made(window_s=60)
    policy.decide(seen(1, (1_400, 1_000)))
    assert policy.decide(seen(2, (1_400, 2_000), p=8)).p == 8


@examples(60)
@given(plant=PLANTS)
def test_no_constant_load_makes_p_and_r_swing(plant: Plant) -> None:
    plant.run(made(window_s=15, scale_down_interval_s=30), 100)
    signs = [action > 0 for action in plant.actions]
    assert signs == sorted(signs, reverse=True), f"scaled out after in: {plant.actions}"


RISING = (1_000.0, 1_000.0, 1_600.0)
"""Rates of three steps: a mean of 1,200, and a trend of 300 more in each step."""


def after(rates: tuple[float, ...], **options: Any) -> Decision:
    policy = made(window_s=3 * INTERVAL_MS / 1000, **options)
    for step, rate in enumerate(rates, start=1):
        decision = policy.decide(seen(step, (rate, 1_400), (65, 100)))
    return decision


def test_a_trend_that_rises_is_followed_as_far_ahead_as_the_forecast_says() -> None:
    two_steps = 2 * INTERVAL_MS / 1000
    assert after(RISING).p == 4, "1,200 of 1,400 is within the boundary"
    decision = after(RISING, forecast_s=two_steps)
    assert decision.p == 9, "1,200 + 3 * 300 are forecast, at utilisation 0.7 of 350 each"
    assert "combine gets 1200 (1.75 times as many are forecast) of 1400 tuples/s" in decision.reason


def test_a_forecast_of_a_load_that_falls_or_stays_is_no_other_decision() -> None:
    for rates in (RISING[::-1], (1_200.0,) * 3, (1_600.0,)):
        assert after(rates, forecast_s=60) == after(rates)


def test_after_a_gap_there_is_no_trend() -> None:
    policy = made(window_s=3 * INTERVAL_MS / 1000, forecast_s=60)
    for step, rate in ((1, 600.0), (2, 800.0), (9, 1_000.0)):
        decision = policy.decide(seen(step, (rate, 1_400), (65, 100)))
    assert "forecast" not in decision.reason


@examples(100)
@given(
    rates=st.lists(st.floats(min_value=0, max_value=1e9), max_size=10),
    ahead=st.floats(min_value=0, max_value=100),
)
def test_a_forecast_is_never_below_the_mean_and_always_finite(rates: list[float], ahead: float) -> None:
    assert 1 <= growth(rates, ahead=ahead) < math.inf


def test_a_line_is_continued_exactly() -> None:
    assert growth([10, 20, 30], ahead=2) == pytest.approx(50 / 20)
