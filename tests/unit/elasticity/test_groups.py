"""Group-ahead planning: when a decision holds, and that no plan is published for nothing."""

from __future__ import annotations

import doctest
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow import elasticity
from evenflow.elasticity import Bounds, create, groups
from evenflow.elasticity.groups import GroupPlanner
from evenflow.errors import IncompatibleStateError
from evenflow.plans import Plan, Schedule, parse_plan
from evenflow.windows import NO_MARK
from tests.examples import examples
from tests.unit.elasticity.observations import Plant

SECOND = 1_000


def step(
    planner: GroupPlanner,
    batch: int,
    wanted: tuple[int, int] | None,
    *,
    in_force: tuple[int, int] = (2, 2),
    reached: int | None = -1,
) -> Plan | None:
    return planner.step(
        batch=batch,
        target=wanted,
        in_force=in_force,
        reason="W 1.80 is in zone 3",
        reached=batch * SECOND if reached == -1 else reached,
        batch_ms=SECOND,
    )


def spike(*, amend: bool) -> dict[int, float]:
    """W of each micro-batch when the load doubles at micro-batch 15 (001, figure 3.6): G = 10, one second
    each.
    """
    planner = GroupPlanner(slide_ms=SECOND, group=10, amend=amend)
    policy = create("prompt-plus", bounds=Bounds(p_max=16, r_max=4), d=1, proportional=True)
    schedule, plant, loads = Schedule(SECOND), Plant(combine=3.4, reduce=0.0, p=4, r=1), {}
    for batch in range(1, 31):
        if batch == 15:
            plant.combine, plant.rate = 6.8, 2_000
        taken = schedule.pass_to((batch - 1) * SECOND)
        if taken is not None:
            plant.p, plant.r = taken.p, taken.r
        waits = planner.pending or bool(schedule.upcoming)
        loads[batch] = plant.load()
        decision = policy.decide(plant.observe(settling=waits))
        plan = planner.step(
            batch=batch,
            target=None if decision.held else (decision.p, decision.r),
            in_force=(plant.p, plant.r),
            reason=decision.reason,
            reached=batch * SECOND - 1,
            batch_ms=SECOND,
        )
        if plan is not None:
            planner.learn(plan)
            schedule.learn(plan, reached=batch * SECOND - 1)
    return loads


def test_a_spike_in_mid_group_shows_two_micro_batches_later_with_amended_plans() -> None:
    loads = spike(amend=True)
    assert [batch for batch, load in loads.items() if load > 0.9] == [15, 16]
    assert all(0.8 < loads[batch] <= 0.9 for batch in range(17, 31))


def test_without_them_it_shows_at_the_start_of_the_next_group() -> None:
    loads = spike(amend=False)
    assert [batch for batch, load in loads.items() if load > 0.9] == list(range(15, 21))


def test_an_amended_plan_begins_at_the_slide_boundary_after_the_lead() -> None:
    planner = GroupPlanner(slide_ms=4 * SECOND, lead=1)
    plan = step(planner, 15, (4, 2), reached=15_200)
    assert plan is not None
    assert (plan.epoch, plan.p, plan.r, plan.group, plan.effective_from) == (1, 4, 2, 2, 20_000)
    assert "amends group 2 from micro-batch 17 on: W 1.80" in plan.reason


@pytest.mark.parametrize("amend", [True, False])
def test_a_group_that_needs_no_other_p_and_r_needs_no_plan(amend: bool) -> None:
    planner = GroupPlanner(slide_ms=SECOND, amend=amend)
    assert [step(planner, batch, (2, 2)) for batch in range(1, 45)] == [None] * 44
    planner.learn(Plan(epoch=3, p=5, r=2))
    assert [step(planner, batch, (5, 2), in_force=(5, 2)) for batch in range(45, 90)] == [None] * 45


def test_the_next_group_is_planned_before_this_one_ends() -> None:
    planner = GroupPlanner(slide_ms=SECOND, amend=False, ahead=3)
    published = {batch: step(planner, batch, (4, 2)) for batch in range(11, 18)}
    assert [batch for batch, plan in published.items() if plan] == [17]
    plan = published[17]
    assert plan is not None
    assert (plan.group, plan.effective_from) == (3, 20_000)


def test_what_comes_too_late_for_the_next_group_waits_for_the_one_after() -> None:
    planner = GroupPlanner(slide_ms=SECOND, amend=False, ahead=2)
    planned = {batch: step(planner, batch, (4, 2)) for batch in range(20, 29)}
    assert [batch for batch, plan in planned.items() if plan] == [28]


