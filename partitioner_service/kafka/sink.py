"""Kafka out: frames, rejected records and input offsets, in one transaction.

A block's frames, its rejected records and the offsets with their states become visible together, or not at
all. This also holds for a commit whose answer never came. Then this process does not know which of the two it
was, and it must not go on. The next run reads it from the committed offsets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from evenflow.errors import ServiceError
from evenflow.limits import MAX_RECORD_BYTES
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.settings.beginning import IDENTITY_KEY, Beginning, encode_beginning
from partitioner_service.block import Rejections
from partitioner_service.kafka.watchdog import IN_DOUBT, Watchdog
from partitioner_service.routing.session import Session
from topics import clients
from topics.query.skip_orders import SkipOrder
from topics.records import Record
from topics.transactional import Transactional

log = logging.getLogger(__name__)

REASON, DETAIL, SOURCE, MARK, CLOCK, OMITTED, THROUGH = (
    f"evenflow-{name}" for name in ("reason", "detail", "source", "mark", "clock", "omitted-bytes", "through")
)
SKIPPED = "skipped"
"""The reason of records that nobody could fetch, and that an operator has ordered to go past."""
Header = tuple[str, bytes | str | None]
_ENVELOPE = 2_048
"""Bytes left free in a rejected record, for evenflow's own headers and what Kafka adds around a record."""
_HEADER_FRAME = 10
"""Most bytes of the two lengths that Kafka writes with a header."""
_NOW = 0
"""The timestamp that makes `produce` stamp a record with the present time."""
_AGAIN_AFTER = 0.1
"""Seconds between two tries of a call that Kafka says may be tried again."""
_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


class CommitAborted(Exception):
    """The transaction was aborted. Nothing in it is visible, and its blocks have to be read again."""


