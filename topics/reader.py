"""Bounded reads: a stretch of each partition of a topic.

A read ends when it has reached the end of its stretches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Literal, cast
from uuid import uuid4

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from evenflow.errors import DataLossError, ServiceError
from evenflow.settings import KafkaSettings
from topics.admin import describe
from topics.clients import consumer, seconds, service_error
from topics.offsets import stable_ends
from topics.records import UNFETCHABLE, Record

_BATCH = 10_000
_STEP_SECONDS = 0.2
_FETCH_WAIT_MS = 20
"""If a stretch ends with the marker of a transaction, the read is only over once a fetch comes back empty. By
default the broker would hold that fetch back for 0.5 s.
"""
_ARROW_BYTES = 32_000_000
"""Bytes of records that become one Arrow batch."""
_TRIMMED = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


class DeletedRecordsError(DataLossError):
    """Records that were about to be read have been deleted, as by retention."""


def read_range(
    kafka: KafkaSettings,
    topic: str,
    *,
    begin: Mapping[int, int] | None = None,
    end: Mapping[int, int] | None = None,
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed",
    timeout: float | None = None,
) -> Generator[list[Record], None, None]:
    """Batches of the records with begin <= offset < end, in offset order within each partition.

    begin, end: offsets by partition. A partition that `begin` lacks starts at the start of its log. A
    partition that `end` lacks stops at its high watermark, as it is when the first batch is asked for.
    Aborted records and transaction markers are skipped, but they count as progress.

    Raises ServiceError for a missing topic, and if nothing moves for `timeout` seconds (default:
    `kafka.request_timeout`): because the broker is lost, or because a transaction was left open below `end`.
    Raises DeletedRecordsError if `begin` was trimmed away, or what comes next is while it is read.
    """
    patience = seconds(kafka) if timeout is None else timeout
    state = describe(kafka, [topic]).get(topic)
    if state is None:
        raise ServiceError(f"topic {topic} does not exist", hint="see `evenflow doctor`")
    starts = {**state.begin, **(begin or {})}
    stops = {**state.end, **(end or {})}
    for partition, start in starts.items():
        first = state.begin.get(partition)
        if first is None:
            raise ServiceError(f"topic {topic} has no partition {partition}")
        if start < first:
            raise DeletedRecordsError(
                f"{topic}[{partition}]: offsets {start} to {first - 1} are gone",
                hint="see docs/operations/data-loss.md",
            )
    left = {partition: stops[partition] for partition in starts if starts[partition] < stops[partition]}
    if not left:
        return
    # librdkafka demands a group even where partitions are assigned by hand and nothing is committed.
    reader = consumer(
        kafka,
        group=f"evenflow-read-{uuid4()}",
        isolation_level=isolation,
        enable_partition_eof=True,
        fetch_wait_max_ms=_FETCH_WAIT_MS,
    )
    try:
        reader.assign([TopicPartition(topic, partition, starts[partition]) for partition in left])
        yield from _until_done(reader, kafka, topic, left, patience)
    finally:
        reader.close()


def read_newest(kafka: KafkaSettings, topic: str, most: int) -> list[Record]:
    """The committed records among the newest `most` offsets of each partition.

    Empty if there is no such topic. Open transactions are not waited for: the newest offsets are those before
    the first open transaction.
    """
    state = describe(kafka, [topic]).get(topic)
    if state is None:
        return []
    ends = stable_ends(kafka, state)
    begin = {partition: max(first, ends[partition] - most) for partition, first in state.begin.items()}
    return [message for block in read_range(kafka, topic, begin=begin, end=ends) for message in block]


def read_last(kafka: KafkaSettings, topic: str, key: bytes) -> Record | None:
    """The last committed record with this key. None if there is no such record or no such topic.

    Reads the whole topic.
    """
    last = None
    for message in read_all(kafka, topic):
        if message.key() == key:
            last = message
    return last


def read_all(kafka: KafkaSettings, topic: str) -> Iterator[Record]:
    """The committed records of the whole topic. None at all if there is no such topic."""
    if topic in describe(kafka, [topic]):
        for messages in read_range(kafka, topic):
            yield from messages


def record_batches(
    blocks: Iterable[list[Record]], schema: pa.Schema, row: Callable[[Record], tuple[Any, ...]]
) -> Iterator[pa.RecordBatch]:
    """Arrow batches with one row per record, each batch from about 32 MB of records at most.

    row: makes the row of a record, one value per field of the schema.
    """
    for block in blocks:
        rows: list[tuple[Any, ...]] = []
        size = 0
        for record in block:
            rows.append(row(record))
            size += len(record)
            if size > _ARROW_BYTES:
                yield _batch(rows, schema)
                rows, size = [], 0
        if rows:
            yield _batch(rows, schema)


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _until_done(
    reader: Consumer, kafka: KafkaSettings, topic: str, left: dict[int, int], patience: float
) -> Iterator[list[Record]]:
    """Batches of records until every partition has reached its end.

    left: end offset of each unfinished partition.
    """
    reached = dict.fromkeys(left, -1)
    deadline = time.monotonic() + patience
    while left:
        try:
            messages = cast(list[Record], reader.consume(_BATCH, timeout=_STEP_SECONDS))
        except KafkaException as error:
            raise service_error(error, kafka, f"reading {topic}") from None
        batch: list[Record] = []
        finished: list[int] = []
        moved = False
        for message in messages:
            partition = message.partition()
            if partition in reached and partition not in left:
                # It has reached its end. The consumer may still hand out buffered records of it. Behind a
                # damaged batch librdkafka loses its place, too, and asks for offsets that were never written.
                continue
            behind = _behind(message, left.get(partition, -1))
            position = message.offset() if behind else _position(message, kafka, topic)
            if position is None or partition not in left:
                continue
            moved |= position > reached[partition]
            reached[partition] = max(reached[partition], position)
            if message.error() is None and message.offset() < left[partition]:
                batch.append(message)
            if position >= left[partition]:
                del left[partition]
                finished.append(partition)
        if finished:
            # Otherwise the consumer would go on to fetch them, and fill its buffers with records that nobody
            # needs.
            reader.incremental_unassign([TopicPartition(topic, partition) for partition in finished])
        if batch:
            yield batch
        if moved:
            deadline = time.monotonic() + patience
        elif left and time.monotonic() >= deadline:
            raise _stuck(topic, left, reached, patience)


def _behind(message: Record, end: int) -> bool:
    """Whether this says that a batch cannot be fetched that nobody asked for: it lies at or behind the
    end.
    """
    error = message.error()
    return error is not None and error.code() in UNFETCHABLE and message.offset() >= end


def _position(message: Record, kafka: KafkaSettings, topic: str) -> int | None:
    """The offset up to which the message's partition has now been read. None if the message does not say so.

    Raises DataLossError or ServiceError for an error that does not pass.
    """
    error = message.error()
    if error is None:
        return message.offset() + 1
    if error.code() == KafkaError._PARTITION_EOF:
        return message.offset()
    if error.code() in _TRIMMED:
        raise DeletedRecordsError(
            f"{topic}[{message.partition()}]: the offset to read is gone: {error.str()}",
            hint="see docs/operations/data-loss.md",
        )
    if error.code() in UNFETCHABLE:
        raise ServiceError(
            f"offset {message.offset()} of {topic}[{message.partition()}] cannot be fetched: {error.str()}",
            hint="see 'A record that cannot be fetched' in docs/operations/rejected-records.md",
        )
    if error.retriable() or error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
        return None
    raise service_error(error, kafka, f"reading {topic}")


def _stuck(topic: str, left: Mapping[int, int], reached: Mapping[int, int], patience: float) -> ServiceError:
    where = ", ".join(
        f"[{partition}] at {'no offset' if reached[partition] < 0 else reached[partition]} of {end}"
        for partition, end in sorted(left.items())
    )
    return ServiceError(
        f"reading {topic} makes no progress for {patience:g} s: {where}",
        hint="is the broker up? a transaction left open ends after its writer's transaction timeout",
    )
