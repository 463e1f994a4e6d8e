"""The results of a query as typed rows, each once, whatever its sink: for a person to look at,
to follow and to export.

sink --read_back--> tables --once--> new rows --follow--> screen
                       \\--into DuckDB--> one window, one key, or a file of all
"""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.errors import ConfigError, ProtocolError, ServiceError
from evenflow.reporting.words import clock
from evenflow.settings import Query, Settings
from evenflow.text.strict_json import once_each
from evenflow.twostep import json_rows, readable_schema
from spark_consumers.sinks import sink_of
from spark_consumers.sinks.base import Position
from workbench.duckdb_streams import PulledStream, unwrapped_errors
from workbench.verify.results import key_of_results
from workbench.verify.sql import identifier, newest
from workbench.verify.windows.oracles import is_number

_WRITERS: dict[str, Callable[[duckdb.DuckDBPyRelation, str], object]] = {
    ".csv": lambda rows, file: rows.write_csv(file, header=True),
    ".parquet": lambda rows, file: rows.write_parquet(file),
}
"""Ending of an exported file -> what writes rows to it."""
_WINDOWS_REMEMBERED = 1_000
"""A row that is repeated is known by its window and key. So many windows are remembered."""


class Window(NamedTuple):
    """A window of the results."""

    start: int
    """Event time (ms) at which the window begins."""
    end: int
    """Event time (ms) before which it ends."""
    rows: int
    """How many result rows it has."""

    def __str__(self) -> str:
        return f"{clock(self.start)} to {clock(self.end)} UTC"


@dataclass(frozen=True, kw_only=True)
class Page:
    """Rows of one window, the largest first."""

    window: Window | None
    """The window whose rows these are. None if there are no results."""
    table: pa.Table
    """The rows, with the columns of `readable_schema`."""
    windows: int
    """How many windows have results."""


class ResultRows:
    """Reads the results of these settings. `new` gives what was written since the last call, each row
    once.
    """

    def __init__(self, settings: Settings) -> None:
        """Raises ConfigError for settings with which the sink cannot work, or if it does not read back."""
        self._settings = settings
        self._sink = sink_of(settings)
        self._sink.check_reading(settings)
        self._after: Position | None = None
        revision = ("revision",) if settings.query.emission.updates else ()
        self._new_rows = NewRows((*settings.query.result_keys, *revision))

    def pass_over(self) -> None:
        """Begin behind the results that are there now, or at the beginning if there is nothing
        to read from yet.
        """
        with suppress(ServiceError):
            self._after = self._sink.position(self._settings)

    def new(self) -> Iterator[pa.Table]:
        """Tables (`readable_schema`) of the rows that were written since the last call, without repetitions.

        Raises as `ResultSink.read_back` does, and ProtocolError for a record that is no row of the query.
        """
        until = self._sink.position(self._settings)
        for table in _tables(self._settings, after=self._after, until=until):
            fresh = self._new_rows.of(table)
            if fresh.num_rows:
                yield fresh
        self._after = until


class NewRows:
    """Drops rows whose window and key came before. It forgets the oldest windows, but never the newest
    1,000.
    """

    def __init__(self, keys: Sequence[str] = ("key",)) -> None:
        """keys: names of the columns that hold the key, and with updates the revision."""
        self._columns = keys
        self._keys: dict[int, set[Any]] = {}

    def of(self, table: pa.Table) -> pa.Table:
        """The rows of the table that are new."""
        ends = pc.cast(table["window_end"], pa.int64()).to_pylist()
        keys = zip(*(table[name].to_pylist() for name in self._columns), strict=True)
        fresh = []
        for row, (end, key) in enumerate(zip(ends, keys, strict=True)):
            known = self._keys.setdefault(end, set())
            if key not in known:
                known.add(key)
                fresh.append(row)
        while len(self._keys) > _WINDOWS_REMEMBERED:
            del self._keys[min(self._keys)]
        return table if len(fresh) == table.num_rows else table.take(pa.array(fresh, pa.int64()))