class Sink:
    """The transactional producer of one partitioner identity.

    rejected_limit, rejected_partitions: `max.message.bytes` and number of partitions of the rejected topic.
    None: as many as input partitions. session: is told what became of each transaction. Making a sink fences
    any other process of this identity.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        session: Session,
        rejected_limit: int,
        rejected_partitions: int | None = None,
        watchdog: Watchdog,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._kafka = settings.kafka
        self._bounded = watchdog.bounded
        self._timeout = settings.kafka.request_timeout / 1000
        self._lifetime = settings.partitioner.transaction_timeout / 1000
        self._input = settings.topic("input")
        self._routed = settings.topic("routed")
        self._rejected = settings.topic("rejected")
        self._snapshots = settings.topic("snapshots")
        self._rejected_partitions = rejected_partitions or settings.input_partitions
        # The topic may take more than our producer sends.
        self._rejected_limit = min(rejected_limit, MAX_RECORD_BYTES) - _ENVELOPE
        self._session = session
        self._opened: float | None = None
        self._deadline: float | None = None
        with self._taking_over():
            self._client = Transactional(settings.kafka, self._patience, **producer_config(settings))

    @property
    def open_for(self) -> float | None:
        """Seconds since the transaction was begun. None if no transaction is open."""
        return None if self._opened is None else self._clock() - self._opened

    def stop_within(self, seconds: float) -> None:
        """From now on all waiting for the broker together takes about this long at most.

        The first call counts.
        """
        if self._deadline is None:
            self._deadline = self._clock() + seconds

    def _patience(self) -> float:
        """Timeout (s) of the next call. Even past the deadline a call gets a moment."""
        left = self._timeout if self._deadline is None else self._deadline - self._clock()
        return max(0.1, min(self._timeout, left))

    def _at_most_a_lifetime(self) -> float:
        """Timeout (s) of the next call, which librdkafka itself ends after the lifetime of a transaction.

        Where the call hangs after a broker's crash, the watchdog ends the process so much the sooner.
        """
        return min(self._patience(), self._lifetime)

    def renew(self) -> None:
        """Make a new client if the last transaction was aborted.

        The sooner the better: the new client fences a process of this identity that has come meanwhile.
        Raises ServiceError if no client can be made.
        """
        with self._taking_over():
            self._client.renew()

    @contextmanager
    def _taking_over(self) -> Iterator[None]:
        """The body makes a client, which reaches its broker and then fences the client before it."""
        try:
            with self._bounded("init_transactions", 2 * self._timeout):
                yield
        except KafkaException as error:
            raise clients.service_error(error, self._kafka, "taking over the transactional id") from None

    def begin(self) -> None:
        """Begin a transaction unless one is open. Raises what `renew` raises."""
        if self._opened is None:
            self.renew()
            with self._bounded("begin_transaction", 0):  # has no timeout: the watchdog's grace is its bound
                self._client.producer.begin_transaction()
            self._opened = self._clock()

    def write_frames(self, frames: Iterable[tuple[int, bytes]]) -> None:
        """Write each (routed partition, frame) to that partition."""
        self.begin()
        for partition, frame in frames:
            self._produce(self._routed, frame, None, partition)
        self._client.producer.poll(0)

    def write_beginning(self, beginning: Beginning) -> None:
        """Write anew how the query began, once it takes in partitions that were added to its input."""
        self.begin()
        self._produce(self._snapshots, encode_beginning(beginning), IDENTITY_KEY, 0)

    def write_rejected(self, records: Sequence[Record], group: Rejections) -> None:
        """Write the rejected records of a slice unchanged.

        Headers add the reason, and where each record stood.

        records: all records of the slice. A record that the rejected topic cannot hold is replaced by these
        headers alone, and one more header gives its size in bytes.
        """
        self.begin()
        partition = group.partition % self._rejected_partitions
        for record, own_headers in self._with_headers(records, group):
            value, key, headers = record.value(), record.key(), record.headers()
            size = record_bytes(record)
            if headers:
                own_headers = [*headers, *own_headers]
            if size > self._rejected_limit:
                # The record's own headers go as well: they may be what makes it too large.
                value = key = None
                own_headers = [(OMITTED, str(size).encode()), *own_headers[len(headers or ()) :]]
            self._produce(self._rejected, value, key, partition, _timestamp(record), own_headers)
        self._client.producer.poll(0)

    def write_skipped(self, order: SkipOrder) -> None:
        """Write one rejected record for all offsets that this order skips. It has neither key nor value."""
        self.begin()
        detail = f"skipped by order of {order.who}: {order.because}"
        headers: list[Header] = [
            (REASON, SKIPPED.encode()),
            (DETAIL, detail.encode()),
            (SOURCE, f"{self._input}:{order.partition}:{order.offset}"),
            (THROUGH, str(order.through)),
        ]
        self._produce(
            self._rejected, None, None, order.partition % self._rejected_partitions, headers=headers
        )

    def _with_headers(
        self, records: Sequence[Record], group: Rejections
    ) -> Iterator[tuple[Record, list[Header]]]:
        """Each rejected record, and the headers that evenflow adds to it."""
        reason = (REASON, group.reason.encode())
        source = f"{self._input}:{group.partition}:"
        nothing: list[int | None] = [None] * len(group.positions)
        marks: list[int | None] = group.marks.tolist() or nothing
        clocks: list[int | None] = group.clocks.tolist() or nothing
        for position, detail, mark, clock in zip(
            group.positions.tolist(), group.details.to_pylist(), marks, clocks, strict=True
        ):
            record = records[position]
            headers: list[Header] = [reason, (DETAIL, detail), (SOURCE, f"{source}{record.offset()}")]
            if mark is not None:
                headers.append((MARK, str(mark)))
            if clock is not None:
                headers.append((CLOCK, str(clock)))
            yield record, headers

    def commit(self, states: dict[int, PartitionState], group_metadata: object) -> None:
        """Commit the open transaction together with the offsets and states of these input partitions.

        Raises CommitAborted when the transaction was aborted instead, ServiceError when this identity was
        fenced, when the producer can no longer be used, or when it is unknown whether the commit has
        happened.
        """
        self.begin()
        offsets = [TopicPartition(self._input, p, s.offset, s.encode()) for p, s in states.items()]
        try:
            if offsets:
                # This call is never repeated: after a broker's crash a second one hangs, whatever its
                # timeout.
                patience = self._at_most_a_lifetime()
                with self._bounded("send_offsets_to_transaction", patience):
                    self._client.producer.send_offsets_to_transaction(offsets, group_metadata, patience)
            self._retried("commit_transaction", self._client.producer.commit_transaction)
        except KafkaException as error:
            self._abort_after(error.args[0])
        self._opened = None
        self._session.committed()

    def abort(self) -> None:
        """Abort the open transaction, if any.

        Raises ServiceError if that fails. After a commit without an answer it always fails, because
        librdkafka aborts no transaction that it has begun to commit.
        """
        if self._opened is None:
            return
        self._opened = None  # first, so that an error below does not lead to another abort
        self._session.aborted()
        # Buffered records must be delivered first. If the abort overtook the registration of a partition with
        # the transaction, the broker would answer with a fatal INVALID_TXN_STATE.
        patience = self._patience()
        with self._bounded("flush", patience):
            self._client.producer.flush(patience)
        try:
            self._retried("abort_transaction", self._client.abort)
        except KafkaException as error:
            raise ServiceError(
                f"the transaction could not be aborted: {error.args[0].str()}",
                hint=IN_DOUBT,
            ) from None

    def _abort_after(self, error: KafkaError) -> None:
        """Abort the transaction because of this error, and raise CommitAborted.

        Raises ServiceError where the producer can no longer be used.
        """
        if error.code() == KafkaError._FATAL:
            error = self._cause(error)
        if error.fatal() or not (error.txn_requires_abort() or error.retriable()):
            self._opened = None
            if error.code() in _FENCED:
                raise ServiceError(
                    f"the transaction failed for good: {error.str()}",
                    hint=(
                        "another process with the same partitioner.instance took over, or a transaction took"
                        " longer than partitioner.transaction_timeout"
                    ),
                )
            raise clients.service_error(error, self._kafka, "the transaction failed for good")
        self.abort()
        raise CommitAborted(error.str())

    def _cause(self, error: KafkaError) -> KafkaError:
        """Why the producer is dead. `produce` does not say why, but the calls that end a transaction do."""
        patience = self._patience()
        try:
            with self._bounded("abort_transaction", patience):
                self._client.abort(patience)
        except KafkaException as deeper:
            return deeper.args[0]
        return error

    def _retried(self, operation: str, call: Callable[[float], None]) -> None:
        """Call this with a timeout (s), and again as long as Kafka says that a retry may help."""
        deadline = self._clock() + self._patience()
        last_reason = ""
        while True:
            try:
                patience = self._patience()
                with self._bounded(operation, patience):
                    call(patience)
                return
            except KafkaException as error:
                if not error.args[0].retriable() or self._clock() > deadline:
                    raise
                if error.args[0].str() != last_reason:
                    last_reason = error.args[0].str()
                    log.info("trying again: %s", last_reason)
                # Some answers come at once, as while an earlier call is still under way.
                self._client.producer.poll(_AGAIN_AFTER)

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
                self._client.producer.produce(
                    topic, value, key, partition, timestamp=timestamp, headers=headers
                )
                return
            except BufferError:
                # The local queue is full. Waiting here holds up the loop, so reading slows down to what Kafka
                # takes.
                self._client.producer.poll(0.1)
            except KafkaException as error:
                self._abort_after(error.args[0])


def record_bytes(record: Record) -> int:
    """Bytes of the record as `produce` would send it: value, key, and headers with what frames them."""
    size = len(record.value() or b"") + len(record.key() or b"")
    # Names are counted as they are sent: a byte that is not UTF-8 was read as U+FFFD, which has three bytes.
    return size + sum(
        len(name.encode()) + len(content or b"") + _HEADER_FRAME for name, content in record.headers() or ()
    )


def _timestamp(record: Record) -> int:
    """The record's own timestamp (ms), `_NOW` if it has none.

    `produce` takes 0 for `_NOW`, so a record of the first millisecond of 1970 is moved to the second one.
    """
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
        # librdkafka allows no longer timeout for a message than for its transaction.
        "message.timeout.ms": settings.partitioner.transaction_timeout,
    }
