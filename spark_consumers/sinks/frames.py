"""Arrow frames in a Kafka topic: one record holds the rows of one bucket
and window (evenflow/wire/result_frames.py).

A large window is cut into parts. The key of a record is the number of its bucket, and so is its partition. So
the windows of a bucket come in order. The sink is idempotent, not transactional: a repeated micro-batch
appends the same rows once more, and each record says which rows of its window it holds. docs/results.md says
how a reader drops repeated rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa

from evenflow.errors import IncompatibleStateError, ProtocolError
from evenflow.settings import Settings
from evenflow.twostep import readable, readable_schema
from evenflow.wire.result_frames import ResultHeader, decode_results, encode_results
from spark_consumers.sinks.base import Position, Shape
from spark_consumers.sinks.topic import TopicSink, topic_options
from topics.records import Record

_RECORDS = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("partition", pa.int32())])
_BYTES_AT_ONCE = 8_000_000


class ResultFrames(TopicSink):
    """Typed columns, compressed. This is the cheapest way out of Spark, and the cheapest to read."""

    name = "frames"

    def schema(self, settings: Settings) -> pa.Schema:
        return _RECORDS

    def shaper(self, settings: Settings) -> Shape:
        return partial(_frames, schema=readable_schema(settings.query), fingerprint=settings.fingerprint)

    def options(self, settings: Settings) -> dict[str, str]:
        """Options of Spark's writer to Kafka.

        Kafka does not compress, as the records are compressed already.
        """
        return topic_options(settings, settings.topic("results"), compression_type="none", linger_ms="0")

    def read_back(
        self, settings: Settings, *, after: Position | None = None, until: Position | None = None
    ) -> pa.RecordBatchReader:
        """Rows of all records.

        The reader raises ProtocolError, with the record's place, for a damaged record. It raises
        IncompatibleStateError for a record of another query.
        """
        schema = readable_schema(settings.query)
        rows = _rows(settings, schema, self.records(settings, after, until))
        return pa.RecordBatchReader.from_batches(schema, rows)


def _frames(
    tables: Iterable[pa.Table], bucket: int, *, schema: pa.Schema, fingerprint: str
) -> Iterator[pa.Table]:
    waiting: list[bytes] = []
    rows = (readable(table, schema) for table in tables)
    for record in encode_results(rows, fingerprint=fingerprint, bucket=bucket):
        waiting.append(record)
        if sum(map(len, waiting)) >= _BYTES_AT_ONCE:
            yield _records(waiting, bucket)
            waiting = []
    if waiting:
        yield _records(waiting, bucket)


def _records(values: list[bytes], bucket: int) -> pa.Table:
    keys = [b"%d" % bucket] * len(values)
    columns = {"key": keys, "value": values, "partition": [bucket] * len(values)}
    return pa.table(columns, schema=_RECORDS)


def _rows(settings: Settings, schema: pa.Schema, blocks: Iterable[list[Record]]) -> Iterator[pa.RecordBatch]:
    topic, fingerprint = settings.topic("results"), settings.fingerprint
    for messages in blocks:
        for message in messages:
            try:
                header, batch = decode_results(
                    message.value(), schema=schema, fingerprint=fingerprint, keys=settings.query.result_keys
                )
                _check_place(message, header)
            except (ProtocolError, IncompatibleStateError) as error:
                where = f"{topic}[{message.partition()}] offset {message.offset()}"
                raise type(error)(f"{where}: {error.message}", hint=error.hint or _FOREIGN) from None
            yield batch


_FOREIGN = "who else writes to this topic? Give the results a topic of their own (results.topic)"


def _check_place(message: Record, header: ResultHeader) -> None:
    if message.key() != b"%d" % header.bucket or message.partition() != header.bucket:
        raise ProtocolError(
            f"a result frame of bucket {header.bucket} lies under the key {message.key()!r:.100}"
        )


SINK = ResultFrames()
