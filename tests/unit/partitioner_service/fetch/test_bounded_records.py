"""A look at some records takes no more memory than it may, whatever the records are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
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


def with_headers(headers: list[tuple[str, bytes | None]]) -> bytes:
    """A batch of five records that have these headers."""
    builder = DefaultRecordBatchBuilder(2, 1, 0, -1, -1, -1, 10**9)
    for at in range(5):
        builder.append(at, timestamp=1_000, key=None, value=b"x", headers=headers)
    return bytes(builder.build())


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
    monkeypatch.setattr(bounded_records, "RawReader", Topic({0: [with_headers([("", b"")] * 10_000)]}))
    assert offsets(look().read(0, 0, 5, share=5_000_000)) == [[0, 1]]


@pytest.mark.parametrize(
    "header",
    [("", bytes(1_000_000)), ("a" * 1_000_000, None), ("a" * 250_000 + "\U0001f600", None)],
    ids=["value", "name", "name of wide letters"],
)
def test_the_bytes_of_a_header_count(
    monkeypatch: pytest.MonkeyPatch, header: tuple[str, bytes | None]
) -> None:
    monkeypatch.setattr(bounded_records, "RawReader", Topic({0: [with_headers([header])]}))
    bounded = look()
    assert offsets(bounded.read(0, 0, 5, share=2_500_000)) == [[0, 1]]
    assert bounded.bytes_left < 64_000_000 - 2_000_000


def test_a_record_with_a_large_header_is_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = with_headers([("h", bytes(LARGEST))])
    monkeypatch.setattr(bounded_records, "RawReader", Topic({0: [batch]}))
    bounded = look()
    assert bounded.read(0, 0, 5) == []
    assert bounded.large == 5
    assert bounded.bytes_left == 64_000_000


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


_CODE = """
import re, sys
from pathlib import Path
from evenflow.settings import load_settings
from partitioner_service.fetch import bounded_records
from topics.batches.raw_batches import RawFetch, batches_of

batch = Path(sys.argv[1]).read_bytes()

class Reader:
    def __init__(self, *_, **__): ...

    def fetch(self, partition, offset, *, most):
        return RawFetch(tuple(batches_of(offset.to_bytes(8, "big") + batch[8:])), (), 12, 12)

def peak():
    # Not ru_maxrss, which begins with what the parent takes.
    return int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])

bounded_records.RawReader = Reader
bounded = bounded_records.BoundedRecords(load_settings().kafka, "t")
before = peak()
records = bounded.read(0, 0, 12)
print((peak() - before) // 1024)
"""


def test_many_batches_with_large_headers_take_no_more_memory_than_one(tmp_path: Path) -> None:
    builder = DefaultRecordBatchBuilder(2, 3, 0, -1, -1, -1, 10**9)
    builder.append(0, timestamp=1_000, key=None, value=b"x", headers=[("h", bytes(48_000_000))])
    batch = tmp_path / "batch"
    batch.write_bytes(bytes(builder.build()))
    # In a process of its own, because the largest memory of a process never falls.
    child = [sys.executable, "-c", _CODE, str(batch)]
    assert int(subprocess.run(child, capture_output=True, text=True, check=True).stdout) < 300, "MiB"
