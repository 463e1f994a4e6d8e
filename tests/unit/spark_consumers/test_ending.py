"""When a stream is over, asked of a topic that is a plain list here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from evenflow.settings import Settings
from spark_consumers import ending
from spark_consumers.ending import EndOfTopic
from topics.admin import TopicState


class Record:
    """A Kafka record whose value names the lanes that end with it."""

    def __init__(self, partition: int, ends: set[int]) -> None:
        self._partition = partition
        self._ends = ends

    def partition(self) -> int:
        return self._partition

    def value(self) -> Any:
        return self._ends


class Topic:
    """Records by partition; counts how often it is read, and how many records were handed out."""

    def __init__(self, patch: pytest.MonkeyPatch, records: list[list[set[int]]]) -> None:
        self.records = records
        self.reads = self.handed_out = 0
        patch.setattr(ending, "describe", lambda kafka, names: {names[0]: self.state})
        patch.setattr(ending, "read_range", self.read)
        patch.setattr(ending, "_frame_ends", lambda value, fingerprint: {(0, lane) for lane in value})

    @property
    def state(self) -> TopicState:
        ends = {number: len(records) for number, records in enumerate(self.records)}
        begin = dict.fromkeys(ends, 0)
        return TopicState("routed", "id", len(ends), begin, ends, {})

    def read(
        self, kafka: Any, topic: str, *, begin: Mapping[int, int], end: Mapping[int, int]
    ) -> Iterator[list[Record]]:
        self.reads += 1
        for number, stop in end.items():
            found = [Record(number, value) for value in self.records[number][begin.get(number, 0) : stop]]
            self.handed_out += len(found)
            yield found


def settings() -> Settings:
    return Settings(input={"partitions": 2}, partitioner={"workers": 3})


def everything(topic: Topic) -> dict[int, int]:
    return dict(topic.state.end)


def test_the_newest_records_of_all_partitions_are_looked_at_in_one_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = Topic(
        monkeypatch, [[set()] * 500 + [{0}, {1}], [set()] * 500 + [{0, 1}], [{0}] + [set()] * 9 + [{1}]]
    )
    end = EndOfTopic(settings(), "routed")
    assert not end.reached_by({0: 502, 1: 500, 2: 11}), "one record is not committed yet"
    assert topic.reads == 0
    assert end.reached_by(everything(topic))
    assert topic.reads == 1
    assert topic.handed_out <= 3 * 32


def test_where_a_lane_is_missing_it_is_looked_for_further_back_and_each_record_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = Topic(monkeypatch, [[{0, 1}] + [set()] * 100, [set()] * 50 + [{0, 1}], [{0}] + [set()] * 300])
    end = EndOfTopic(settings(), "routed")
    assert not end.reached_by(everything(topic)), "lane 1 has not ended in partition 2"
    assert topic.handed_out == 101 + 32 + 301
    topic.records[2].append({1})
    before = topic.handed_out
    assert end.reached_by(everything(topic))
    assert topic.handed_out == before + 1
    assert end.reached_by(everything(topic))
    assert topic.handed_out == before + 1
