"""Both ways to hand records over deliver the same, refuse the same, and tell of every record that fails."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenflow.settings import KafkaSettings, load_settings
from producers.writers import Calls, Sending, Writer, writer_of
from tests.mock_kafka import TOPIC, MockKafka, TopicReader

PARTITIONS = 4
PATIENCE = 20.0
BYTES = st.none() | st.binary(max_size=12)
ROWS = st.lists(
    st.tuples(BYTES, BYTES, st.integers(0, PARTITIONS - 1), st.integers(1, 253_402_300_799_999)), max_size=30
)
Row = tuple[bytes | None, bytes | None, int, int]


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


@pytest.fixture
def reader(kafka: MockKafka) -> Iterator[TopicReader]:
    made = TopicReader(kafka, PARTITIONS)
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
    written: Written, reader: TopicReader, rows: list[Row]
) -> None:
    assert written.hand_over(rows) == (len(rows), None)
    assert written.writer.flush(PATIENCE) == 0
    assert reader.read(len(rows)) == by_partition(rows)
    assert not written.failures


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=ROWS.filter(bool), data=st.data())
def test_parts_of_columns_are_handed_over_as_the_columns_are(
    written: Written, reader: TopicReader, rows: list[Row], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(rows)))
    values, keys = (pa.array([row[at] for row in rows], pa.large_binary()) for at in (0, 1))
    partitions = np.array([row[2] for row in rows], np.int32)
    times = np.array([row[3] for row in rows], np.int64)
    for part in (slice(0, cut), slice(cut, None)):
        written.writer.hand_over(values[part], keys[part], partitions[part], times[part])
    assert written.writer.flush(PATIENCE) == 0
    assert reader.read(len(rows)) == by_partition(rows)


def test_a_record_of_headers_alone_arrives_with_them(written: Written, reader: TopicReader) -> None:
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
    kafka: MockKafka, sending: Sending, reader: TopicReader, wrong: Row, name: str
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
    kafka: MockKafka, sending: Sending, reader: TopicReader
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


def test_records_of_which_a_silent_broker_says_nothing_fail_when_their_time_is_over(sending: Sending) -> None:
    kafka = MockKafka(PARTITIONS)
    # A record that is on its way counts as lost only when its request has timed out.
    written = Written(kafka, sending, message_timeout_ms=1_000, socket_timeout_ms=1_000)
    kafka.stand_still()
    assert written.hand_over([ROW] * 100) == (100, None)
    assert written.writer.flush(0) == 100
    assert written.writer.flush(PATIENCE) == 0
    assert written.failures == {(1, "_MSG_TIMED_OUT"): 100}


def test_records_of_a_topic_that_is_gone_fail(sending: Sending) -> None:
    kafka = MockKafka(PARTITIONS)
    kafka.lose_topic()
    written = Written(kafka, sending, topic_metadata_propagation_max_ms=100, message_timeout_ms=5_000)
    count, name = written.hand_over([ROW] * 10)
    assert written.writer.flush(PATIENCE) == 0
    assert (count, name) == (10, None)
    assert written.failures == {(1, "UNKNOWN_TOPIC_OR_PART"): 10}


def other_version(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(confluent_kafka, "__version__", "2.99.0")
    return {}


def no_library(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(confluent_kafka, "__file__", "/nowhere/confluent_kafka/__init__.py")
    return {}


def other_machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr("topics.librdkafka.loaded.sys.byteorder", "big")
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
    reader: TopicReader,
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
