"""Both ways to fetch give the same, whatever is in the records, and wherever reading goes on."""

from __future__ import annotations

import json
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import confluent_kafka
import numpy as np
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from evenflow.settings import load_settings
from partitioner_service.fetch import gather, librdkafka, queues
from partitioner_service.fetch.fetch_result import FetchResult
from partitioner_service.fetch.fetchers import Fetcher, Messages, fetcher_of, opened
from partitioner_service.fetch.queues import Queues, bounds, compile_kernels
from tests.mock_kafka import CLIENT, TOPIC, MockKafka, library_of

PARTITIONS, EACH = 4, 60
PATIENCE = 20.0
SETTINGS: dict[str, Any] = {"query": {"name": "q"}, "input": {"topic": TOPIC, "partitions": PARTITIONS}}
QUEUES: dict[str, Any] = {**SETTINGS, "partitioner": {"reading": "queues"}}


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
    """A consumer of the topic that is read through one fetcher."""

    def __init__(self, consumer: Consumer, fetcher: Fetcher) -> None:
        self.consumer, self.fetcher = consumer, fetcher
        self.read: dict[int, list[int]] = defaultdict(list)
        self.rows: dict[tuple[int, int], Row] = {}
        self.ends: dict[int, int] = {}
        self.errors: list[int] = []
        self._stopped: list[TopicPartition] = []

    def assign(self, **offsets: int) -> None:
        """Go on with these partitions (p0=offset, ...)."""
        self.fetcher.split(int(name[1:]) for name in offsets)
        self.consumer.assign([TopicPartition(TOPIC, int(name[1:]), at) for name, at in offsets.items()])

    def until(self, done: Callable[[], bool], *, most: int = 100) -> None:
        """Fetch until this is true."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline, (dict(self.read), self.ends, self.errors)
            self.fetch(most)

    def fetch(self, most: int) -> None:
        """Fetch once."""
        self.take(self.fetcher.fetch(most, 0.05))

    def leave(self, *partitions: int) -> None:
        """Read all but these partitions, as `FetchControl` does."""
        self.consumer.resume(self._stopped)
        self._stopped = [TopicPartition(TOPIC, partition) for partition in self.fetcher.leave(partitions)]
        self.consumer.pause(self._stopped)

    def take(self, fetched: FetchResult) -> None:
        """Note what was fetched."""
        assert sorted(fetched.partitions.tolist()) == fetched.partitions.tolist()
        assert not fetched.astray
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
    fetcher = fetcher_of(settings, consumer, client_id=CLIENT)
    assert fetcher.name == request.param
    yield Reading(consumer, fetcher)
    fetcher.close()
    consumer.close()


def test_every_record_comes_once_and_unchanged_and_the_end_of_each_log_is_told(reading: Reading) -> None:
    reading.assign(p0=0, p1=0, p2=0, p3=0)
    reading.until(lambda: len(reading.ends) == PARTITIONS, most=37)
    assert dict(reading.read) == {p: list(range(EACH)) for p in range(PARTITIONS)}
    assert reading.rows == ROWS
    assert reading.ends == dict.fromkeys(range(PARTITIONS), EACH)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_headers_are_seen_behind_values_of_any_length_however_they_are_compressed(codec: str) -> None:
    """A record without headers shows that by the byte behind its value."""
    made = MockKafka(1)
    producer = Producer({"bootstrap.servers": made.servers, "compression.type": codec, "linger.ms": 50})
    rows = {
        (0, number): Row(
            key=None,
            value=bytes(number) if number else b"",
            headers=[("", b""), ("a", None)] if number % 3 == 0 else None,
            stamp=1_700_000_000_000 + number,
        )
        for number in range(900)
    }
    for one in rows.values():
        producer.produce(TOPIC, one.value, None, 0, timestamp=one.stamp, headers=one.headers)  # type: ignore[arg-type]
    assert not producer.flush(PATIENCE)
    consumer = made.consumer()
    fetcher = fetcher_of(load_settings(**QUEUES), consumer, client_id=CLIENT)
    assert fetcher.name == "queues"
    reading = Reading(consumer, fetcher)
    reading.assign(p0=0)
    reading.until(lambda: len(reading.ends) == 1)
    assert reading.rows == rows
    fetcher.close()
    consumer.close()


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


def test_a_partition_that_is_left_alone_stands_still_and_goes_on_where_it_was(reading: Reading) -> None:
    reading.assign(p0=0, p1=0)
    reading.until(lambda: bool(reading.read[0]) and bool(reading.read[1]), most=5)
    reading.leave(0)
    stood = list(reading.read[0])
    reading.until(lambda: 1 in reading.ends, most=5)
    assert reading.read[0] == stood
    reading.leave()
    reading.until(lambda: 0 in reading.ends)
    assert dict(reading.read) == {0: list(range(EACH)), 1: list(range(EACH))}


@pytest.mark.parametrize(("way", "again"), [("queues", False), ("consume", True)])
def test_what_is_left_alone_is_not_fetched_again_by_queues(
    kafka: MockKafka, way: Literal["queues", "consume"], again: bool
) -> None:
    reports: list[str] = []
    consumer = kafka.consumer(**{"statistics.interval.ms": 20, "stats_cb": reports.append})
    settings = load_settings(**SETTINGS, partitioner={"reading": way})
    reading = Reading(consumer, fetcher_of(settings, consumer, client_id=CLIENT))
    reading.assign(p0=0)
    reading.until(lambda: bool(reading.read[0]), most=5)
    for _ in range(5):
        reading.leave(0)
        reading.fetch(1)
        reading.leave()
        reading.fetch(1)
    reading.until(lambda: 0 in reading.ends)
    reports.clear()
    reading.until(lambda: bool(reports))
    fetched = json.loads(reports[-1])["topics"][TOPIC]["partitions"]["0"]["rxmsgs"]
    assert reading.read[0] == list(range(EACH))
    assert (fetched > EACH) == again
    reading.fetcher.close()
    consumer.close()


@pytest.fixture(scope="module")
def long_logs() -> MockKafka:
    """Twenty partitions of 20,000 records each."""
    made = MockKafka(20)
    for number in range(20_000):
        for partition in range(20):
            while True:
                try:
                    made.producer.produce(TOPIC, b"%d" % number, partition=partition)
                    break
                except BufferError:
                    made.producer.poll(0.1)
    assert not made.producer.flush(PATIENCE)
    return made


def counts(reading: Reading, partitions: int) -> list[int]:
    return [len(reading.read[partition]) for partition in range(partitions)]


def test_partitions_take_turns_so_that_none_runs_away(long_logs: MockKafka) -> None:
    consumer = long_logs.consumer(**bounds(20))
    reading = Reading(consumer, Queues(consumer, library_of(consumer), TOPIC))
    reading.assign(**{f"p{partition}": 0 for partition in range(20)})
    reading.until(lambda: min(counts(reading, 20)) > 0, most=100)
    deadline = time.monotonic() + 3 * PATIENCE
    while not reading.ends:
        assert time.monotonic() < deadline, counts(reading, 20)
        reading.fetch(5_000)
        spread = max(counts(reading, 20)) - min(counts(reading, 20))
        assert spread <= 10_000, "two turns, and what one answer of the broker holds more than another"
    reading.until(lambda: len(reading.ends) == 20, most=50_000)
    assert counts(reading, 20) == [20_000] * 20
    reading.fetcher.close()
    consumer.close()


def test_what_was_fetched_of_a_partition_that_was_given_up_is_thrown_away(long_logs: MockKafka) -> None:
    reports: list[str] = []
    consumer = long_logs.consumer(**bounds(20), **{"statistics.interval.ms": 20, "stats_cb": reports.append})
    reading = Reading(consumer, Queues(consumer, library_of(consumer), TOPIC))

    def queued(partition: int) -> int:
        if not reports:
            return -1
        partitions = json.loads(reports[-1])["topics"][TOPIC]["partitions"]
        return int(partitions.get(str(partition), {"fetchq_cnt": 0})["fetchq_cnt"])

    reading.assign(p0=0, p1=0)
    reading.leave(0, 1)
    reading.until(lambda: min(queued(0), queued(1)) >= 1_000)
    reading.assign(p0=0)
    reports.clear()
    reading.until(lambda: queued(1) == 0)
    reading.until(lambda: len(reading.read[0]) == 20_000, most=5_000)
    assert not reading.read[1]
    reading.fetcher.close()
    consumer.close()


def test_an_error_of_an_assignment_is_not_told_in_the_next_one(kafka: MockKafka) -> None:
    """It would be taken for loss of data. The error waits in the queue of a partition that is left alone."""
    reports: list[str] = []
    consumer = kafka.consumer(**{"statistics.interval.ms": 20, "stats_cb": reports.append})
    reading = Reading(consumer, Queues(consumer, library_of(consumer), TOPIC))

    def waiting() -> bool:
        partitions = json.loads(reports[-1])["topics"][TOPIC]["partitions"] if reports else {}
        return bool(partitions.get("0", {"fetchq_cnt": 0})["fetchq_cnt"])

    reading.assign(p0=5 * EACH, p1=0)
    reading.leave(0)
    reading.until(waiting)
    reading.assign(p0=0, p1=0)
    reading.until(lambda: len(reading.ends) == 2)
    assert not reading.errors
    assert dict(reading.read)[0] == list(range(EACH))
    reading.fetcher.close()
    consumer.close()


class References:
    """Of a library only which references to queues are out."""

    def __init__(self) -> None:
        self.functions = gather.Functions(*(np.uint64(0) for _ in gather.Functions._fields))
        self.out: set[int] = set()
        self.dropped: list[int] = []
        self._numbers = count(1)

    def queue_of(self, topic: str, partition: int) -> int:
        self.out.add(number := next(self._numbers))
        return number

    def forward(self, queue: int, to: int | None) -> None:
        assert queue in self.out

    def let_go(self, queue: int) -> None:
        self.out.remove(queue)

    def drop(self, queues: Iterable[int]) -> None:
        self.dropped = list(queues)
        assert self.out.issuperset(self.dropped)


class Silent:
    """A consumer whose own queue never holds anything. waited: how long (s) it waited last."""

    waited = -1.0

    def list_topics(self, topic: str, timeout: float) -> None:
        """As if it were known."""

    def consume(self, most: int, timeout: float) -> list[Any]:
        self.waited = timeout
        return []


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in its last item."""
    moments = [0.0]
    monkeypatch.setattr(queues, "time", SimpleNamespace(monotonic=lambda: moments[-1]))
    return moments


