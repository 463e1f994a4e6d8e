"""A look at some records takes no more memory than it may, whatever the records are."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from evenflow.errors import ServiceError
from evenflow.settings import load_settings
from partitioner_service.fetch import bounded_records
from partitioner_service.fetch.bounded_records import LARGEST, BoundedRecords
from tests.unit.topics.test_bombs import Partitions, built
from topics.batches.raw_batches import RawFetch


class Topic(Partitions):
    """Partitions in place of a broker. down: partitions of which nothing comes."""

    down: frozenset[int] = frozenset()

    def fetch(self, partition: int, offset: int, *, most: int) -> RawFetch:
        if partition in self.down:
            raise ServiceError("nobody answers")
        return super().fetch(partition, offset, most=most)

    def close(self) -> None: ...


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    small = [b"%d" % number for number in range(5)]
    made = Topic(
        {
            0: [built(1, small)],
            1: [built(1, small), built(1, [bytes(200_000_000)], first=5), built(1, small, first=6)],
            2: [built(1, [b"0", bytes(LARGEST), b"2", b"3"])],
            3: [built(1, [bytes(3_000_000)] * 30)],
        }
    )
    monkeypatch.setattr(bounded_records, "RawReader", made)
    return made


def offsets(runs: list[list[Any]]) -> list[list[int]]:
    return [[record.offset() for record in run] for run in runs]


def look() -> BoundedRecords:
    return BoundedRecords(load_settings().kafka, "t")


def test_records_between_two_offsets_come_and_none_behind_a_bomb(topic: Topic) -> None:
    bounded = look()
    assert offsets(bounded.read(0, 1, 4)) == [[1, 2, 3]]
    assert offsets(bounded.read(1, 0, 11)) == [[0, 1, 2, 3, 4]]
    assert (bounded.large, bounded.failure) == (0, None)


def test_a_large_record_is_left_out_and_counted(topic: Topic) -> None:
    bounded = look()
    assert offsets(bounded.read(2, 0, 4)) == [[0], [2, 3]]
    assert bounded.large == 1


def test_no_more_than_64_mb_come_and_of_a_share_the_first_record_all_the_same(topic: Topic) -> None:
    bounded = look()
    assert offsets(bounded.read(3, 0, 30, share=1_000)) == [[0]]
    assert offsets(bounded.read(3, 10, 30, share=6_100_000)) == [[10, 11]]
    (run,) = offsets(bounded.read(3, 0, 30))
    assert len(run) == 21 - 3, "21 records of 3 MB are 63 MB"
    assert offsets(bounded.read(3, 0, 30)) == []
    assert 0 <= bounded.bytes_left < 3_000_000


def test_a_header_counts_as_the_object_that_it_becomes(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = DefaultRecordBatchBuilder(2, 1, 0, -1, -1, -1, 10**9)
    for at in range(5):
        builder.append(at, timestamp=1_000, key=None, value=b"x", headers=[("", b"")] * 10_000)
    monkeypatch.setattr(bounded_records, "RawReader", Topic({0: [bytes(builder.build())]}))
    assert offsets(look().read(0, 0, 5, share=1_500_000)) == [[0, 1]]


def test_after_four_seconds_nothing_more_comes(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded = look()
    now = bounded_records.time.monotonic()
    monkeypatch.setattr(bounded_records.time, "monotonic", lambda: now + 5)
    assert bounded.read(0, 0, 5) == []


def test_where_kafka_does_not_answer_the_other_partitions_come(topic: Topic) -> None:
    topic.down = frozenset({1})
    bounded = look()
    assert bounded.read(1, 0, 5) == []
    assert offsets(bounded.read(0, 0, 5)) == [[0, 1, 2, 3, 4]]
    assert bounded.failure is not None
