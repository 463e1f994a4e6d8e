"""Who is held back and put to sleep; a partition that waits for long is named once, with the one it waits for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from evenflow.errors import ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service import pace
from partitioner_service.ends import LogEnds
from partitioner_service.pace import Pace


class Source:
    """Owned partitions, and which of them were paused last."""

    def __init__(self, **states: PartitionState) -> None:
        self.states = {int(name[1:]): state for name, state in states.items()}
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
        fingerprint="f", topic_id="t", offset=0, first_time=first, max_time=largest, **fields
    )


def paced(source: Source, peers: Any, monkeypatch: pytest.MonkeyPatch, *, partitions: int) -> Pace:
    """With a max_skew of 10 s; `peers` is what the group has committed, or the error that reading it meets."""

    def committed_states(reader: object, settings: Settings) -> Any:
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

    def fails(reader: object, settings: Settings) -> Any:
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