@pytest.mark.parametrize("more", [True, False])
def test_a_fetch_ends_in_time_although_there_is_always_another_message(
    now: list[float], more: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = []

    def one_of_each(addresses: Any, first: int, turn: int, messages: Any, *_: Any) -> tuple[int, int, bool]:
        now.append(now[-1] + 0.01)
        rounds.append(len(messages))
        return len(addresses), first, more

    monkeypatch.setattr(queues, "take_turns", one_of_each)
    monkeypatch.setattr(queues, "destroy", lambda *_: None)
    monkeypatch.setattr(Queues, "_fetched", lambda self, messages, notices: len(messages))
    consumer: Any = Silent()
    library: Any = References()
    fetcher = Queues(consumer, library, TOPIC)
    fetcher.split(range(5))
    taken: Any = fetcher.fetch(50_000, 0.1)
    assert len(rounds) <= 11
    assert taken == 5 * len(rounds)
    assert consumer.waited == 0.0


def test_what_is_given_up_is_emptied_until_it_is_settled_and_no_reference_stays(now: list[float]) -> None:
    consumer: Any = Silent()
    library: Any = References()
    fetcher = Queues(consumer, library, TOPIC)
    fetcher.split(range(5))
    fetcher.split([3, 4])
    assert len(library.out) == 5
    fetcher.fetch(0, 0.0)
    assert len(library.dropped) == 3
    now.append(10.0)
    fetcher.fetch(0, 0.0)
    assert len(library.out) == 2
    library.dropped = []
    fetcher.fetch(0, 0.0)
    assert not library.dropped
    fetcher.take_back()
    fetcher.close()
    assert not library.out


@pytest.mark.parametrize("partitions", [1, 4, 12, 64])
def test_what_is_fetched_ahead_is_bounded_for_all_partitions_together(partitions: int) -> None:
    settings = bounds(partitions)
    assert partitions * settings["queued.min.messages"] <= 600_000
    assert partitions * settings["queued.max.messages.kbytes"] <= 64 * 1_024
    assert partitions * settings["max.partition.fetch.bytes"] <= 32 << 20


@pytest.mark.parametrize("partitions", [0, 1, 100, 1_000, 10_000])
def test_every_partition_may_be_fetched_ahead_however_many_there_are(partitions: int) -> None:
    settings = bounds(partitions)
    assert settings["queued.min.messages"] >= 4_000
    assert settings["queued.max.messages.kbytes"] >= 512
    assert settings["max.partition.fetch.bytes"] >= 128 << 10


@pytest.mark.parametrize("reading", ["queues", "consume"])
@pytest.mark.parametrize("proven", [True, False])
def test_the_bounds_are_those_of_the_way_in_which_records_come(
    kafka: MockKafka, reading: str, proven: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where queues are not proven, too: one queue of all must not have the bounds of a part of it."""
    if not proven:
        other_version(monkeypatch)
    made: list[Mapping[str, int]] = []

    def client(bounds: Mapping[str, int]) -> Consumer:
        made.append(bounds)
        return kafka.consumer(**bounds)

    parts: dict[str, Any] = {"query": {"name": "q"}, "input": {"topic": TOPIC, "partitions": 100}}
    settings = load_settings(**parts, partitioner={"reading": reading, "instances": 10})
    consumer, fetcher = opened(settings, client, client_id=CLIENT)
    if reading == "queues" and proven:
        assert (fetcher.name, made) == ("queues", [bounds(100)])
    else:
        assert (fetcher.name, made[-1]["queued.min.messages"]) == ("consume", 200_000)
    fetcher.close()
    consumer.close()


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
        reading.fetcher.take_back()
        consumer.unassign()

    reading.consumer.subscribe([TOPIC], on_assign=on_assign, on_revoke=on_revoke)
    reading.until(lambda: len(reading.ends) == PARTITIONS)
    assert sorted(given) == list(range(PARTITIONS))
    assert reading.rows == ROWS


def test_records_that_come_by_the_consumers_own_queue_are_handed_over_apart(kafka: MockKafka) -> None:
    consumer = kafka.consumer()
    fetcher = Queues(consumer, library_of(consumer), TOPIC)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])  # without `split`
    deadline = time.monotonic() + PATIENCE
    fetched = fetcher.fetch(10, 0.05)
    while not fetched.astray:
        assert time.monotonic() < deadline
        fetched = fetcher.fetch(10, 0.05)
    assert fetched.astray[0].offset() == 0
    assert not len(fetched.offsets)
    assert not fetched.empty, "who drops this fetch has to go back"
    fetcher.close()
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
    assert isinstance(fetcher_of(load_settings(**QUEUES), consumer, client_id=CLIENT), Messages)
    (line,) = caplog.messages
    assert why in line
    assert "read by consume()" in line
    consumer.close()


def test_a_consumer_of_another_name_is_not_proven(kafka: MockKafka, caplog: pytest.LogCaptureFixture) -> None:
    consumer = kafka.consumer(**{"client.id": "another"})
    assert fetcher_of(load_settings(**QUEUES), consumer, client_id=CLIENT).name == "consume"
    assert "the consumer behind the header is another#consumer-" in caplog.text
    consumer.close()


def test_a_fetch_runs_the_compiled_forms_that_an_image_brings(kafka: MockKafka) -> None:
    kernels: list[Any] = [
        gather.take_turns,
        gather.measure,
        gather.gather,
        gather.gather_headers,
        gather.destroy,
    ]
    compile_kernels()
    forms = [kernel.signatures for kernel in kernels]
    consumer = kafka.consumer()
    reading = Reading(consumer, Queues(consumer, library_of(consumer), TOPIC))
    reading.assign(p0=0)
    reading.until(lambda: 0 in reading.ends)
    assert [kernel.signatures for kernel in kernels] == forms
    reading.fetcher.close()
    consumer.close()


def test_the_locked_packages_are_proven(kafka: MockKafka) -> None:
    consumer = kafka.consumer()
    assert library_of(consumer).functions.destroy
    consumer.close()


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_assigned_paused_and_sought_the_next_record_is_the_one_behind_the_last(
    reading: Reading, seed: int
) -> None:
    draw, follow = Random(seed), Following(reading)
    for _ in range(40):
        draw.choice([follow.assign, follow.pause, follow.leave, follow.seek, follow.fetch, follow.fetch])(
            draw
        )
    follow.finish()


class Following:
    """Knows which offset of each assigned partition comes next, and checks that it does.

    Only partitions of which a record has come are paused or sought: librdkafka may lose the position of
    others.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._next: dict[int, int] = {}
        self._begun: set[int] = set()
        self._paused: set[int] = set()
        self._left: set[int] = set()

    def assign(self, draw: Random) -> None:
        """Other partitions, or the same ones elsewhere."""
        self._resume()
        some = draw.sample(range(PARTITIONS), draw.randint(1, PARTITIONS))
        self._next = {partition: draw.randrange(EACH) for partition in some}
        self._begun = set()
        self._reading.assign(**{f"p{partition}": at for partition, at in self._next.items()})

    def pause(self, draw: Random) -> None:
        """Some partitions stand still until this is called again, whether they are left alone or not."""
        now = self._some(draw)
        self._reading.consumer.pause(self._parts(now - self._paused))
        self._reading.consumer.resume(self._parts(self._paused - now))
        self._paused = now

    def leave(self, draw: Random) -> None:
        """Some partitions are left alone until this is called again, whether they are paused or not."""
        self._left = self._some(draw)
        self._reading.fetcher.leave(self._left)

    def _some(self, draw: Random) -> set[int]:
        return {partition for partition in sorted(self._begun) if draw.random() < 0.5}

    def seek(self, draw: Random) -> None:
        """One partition goes on elsewhere, also one that is left alone."""
        running = sorted(self._begun - self._paused)
        for partition in draw.sample(running, min(1, len(running))):
            self._next[partition] = draw.randrange(EACH)
            self._reading.consumer.seek(TopicPartition(TOPIC, partition, self._next[partition]))

    def fetch(self, draw: Random) -> None:
        """What comes next is what is expected next."""
        fetched = self._reading.fetcher.fetch(draw.randint(1, 40), 0.02)
        assert not fetched.astray
        for partition, low, high in fetched.runs:
            assert partition not in self._paused
            assert partition not in self._left or self._reading.fetcher.name == "consume"
            expected = range(self._next[partition], self._next[partition] + high - low)
            assert fetched.offsets[low:high].tolist() == list(expected)
            self._next[partition] += high - low
            self._begun.add(partition)

    def finish(self) -> None:
        """Everything that is assigned is read to its end."""
        self._resume()
        deadline = time.monotonic() + PATIENCE
        while any(at < EACH for at in self._next.values()):
            assert time.monotonic() < deadline, self._next
            self.fetch(Random(0))

    def _resume(self) -> None:
        self._reading.consumer.resume(self._parts(self._paused))
        self._reading.fetcher.leave(())
        self._paused, self._left = set(), set()

    def _parts(self, partitions: set[int]) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, partition) for partition in sorted(partitions)]
