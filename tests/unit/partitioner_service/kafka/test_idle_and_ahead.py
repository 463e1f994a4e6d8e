"""Who is held back and put to sleep; a partition that waits for long is named once, with the one it waits
for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ServiceError
from evenflow.progress import PartitionState, judge
from evenflow.settings import Settings
from partitioner_service.kafka import idle_and_ahead as pace
from partitioner_service.kafka.idle_and_ahead import Pace
from partitioner_service.kafka.log_ends import LogEnds


class Source:
    """Owned partitions, and which of them were paused last."""

    def __init__(self, **states: PartitionState) -> None:
        self.states = {int(name[1:]): state for name, state in states.items()}
        self.partition_count = 0
        self.held: set[int] | None = None
        self.now = 0.0
        self.log_ends: dict[int, int] = {}
        self.asked: list[set[int]] = []
        self.ends = LogEnds(self._ask, clock=lambda: self.now)

    def _ask(self, partitions: Collection[int]) -> dict[int, int]:
        self.asked.append(set(partitions))
        return {p: end for p, end in self.log_ends.items() if p in partitions}

    def hold(self, partitions: Iterable[int]) -> None:
        self.held = set(partitions)


def at(first: int | None, largest: int | None, **fields: Any) -> PartitionState:
    return PartitionState(
        fingerprint="f",
        topic_id="t",
        offset=0,
        **{"first_time": first, "max_time": largest, "steady_from": first} | fields,
    )


def paced(source: Source, peers: Any, monkeypatch: pytest.MonkeyPatch, *, partitions: int) -> Pace:
    """With a max_skew of 10 s; `peers` is what the group has committed, or the error that reading it
    meets.
    """

    def committed_states(reader: object, settings: Settings, **more: int) -> Any:
        if isinstance(peers, Exception):
            raise peers
        return peers

    monkeypatch.setattr(pace, "state_reader", lambda settings: None)
    monkeypatch.setattr(pace, "committed_states", committed_states)
    settings = Settings(
        query={"window": "1s", "slide": "1s"},
        input={"partitions": partitions},
        partitioner={"max_skew": "10s", "idle_timeout": "5s"},
    )
    source.partition_count = partitions
    return Pace(settings, source)  # type: ignore[arg-type]


def test_a_partition_without_a_tuple_is_as_slow_as_the_first_tuple_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Source(p0=at(5_000, 15_001), p1=at(7_000, 14_000), p2=at(None, None))
    paced(source, {}, monkeypatch, partitions=3).hold_back_the_hasty()
    assert source.held == {0}


@pytest.mark.parametrize("fields", [{"announced": 1, "ended_producers": ("p",)}, {"asleep": True}])
def test_partitions_that_ended_or_sleep_hold_nobody_back(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    source = Source(p0=at(0, 90_000), p1=at(None, None, **fields))
    paced(source, {}, monkeypatch, partitions=2).hold_back_the_hasty()
    assert source.held == set()


def test_a_slow_partition_of_another_instance_holds_ours_back_also_while_the_peers_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source(p0=at(0, 90_000))
    seen: dict[int, PartitionState] = {0: at(0, 1), 1: at(0, 1_000)}
    mine = paced(source, seen, monkeypatch, partitions=2)
    mine.hold_back_the_hasty()
    assert source.held == {0}
    monkeypatch.setattr(pace, "_PEER_REFRESH", 0.0)
    broken = ServiceError("no coordinator")

    def fails(reader: object, settings: Settings, **more: int) -> Any:
        raise broken

    monkeypatch.setattr(pace, "committed_states", fails)
    source.held = None
    mine.hold_back_the_hasty()
    assert source.held == {0}, "what was known last still counts"
    assert "no coordinator" in caplog.text


def idle(source: Source, monkeypatch: pytest.MonkeyPatch, peers: Any = None) -> Pace:
    """Partition 0 is awake; partition 1 was seen at its log's end, offset 7, an idle timeout ago."""
    source.ends.reached(1, 7)
    source.now += 5.0
    return paced(source, peers or {}, monkeypatch, partitions=2)


