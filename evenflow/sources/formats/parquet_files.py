"""Parquet files. Columns have the types that the file gives them.

Points in time become ISO 8601 text, which is what a record carries. If a number is asked for as the time
(`--time-unit ms`), the time column becomes that number. A field within others is named by its path
(`user.id`), as in JSON lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evenflow.errors import ConfigError
from evenflow.grammar.inputs import TimeUnit
from evenflow.sources.event_time import parse_times, render_times
from evenflow.sources.files import is_parquet
from evenflow.sources.source import (
    BATCH_TUPLES,
    SourceFormat,
    SourceOptions,
    TableSource,
    bounded,
    column_at,
    outermost,
    require_columns,
)

_SHOWN = 12
"""Most column names in a message."""


def open_parquet(path: str, options: SourceOptions) -> TableSource:
    """The file as a bounded source. Only the columns that the options name are read."""
    with _opened(path) as file:
        present = file.schema_arrow.names
        named = (options.key, options.time, *(options.columns or ()))
        outermost_names = [outermost(present, name) for name in named if name is not None]
        require_columns(path, present, tuple(outermost_names))
        columns = present if options.columns is None else list(dict.fromkeys(outermost_names))
        table = _rows(file, columns, options.first if options.keep_order else None)
    points = options.time is not None and _is_point(column_at(path, table, options.time).type)
    unit: TimeUnit = "iso" if points else "ms"
    return bounded(path, _as_records(path, table, options), options, time_unit=unit)


def look(path: str, options: SourceOptions) -> tuple[SourceOptions, str]:
    """(the options unchanged, rows and columns in words)."""
    with _opened(path) as file:
        names = file.schema_arrow.names
        columns = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        return options, f"Parquet, {file.metadata.num_rows:,} rows, columns {columns}"


@contextmanager
def _opened(path: str) -> Iterator[pq.ParquetFile]:
    """The file while it is read. ConfigError for whatever goes wrong with its bytes."""
    place = Path(path)
    if place.is_dir():
        raise ConfigError(
            f"{path} is a folder, not one Parquet file",
            hint="name one of its files, or join them to one file",
        )
    if not place.exists():
        raise ConfigError(f"there is no file {path}", hint="check the path")
    if not is_parquet(place):
        raise ConfigError(
            f"{path} is no Parquet file: its bytes do not begin and end with PAR1",
            hint=(
                "unpack it, fetch it again if it was cut short, or say what"
                " it is with --format csv, json or words"
            ),
        )
    try:
        with pq.ParquetFile(place) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise ConfigError(
            f"{path} is not a readable Parquet file: {str(error).splitlines()[0]}",
            hint="fetch or write it again",
        ) from None


def _rows(file: pq.ParquetFile, columns: list[str], most: int | None) -> pa.Table:
    schema = pa.schema([file.schema_arrow.field(name) for name in columns])
    batches: list[pa.RecordBatch] = []
    left = file.metadata.num_rows if most is None else most
    for batch in file.iter_batches(BATCH_TUPLES, columns=columns):
        batches.append(batch.select(columns).slice(0, left))
        left -= len(batches[-1])
        if left == 0:
            break
    return pa.Table.from_batches(batches, schema)


def _as_records(path: str, table: pa.Table, options: SourceOptions) -> pa.Table:
    """The table with points in time as records carry them."""
    for place, field in enumerate(table.schema):
        if not _is_point(field.type):
            continue
        column = table.column(place)
        if field.name == options.time and options.time_unit not in (None, "iso"):
            times = parse_times(column, "iso", name=field.name, where=path)
            table = table.set_column(place, field.name, render_times(times, options.time_unit))
        else:
            table = table.set_column(place, field.name, _iso_text(column))
    return table


def _is_point(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_date(kind)


def _iso_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates, and times with microseconds at most. Z stands behind a time of the file that has a zone."""
    kind = column.type
    if pa.types.is_date(kind):
        return column.cast(pa.date32()).cast(pa.string())
    unit = "us" if kind.unit == "ns" else kind.unit
    plain = column.cast(pa.timestamp(unit, kind.tz), safe=False).cast(pa.timestamp(unit))
    return pc.strftime(plain, format="%Y-%m-%dT%H:%M:%SZ" if kind.tz else "%Y-%m-%dT%H:%M:%S")


FORMAT = SourceFormat("parquet", "Parquet file", open_parquet, (".parquet", ".pq"), look=look)