def page(settings: Settings, *, window: int | None, key: bytes | None, most: int) -> Page:
    """Rows of one window, or of every window that has the key, the newest first.

    window: when it begins (ms), None for the newest, or with a key for all. key: only rows of this key. most:
    how many rows at most.

    Raises as `ResultRows.new` does, and ConfigError for a window that has no results.
    """
    with _loaded(settings) as db:
        windows = _windows(db)
        if not windows:
            return Page(window=None, table=readable_schema(settings.query).empty_table(), windows=0)
        chosen = windows[-1] if window is None else _window(windows, window)
        rows = _rows(db, settings.query, window=chosen.start if key is None else window, key=key)
        order = _order(settings.query) if key is None else "window_start DESC"
        # An Arrow table of `execute` would be a copy of the rows, with a warning.
        table: pa.Table = rows.order(order).limit(most).to_arrow_table()
        return Page(window=chosen, table=table.cast(readable_schema(settings.query)), windows=len(windows))


def export(settings: Settings, file: Path, *, window: int | None = None, key: bytes | None = None) -> int:
    """Write results to a CSV or Parquet file, by its ending, ordered by window and key.
    Returns how many rows.

    The file appears whole, and replaces an older one. window: only the one that begins then (ms). key: only
    this key.

    Raises as `page` does, and ConfigError for another ending and for a folder that cannot be written to.
    """
    write = _WRITERS.get(file.suffix.lower())
    if write is None:
        raise ConfigError(
            f"{file} ends with neither {' nor '.join(_WRITERS)}", hint="its ending says the format"
        )
    if not os.access(file.parent, os.W_OK):
        raise ConfigError(f"{file.parent} is no folder that can be written to")
    with _loaded(settings) as db:
        if window is not None:
            _window(_windows(db), window)
        rows = _rows(db, settings.query, window=window, key=key)
        part = file.with_name(f".{file.name}.{os.getpid()}.part")
        try:
            write(rows.order(f"window_start, {key_of_results(settings.query)}"), str(part))
            part.replace(file)
        finally:
            with suppress(FileNotFoundError):
                part.unlink()
        return len(rows)


def _windows(db: duckdb.DuckDBPyConnection) -> list[Window]:
    """The windows that have results, by their beginning."""
    cursor = db.execute(
        "SELECT epoch_ms(window_start), epoch_ms(window_end), count(*) FROM rows GROUP BY ALL ORDER BY 1"
    )
    return [Window(*row) for row in cursor.fetchall()]


def _rows(
    db: duckdb.DuckDBPyConnection, query: Query, *, window: int | None, key: bytes | None
) -> duckdb.DuckDBPyRelation:
    """The rows of a window and of a key. None: of any."""
    conditions: dict[str, Any] = {}
    if window is not None:
        conditions["epoch_ms(window_start) = ?"] = window
    if key is not None:
        conditions[f"{key_of_results(query)} = ?"] = key
    where = " AND ".join(["true", *conditions])
    return db.sql(f"SELECT * FROM rows WHERE {where}", params=list(conditions.values()))


def json_lines(table: pa.Table) -> list[str]:
    """Rows (`readable_schema`) as results have them in Kafka: one JSON object each."""
    for at, name in enumerate(("window_start", "window_end")):
        table = table.set_column(at, name, table[name].cast(pa.int64()))
    lines: list[str] = json_rows(table.combine_chunks()).to_pylist()
    return lines


