"""Avro rows in a Kafka topic, with their schema in a registry (evenflow/wire/avro_rows.py).

The key of a record is the row's key as bytes, and repetitions are known as in `kafka.py`. The registry is
asked at a start alone. Spark's Python workers encode the rows. The writer puts the number of the schema in
front of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from evenflow.twostep import json_rows, never_null, readable, readable_schema
from evenflow.windows import END_MARK, NO_MARK
from evenflow.wire.avro_rows import AvroForm, decode_rows, encode_rows, header, window_end_of
from spark_consumers.sinks.base import JSON_RECORDS, Position, Shape, Start, gathered
from spark_consumers.sinks.topic import TopicSink
from spark_consumers.stage_output import Write, into_kafka
from topics import reader
from topics.schemas.results import ResultsRegistry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = pa.schema([("key", pa.binary()), ("value", pa.binary())])


class AvroRows(TopicSink):
    """One record per row: the raw key, and the row in Confluent's wire format as value."""

    name = "avro"

    def check(self, settings: Settings) -> None:
        """As every sink that writes to a topic. Raises ConfigError if the settings name no registry, too."""
        super().check(settings)
        if settings.results_registry is None:
            raise ConfigError(
                "results.sink = 'avro' needs a schema registry",
                hint="set url in [results.registry]. Without it, that of [input.registry] is taken",
            )

    def reach(self, settings: Settings) -> None:
        """Register the schema, or find it registered. Raises as `ResultsRegistry.admit` does."""
        _registry(settings).admit(
            subject(settings), avro_form(settings).text, register=settings.results.register_schema
        )

    def keeps(self, settings: Settings) -> list[str]:
        """The subject stays: whoever has copied the rows reads them by its schema."""
        assert settings.results_registry is not None  # `check` refuses settings without a registry
        url, name = settings.results_registry[1].url.rstrip("/"), subject(settings)
        return [
            f"subject {name} of the schema registry at {url}: a query that begins anew with the same results"
            " uses it again. Once nobody reads such rows, `curl -X DELETE"
            f" {url}/subjects/{quote(name, safe='')}` deletes it"
        ]

    def registered_schema(self, settings: Settings) -> tuple[str, str]:
        """(subject in the schema registry, text of the schema). Asks no registry."""
        return subject(settings), avro_form(settings).text

    def end_of(self, value: bytes | None) -> int | None:
        """As of every sink. Nearly any bytes could be an Avro row,
        so a record counts if it begins as such rows do.
        """
        try:
            if value is None or value[:1] != b"\0":
                return None
            end = window_end_of(value)
        except ValueError:
            return None
        return end if NO_MARK <= end <= END_MARK else None

    def schema(self, settings: Settings) -> pa.Schema:
        return _ROWS

    def shaper(self, settings: Settings) -> Shape:
        return partial(_avro, form=avro_form(settings))

    def writer(self, settings: Settings, start: Start) -> Write:
        before, write = self.header(settings), into_kafka(self.options(settings))
        return lambda rows, batch: write(_with_headers(rows, before), batch)

    def header(self, settings: Settings) -> bytes:
        """The bytes in front of each row. Raises as `ResultsRegistry.registered` does."""
        return header(_registry(settings).registered(subject(settings), avro_form(settings).text))

    def read_back(
        self, settings: Settings, *, after: Position | None = None, until: Position | None = None
    ) -> pa.RecordBatchReader:
        """The rows as JSON. The value of a record that is no row of the query by its schema is null.

        Raises as `ResultsRegistry.registered` does, too.
        """
        form, before = avro_form(settings), self.header(settings)
        batches = reader.record_batches(
            self.records(settings, after, until),
            JSON_RECORDS,
            lambda record: (record.partition(), record.offset(), record.value(), record.key()),
        )
        return pa.RecordBatchReader.from_batches(
            JSON_RECORDS, (with_json(batch, form, before) for batch in batches)
        )


def subject(settings: Settings) -> str:
    """The name under which the registry has the schema of these results."""
    return f"{settings.topic('results')}-value"


def avro_form(settings: Settings) -> AvroForm:
    """How the rows of these results are written."""
    query = settings.query
    return AvroForm(readable_schema(query), never_null(query), settings.topic("results"))


def _registry(settings: Settings) -> ResultsRegistry:
    section_and_registry = settings.results_registry
    assert section_and_registry is not None  # `check` has seen to it
    section, registry = section_and_registry
    return ResultsRegistry(registry, section)


def _with_headers(rows: DataFrame, before: bytes) -> DataFrame:
    """The rows with this in front of each value."""
    from pyspark.sql import functions as f

    return rows.withColumn("value", f.concat(f.lit(bytearray(before)), f.col("value")))


def _avro(tables: Iterable[pa.Table], bucket: int, *, form: AvroForm) -> Iterator[pa.Table]:
    for table in gathered(tables):
        rows = encode_rows(readable(table, form.schema), form)
        yield pa.table([table["key"], rows], schema=_ROWS)


def with_json(records: pa.RecordBatch, form: AvroForm, before: bytes) -> pa.RecordBatch:
    """Records (JSON_RECORDS) with rows as JSON in place of rows as Avro, and null in place of anything else.

    before: the header of the rows.
    """
    rows, places = [], []
    for place, value in enumerate(records["value"].to_pylist()):
        if value is not None and value.startswith(before):
            rows.append(value[len(before) :])
            places.append(place)
    table, row_numbers = decode_rows(rows, form)
    for at, name in enumerate(("window_start", "window_end")):
        table = table.set_column(at, name, table[name].cast(pa.int64()))
    values: list[bytes | None] = [None] * len(records)
    for row, text in zip(
        row_numbers, json_rows(table.combine_chunks()).cast(pa.binary()).to_pylist(), strict=True
    ):
        values[places[row]] = text
    at = JSON_RECORDS.get_field_index("value")
    return records.set_column(at, JSON_RECORDS.field(at), pa.array(values, pa.binary()))


SINK = AvroRows()