def test_a_partition_sleeps_only_when_the_brokers_confirm_the_end_of_its_log_at_that_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Source(p0=at(0, 50_000), p1=at(0, 3_000))
    pace = idle(source, monkeypatch)
    source.log_ends = {1: 7}
    after = pace.asleep()
    assert {p: (s.asleep, s.idle_mark) for p, s in after.items()} == {1: (True, 50_000)}


def test_a_partition_whose_log_has_grown_unseen_stays_awake_until_it_is_read_to_the_end_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Source(p0=at(0, 50_000), p1=at(0, 3_000))
    pace = idle(source, monkeypatch)
    source.log_ends = {1: 8}
    assert pace.asleep() == {}
    source.now += 100
    assert pace.asleep() == {}
    assert source.asked == [{1}], "it is not at its end, so nobody is asked"
    source.ends.reached(1, 8)
    source.now += 5
    assert set(pace.asleep()) == {1}


def test_a_partition_whose_log_has_grown_unseen_counts_among_those_that_are_awake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Source(p0=at(0, 50_000), p1=at(0, 3_000), p2=at(0, 9_000))
    source.ends.reached(1, 7)
    source.ends.reached(2, 7)
    source.now += 5
    source.log_ends = {1: 7, 2: 8}
    assert {p: s.idle_mark for p, s in paced(source, {}, monkeypatch, partitions=3).asleep().items()} == {
        1: 9_000
    }


def test_a_partition_that_no_broker_answers_for_stays_awake_and_is_asked_after_again_a_timeout_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Source(p0=at(0, 50_000), p1=at(0, 3_000))
    pace = idle(source, monkeypatch)
    for seconds, asked in ((0, 1), (4.9, 1), (0.1, 2)):
        source.now += seconds
        assert pace.asleep() == {}
        assert len(source.asked) == asked
    source.log_ends = {1: 7}
    source.now += 5
    assert set(pace.asleep()) == {1}


def test_a_sleeper_is_moved_and_asked_after_only_when_more_panes_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Source(p0=at(0, 50_000), p1=at(0, 3_000))
    pace = idle(source, monkeypatch)
    source.log_ends = {1: 7}
    source.states |= pace.asleep()
    source.states[0] = at(0, 50_999)
    assert (pace.asleep(), len(source.asked)) == ({}, 1)
    source.states[0] = at(0, 51_000)
    assert pace.asleep()[1].idle_mark == 51_000
    source.states[0] = at(0, 52_000)
    source.log_ends = {}
    assert pace.asleep() == {}, "no answer: its mark stays"


@pytest.mark.parametrize("peers", [{}, ServiceError("no coordinator")])
def test_nothing_sleeps_while_the_progress_of_a_partition_is_not_known(
    monkeypatch: pytest.MonkeyPatch, peers: Any
) -> None:
    source = Source(p0=at(0, 50_000), p1=at(0, 3_000))
    source.ends.reached(1, 7)
    source.log_ends = {1: 7}
    source.now += 5
    assert paced(source, peers, monkeypatch, partitions=3).asleep() == {}
    peer = at(0, 20_000)
    assert paced(source, {2: peer}, monkeypatch, partitions=3).asleep()[1].idle_mark == 20_000


def asleep_at(largest: int, mark: int, **fields: Any) -> PartitionState:
    return at(0, largest, asleep=True, idle_mark=mark, **fields)


def test_a_partition_that_leapt_puts_nobody_to_sleep_and_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(p0=at(0, 10**9, steady_from=10**9), p1=at(0, 3_000))
    pace = idle(source, monkeypatch)
    source.log_ends = {1: 7}
    pace.hold_back_the_hasty()
    assert (pace.asleep(), source.held) == ({}, {0})


def test_a_sleeper_keeps_its_mark_when_the_only_partition_that_is_awake_leaps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Source(p0=at(0, 10**9, steady_from=10**9), p1=asleep_at(3_000, 50_000))
    pace = idle(source, monkeypatch)
    source.log_ends = {1: 7}
    pace.hold_back_the_hasty()
    assert (pace.asleep(), source.held) == ({}, {0}), "what it reads would stay open for ever"


