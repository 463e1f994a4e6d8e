"""The plan contract: one log, one schedule, whoever reads it and whenever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.plans import Plan, Schedule, parse_plan
from evenflow.windows import NO_MARK

SLIDE = 1_000
QUERY = "0123456789abcdef"


def test_a_plan_survives_its_record() -> None:
    plan = Plan(epoch=3, p=5, r=2, effective_from=4_000, group=7, reason="zone 3")
    assert parse_plan(plan.encode(QUERY), fingerprint=QUERY) == plan


def test_a_plan_written_by_a_person_needs_no_query_group_or_reason() -> None:
    plan = parse_plan(b'{"v": 1, "epoch": 1, "p": 2, "r": 1, "effective_from": null}', fingerprint=QUERY)
    assert plan == Plan(epoch=1, p=2, r=1)
    assert plan.effective_from == NO_MARK


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"{",
        b'{"epoch": 1, "p": 2, "r": 1, "effective_from": null}',
        b'{"v": 2, "epoch": 1, "p": 2, "r": 1, "effective_from": null}',
        b'{"v": true, "epoch": 1, "p": 2, "r": 1, "effective_from": null}',
        b'{"v": null, "epoch": 1, "p": 2, "r": 1, "effective_from": null}',
        b'{"v": 1, "epoch": 1, "p": 2, "r": 1, "effective_from": null, "query": "fedcba9876543210"}',
        b'{"v": 1, "epoch": 0, "p": 2, "r": 1, "effective_from": null}',
        b'{"v": 1, "epoch": 1, "p": 2, "effective_from": null}',
        b'{"v": 1, "epoch": 1, "p": 0, "r": 1, "effective_from": null}',
        b'{"v": 1, "epoch": 1, "p": 2, "r": 1, "effective_from": 1.5}',
        b'{"v": 1, "epoch": 1, "p": 2, "r": 1, "effective_from": null, "reason": 5}',
    ],
)
def test_what_is_no_plan_of_this_version_and_query_is_refused_with_a_reason(value: bytes | None) -> None:
    with pytest.raises(ValueError, match="no plan"):
        parse_plan(value, fingerprint=QUERY)


def test_a_plan_takes_over_at_its_boundary_and_not_before() -> None:
    schedule = Schedule(SLIDE)
    assert schedule.learn(Plan(epoch=1, p=3, r=1, effective_from=5_000), reached=2_500)
    assert schedule.pass_to(4_999) is None
    taken = schedule.pass_to(5_000)
    assert taken is not None
    assert taken.p == 3
    assert schedule.current == taken


def test_a_reader_that_is_past_it_already_begins_with_its_next_slide() -> None:
    schedule = Schedule(SLIDE)
    schedule.learn(Plan(epoch=1, p=3, r=1, effective_from=5_000), reached=7_200)
    assert schedule.next_begins() == 8_000
    schedule = Schedule(SLIDE)
    schedule.learn(Plan(epoch=1, p=3, r=1), reached=7_999)
    assert schedule.next_begins() == 8_000


def test_an_amended_plan_replaces_the_one_that_would_begin_later() -> None:
    schedule = Schedule(SLIDE)
    schedule.learn(Plan(epoch=1, p=3, r=1, effective_from=20_000), reached=0)
    schedule.learn(Plan(epoch=2, p=6, r=1, effective_from=10_000), reached=0)
    assert [entry.plan.epoch for entry in schedule.upcoming] == [2]


def test_an_epoch_that_is_not_above_all_before_it_counts_for_nothing() -> None:
    schedule = Schedule(SLIDE)
    assert schedule.learn(Plan(epoch=5, p=3, r=1), reached=None)
    assert not schedule.learn(Plan(epoch=5, p=9, r=1), reached=None)
    assert not schedule.learn(Plan(epoch=4, p=9, r=1), reached=None)
    assert schedule.pass_to(0) == Plan(epoch=5, p=3, r=1)


def test_a_start_follows_at_once_what_should_be_in_force() -> None:
    plans = [
        Plan(epoch=1, p=3, r=1, effective_from=1_000),
        Plan(epoch=2, p=4, r=1, effective_from=5_000),
        Plan(epoch=3, p=5, r=1, effective_from=90_000),
    ]
    schedule = Schedule(SLIDE)
    schedule.start(plans, reached=7_200)
    assert schedule.current == plans[1]
    assert schedule.next_begins() == 90_000


PLANS = st.lists(
    st.builds(
        Plan,
        epoch=st.integers(1, 12),
        p=st.integers(1, 9),
        r=st.integers(1, 9),
        effective_from=st.one_of(st.just(NO_MARK), st.integers(-20_000, 20_000)),
    ),
    max_size=12,
)


@given(plans=PLANS, times=st.lists(st.integers(0, 30_000), max_size=20))
def test_whoever_reads_one_log_comes_to_the_same_plan_in_the_end(plans: list[Plan], times: list[int]) -> None:
    """However late each plan is read."""
    early, late = Schedule(SLIDE), Schedule(SLIDE)
    early.start(plans, reached=None)
    waiting = list(plans)
    for time in sorted(times):
        if waiting:
            late.learn(waiting.pop(0), reached=time)
        late.pass_to(time)
        early.pass_to(time)
    for plan in waiting:
        late.learn(plan, reached=30_000)
    assert early.newest == late.newest
    assert early.pass_to(10**6) == late.pass_to(10**6) or early.current == late.current


@given(plans=PLANS)
def test_epochs_in_force_only_grow(plans: list[Plan]) -> None:
    schedule = Schedule(SLIDE)
    seen = 0
    for time, plan in enumerate(plans):
        schedule.learn(plan, reached=time * 700)
        taken = schedule.pass_to(time * 700)
        if taken is not None:
            assert taken.epoch > seen
            seen = taken.epoch
