"""Both ways to hand records over deliver the same, refuse the same, and tell of every record that fails."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenflow.settings import KafkaSettings, load_settings
from producers.writers import Calls, Sending, Writer, writer_of
from tests.mock_kafka import TOPIC, MockKafka
from topics.librdkafka import hand_over, loaded
from topics.librdkafka.loaded import NotProvenError
from topics.librdkafka.producer import ArrayProducer

PARTITIONS = 4
PATIENCE = 20.0
BYTES = st.none() | st.binary(max_size=12)
ROWS = st.lists(
    st.tuples(BYTES, BYTES, st.integers(0, PARTITIONS - 1), st.integers(1, 253_402_300_799_999)), max_size=30
)
Row = tuple[bytes | None, bytes | None, int, int]
NOTHING = pa.array([], pa.large_binary())


@pytest.fixture(scope="module")
def kafka() -> MockKafka:
    return MockKafka(PARTITIONS)


class Written:
    """A writer, and what it says of records that were not delivered."""

    def __init__(self, kafka: MockKafka, sending: Sending, **config: Any) -> None:
        self.failures: Counter[tuple[int, str]] = Counter()
        section = {"bootstrap_servers": kafka.servers}
        self.kafka: KafkaSettings = load_settings(query={"name": "q"}, kafka=section).kafka
        self.writer: Writer = writer_of(self.kafka, TOPIC, sending=sending, failed=self._failed, **config)

    def _failed(self, partition: int, count: int, error: KafkaError) -> None:
        self.failures[partition, error.name()] += count

    def hand_over(self, rows: list[Row]) -> tuple[int, str | None]:
        """How many were taken, and the name of the error for the next one."""
        values, keys = (pa.array([row[at] for row in rows], pa.large_binary()) for at in (0, 1))
        partitions = np.array([row[2] for row in rows], np.int32)
        times = np.array([row[3] for row in rows], np.int64)
        count, refusal = self.writer.hand_over(values, keys, partitions, times)
        return count, None if refusal is None else refusal.name()


class Reader:
    """Reads what comes to the topic from now on."""

    def __init__(self, kafka: MockKafka) -> None:
        self._consumer = kafka.consumer(**{"enable.partition.eof": False})
        places = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        for place in places:
            place.offset = self._consumer.get_watermark_offsets(place, timeout=PATIENCE)[1]
        self._consumer.assign(places)

    def read(self, count: int) -> dict[int, list[Any]]:
        """So many records by partition: value, key, timestamp and headers."""
        deadline, found = time.monotonic() + PATIENCE, 0
        rows: dict[int, list[Any]] = {partition: [] for partition in range(PARTITIONS)}
        while found < count:
            assert time.monotonic() < deadline, rows
            for record in self._consumer.consume(count - found, 0.1):
                assert record.error() is None
                stamp = record.timestamp()[1]
                rows[record.partition()].append((record.value(), record.key(), stamp, record.headers()))
                found += 1
        assert not self._consumer.consume(1, 0), "more records than were handed over"
        return rows

    def close(self) -> None:
        """Let go of the consumer."""
        self._consumer.close()


@pytest.fixture
def reader(kafka: MockKafka) -> Iterator[Reader]:
    made = Reader(kafka)
    yield made
    made.close()


@pytest.fixture(params=["arrays", "calls"])
def sending(request: pytest.FixtureRequest) -> Sending:
    return request.param


@pytest.fixture
def written(kafka: MockKafka, sending: Sending) -> Written:
    made = Written(kafka, sending)
    assert isinstance(made.writer, Calls) == (sending == "calls")
    return made


def by_partition(rows: list[Row]) -> dict[int, list[Any]]:
    return {
        partition: [(value, key, stamp, None) for value, key, of, stamp in rows if of == partition]
        for partition in range(PARTITIONS)
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=ROWS)
def test_what_is_read_is_what_was_handed_over_in_its_order(
    written: Written, reader: Reader, rows: list[Row]
) -> None:
    assert written.hand_over(rows) == (len(rows), None)
    assert written.writer.flush(PATIENCE) == 0
    assert reader.read(len(rows)) == by_partition(rows)
    assert not written.failures


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=ROWS.filter(bool), data=st.data())
def test_parts_of_columns_are_handed_over_as_the_columns_are(
    written: Written, reader: Reader, rows: list[Row], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(rows)))
    values, keys = (pa.array([row[at] for row in rows], pa.large_binary()) for at in (0, 1))
    partitions = np.array([row[2] for row in rows], np.int32)
    times = np.array([row[3] for row in rows], np.int64)
    for part in (slice(0, cut), slice(cut, None)):
        written.writer.hand_over(values[part], keys[part], partitions[part], times[part])
    assert written.writer.flush(PATIENCE) == 0
    assert reader.read(len(rows)) == by_partition(rows)


def test_a_record_of_headers_alone_arrives_with_them(written: Written, reader: Reader) -> None:
    headers = [("a", b"1"), ("empty", b""), ("ü", bytes(range(256)))]
    written.writer.hand_over_headers(2, 77, headers)
    written.writer.flush(PATIENCE)
    assert reader.read(1)[2] == [(None, None, 77, headers)]


ROW: Row = (b"v", b"k", 1, 5)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ((b"v", b"k", PARTITIONS, 5), "_UNKNOWN_PARTITION"),
        ((b"v" * 10_001, None, 0, 5), "MSG_SIZE_TOO_LARGE"),
    ],
)
def test_a_record_that_is_refused_ends_the_hand_over_and_those_before_it_arrive(
    kafka: MockKafka, sending: Sending, reader: Reader, wrong: Row, name: str
) -> None:
    written = Written(kafka, sending, message_max_bytes=10_000)
    # The partitions are known only after the first record: until then a wrong one is taken, and fails later.
    written.hand_over([ROW])
    written.writer.flush(PATIENCE)
    reader.read(1)
    assert written.hand_over([ROW, ROW, wrong, ROW]) == (2, name)
    written.writer.flush(PATIENCE)
    assert reader.read(2) == by_partition([ROW, ROW])
    assert not written.failures, "the caller was told already"


def test_a_partition_that_is_found_to_be_missing_later_fails(kafka: MockKafka, sending: Sending) -> None:
    written = Written(kafka, sending)
    count, name = written.hand_over([(b"v", None, PARTITIONS + 3, 5)])
    assert written.writer.flush(PATIENCE) == 0
    later = Counter({(PARTITIONS + 3, "_UNKNOWN_PARTITION"): 1})
    assert (count, name, written.failures) in [(1, None, later), (0, "_UNKNOWN_PARTITION", Counter())]


def test_a_full_queue_refuses_the_first_record_that_has_no_room(kafka: MockKafka, sending: Sending) -> None:
    written = Written(kafka, sending, queue_buffering_max_messages=10, linger_ms=60_000)
    rows: list[Row] = [(b"%d" % row, None, row % PARTITIONS, 5) for row in range(12)]
    assert written.hand_over(rows) == (10, "_QUEUE_FULL")
    assert written.hand_over(rows[10:]) == (0, "_QUEUE_FULL")
    written.writer.purge()
    assert written.writer.flush(PATIENCE) == 0
    assert written.failures == {(p, "_PURGE_QUEUE"): 3 if p < 2 else 2 for p in range(PARTITIONS)}
    assert written.hand_over(rows[:1]) == (1, None), "there is room again"


def test_every_record_that_the_broker_refuses_is_counted_by_partition_and_reason(
    kafka: MockKafka, sending: Sending, reader: Reader
) -> None:
    written = Written(kafka, sending, linger_ms=200)
    kafka.refuse(KafkaError.POLICY_VIOLATION, times=1)
    rows: list[Row] = [(b"%d" % row, None, 3, 5) for row in range(1000)]
    assert written.hand_over(rows) == (1000, None)
    assert written.writer.flush(PATIENCE) == 0
    assert written.failures == {(3, "POLICY_VIOLATION"): 1000}
    assert written.hand_over([ROW]) == (1, None)
    written.writer.flush(PATIENCE)
    assert reader.read(1) == by_partition([ROW])


def other_version(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(confluent_kafka, "__version__", "2.99.0")
    return {}


def no_library(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(confluent_kafka, "__file__", "/nowhere/confluent_kafka/__init__.py")
    return {}


def other_machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(loaded.sys, "byteorder", "big")
    return {}


def a_function(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    return {"throttle_cb": print}


def tokens(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    return {"sasl_mechanism": "OAUTHBEARER"}  # not used: the mock broker is asked without a log-in


@pytest.mark.parametrize(
    ("surprise", "why"),
    [
        (other_version, "confluent-kafka 2.99.0"),
        (no_library, "not installed from its wheel"),
        (other_machine, "of another kind"),
        (a_function, "throttle_cb needs"),
        (tokens, "sasl.mechanism needs"),
    ],
)
def test_where_arrays_are_not_proven_records_are_sent_by_calls_and_the_log_says_so_once(
    kafka: MockKafka,
    reader: Reader,
    surprise: Callable[[pytest.MonkeyPatch], dict[str, Any]],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    written = Written(kafka, "arrays", **surprise(monkeypatch))
    assert isinstance(written.writer, Calls)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "producers.writers"]
    assert why in line
    written.hand_over([ROW])
    written.writer.flush(PATIENCE)
    assert reader.read(1) == by_partition([ROW])


def test_a_plugin_of_librdkafka_is_left_to_confluent_kafka() -> None:
    with pytest.raises(NotProvenError, match=r"plugin\.library\.paths"):
        ArrayProducer({"plugin.library.paths": "none"}, topic=TOPIC, failed=lambda *some: None)


def test_a_setting_that_librdkafka_refuses_is_named() -> None:
    for config in ({"linger.mss": 5}, {"acks": "some"}, {"enable.idempotence": True, "acks": 1}):
        with pytest.raises(KafkaException, match=r"linger\.mss|acks"):
            ArrayProducer(config, topic=TOPIC, failed=lambda *some: None)


def test_without_a_broker_errors_and_lines_of_the_log_come_while_polling(
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors: list[KafkaError] = []
    logger = logging.getLogger("tests.writers")
    caplog.set_level(logging.DEBUG, logger.name)
    config = {"bootstrap.servers": "127.0.0.1:9", "error_cb": errors.append, "logger": logger}
    client = ArrayProducer(config, topic=TOPIC, failed=lambda *some: None)
    with pytest.raises(KafkaException, match=r"_TRANSPORT|_TIMED_OUT"):
        client.list_topics(1.0)
    deadline = time.monotonic() + PATIENCE
    while not (errors and caplog.records):
        assert time.monotonic() < deadline
        client.poll(0.05)
    assert {error.name() for error in errors} <= {"_TRANSPORT", "_ALL_BROKERS_DOWN"}
    assert any("127.0.0.1:9" in record.getMessage() for record in caplog.records)
    client.close()


def test_what_the_callback_for_errors_raises_is_raised_by_the_poll() -> None:
    def refuse(error: KafkaError) -> None:
        raise ValueError(error.name())

    config = {"bootstrap.servers": "127.0.0.1:9", "error_cb": refuse, "logger": logging.getLogger("tests")}
    client = ArrayProducer(config, topic=TOPIC, failed=lambda *some: None)
    with pytest.raises(ValueError, match=r"_TRANSPORT|_ALL_BROKERS_DOWN"):
        client.poll(PATIENCE)
    client.close()


def test_a_client_that_nobody_holds_any_more_ends_its_threads(kafka: MockKafka) -> None:
    def threads() -> int:
        with open("/proc/self/status") as status:
            return int(next(line.split()[1] for line in status if line.startswith("Threads:")))

    before = threads()
    written = Written(kafka, "arrays")
    written.hand_over([ROW])
    written.writer.flush(PATIENCE)
    assert threads() > before
    assert threading.active_count() < threads(), "they are librdkafka's own"
    del written
    gc.collect()
    assert threads() <= before


def test_a_hand_over_runs_the_compiled_forms_that_an_image_brings(kafka: MockKafka) -> None:
    kernels: list[Any] = [hand_over.hand_over, hand_over.read_failures]
    hand_over.compile_kernels()
    forms = [kernel.signatures for kernel in kernels]
    written = Written(kafka, "arrays", linger_ms=60_000)
    written.hand_over([ROW, (None, None, 0, 5)])
    written.hand_over([])
    written.writer.purge()
    written.writer.flush(PATIENCE)
    assert sum(written.failures.values()) == 2
    assert [kernel.signatures for kernel in kernels] == forms