def test_a_partition_that_ran_far_ahead_within_one_block_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(p0=at(0, 10**9, steady_from=0), p1=asleep_at(3_000, 50_000))
    pace = idle(source, monkeypatch)
    source.log_ends = {1: 7}
    pace.hold_back_the_hasty()
    assert (pace.asleep()[1].idle_mark, source.held) == (10**9, set())


@pytest.mark.parametrize(
    ("second", "mark"), [(10**9 + 10_000, 10**9), (10**9 + 10_001, None), (60_000, None)]
)
def test_two_partitions_that_came_to_the_same_place_after_a_quiet_night_are_followed(
    monkeypatch: pytest.MonkeyPatch, second: int, mark: int | None
) -> None:
    source = Source(
        p0=at(0, 10**9, steady_from=10**9),
        p1=asleep_at(3_000, 40_000),
        p2=at(0, second, steady_from=second, ended_producers=("p",), announced=1),
    )
    source.ends.reached(1, 7)
    source.now += 5
    source.log_ends = {1: 7}
    after = paced(source, {}, monkeypatch, partitions=3).asleep()
    assert {p: s.idle_mark for p, s in after.items()} == ({} if mark is None else {1: mark})


def test_a_partition_without_a_tuple_does_not_follow_a_leap_from_the_first_tuple_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for steady_from, put_to_sleep in ((10_000, {1}), (10_001, set())):
        source = Source(p0=at(0, 12_000, steady_from=steady_from), p1=at(None, None))
        pace = idle(source, monkeypatch)
        source.log_ends = {1: 7}
        assert set(pace.asleep()) == put_to_sleep


SKEW = 10_000
STEPS = st.lists(
    st.tuples(
        st.integers(0, 3), st.lists(st.integers(-2_000, SKEW), min_size=1, max_size=4), st.integers(0, 8)
    ),
    max_size=40,
)


@given(STEPS, st.integers(0, 40), st.integers(1, 2**50), st.booleans())
def test_wherever_one_partition_leaps_no_other_gets_a_mark_that_a_right_tuple_does_not_justify(
    steps: list[tuple[int, list[int], int]], moment: int, far: int, goes_on: bool
) -> None:
    """Partition 3 leaps at some moment. A step is (partition, steps of its time in ms, seconds until the
    next).

    No other gets a mark beyond the times of right tuples. Only once a right tuple has come within `max_skew`
    of the leap, the leap is none any more, and the mark may be as far as partition 3 is.
    """
    query = Settings(query={"window": "1s", "slide": "1s"}).query
    begun = judge(query, at(None, None), np.array([0]), max_skew=SKEW).state
    source = Source(p0=begun, p1=begun, p2=at(None, None), p3=begun)
    with pytest.MonkeyPatch.context() as patch:
        pace = paced(source, {}, patch, partitions=4)
    right = leap = 0
    leapt = False
    for number, (p, deltas, seconds) in enumerate(steps):
        if number == moment:
            p, leapt = 3, True
        elif p == 3 and leapt and not goes_on:
            continue
        if source.held and p in source.held:
            continue
        state = source.states[p]
        place = max(state.max_time or 0, state.idle_mark or 0)
        times = np.cumsum([place, *deltas])[1:]
        if number == moment:
            leap = max(place, right) + SKEW + far
            times = np.array([leap])
        judged = judge(query, state, times, max_skew=SKEW)
        if p != 3 or not leapt:
            right = max(right, int(times.max()))
        source.states[p] = replace(judged.state, asleep=False)
        source.ends.left(p)
        pace.hold_back_the_hasty()
        for q in source.states:
            if source.ends.seconds_at_end(q) is None and (q != p or seconds):
                source.ends.reached(q, 1)
        source.log_ends = dict.fromkeys(source.states, 1)
        source.now += seconds
        source.states |= pace.asleep()
        pace.hold_back_the_hasty()
        met = leapt and right + SKEW >= leap
        most = max(right, source.states[3].max_time or 0) if met else right
        assert max(source.states[q].idle_mark or 0 for q in (0, 1, 2)) <= most
