"""Tuples ahead of the clock: which clock they are held against, and that they leave their partition as it
was.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME

from evenflow.partitioners import create
from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from partitioner_service.block import Slice
from partitioner_service.routing.ahead import LiveClock
from partitioner_service.routing.pieces import RoutedBlock
from partitioner_service.routing.router import Router

NOW, HOUR = 1_780_000_000_000, 3_600_000


class Record:
    """A record with a timestamp of this kind."""

    def __init__(self, stamp: int, kind: int = TIMESTAMP_LOG_APPEND_TIME) -> None:
        self._timestamp = kind, stamp

    def timestamp(self) -> tuple[int, int]:
        return self._timestamp


def make_settings(**query: Any) -> Settings:
    return load_settings(query={"key": "k", "time": "t", "window": "10s"} | query, input={"partitions": 1})


def ahead(times: list[int], records: list[Record], settings: Settings | None = None) -> Any:
    clock = LiveClock(settings or make_settings(), wall=lambda: NOW / 1000)
    result = clock.ahead(records, np.arange(len(times)), np.array(times, np.int64))
    return None if result is None else (result.which.tolist(), result.clocks.tolist())


def test_the_instances_clock_counts_where_records_carry_their_producers_timestamps() -> None:
    records = [Record(NOW * 2, TIMESTAMP_CREATE_TIME)] * 2
    for held in ([], records):
        assert ahead([NOW + HOUR, 0], held) is None
        assert ahead([NOW + HOUR + 1, 0], held) == ([True, False], [NOW, NOW])


def test_the_brokers_clock_counts_where_it_stamps_the_records() -> None:
    early, late = Record(NOW - 10 * HOUR), Record(NOW - 5 * HOUR)
    assert ahead([NOW - 9 * HOUR, NOW - 4 * HOUR], [early, late]) is None
    result = ahead([NOW - 9 * HOUR, NOW - 4 * HOUR + 1], [early, late])
    assert result == ([False, True], [NOW - 10 * HOUR, NOW - 5 * HOUR])
    assert ahead([NOW - 9 * HOUR + 1, 0], [early, late]) == ([True, False], [NOW - 10 * HOUR, NOW - 5 * HOUR])


def test_off_lets_any_time_through() -> None:
    assert ahead([NOW * 2], [], make_settings(max_ahead_of_clock="off")) is None
    assert make_settings(max_ahead_of_clock="off").fingerprint != make_settings().fingerprint


def route(times: list[int], settings: Settings) -> RoutedBlock:
    router = Router(
        settings, create("hashing", workers=2), clock=LiveClock(settings, wall=lambda: NOW / 1000)
    )
    values = [json.dumps({"k": "a", "t": time}).encode() for time in times]
    state = PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=0)
    return router.route([Slice(0, 0, len(times) - 1, values)], {0: state})


def test_one_time_in_microseconds_among_forty_thousand_costs_that_record_alone() -> None:
    """By default, and whether the stream is of today or is replayed from years ago."""
    for begin in (NOW - 40_000, NOW - 5 * 365 * 24 * HOUR):
        times = [begin + at for at in range(40_000)]
        times[25_000] *= 1_000
        routed = route(times, load_settings(query={"key": "k", "time": "t"}, input={"partitions": 1}))
        (rejected,) = routed.rejections
        assert (rejected.reason, rejected.positions.tolist()) == ("ahead", [25_000])
        assert routed.states[0].routed == 39_999
        assert routed.states[0].max_time == begin + 39_999


@pytest.mark.parametrize("query", [{}, {"max_jump": "1h"}])
def test_tuples_of_the_future_that_agree_with_each_other_are_rejected_and_make_nobody_late(
    query: dict[str, str],
) -> None:
    far = 4_000_000_000_000
    right = [NOW, NOW + 1, NOW + 2, NOW + 3]
    routed = route([*right, far, far + 1, far + 2, far + 3, NOW + 4], make_settings(**query))
    (result,) = [group for group in routed.rejections if group.reason == "ahead"]
    assert result.positions.tolist() == [4, 5, 6, 7]
    assert result.clocks.tolist() == [NOW] * 4
    assert result.details[0].as_py().decode() == (
        f"event time {far} is more than max_ahead_of_clock ahead of the clock, which showed {NOW}"
    )
    assert routed.states[0].max_time == NOW + 4
    assert {group.reason for group in routed.rejections} <= {"ahead", "jump"}
