"""Dhalion: symptoms, a diagnosis, one action, and a blacklist."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.elasticity import Bounds, Observation, Policy, StageObservation, create
from tests.unit.elasticity.observations import BOUNDS, INTERVAL_MS


def made(**options: Any) -> Policy:
    return create("dhalion", bounds=BOUNDS, **{"wait_s": 10, **options})


def seen(
    step: int,
    combine: float,
    *,
    reduce: float = 0.1,
    p: int = 4,
    r: int = 4,
    rate: float = 100.0,
    queue: float = 0,
) -> Observation:
    """Split wiring. combine, reduce: each part's own W. queue: tuples that wait before the combiner."""
    return Observation(
        step=step,
        interval_ms=INTERVAL_MS,
        p=p,
        r=r,
        wiring="split",
        load=max(combine, reduce),
        rate=rate,
        stages={
            "combine": StageObservation(load=combine, arrivals=rate, queue=queue),
            "reduce": StageObservation(load=reduce, arrivals=rate, queue=0),
        },
    )


@pytest.mark.parametrize(("load", "wanted"), [(1.01, 5), (1.5, 6), (2.0, 8), (2.9, 12)])
def test_backpressure_scales_the_bottleneck_by_the_share_of_time_under_it(load: float, wanted: int) -> None:
    decision = made().decide(seen(1, load))
    assert (decision.p, decision.r) == (wanted, 4)
    assert decision.cause == "load"


def test_the_bottleneck_is_the_part_with_the_highest_load_of_its_own() -> None:
    decision = made().decide(seen(1, 1.2, reduce=1.5))
    assert (decision.p, decision.r) == (4, 6)


def test_a_part_at_its_most_is_passed_over_and_two_of_them_keep_everything() -> None:
    assert made().decide(seen(1, 2.0, reduce=1.5, p=12)).r == 6
    decision = made().decide(seen(1, 2.0, p=12, r=8))
    assert (decision.p, decision.r, decision.cause) == (12, 8, "bounds")


def test_one_action_adds_no_more_than_its_limit() -> None:
    assert made(up_factor=0.5).decide(seen(1, 9.0)).p == 6


def test_where_nothing_waits_the_part_with_the_lowest_load_loses_a_share() -> None:
    decision = made(down_factor=0.5).decide(seen(1, 0.7, reduce=0.2, p=8, r=8))
    assert (decision.p, decision.r) == (8, 4)


def test_tuples_that_wait_forbid_a_scale_in() -> None:
    decision = made().decide(seen(1, 0.7, queue=100.0))
    assert (decision.p, decision.r, decision.cause) == (4, 4, "stable")


def test_nothing_happens_within_the_wait_after_a_change() -> None:
    policy = made()
    policy.decide(seen(1, 1.5))
    waiting = [policy.decide(seen(step, 1.5, p=6)) for step in (2, 3)]
    assert [(decision.p, decision.cause) for decision in waiting] == [(6, "waiting")] * 2
    assert policy.decide(seen(4, 1.5, p=6)).p == 9


def test_a_scale_in_that_brings_backpressure_is_undone_and_not_tried_again_at_that_load() -> None:
    policy = create("dhalion", bounds=Bounds(p_max=12), wait_s=0)
    shrunk = policy.decide(seen(1, 0.9, p=10, r=1))
    assert shrunk.p == 8
    undone = policy.decide(seen(2, 1.1, p=8, r=1))
    assert undone.p == 10
    assert "blacklisted" in undone.reason
    kept = policy.decide(seen(3, 0.9, p=10, r=1))
    assert (kept.p, kept.cause) == (10, "stable")
    assert policy.decide(seen(4, 0.9, p=10, r=1, rate=95.0)).p == 10
    assert policy.decide(seen(5, 0.8, p=10, r=1, rate=89.0)).p == 8, "fewer tuples come"


def test_a_scale_in_that_brings_no_backpressure_is_not_undone_later() -> None:
    policy = create("dhalion", bounds=Bounds(p_max=12), wait_s=0)
    policy.decide(seen(1, 0.5, p=10, r=1))
    policy.decide(seen(2, 0.6, p=8, r=1, queue=100.0))
    assert policy.decide(seen(3, 1.1, p=8, r=1)).p == 9, "a scale-out by the load, not back to 10"
