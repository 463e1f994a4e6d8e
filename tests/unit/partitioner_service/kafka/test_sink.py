"""What goes to the rejected topic beside the record itself."""

from __future__ import annotations

import logging
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    KafkaError,
    KafkaException,
    Message,
    Producer,
)

from evenflow.errors import ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import KafkaSettings
from partitioner_service.kafka.sink import _AGAIN_AFTER, _NOW, Sink, _timestamp, record_bytes


@pytest.mark.parametrize(
    ("kind", "stamp", "passed_on"),
    [
        (TIMESTAMP_CREATE_TIME, 1_700_000_000_000, 1_700_000_000_000),
        (TIMESTAMP_CREATE_TIME, 1, 1),
        (TIMESTAMP_CREATE_TIME, 0, 1),
        (TIMESTAMP_CREATE_TIME, -1, _NOW),
        (TIMESTAMP_NOT_AVAILABLE, 0, _NOW),
    ],
)
def test_a_rejected_record_keeps_its_timestamp_and_is_never_dated_now_for_it(
    kind: int, stamp: int, passed_on: int
) -> None:
    assert _timestamp(Message(topic="t", timestamp=(kind, stamp))) == passed_on


@pytest.mark.parametrize("name", ["a", "\u00e9\u20ac", "\U0001f600", b"\xff\xfe".decode(errors="replace")])
def test_a_header_counts_with_the_bytes_that_are_sent_for_it(name: str) -> None:
    """A name of characters beyond ASCII has more bytes than characters, and each header has two lengths."""
    headers: list[tuple[str, bytes | None]] = [(name, b"xy"), (name, None)]
    plain = record_bytes(Message(topic="t", value=b"value", key=b"key"))
    assert plain == 8
    with_headers = record_bytes(Message(topic="t", value=b"value", key=b"key", headers=headers))
    # The broker measures a length as a varint of at most five bytes.
    least = 2 * len(name.encode()) + 2 + 4
    assert plain + least <= with_headers <= plain + least + 2 * 10


@pytest.mark.parametrize("name", ["a", "\ufffd", "long" * 50], ids=["short", "beyond ASCII", "long"])
@pytest.mark.parametrize("content", [None, b"", b"x" * 200], ids=["null", "empty", "long"])
def test_kafkas_client_takes_a_record_of_as_many_bytes_as_are_counted(
    name: str, content: bytes | None
) -> None:
    most = 200_000
    client = Producer({"bootstrap.servers": "127.0.0.1:1", "message.max.bytes": most, "log_level": 0})
    headers = [(name, content)]
    one = record_bytes(Message(topic="t", headers=headers))
    headers *= (most - 100) // one  # and a little for what frames a record
    assert most - 100 - one < record_bytes(Message(topic="t", headers=headers)) <= most - 100
    client.produce("t", None, None, 0, headers=headers)
    client.purge()
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        client.produce("t", None, None, 0, headers=[(name, b"x" * most)])


class Busy:
    """A producer whose abort may be tried again three times, each time at once, as librdkafka's may while a
    commit is under way.
    """

    def __init__(self) -> None:
        self.tries = 0
        self.waited = list[float]()

    def poll(self, timeout: float) -> int:
        self.waited.append(timeout)
        return 0

    def abort_transaction(self, timeout: float) -> None:
        self.tries += 1
        if self.tries <= 3:
            raise KafkaException(KafkaError(KafkaError._CONFLICT, "in progress", retriable=True))


def test_a_call_that_may_be_tried_again_waits_between_its_tries_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    sink = Sink.__new__(Sink)
    busy = Busy()
    sink._client = SimpleNamespace(producer=busy)  # type: ignore[assignment]
    sink._clock, sink._timeout, sink._deadline = time.monotonic, 5.0, None
    sink._bounded = lambda *_: nullcontext()  # type: ignore[assignment]
    sink._retried("abort_transaction", busy.abort_transaction)
    assert busy.tries == 4
    assert busy.waited == [_AGAIN_AFTER] * 3
    assert caplog.text.count("trying again: in progress") == 1


class Recording:
    """A producer that notes the timeouts of its calls."""

    def __init__(self) -> None:
        self.timeouts = list[float]()

    def send_offsets_to_transaction(self, offsets: object, group: object, timeout: float) -> None:
        self.timeouts.append(timeout)

    def commit_transaction(self, timeout: float) -> None:
        pass


@pytest.mark.parametrize(
    ("lifetime", "deadline", "timeout"), [(10.0, None, 10.0), (60.0, None, 30.0), (10.0, 103.0, 3.0)]
)
def test_offsets_are_sent_for_no_longer_than_a_transaction_may_take(
    lifetime: float, deadline: float | None, timeout: float
) -> None:
    """A call that hangs after a broker's crash takes so long, and the watchdog's grace, to be ended."""
    sink = Sink.__new__(Sink)
    client = Recording()
    sink._client = SimpleNamespace(producer=client)  # type: ignore[assignment]
    sink._session = SimpleNamespace(committed=lambda: None)  # type: ignore[assignment]
    sink._clock, sink._timeout, sink._lifetime, sink._deadline = lambda: 100.0, 30.0, lifetime, deadline
    sink._opened, sink._input = 91.0, "in"
    sink._bounded = lambda *_: nullcontext()  # type: ignore[assignment]
    sink.commit({0: PartitionState(fingerprint="f", topic_id="t", offset=5)}, None)
    assert client.timeouts == [timeout]


class Away:
    """A transactional client whose successor cannot take over."""

    def renew(self) -> bool:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no coordinator", retriable=True))


def test_a_transaction_begins_with_a_new_client_or_says_why_not() -> None:
    sink = Sink.__new__(Sink)
    sink._client, sink._opened, sink._timeout = Away(), None, 30.0  # type: ignore[assignment]
    sink._kafka, sink._bounded = KafkaSettings(), lambda *_: nullcontext()  # type: ignore[assignment]
    with pytest.raises(ServiceError, match=r"taking over the transactional id .*no coordinator"):
        sink.begin()
    assert sink.open_for is None
