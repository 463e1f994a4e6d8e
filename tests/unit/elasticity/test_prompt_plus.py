"""Prompt+: zones, hysteresis, which side scales, grace, backlog, and that no constant load makes it swing."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.elasticity import Bounds, Decision, Observation, Policy, create
from tests.examples import examples
from tests.unit.elasticity.observations import BOUNDS, INTERVAL_MS, Plant, sequences


def made(**options: Any) -> Policy:
    return create("prompt-plus", bounds=BOUNDS, **options)


def seen(step: int, load: float, *, p: int = 4, r: int = 4, **changed: Any) -> Observation:
    return Observation(
        **{
            "step": step,
            "interval_ms": INTERVAL_MS,
            "p": p,
            "r": r,
            "load": load,
            "rate": 100.0,
            "keys": 50.0,
        }
        | changed
    )


def last_of(policy: Policy, observations: list[Observation]) -> Decision:
    return [policy.decide(observation) for observation in observations][-1]


def around(
    load: float, *, rate: tuple[float, float] = (100, 100), keys: tuple[float, float] = (50, 50)
) -> list:
    """Three micro-batches in zone 2 and three with this W; rate and keys before and after."""
    return [
        seen(step, 0.85 if step <= 3 else load, rate=rate[step > 3], keys=keys[step > 3])
        for step in range(1, 7)
    ]


@pytest.mark.parametrize(
    ("load", "zone"), [(0.0, 1), (0.80, 1), (0.8001, 2), (0.90, 2), (0.9001, 3), (40.0, 3)]
)
def test_zones_are_those_of_the_paper(load: float, zone: int) -> None:
    assert made().decide(seen(1, load)).zone == zone


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"rate": (100, 200)}, "rate"),
        ({"keys": (50, 90)}, "keys"),
        ({"rate": (100, 200), "keys": (50, 90)}, "rate-and-keys"),
    ],
)
def test_the_cause_is_what_rose(changed: dict, cause: str) -> None:
    assert last_of(made(), around(0.95, **changed)).cause == cause


def test_what_lets_things_be_is_a_cause_too() -> None:
    assert made().decide(seen(1, 0.85)).cause == "stable"
    assert made().decide(seen(1, 0.95)).cause == "waiting"
    assert made().decide(seen(1, 0.95, settling=True)).cause == "settling"
    assert made().decide(seen(1, 0.95, stale=("silence",))).cause == "missing-data"
    most = [seen(step, 2.0, p=BOUNDS.p_max, r=BOUNDS.r_max) for step in range(1, 9)]
    assert last_of(made(), most).cause == "bounds"


@examples(60)
@given(observations=sequences())
def test_no_action_in_zone_2(observations: list[Observation]) -> None:
    policy = made()
    for observation in observations:
        decision = policy.decide(observation)
        if decision.zone == 2:
            assert (decision.p, decision.r) == BOUNDS.clamped(observation.p, observation.r)


@examples(60)
@given(observations=sequences())
def test_an_overload_only_scales_out_and_under_use_only_in(observations: list[Observation]) -> None:
    policy = made(proportional=True)
    for observation in observations:
        decision = policy.decide(observation)
        p, r = BOUNDS.clamped(observation.p, observation.r)
        if decision.zone == 3:
            assert decision.p >= p
            assert decision.r >= r
        if decision.zone == 1:
            assert decision.p <= p
            assert decision.r <= r


@pytest.mark.parametrize(
    ("rate", "keys", "wanted"),
    [
        ((100, 200), (50, 80), (5, 5)),
        ((100, 200), (50, 50), (5, 4)),
        ((100, 100), (50, 80), (4, 5)),
        ((100, 104), (50, 80), (4, 5)),
        ((200, 100), (50, 80), (4, 5)),
        ((0, 100), (0, 0), (5, 4)),
    ],
)
def test_rate_and_keys_decide_which_side_grows(rate: tuple, keys: tuple, wanted: tuple[int, int]) -> None:
    decision = last_of(made(), around(0.95, rate=rate, keys=keys))
    assert (decision.p, decision.r) == wanted
    assert ("rose from nothing" if rate[0] == 0 else "rose by") in decision.reason


@pytest.mark.parametrize(
    ("rate", "keys", "wanted"),
    [((200, 100), (80, 50), (3, 3)), ((200, 100), (50, 50), (3, 4)), ((100, 100), (80, 50), (4, 3))],
)
def test_scale_in_mirrors_it(rate: tuple, keys: tuple, wanted: tuple[int, int]) -> None:
    decision = last_of(made(), around(0.5, rate=rate, keys=keys))
    assert (decision.p, decision.r) == wanted
    assert "fell by" in decision.reason


@pytest.mark.parametrize(("own", "wanted"), [((0.7, 0.2), (5, 4)), ((0.2, 0.7), (4, 5))])
def test_where_neither_moved_the_part_with_the_worst_w_gets_one_unit(
    own: tuple, wanted: tuple[int, int]
) -> None:
    stages = Plant(combine=own[0], reduce=own[1]).observe().stages
    decision = last_of(made(proportional=True), [seen(step, 2.5, stages=stages) for step in (1, 2, 3)])
    assert (decision.p, decision.r) == wanted
    assert "neither rate nor keys rose" in decision.reason
    assert decision.cause == "load"


def test_where_neither_moved_scale_in_takes_from_the_part_with_the_least_w() -> None:
    stages = Plant(combine=0.1, reduce=0.4).observe().stages
    decision = last_of(made(), [seen(step, 0.5, stages=stages) for step in (1, 2, 3)])
    assert (decision.p, decision.r) == (3, 4)


def test_where_nothing_says_which_side_nothing_is_decided() -> None:
    decision = last_of(made(), [seen(step, 2.5, rate=None, keys=None) for step in range(1, 9)])
    assert decision.held
    assert "no part says its own W" in decision.reason


def test_a_side_at_its_most_cannot_grow_and_the_reason_says_so() -> None:
    policy = create("prompt-plus", bounds=Bounds(p_max=4, r_max=4))
    decision = last_of(policy, around(2.0, rate=(100, 200), keys=(50, 90)))
    assert (decision.p, decision.r) == (4, 4)
    assert "at their most" in decision.reason


@pytest.mark.parametrize(("wiring", "wanted"), [("split", (4, 4)), ("fused", (5, 4))])
def test_where_the_worst_part_is_at_its_most_the_other_grows_only_if_they_share_a_pool(
    wiring: str, wanted: tuple[int, int]
) -> None:
    policy = create("prompt-plus", bounds=Bounds(p_max=8, r_max=4))
    stages = Plant(combine=0.2, reduce=0.7).observe().stages
    decision = last_of(policy, [seen(step, 2.5, stages=stages, wiring=wiring) for step in (1, 2, 3)])
    assert (decision.p, decision.r) == wanted


@given(d=st.integers(1, 6), before=st.integers(0, 5))
@examples(30)
def test_a_zone_must_hold_for_d_micro_batches(d: int, before: int) -> None:
    policy, stages = made(d=d), Plant(combine=0.7, reduce=0.2).observe().stages
    loads = [2.0] * min(before, d - 1) + [0.85] + [2.0] * d
    decisions = [policy.decide(seen(step, load, stages=stages)) for step, load in enumerate(loads)]
    assert [decision.p != 4 for decision in decisions] == [False] * (len(loads) - 1) + [True]


@pytest.mark.parametrize(
    "gap", [{"stale": ("the reducer says nothing",)}, {"settling": True}, {"load": None}]
)
def test_a_gap_begins_the_count_anew(gap: dict) -> None:
    policy, stages = made(), Plant(combine=0.7, reduce=0.2).observe().stages
    observations = [seen(step, 2.0, stages=stages) for step in range(1, 7)]
    observations[2] = dataclasses.replace(observations[2], **gap)
    assert [policy.decide(observation).p for observation in observations] == [4, 4, 4, 4, 4, 5]


def test_a_step_that_is_missing_begins_the_count_anew() -> None:
    policy, stages = made(), Plant(combine=0.7, reduce=0.2).observe().stages
    assert [policy.decide(seen(step, 2.0, stages=stages)).p for step in (1, 2, 30, 31, 32)] == [4, 4, 4, 4, 5]


@pytest.mark.parametrize("grace", [None, 0, 5])
def test_after_an_action_the_opposite_one_waits_for_the_grace_period(grace: int | None) -> None:
    policy, stages = made(grace=grace, d=2), Plant(combine=0.7, reduce=0.2).observe().stages
    last_of(policy, [seen(step, 2.0, stages=stages) for step in (1, 2)])
    after = [policy.decide(seen(3 + step, 0.3, p=5, stages=stages)).r < 4 for step in range(10)]
    assert after.index(True) == max(1, 2 if grace is None else grace)


def test_the_grace_period_begins_when_the_action_is_done() -> None:
    policy, stages = made(d=2), Plant(combine=0.7, reduce=0.2).observe().stages
    last_of(policy, [seen(step, 2.0, stages=stages) for step in (1, 2)])
    last_of(policy, [seen(step, 2.0, stages=stages, settling=True) for step in range(3, 10)])
    assert [policy.decide(seen(step, 0.3, p=5, stages=stages)).r for step in (10, 11, 12)] == [4, 4, 3]


def test_a_proportional_step_adds_what_w_asks_for_and_no_more_than_allowed() -> None:
    spike = around(1.8, rate=(100, 200))
    assert last_of(made(proportional=True), spike).p == 8
    assert last_of(made(proportional=True, max_step=2), spike).p == 6
    assert last_of(made(), spike).p == 5


def test_nothing_scales_in_while_a_backlog_drains() -> None:
    policy = made()
    draining = [seen(step, 0.3, rate=100, backlog_ms=60_000.0) for step in range(1, 20)]
    decisions = [policy.decide(observation) for observation in draining]
    assert {(decision.p, decision.r) for decision in decisions} == {(4, 4)}
    assert "a backlog drains" in decisions[-1].reason
    stages = Plant(combine=0.1, reduce=0.1).observe().stages
    rest = [policy.decide(seen(step, 0.3, stages=stages)).p for step in (20, 21, 22)]
    assert rest == [4, 4, 3], "micro-batches that drained a backlog count for none"


def test_out_is_fast_and_in_is_slow_after_a_spike() -> None:
    plant = Plant(combine=3.4, reduce=0.2, p=4, r=4)
    policy = made(proportional=True)
    plant.run(policy, 10)
    plant.combine, plant.rate = 6.8, 2_000.0
    up = plant.run(policy, 10)
    assert plant.p >= 8
    assert min(up) >= 0
    plant.combine, plant.rate, before = 3.4, 1_000.0, plant.p
    plant.run(policy, 3)
    assert plant.p >= before - 1
    plant.run(policy, 60)
    assert plant.load() <= 0.90
    assert plant.p <= 5


PLANTS = st.builds(
    Plant,
    combine=st.floats(0.01, 15),
    reduce=st.floats(0.01, 9),
    fixed=st.floats(0, 0.5),
    wiring=st.sampled_from(["fused", "split"]),
    p=st.integers(1, 12),
    r=st.integers(1, 8),
)


@examples(80)
@given(plant=PLANTS, d=st.integers(1, 3), proportional=st.booleans())
def test_no_constant_load_makes_p_and_r_swing(plant: Plant, d: int, proportional: bool) -> None:
    plant.run(made(d=d, proportional=proportional), 200)
    signs = [action > 0 for action in plant.actions]
    assert signs == sorted(signs, reverse=True), f"scaled out after in: {plant.actions}"


def test_the_papers_rule_alone_swings_where_one_unit_spans_the_zones() -> None:
    def actions(**options: Any) -> list[int]:
        plant = Plant(combine=1.4, reduce=0.0, p=2, r=1)
        plant.run(create("prompt-plus", bounds=Bounds(p_max=12), **options), 100)
        return plant.actions

    assert actions() == []
    assert len(actions(look_ahead=False)) > 10
