"""The lateness rule as a fold over one input partition."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import IncompatibleStateError
from evenflow.progress import MOST_DISORDERS, MOST_MAX_JUMPS, PartitionState, Verdict, judge
from evenflow.settings import Query
from evenflow.windows import END_MARK, NO_MARK
from evenflow.wire.markers import EndOfStream

FRESH = PartitionState(fingerprint="f" * 16, topic_id="t", offset=0)
TIMES = st.lists(st.integers(-50, 400), max_size=60)


def query(**fields: object) -> Query:
    return Query(window=20, slide=10, **fields)  # type: ignore[arg-type]


def by_hand(rule: Query, times: list[int]) -> list[int]:
    largest: int | None = None
    verdicts = []
    for time in times:
        mark = NO_MARK if largest is None else largest - rule.out_of_orderness - rule.allowed_lateness
        if (time // 10 + 1) * 10 <= mark:
            verdicts.append(int(Verdict.LATE))
            continue
        verdicts.append(0)
        largest = time if largest is None else max(largest, time)
    return verdicts


@given(TIMES, st.integers(0, 60), st.integers(0, 60))
def test_a_tuple_is_late_iff_its_pane_ended_at_or_before_the_mark_before_it(times, disorder, lateness):
    rule = query(out_of_orderness=disorder, allowed_lateness=lateness)
    assert judge(rule, FRESH, np.array(times, dtype=np.int64)).verdicts.tolist() == by_hand(rule, times)


@given(TIMES, st.lists(st.integers(0, 60), max_size=5), st.one_of(st.none(), st.integers(0, 100)))
def test_verdicts_do_not_depend_on_how_the_partition_is_cut_into_blocks(times, cuts, jump):
    rule = query(out_of_orderness=15, max_jump=jump)
    whole = judge(rule, FRESH, np.array(times, dtype=np.int64))
    state, verdicts = FRESH, []
    bounds = [0, *sorted(min(cut, len(times)) for cut in cuts), len(times)]
    for start, stop in pairwise(bounds):
        judged = judge(rule, state, np.array(times[start:stop], dtype=np.int64))
        verdicts += judged.verdicts.tolist()
        state = PartitionState.decode(judged.state.encode(), offset=0)
    assert verdicts == whole.verdicts.tolist()
    assert state == whole.state


def verdicts_of(times: list[int], **fields: object) -> list[int]:
    return judge(query(**fields), FRESH, np.array(times, dtype=np.int64)).verdicts.tolist()


def test_a_single_tuple_from_the_far_future_does_not_close_the_windows_of_the_others():
    verdicts = verdicts_of([0, 1, 2, 10**9, 3, 4], max_jump=100, jump_confirmations=2)
    assert verdicts == [3, 0, 0, 3, 0, 0]


def test_enough_consecutive_tuples_within_max_jump_of_each_other_move_progress():
    verdicts = verdicts_of([0, 1, 2, 1000, 1050, 1020, 1030], max_jump=100, jump_confirmations=3)
    assert verdicts == [3, 3, 0, 3, 3, 0, 0]


def test_any_last_consecutive_tuples_within_max_jump_confirm_not_only_runs_begun_anew():
    assert verdicts_of([0, 9, 18, 17, 16], max_jump=10, jump_confirmations=3) == [3, 3, 3, 0, 0]


def test_the_first_tuple_of_a_partition_needs_the_same_confirmation():
    assert verdicts_of([10**12, 5, 6, 7], max_jump=100, jump_confirmations=3) == [3, 3, 3, 0]


def test_tuples_far_from_each_other_confirm_nothing():
    assert verdicts_of([0, 0, 1000, 5000, 9000], max_jump=100, jump_confirmations=2) == [3, 0, 3, 3, 3]


def test_max_jump_is_off_by_default():
    assert verdicts_of([0, 10**12]) == [0, 0]


def test_tuples_ahead_of_the_clock_move_nothing_and_confirm_nothing():
    rule = query(max_jump=100, jump_confirmations=2)
    times = np.array([0, 10**6, 1, 10**6, 10**6 + 1, 2], dtype=np.int64)
    ahead = times > 500
    judged = judge(rule, FRESH, times, ahead=ahead)
    assert judged.verdicts.tolist() == [3, 4, 0, 4, 4, 0]
    assert judged.state == judge(rule, FRESH, times[~ahead]).state


@given(TIMES, st.lists(st.booleans(), min_size=60, max_size=60), st.one_of(st.none(), st.integers(0, 100)))
def test_tuples_ahead_of_the_clock_are_as_if_they_were_not_there(times, which, jump):
    rule = query(out_of_orderness=15, max_jump=jump)
    all_times = np.array(times, dtype=np.int64)
    ahead = np.array(which[: len(times)], dtype=bool)
    judged, others = judge(rule, FRESH, all_times, ahead=ahead), judge(rule, FRESH, all_times[~ahead])
    assert judged.state == others.state
    assert judged.verdicts[~ahead].tolist() == others.verdicts.tolist()
    assert (judged.verdicts[ahead] == Verdict.AHEAD).all()


def steady(state: PartitionState, times: list[int]) -> PartitionState:
    return judge(query(), state, np.array(times, dtype=np.int64), max_skew=100).state


def test_progress_is_steady_from_the_last_step_that_was_longer_than_max_skew():
    assert steady(FRESH, [5, 105, 205]).steady_from == 5
    assert steady(FRESH, [5, 105, 206]).steady_from == 206
    assert steady(steady(FRESH, [5, 206]), [3, 300]).steady_from == 206


def test_a_step_from_where_an_idle_partition_has_followed_the_others_is_no_leap():
    followed = replace(steady(FRESH, [5]), idle_mark=1_000)
    assert steady(followed, [1_090]).steady_from == 5
    assert steady(followed, [1_101]).steady_from == 1_101


def test_a_partition_that_was_taken_along_before_its_first_tuple_has_a_state_that_can_be_continued():
    taken_along = replace(FRESH, idle_mark=1_000, asleep=True)
    for first, since in ((1_000, 1_000), (1_090, 1_000), (1_101, 1_101)):
        state = steady(taken_along, [first])
        assert state.steady_from == since
        assert PartitionState.decode(state.encode(), offset=0) == state


def test_a_partition_ends_when_every_announced_producer_has_ended():
    once = FRESH.with_marker(EndOfStream(producer="a", tuples=1, producers=2))
    assert not once.ended
    assert not once.with_marker(EndOfStream(producer="a", tuples=1, producers=2)).ended
    both = once.with_marker(EndOfStream(producer="b", tuples=1, producers=2))
    assert both.ended
    assert both.mark(query()) == END_MARK


def test_a_tuple_behind_the_mark_given_while_idle_is_idle_unless_its_own_rule_says_late():
    asleep = replace(FRESH, max_time=100, idle_mark=300)
    verdicts = judge(query(), asleep, np.array([295, 250, 50, 305], dtype=np.int64)).verdicts.tolist()
    assert verdicts == [Verdict.IDLE, 2, 1, 0]


def test_committed_state_stays_well_below_the_brokers_limit():
    state = replace(
        FRESH,
        offset=2**60,
        first_time=-(2**60),
        max_time=-(2**60),
        steady_from=-(2**60),
        idle_mark=2**60,
        run=tuple(2**60 + i for i in range(15)),
        ended_producers=tuple(f"{i:024d}" for i in range(16)),
        announced=16,
        read=2**61,
        routed=2**60,
        rejected=2**60,
    )
    assert len(state.encode()) < 1_500
    assert PartitionState.decode(state.encode(), offset=2**60) == state


@pytest.mark.parametrize("metadata", ["", None, "x", "{}", '{"v":99}', '{"v":1}', "[]"])
def test_metadata_that_is_no_state_is_refused_with_an_explanation(metadata):
    with pytest.raises(IncompatibleStateError):
        PartitionState.decode(metadata, offset=3)


def other(max_jump: int | None, *, began: int | None = None) -> Query:
    """The settings of an instance with this max_jump (ms), of a query that began with `began`."""
    return query(max_jump=max_jump).with_first_limits({"max_jump": began})


def test_a_change_of_max_jump_holds_from_the_offset_at_which_the_partition_is_taken_over():
    state = replace(FRESH, offset=5).under(other(100))
    assert state.max_jumps == ((5, 100),)
    assert (state.max_jump(other(7)), state.max_jump_from) == (100, 5), "whatever the settings of a reader"
    state = replace(state, offset=9)
    assert state.under(other(100)) is state, "the same value is no change"
    state = state.under(other(None))
    assert state.max_jumps == ((5, 100), (9, None))
    assert PartitionState.decode(state.encode(), offset=9) == state


def test_a_change_that_judged_no_record_leaves_nothing():
    state = replace(FRESH, offset=5).under(other(100)).under(other(200))
    assert state.max_jumps == ((5, 200),)
    assert state.under(other(None)) == replace(FRESH, offset=5)


def test_a_max_jump_that_has_not_changed_is_judged_by_that_of_the_beginning():
    assert FRESH.max_jump(other(100, began=60)) == 60
    assert FRESH.max_jump(query(max_jump=100)) == 100
    assert FRESH.under(query(max_jump=100)) is FRESH


def test_an_older_evenflow_reads_the_state_of_a_partition_as_long_as_its_max_jump_has_not_changed():
    assert json.loads(FRESH.encode())["v"] == 5
    assert json.loads(FRESH.under(other(100)).encode())["v"] == 6


def test_max_jump_changes_only_as_often_as_the_state_can_hold_and_then_the_start_is_refused():
    state = FRESH
    for turn in range(MOST_MAX_JUMPS):
        state = replace(state, offset=2**60 + turn).under(other(2**60 + turn))
    assert len(state.encode()) < 2_500
    assert PartitionState.decode(state.encode(), offset=state.offset) == state
    state = replace(state, offset=2**61)
    with pytest.raises(IncompatibleStateError, match="max_jump has changed 32 times"):
        state.under(other(None))
    assert state.under(other(2**60 + MOST_MAX_JUMPS - 1)) is state


def patient(out_of_orderness: int) -> Query:
    """The settings of an instance with this out_of_orderness (ms), of a query that began with none."""
    return query(out_of_orderness=out_of_orderness).with_first_limits({"out_of_orderness": 0})


def test_an_out_of_orderness_that_grows_holds_from_an_offset_on_and_the_mark_does_not_fall():
    before = judge(patient(0), FRESH, np.array([100], dtype=np.int64)).state
    state = replace(before, offset=7).under(patient(30))
    assert (state.disorders, state.floor, state.out_of_orderness_from) == (((7, 30),), 100, 7)
    assert state.mark(patient(0)) == 100, "whatever the settings of a reader"
    judged = judge(patient(30), state, np.array([95, 115, 94, 140, 105], dtype=np.int64))
    assert judged.verdicts.tolist() == [Verdict.LATE, 0, Verdict.LATE, 0, Verdict.LATE]
    assert judged.marks.tolist() == [100, 100, 100, 100, 110]
    assert judged.state.mark(patient(30)) == 110
    assert judged.state.watermark(patient(30)) == 110
    assert PartitionState.decode(judged.state.encode(), offset=7) == judged.state


@given(
    stints=st.lists(
        st.tuples(st.integers(0, 60), st.lists(st.integers(0, 300), max_size=6)), min_size=1, max_size=6
    )
)
def test_the_mark_is_the_largest_event_time_less_the_delay_of_its_offset_and_never_falls(stints):
    state, largest, marks = FRESH, [], [NO_MARK]
    for disorder, times in stints:
        settings = patient(disorder)
        state = state.under(settings)
        judged = judge(settings, state, np.array(times, dtype=np.int64))
        delay = state.delay(settings)
        accepted = judged.verdicts == Verdict.ACCEPTED
        for time, yes, mark in zip(times, accepted, judged.marks.tolist(), strict=True):
            assert mark == max(largest, default=NO_MARK)
            largest += [time - delay] if yes else []
            marks.append(mark)
        state = replace(judged.state, offset=state.offset + len(times))
        marks.append(state.mark(settings))
        assert state.mark(settings) == max(largest, default=NO_MARK)
    assert marks == sorted(marks)


def test_an_instance_with_a_smaller_out_of_orderness_leaves_the_larger_one_of_a_partition():
    state = replace(FRESH, offset=5).under(patient(30))
    assert state.under(patient(10)) is state


def test_a_growth_that_judged_no_record_leaves_nothing():
    state = replace(FRESH, offset=5).under(patient(30)).under(patient(40))
    assert (state.disorders, state.floor) == (((5, 40),), None)


def test_out_of_orderness_grows_only_as_often_as_the_state_can_hold_and_then_the_start_is_refused():
    state = replace(FRESH, first_time=0, max_time=2**60, steady_from=0)
    for turn in range(MOST_MAX_JUMPS):
        state = replace(state, offset=2**60 + turn)
        if turn < MOST_DISORDERS:
            state = state.under(patient(2**59 + turn))
        wide = patient(2**59).model_copy(update={"max_jump": 2**60 + turn})
        state = state.under(wide.with_first_limits({"max_jump": None}))
    full = replace(
        state,
        run=tuple(2**60 + i for i in range(15)),
        ended_producers=tuple(f"{i:024d}" for i in range(16)),
        announced=16,
    )
    assert len(full.encode()) < 3_200
    assert json.loads(full.encode())["v"] == 7
    assert PartitionState.decode(full.encode(), offset=full.offset) == full
    with pytest.raises(IncompatibleStateError, match="out_of_orderness has grown 16 times"):
        replace(state, offset=2**61).under(
            wide.model_copy(update={"out_of_orderness": 2**60}).with_first_limits({"max_jump": None})
        )


@pytest.mark.parametrize(
    ("disorders", "why"),
    [
        (((6, 100),), "not in order"),
        (((3, 50), (3, 100)), "not in order"),
        (((1, 100), (3, 100)), "has not grown"),
        (((1, 100), (3, 50)), "has not grown"),
    ],
    ids=["ahead", "twice", "equal", "smaller"],
)
def test_an_out_of_orderness_that_no_evenflow_commits_is_refused(disorders, why):
    metadata = replace(FRESH, offset=5, disorders=disorders).encode()
    with pytest.raises(IncompatibleStateError, match=why):
        PartitionState.decode(metadata, offset=5)


@pytest.mark.parametrize(
    "changes", [((6, 100),), ((3, 100), (3, 50)), ((3, 100), (1, None))], ids=["ahead", "twice", "backwards"]
)
def test_changes_of_max_jump_that_no_evenflow_commits_are_refused(changes):
    metadata = replace(FRESH, offset=5, max_jumps=changes).encode()
    with pytest.raises(IncompatibleStateError, match="not in order"):
        PartitionState.decode(metadata, offset=5)
