"""Who is held back and put to sleep; a partition that waits for long is named once, with the one it waits for."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest

from evenflow.errors import ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service import pace
from partitioner_service.pace import HeldBack, Pace


def test_a_partition_held_back_for_a_minute_is_named_once_until_it_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = iter([0, 30, 59, 60, 90, 500, 600, 650, 661])
    now = 0.0
    held = HeldBack(lambda: now)

    def hold_back(times: int) -> None:
        nonlocal now
        for _ in range(times):
            now = float(next(clock))
            held.now([2], 1)

    with caplog.at_level(logging.WARNING):
        hold_back(3)
        assert caplog.messages == []
        hold_back(3)
        assert len(caplog.messages) == 1
        assert "input partition 2 has waited 60 s for partition 1" in caplog.messages[0]
        held.now([], 1)
        hold_back(3)
    assert len(caplog.messages) == 2


class Source:
    """Owned partitions, and which of them were paused last."""

    def __init__(self, **states: PartitionState) -> None:
        self.states = {int(name[1:]): state for name, state in states.items()}
        self.held: set[int] | None = None

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
    settings = Settings(input={"partitions": partitions}, partitioner={"max_skew": "10s"})
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
