"""JSON rows in a Kafka topic. The key of a record is the row's key as bytes, whatever the key's type.

The sink is idempotent, not transactional: a repeated micro-batch appends equal rows once more, and (window,
key) determines the value. docs/results.md says how a reader drops repeated rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa

from evenflow.settings import Settings
from evenflow.twostep import json_rows, key_schema, with_key_columns
from spark_consumers.sinks.base import JSON_RECORDS, Position, Shape, gathered
from spark_consumers.sinks.topic import TopicSink
from topics import reader

_ROWS = pa.schema([("key", pa.binary()), ("value", pa.string())])


class KafkaRows(TopicSink):
    """One record per row: the raw key, and a JSON object as value."""

    name = "kafka"

    def schema(self, settings: Settings) -> pa.Schema:
        return _ROWS

    def shaper(self, settings: Settings) -> Shape:
        return partial(_json, keys=key_schema(settings.query))

    def read_back(
        self, settings: Settings, *, after: Position | None = None, until: Position | None = None
    ) -> pa.RecordBatchReader:
        batches = reader.record_batches(
            self.records(settings, after, until),
            JSON_RECORDS,
            lambda record: (record.partition(), record.offset(), record.value(), record.key()),
        )
        return pa.RecordBatchReader.from_batches(JSON_RECORDS, batches)


def _json(tables: Iterable[pa.Table], bucket: int, *, keys: pa.Schema) -> Iterator[pa.Table]:
    for table in gathered(tables):
        yield pa.table({"key": table["key"], "value": json_rows(with_key_columns(table, keys))})


SINK = KafkaRows()
