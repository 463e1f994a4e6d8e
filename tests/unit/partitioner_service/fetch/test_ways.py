"""Both ways to fetch give the same, whatever is in the records, and wherever reading goes on."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import confluent_kafka
import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from evenflow.errors import ServiceError
from evenflow.settings import load_settings
from partitioner_service.fetch import gather, librdkafka
from partitioner_service.fetch.fetched import Fetched
from partitioner_service.fetch.queues import Queues, compile_kernels
from partitioner_service.fetch.ways import Messages, Way, way_of
from tests.unit.partitioner_service.fetch.mock_kafka import CLIENT, TOPIC, MockKafka, library_of

PARTITIONS, EACH = 4, 60
PATIENCE = 20.0
SETTINGS: dict[str, Any] = {"query": {"name": "q"}, "input": {"topic": TOPIC, "partitions": PARTITIONS}}


class Row(NamedTuple):
    """A record as it was produced."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None
    stamp: int


def row(partition: int, offset: int) -> Row:
    number = offset * PARTITIONS + partition
    headers: list[tuple[str, bytes | None]] = [("a", b"%d" % number), ("none", None), ("\u00fc", b"")]
    return Row(
        key=(b"k%d" % number, None, b"")[number % 3],
        value=(b"v" * (number % 7), None, b"line\nfeed")[number % 5 % 3],
        headers=headers if number % 7 == 0 else None,
        stamp=1_700_000_000_000 + number,
    )


ROWS = {(p, o): row(p, o) for p in range(PARTITIONS) for o in range(EACH)}


@pytest.fixture(scope="module")
def kafka() -> Iterator[MockKafka]:
    made = MockKafka(PARTITIONS)
    for (partition, _), one in sorted(ROWS.items(), key=lambda item: item[0][1]):
        made.producer.produce(
            TOPIC,
            one.value,
            one.key,
            partition,
            timestamp=one.stamp,
            headers=one.headers,  # type: ignore[arg-type]
        )
    assert not made.producer.flush(PATIENCE)
    return made


