"""Kafka out: frames, rejected records and input offsets, in one transaction.

Either a block's frames, its rejections and the offsets with their state are all visible, or none is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from evenflow.errors import ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service.route import Rejections
from partitioner_service.watchdog import Watchdog
from topics import clients
from topics.records import Record

log = logging.getLogger(__name__)

REASON, DETAIL, SOURCE, MARK, OMITTED = (
    f"evenflow-{name}" for name in ("reason", "detail", "source", "mark", "omitted-bytes")
)
Header = tuple[str, bytes | str | None]
_ENVELOPE = 2_048
_NOW = 0
"""What `produce` takes for a record that brings no timestamp."""
_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


class CommitAborted(Exception):
    """The transaction was aborted. Nothing of it is visible. Its blocks are to be read again."""


class Sink:
    """The transactional producer of one partitioner identity."""

    def __init__(
        self,
        settings: Settings,
        *,
        rejected_limit: int,
        watchdog: Watchdog,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._kafka = settings.kafka
        self._bounded = watchdog.bounded
        self._timeout = settings.kafka.request_timeout / 1000
        self._input = settings.topic("input")
        self._routed = settings.topic("routed")
        self._rejected = settings.topic("rejected")
        self._rejected_partitions = settings.input_partitions
        self._rejected_limit = rejected_limit - _ENVELOPE
        self._opened: float | None = None
        self._deadline: float | None = None
        self._producer: Producer = clients.producer(settings.kafka, **producer_config(settings))
        with self._bounded("init_transactions", self._timeout):
            self._producer.init_transactions(self._timeout)

    @property
    def open_for(self) -> float | None:
        """Seconds since the transaction was begun. None when none is open."""
        return None if self._opened is None else self._clock() - self._opened

    def stop_within(self, seconds: float) -> None:
        """From now on all waiting for the broker together takes at most this long."""
        if self._deadline is None:
            self._deadline = self._clock() + seconds

    def _patience(self) -> float:
        left = self._timeout if self._deadline is None else self._deadline - self._clock()
        return max(0.1, min(self._timeout, left))

    def begin(self) -> None:
        """Begin a transaction unless one is open."""
        if self._opened is None:
            with self._bounded("begin_transaction", 0):
                self._producer.begin_transaction()
            self._opened = self._clock()

    def write_frames(self, frames: Iterable[tuple[int, bytes]]) -> None:
        """Each (worker, frame) to the routed partition of that worker."""
        self.begin()
        for worker, frame in frames:
            self._produce(self._routed, frame, None, worker)
        self._producer.poll(0)

    def write_rejected(self, records: Sequence[Record], group: Rejections) -> None:
        """Records of a slice unchanged, with the reason and where each stood in headers. Only those if one is too large."""
        self.begin()
        partition = group.partition % self._rejected_partitions
        for record, told in self._told(records, group):
            value, key, headers = record.value(), record.key(), record.headers()
            size = len(value or b"") + len(key or b"")
            if headers:
                size += sum(len(name) + len(held or b"") for name, held in headers)
                told = [*headers, *told]
            if size > self._rejected_limit:
                value, key, told = None, None, [(OMITTED, str(size).encode()), *told[len(headers or ()) :]]
            self._produce(self._rejected, value, key, partition, _timestamp(record), told)
        self._producer.poll(0)

    def _told(self, records: Sequence[Record], group: Rejections) -> Iterator[tuple[Record, list[Header]]]:
        """Each rejected record and what its headers say of it."""
        reason = (REASON, group.reason.encode())
        source = f"{self._input}:{group.partition}:"
        marks: list[int | None] = group.marks.tolist() or [None] * len(group.positions)
        for position, detail, mark in zip(
            group.positions.tolist(), group.details.to_pylist(), marks, strict=True
        ):
            record = records[position]
            told: list[Header] = [reason, (DETAIL, detail), (SOURCE, f"{source}{record.offset()}")]
            if mark is not None:
                told.append((MARK, str(mark)))
            yield record, told

    def commit(self, states: dict[int, PartitionState], group_metadata: object) -> None:
        """Commit the open transaction together with these positions and their state.

        Raises CommitAborted when it was aborted instead, ServiceError when this identity was fenced.
        """
        self.begin()
        offsets = [TopicPartition(self._input, p, s.offset, s.encode()) for p, s in states.items()]
        try:
            if offsets:
                # Never called a second time: after a broker's crash that call hangs, whatever its timeout.
                patience = self._patience()
                with self._bounded("send_offsets_to_transaction", patience):
                    self._producer.send_offsets_to_transaction(offsets, group_metadata, patience)
            self._retried("commit_transaction", self._producer.commit_transaction)
        except KafkaException as error:
            self._abort_after(error.args[0])
        self._opened = None

    def abort(self) -> None:
        """Abort the open transaction, if any. ServiceError when the broker no longer knows it."""
        if self._opened is None:
            return
        self._opened = None
        # What is still buffered must be delivered first: an abort that overtakes the registration of a
        # partition with the transaction is answered with a fatal INVALID_TXN_STATE.
        patience = self._patience()
        with self._bounded("flush", patience):
            self._producer.flush(patience)
        try:
            self._retried("abort_transaction", self._producer.abort_transaction)
        except KafkaException as error:
            raise ServiceError(
                f"the transaction could not be aborted: {error.args[0].str()}",
                hint="nothing of it becomes visible; start the service again, it reads those blocks again",
            ) from None

    def _abort_after(self, error: KafkaError) -> None:
        if error.code() == KafkaError._FATAL:
            error = self._cause(error)
        if error.fatal() or not (error.txn_requires_abort() or error.retriable()):
            self._opened = None
            if error.code() in _FENCED:
                raise ServiceError(
                    f"the transaction failed for good: {error.str()}",
                    hint="another process with the same partitioner.instance took over, or a transaction took longer "
                    "than partitioner.transaction_timeout",
                )
            raise clients.service_error(error, self._kafka, "the transaction failed for good")
        self.abort()
        raise CommitAborted(error.str())

    def _cause(self, error: KafkaError) -> KafkaError:
        """`produce` says only that the producer is dead. What killed it is said by the transaction's own calls."""
        try:
            self._producer.abort_transaction(self._patience())
        except KafkaException as deeper:
            return deeper.args[0]
        return error

    def _retried(self, what: str, call: Callable[[float], None]) -> None:
        deadline = self._clock() + self._patience()
        while True:
            try:
                patience = self._patience()
                with self._bounded(what, patience):
                    call(patience)
                return
            except KafkaException as error:
                if not error.args[0].retriable() or self._clock() > deadline:
                    raise
                log.info("trying again: %s", error.args[0].str())

    def _produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        timestamp: int = _NOW,
        headers: list[Header] | None = None,
    ) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                self._abort_after(error.args[0])


def _timestamp(record: Record) -> int:
    """A record's own. One of 1970's first millisecond gets the second, as 0 means `_NOW`."""
    kind, stamp = record.timestamp()
    return _NOW if kind == TIMESTAMP_NOT_AVAILABLE or stamp < 0 else max(stamp, 1)


def producer_config(settings: Settings) -> dict[str, Any]:
    """librdkafka settings of the data plane's transactional producer."""
    identity = settings.partitioner.instance
    return {
        "transactional.id": f"{settings.query.name}.partitioner.{identity}",
        "transaction.timeout.ms": settings.partitioner.transaction_timeout,
        "client.id": f"evenflow-{settings.query.name}-{identity}",
        "linger.ms": 5,
        "batch.size": 4_000_000,
        "queue.buffering.max.kbytes": 131_072,
        "message.timeout.ms": settings.partitioner.transaction_timeout,
    }
