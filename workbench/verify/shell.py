"""The thin shell: read committed state, input, rejected records and results from Kafka, then check.

The ends of the results are looked up first, then the committed state: so no result counts that is newer than
that state, which says up to where the input counts. What comes later while verify runs is left out.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaException, Message, TopicPartition

from evenflow.errors import IncompatibleStateError, ProtocolError, ServiceError
from evenflow.markers import EndOfStream
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service.source import Stopping, committed_offsets, data_plane_group
from spark_consumers.sinks import sink_of
from topics import clients, reader
from topics.admin import describe
from workbench.verify.core import check
from workbench.verify.inputs import INPUT_SCHEMA, REJECTED_SCHEMA, Committed
from workbench.verify.report import Report


def verify(settings: Settings, *, limit: int = 20, progress: Callable[[int], None] | None = None) -> Report:
    """Recompute and compare everything the partitioner has committed.

    limit: differences of each kind to keep. progress: called with the number of records read so far.
    Raises ServiceError (broker, topics), IncompatibleStateError (another query's state).
    """
    written = _results(settings)
    committed = read_committed(settings)
    with tempfile.TemporaryDirectory(prefix="verify-", dir=_cache()) as scratch:
        rejected = pa.Table.from_batches(_rejected(settings), REJECTED_SCHEMA)
        inputs = _Watched(_inputs(settings, committed, progress), INPUT_SCHEMA)
        try:
            return check(
                settings,
                inputs.reader,
                rejected,
                written.reader if isinstance(written, _Watched) else written,
                committed,
                limit=limit,
                scratch=Path(scratch),
            )
        except duckdb.Error:
            # what went wrong while reading Kafka reaches us wrapped by DuckDB: tell it as it was
            for source in (inputs, written):
                if isinstance(source, _Watched) and source.error is not None:
                    raise source.error from None
            raise


def read_committed(settings: Settings) -> list[Committed]:
    """Committed state of every input partition; waits while a transaction is pending."""
    topic = settings.topic("input")
    state = describe(settings.kafka, [topic]).get(topic)
    if state is None:
        raise ServiceError(f"topic {topic} does not exist", hint="see `evenflow doctor`")
    found = []
    for entry in _committed_offsets(settings, [TopicPartition(topic, p) for p in sorted(state.begin)]):
        if entry.offset < 0:
            raise IncompatibleStateError(
                f"the partitioner has committed nothing for {topic}[{entry.partition}]",
                hint="verify checks what the partitioner has read: has it been started for this query?",
            )
        decoded = PartitionState.decode(entry.metadata, offset=entry.offset)
        if decoded.fingerprint != settings.fingerprint:
            raise IncompatibleStateError(
                f"{topic}[{entry.partition}] was read for query {decoded.fingerprint}, but the settings describe "
                f"query {settings.fingerprint}",
                hint="verify with the settings that the pipeline ran with",
            )
        if decoded.topic_id != state.topic_id:
            raise IncompatibleStateError(
                f"{topic} was deleted and created again since the partitioner read it",
                hint="give the query a new name, or delete the group and the query's topics to begin anew",
            )
        found.append(
            Committed(
                partition=entry.partition,
                offset=decoded.offset,
                max_time=decoded.max_time,
                mark=decoded.mark(settings.query),
                idle_mark=decoded.idle_mark,
                ended=decoded.ended,
                read=decoded.read,
                routed=decoded.routed,
                rejected=decoded.rejected,
            )
        )
    return found


def _committed_offsets(settings: Settings, partitions: list[TopicPartition]) -> list[TopicPartition]:
    """Asked again while a transaction holds the answer back."""
    group = data_plane_group(settings)
    asker = clients.consumer(settings.kafka, group=group)
    deadline = time.monotonic() + clients.seconds(settings.kafka)
    try:
        return committed_offsets(asker, partitions, lambda: time.monotonic() >= deadline)
    except Stopping as error:
        raise ServiceError(
            f"reading the committed offsets of {group}: {error}", hint="is the broker up?"
        ) from None
    except KafkaException as error:
        raise clients.service_error(
            error, settings.kafka, f"reading the committed offsets of {group}"
        ) from None
    finally:
        asker.close()


class _Watched:
    """A stream of batches that remembers the exception it ended with."""

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        self.error: Exception | None = None
        self.reader = pa.RecordBatchReader.from_batches(schema, self._pass_on(batches))

    def _pass_on(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Exception as error:
            self.error = error
            raise


def _inputs(
    settings: Settings, committed: list[Committed], progress: Callable[[int], None] | None
) -> Iterator[pa.RecordBatch]:
    ends = {state.partition: state.offset for state in committed}
    read = 0
    records = reader.read_range(settings.kafka, settings.topic("input"), end=ends)
    for batch in reader.record_batches(records, INPUT_SCHEMA, _input):
        read += batch.num_rows
        if progress is not None:
            progress(read)
        yield batch


def _input(record: Message) -> tuple[Any, ...]:
    kind, stamp = record.timestamp()
    marker = None
    headers = record.headers()
    if headers and record.key() is None and record.value() is None:  # as the topic's contract has it
        try:
            end = EndOfStream.from_headers(headers)
        except ProtocolError:
            end = None  # a damaged marker marks nothing: it is a record like any other
        if end is not None:
            marker = {"producer": end.producer, "tuples": end.tuples, "producers": end.producers}
    return (
        record.partition(),
        record.offset(),
        -1 if kind == TIMESTAMP_NOT_AVAILABLE else stamp,
        record.key(),
        record.value(),
        marker,
    )


def _rejected(settings: Settings) -> Iterator[pa.RecordBatch]:
    records = reader.read_range(settings.kafka, settings.topic("rejected"))
    return reader.record_batches(
        records, REJECTED_SCHEMA, lambda record: _rejection(settings.topic("input"), record)
    )


def _rejection(topic: str, record: Message) -> tuple[Any, ...]:
    """Our headers come last: an input record may have been rejected elsewhere before."""
    headers = dict(record.headers() or ())
    texts = {name: (value or b"").decode("utf-8", "replace") for name, value in headers.items()}
    try:
        source, partition, offset = texts["evenflow-source"].rsplit(":", 2)
        mark = int(texts["evenflow-mark"]) if "evenflow-mark" in texts else None
        position = int(partition), int(offset)
    except (KeyError, ValueError):
        source, position, mark = None, (-1, -1), None
    if source != topic:
        raise ProtocolError(
            f"{record.topic()}[{record.partition()}] offset {record.offset()} is no rejected record of {topic}",
            hint="who else writes to this topic?",
        )
    reason, detail = texts.get("evenflow-reason"), texts.get("evenflow-detail")
    omitted = "evenflow-omitted-bytes" in headers
    return *position, reason, detail, mark, record.key(), record.value(), omitted


def _results(settings: Settings) -> _Watched | pa.Table:
    found = sink_of(settings).read_back(settings)
    return _Watched(found, found.schema) if isinstance(found, pa.RecordBatchReader) else found


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "evenflow"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