class Reading:
    """A consumer of the topic that is read in one way."""

    def __init__(self, consumer: Consumer, way: Way) -> None:
        self.consumer, self.way = consumer, way
        self.read: dict[int, list[int]] = defaultdict(list)
        self.rows: dict[tuple[int, int], Row] = {}
        self.ends: dict[int, int] = {}
        self.errors: list[int] = []

    def assign(self, **offsets: int) -> None:
        """Go on with these partitions (p0=offset, ...)."""
        self.way.split(int(name[1:]) for name in offsets)
        self.consumer.assign([TopicPartition(TOPIC, int(name[1:]), at) for name, at in offsets.items()])

    def until(self, done: Callable[[], bool], *, most: int = 100) -> None:
        """Fetch until this is true."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline, (dict(self.read), self.ends, self.errors)
            self.take(self.way.fetch(most, 0.05))

    def take(self, fetched: Fetched) -> None:
        """Note what was fetched."""
        assert sorted(fetched.partitions.tolist()) == fetched.partitions.tolist()
        for _, low, high in fetched.runs:
            keys, stamps = fetched.keys_of(low, high), fetched.stamps_of(low, high)
            for at, record in enumerate(fetched.records[low:high]):
                place = record.partition(), record.offset()
                assert place == (fetched.partitions[low + at], fetched.offsets[low + at])
                assert (record.key(), record.value()) == (keys[at], fetched.values[low + at])
                assert record.timestamp()[1] == stamps[at]
                self.read[place[0]].append(place[1])
                headers: Any = record.headers()
                self.rows[place] = Row(record.key(), record.value(), headers, int(stamps[at]))
        for _, event in fetched.events:
            error = event.error()
            assert error is not None
            if error.code() == KafkaError._PARTITION_EOF:
                self.ends[event.partition()] = event.offset()
            else:
                self.errors.append(error.code())


@pytest.fixture(params=["queues", "consume"])
def reading(kafka: MockKafka, request: pytest.FixtureRequest) -> Iterator[Reading]:
    consumer = kafka.consumer()
    settings = load_settings(**SETTINGS, partitioner={"reading": request.param})
    way = way_of(settings, consumer, client_id=CLIENT)
    assert way.name == request.param
    yield Reading(consumer, way)
    way.close()
    consumer.close()


def test_every_record_comes_once_and_unchanged_and_the_end_of_each_log_is_told(reading: Reading) -> None:
    reading.assign(p0=0, p1=0, p2=0, p3=0)
    reading.until(lambda: len(reading.ends) == PARTITIONS, most=37)
    assert dict(reading.read) == {p: list(range(EACH)) for p in range(PARTITIONS)}
    assert reading.rows == ROWS
    assert reading.ends == dict.fromkeys(range(PARTITIONS), EACH)


def test_after_another_assignment_only_what_it_names_is_read(reading: Reading) -> None:
    reading.assign(p0=0, p1=0, p2=0, p3=0)
    reading.until(lambda: len(reading.read) >= 2, most=10)
    for _ in range(5):
        reading.assign(p1=7, p3=0)
    reading.read.clear()
    reading.ends.clear()
    reading.until(lambda: len(reading.ends) == 2)
    assert dict(reading.read) == {1: list(range(7, EACH)), 3: list(range(EACH))}


def test_a_paused_partition_stands_still_and_goes_on_where_it_was(reading: Reading) -> None:
    reading.assign(p0=0, p1=0)
    reading.until(lambda: bool(reading.read[0]) and bool(reading.read[1]), most=5)
    paused = [TopicPartition(TOPIC, 0)]
    reading.consumer.pause(paused)
    stood = list(reading.read[0])
    reading.until(lambda: 1 in reading.ends, most=5)
    assert reading.read[0] == stood
    reading.consumer.resume(paused)
    reading.until(lambda: 0 in reading.ends)
    assert dict(reading.read) == {0: list(range(EACH)), 1: list(range(EACH))}


def test_a_seek_goes_on_from_its_offset(reading: Reading) -> None:
    reading.assign(p0=0, p1=0)
    reading.until(lambda: len(reading.read[0]) > 10, most=20)
    reading.consumer.seek(TopicPartition(TOPIC, 0, 3))
    reading.read[0].clear()
    reading.until(lambda: len(reading.ends) == 2)
    assert dict(reading.read) == {0: list(range(3, EACH)), 1: list(range(EACH))}


def test_an_offset_that_is_gone_is_told_as_an_event(reading: Reading) -> None:
    reading.assign(p0=5 * EACH, p1=0)
    reading.until(lambda: bool(reading.errors) and 1 in reading.ends)
    assert reading.errors == [KafkaError._AUTO_OFFSET_RESET]
    assert dict(reading.read) == {1: list(range(EACH))}


def test_a_member_of_a_group_reads_what_it_is_assigned_in_the_callback(reading: Reading) -> None:
    given: list[int] = []

    def on_assign(_: Consumer, partitions: list[TopicPartition]) -> None:
        given.extend(entry.partition for entry in partitions)
        reading.assign(**{f"p{entry.partition}": 0 for entry in partitions})

    def on_revoke(consumer: Consumer, _: list[TopicPartition]) -> None:
        reading.way.take_back()
        consumer.unassign()

    reading.consumer.subscribe([TOPIC], on_assign=on_assign, on_revoke=on_revoke)
    reading.until(lambda: len(reading.ends) == PARTITIONS)
    assert sorted(given) == list(range(PARTITIONS))
    assert reading.rows == ROWS


def test_a_record_that_comes_by_the_consumers_own_queue_is_refused(kafka: MockKafka) -> None:
    consumer = kafka.consumer()
    way = Queues(consumer, library_of(consumer), TOPIC)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])  # without `split`
    reading = Reading(consumer, way)
    with pytest.raises(ServiceError, match="came by the consumer's own queue") as refused:
        reading.until(lambda: False)
    assert refused.value.hint is not None
    assert "consume" in refused.value.hint
    way.close()
    consumer.close()


def other_version(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(confluent_kafka, "__version__", "2.99.0")
    return "confluent-kafka 2.99.0"


def no_library(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(confluent_kafka, "__file__", "/nowhere/confluent_kafka/__init__.py")
    return "not installed from its wheel"


def other_python(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(librdkafka, "_HEADER", 32)
    return "lays its objects out in another way"


@pytest.mark.parametrize("surprise", [other_version, no_library, other_python])
def test_where_queues_are_not_proven_records_are_read_by_consume_and_the_log_says_so_once(
    kafka: MockKafka,
    surprise: Callable[[pytest.MonkeyPatch], str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    why = surprise(monkeypatch)
    consumer = kafka.consumer()
    assert isinstance(way_of(load_settings(**SETTINGS), consumer, client_id=CLIENT), Messages)
    (line,) = caplog.messages
    assert why in line
    assert "read by consume()" in line
    consumer.close()


def test_a_consumer_of_another_name_is_not_proven(kafka: MockKafka, caplog: pytest.LogCaptureFixture) -> None:
    consumer = kafka.consumer(**{"client.id": "another"})
    assert way_of(load_settings(**SETTINGS), consumer, client_id=CLIENT).name == "consume"
    assert "the consumer behind the header is another#consumer-" in caplog.text
    consumer.close()


def test_a_fetch_runs_the_compiled_forms_that_an_image_brings(kafka: MockKafka) -> None:
    kernels: list[Any] = [gather.measure, gather.gather, gather.gather_headers, gather.destroy]
    compile_kernels()
    forms = [kernel.signatures for kernel in kernels]
    consumer = kafka.consumer()
    reading = Reading(consumer, Queues(consumer, library_of(consumer), TOPIC))
    reading.assign(p0=0)
    reading.until(lambda: 0 in reading.ends)
    assert [kernel.signatures for kernel in kernels] == forms
    reading.way.close()
    consumer.close()


def test_the_locked_packages_are_proven(kafka: MockKafka) -> None:
    consumer = kafka.consumer()
    assert library_of(consumer).functions.destroy
    consumer.close()