@contextmanager
def _loaded(settings: Settings) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB with the table `rows`: the results, each once.
    It lies in a folder of its own, which goes with it.
    """
    until = sink_of(settings).position(settings)
    tables = _tables(settings, after=None, until=until)
    written = PulledStream(
        chain.from_iterable(map(pa.Table.to_batches, tables)), readable_schema(settings.query)
    )
    with (
        TemporaryDirectory(prefix="evenflow-results-") as folder,
        duckdb.connect(str(Path(folder) / "rows.db")) as db,
    ):
        db.execute("SET TimeZone = 'UTC'")
        db.register("written", written.reader)
        with unwrapped_errors(written):
            highest = newest(settings.query, "revision", "window_start", key_of_results(settings.query))
            # A repeated row is equal to the first in every column.
            db.execute(f"CREATE TABLE rows AS SELECT DISTINCT * FROM written {highest}")
        yield db


def _tables(settings: Settings, *, after: Position | None, until: Position) -> Iterator[pa.Table]:
    """The results between two positions, repetitions included, with the columns of `readable_schema`."""
    schema = readable_schema(settings.query)
    source = sink_of(settings).read_back(settings, after=after, until=until)
    if not source.schema.names:  # a Parquet sink without files
        return
    batches: Iterable[pa.RecordBatch] = source.to_batches() if isinstance(source, pa.Table) else source
    for batch in batches:
        if "window_start" not in source.schema.names:
            yield typed_rows(batch, settings.query)
        else:
            table = pa.Table.from_batches([batch])
            if set(table.schema.names) != set(schema.names):
                raise ProtocolError(
                    f"the results have the columns {', '.join(table.schema.names)}, but the query gives "
                    f"{', '.join(schema.names)}",
                    hint="take the settings that the pipeline ran with",
                )
            yield table.select(schema.names).cast(schema)


_FOREIGN = (
    "take the settings that the pipeline ran with. Who else writes to this topic? Give the results a topic of"
    " their own (results.topic)"
)


def typed_rows(records: pa.RecordBatch, query: Query) -> pa.Table:
    """JSON rows (columns JSON_RECORDS) as typed columns (`readable_schema`).

    Raises ProtocolError, with the place, for a record that is no row of the query.
    """
    schema = readable_schema(query)
    readers = [_reader(field) for field in schema]
    columns: list[list[Any]] = [[] for _ in schema]
    for number, text in enumerate(records["value"].to_pylist()):
        try:
            row = json.loads(text, parse_float=Decimal, parse_int=_signed, object_pairs_hook=once_each)
            for column, read in zip(columns, readers, strict=True):
                column.append(read(row))
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as error:
            at = f"partition {records['partition'][number]}, offset {records['offset'][number]}"
            raise ProtocolError(
                f"the record at {at} of the results is no row of query {query.name}: "
                f"{type(error).__name__} {str(error)[:100]}",
                hint=_FOREIGN,
            ) from None
    try:
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    # A number or text that no such column holds.
    except (pa.ArrowException, ValueError, OverflowError) as error:
        first, last = records["offset"][0], records["offset"][len(records) - 1]
        raise ProtocolError(
            f"one of the records at offsets {first} to {last} of the results is no row of"
            f" query {query.name}: {str(error)[:100]}",
            hint=_FOREIGN,
        ) from None
    return pa.Table.from_arrays(arrays, schema=schema)


def _signed(text: str) -> int | float:
    """The number, and for `-0` the float that was written so."""
    return int(text) if text != "-0" else -0.0


def _reader(field: pa.Field) -> Callable[[dict[str, Any]], Any]:
    """What takes a column's value out of a JSON row."""
    name, value = field.name, _value_reader(field.type)
    if field.type == pa.binary() and name == "key":

        def raw(row: dict[str, Any]) -> bytes:
            return row["key"].encode() if "key" in row else base64.b64decode(row["key_base64"], validate=True)

        return raw

    return lambda row: value(row[name])


def _value_reader(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_list(kind):
        entry = _value_reader(kind.value_type)
        read: Callable[[Any], Any] = lambda value: [entry(each) for each in value]  # noqa: E731
    elif pa.types.is_struct(kind):
        entries = {field.name: _value_reader(field.type) for field in kind}
        read = lambda value: {name: entry(value[name]) for name, entry in entries.items()}  # noqa: E731
    elif pa.types.is_floating(kind):
        read = float  # "NaN" and "Infinity" are texts
    elif pa.types.is_decimal(kind):
        read = _decimal
    elif pa.types.is_date(kind):
        read = date.fromisoformat
    elif pa.types.is_string(kind):
        read = _of_type(str)
    elif pa.types.is_boolean(kind):
        read = _of_type(bool)
    else:
        read = _whole
    return lambda value: None if value is None else read(value)


def _of_type(expected: type[Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not expected:
            raise TypeError(f"{str(value)[:50]!r} is no {expected.__name__}")
        return value

    return read


_whole = _of_type(int)


def _decimal(value: Any) -> Decimal:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no decimal")
    return Decimal(value)


def _window(windows: list[Window], start: int) -> Window:
    for window in windows:
        if window.start == start:
            return window
    raise ConfigError(
        f"no window with results begins at {clock(start)} UTC",
        hint=(
            f"{len(windows):,} windows have results, the first begins at {clock(windows[0].start)} and the"
            f" last at {clock(windows[-1].start)} UTC"
        ),
    )


def _order(query: Query) -> str:
    """SQL of the order of a window's rows: by rank if there is one, or by the first number,
    the largest first.
    """
    schema = readable_schema(query)
    if "rank" in query.emission.columns:
        return "rank"
    numbers = [field.name for field in schema if field.name in query.aggregates and is_number(field.type)]
    largest = [f"{identifier(numbers[0])} DESC NULLS LAST"] if numbers else []
    return ", ".join([*largest, key_of_results(query)])