def test_a_decision_that_waits_is_not_taken_back_by_one_that_wants_nothing() -> None:
    planner = GroupPlanner(slide_ms=SECOND, amend=False)
    assert step(planner, 15, (4, 2)) is None
    assert planner.pending
    assert [step(planner, 16, (2, 2)), step(planner, 17, None)] == [None, None]
    plan = step(planner, 18, None)
    assert plan is not None
    assert plan.p == 4
    assert step(planner, 18, (5, 2)) != plan, "a later decision replaces it"


def test_a_plan_is_given_once_and_again_where_it_is_wanted_again() -> None:
    planner = GroupPlanner(slide_ms=SECOND)
    assert step(planner, 15, (4, 2)) is not None
    assert not planner.pending
    assert step(planner, 16, None) is None, "the log does not show it yet"
    again = step(planner, 17, (4, 2))
    assert again is not None
    assert (again.epoch, again.p) == (1, 4)


def test_a_plan_of_another_answers_what_is_pending_and_counts_the_epochs_on() -> None:
    planner = GroupPlanner(slide_ms=SECOND)
    step(planner, 15, (4, 2))
    planner.learn(Plan(epoch=7, p=6, r=2))
    planner.learn(Plan(epoch=5, p=1, r=1))
    assert not planner.pending
    assert planner.newest == Plan(epoch=7, p=6, r=2)
    plan = step(planner, 16, (4, 2), in_force=(6, 2))
    assert plan is not None
    assert plan.epoch == 8


def test_before_the_first_tuple_a_plan_begins_at_the_next_slide() -> None:
    plan = step(GroupPlanner(slide_ms=SECOND), 1, (4, 2), reached=None)
    assert plan is not None
    assert plan.effective_from == NO_MARK


WALK = st.lists(
    st.tuples(st.none() | st.tuples(st.integers(1, 4), st.integers(1, 3)), st.booleans()), max_size=60
)


@examples(60)
@given(walk=WALK, amend=st.booleans(), at=st.integers(0, 60))
def test_epochs_grow_plans_lie_ahead_and_a_resumed_planner_continues(
    walk: list[tuple[tuple[int, int] | None, bool]], amend: bool, at: int
) -> None:
    one, other = (GroupPlanner(slide_ms=700, amend=amend) for _ in range(2))
    for batch, (wanted, published) in enumerate(walk, start=1):
        if batch == at:
            other = GroupPlanner(slide_ms=700, amend=amend)
            other.resume(one.snapshot())
        plan, newest = step(one, batch, wanted), one.newest
        assert step(other, batch, wanted) == plan
        if plan is None or not published:
            continue
        assert plan.epoch == (newest.epoch if newest else 0) + 1
        assert newest is None or (plan.p, plan.r) != (newest.p, newest.r)
        assert plan.effective_from % 700 == 0
        assert plan.effective_from > batch * SECOND
        one.learn(plan)
        other.learn(plan)


@pytest.mark.parametrize("wrong", [{"v": 2}, {"wish": 1}, {"wish": {"p": 0}}, {"newest": {"epoch": 1}}])
def test_state_that_is_none_of_a_planner_is_refused(wrong: dict) -> None:
    planner = GroupPlanner(slide_ms=SECOND)
    state = json.dumps(json.loads(planner.snapshot()) | wrong).encode()
    with pytest.raises(IncompatibleStateError, match="no state of a planner"):
        planner.resume(state)


@pytest.mark.parametrize("module", [elasticity, groups])
def test_the_examples_of_the_library_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(("reached", "batch_ms"), [(2**62, 1.0), (0, 1e25), (0, float("inf"))])
def test_where_no_event_time_can_be_told_a_plan_begins_at_the_next_slide(
    reached: int, batch_ms: float
) -> None:
    planner = GroupPlanner(slide_ms=1_000)
    plan = planner.step(batch=1, target=(4, 2), in_force=(2, 2), reached=reached, batch_ms=batch_ms)
    assert plan is not None
    assert plan.effective_from == NO_MARK
    assert parse_plan(plan.encode("0" * 16)) == plan


def test_a_side_that_a_decision_leaves_alone_stays_as_the_newest_plan_has_it() -> None:
    """A person has planned r 1 for later, then the policy wants one worker more."""
    planner = GroupPlanner(slide_ms=1_000)
    planner.learn(Plan(epoch=4, p=2, r=1, effective_from=10**9))
    plan = planner.step(batch=7, target=(3, 2), in_force=(2, 2), reached=7_000, batch_ms=1_000)
    assert plan is not None
    assert (plan.epoch, plan.p, plan.r) == (5, 3, 1)
