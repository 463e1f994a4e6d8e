"""What a source is: batches of typed columns, record keys and event times, and how a file becomes one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.errors import ConfigError
from evenflow.rank_laws import numbered_times
from evenflow.settings import Settings, paths
from evenflow.settings.query import ColumnType, decimal_scale
from evenflow.sources.event_time import TimeUnit, parse_times, render_times

BATCH_TUPLES = 50_000
"""Tuples in a batch: the most that is rendered at once."""

FileFormat = Literal["csv", "json", "words"]
"""The formats that a user can name outright."""

_ARROW_TYPES = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.string(),
}


def arrow_type(kind: ColumnType) -> pa.DataType:
    """As what a column of this type is read from a file: so that a record carries the value exactly, a date as its text."""
    scale = decimal_scale(kind)
    return _ARROW_TYPES[kind] if scale is None else pa.decimal128(38, scale)


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """How to read a source. A None means: as the source itself suggests."""

    format: FileFormat | None = None
    """What the file is. None: as its name or its content says."""
    columns_named: bool = False
    """Somebody named columns of this file, so a text file is a table and not running text."""
    key: str | None = None
    """Column whose bytes are the record key."""
    time: str | None = None
    """Column that holds the event time."""
    time_unit: TimeUnit | None = None
    """Unit of that column (files: ms when None)."""
    columns: tuple[str, ...] | None = None
    """Columns that records carry, in this order. None: all."""
    values: tuple[str, ...] = ()
    """Value columns. A generator names its value column after the first."""
    types: dict[str, ColumnType] = field(default_factory=dict)
    """Types that are declared rather than inferred."""
    delimiter: str | None = None
    """Field delimiter of CSV. None: as the first rows say (a tab for .tsv)."""
    header: bool = True
    """Whether CSV starts with column names. Otherwise they are `names`, or c0, c1, ..."""
    names: tuple[str, ...] | None = None
    """Names of the columns of CSV without a header, where a data set has them."""
    encoding: str = "utf-8"
    """Character encoding of CSV and text files."""
    keep_order: bool = False
    """Keep the order of the file instead of sorting by event time."""
    event_rate: float | None = None
    """Tuples per second of event time where the source has no time column."""
    first: int | None = None
    """With `keep_order`: no more than the first so many tuples are asked for, so a format need not read on."""
    keep_lines: bool = True
    """Send JSON lines as they are when all columns are sent."""

    @classmethod
    def for_settings(
        cls,
        settings: Settings,
        *,
        key: str | None = None,
        time: str | None = None,
        time_unit: TimeUnit | None = None,
        columns: tuple[str, ...] | None = None,
        values: tuple[str, ...] = (),
        format: FileFormat | None = None,
        delimiter: str | None = None,
        header: bool = True,
        encoding: str = "utf-8",
        keep_order: bool = False,
        event_rate: float | None = None,
    ) -> SourceOptions:
        """Options for what a query reads: its key, event time and types, unless given here.

        `values` alone means: send the key, the time and these. A query by '@key' or '@timestamp' names
        no column: then `key` or `time` does, or the source suggests one.
        """
        query, text = settings.query, settings.input.format == "text"
        columns_named = bool(key or time or columns or values)
        first = next(iter(query.key_columns), None)
        explosion = query.explosion
        of_element = (
            explosion is not None and explosion.way == "list" and explosion.within(first or "") is not None
        )
        named_key = None if text or first in query.columns or of_element else first
        named_time = None if query.time.startswith("@") or event_rate is not None else query.time
        key = key or named_key
        if time_unit is None and time in (None, query.time) and named_time is not None:
            time_unit = query.time_unit
        time = time or named_time
        if columns is None and text:
            columns = values[:1] or None
        elif columns is None and values:
            parts = (
                [name for name in query.key_columns if name not in query.columns] if key == named_key else []
            )
            columns = tuple(dict.fromkeys(name for name in (key, *parts, time, *values) if name is not None))
        types = {
            name: "string" for name, kind in query.read_as.items() if kind == "string" and name != query.time
        }
        types |= query.types
        if key is not None:
            types.setdefault(key, "string")
        return cls(
            format=format,
            columns_named=columns_named,
            key=key,
            time=time,
            time_unit=time_unit,
            columns=columns,
            values=values,
            types=types,
            delimiter=delimiter,
            header=header,
            encoding=encoding,
            keep_order=keep_order,
            event_rate=event_rate,
            keep_lines=settings.input.format == "json",
        )


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Some consecutive tuples. All arrays have the same length."""

    columns: pa.Table
    """The columns that records carry."""
    keys: pa.Array
    """Record keys (binary)."""
    times: np.ndarray
    """Event times, int64 ms."""
    lines: pa.Array | None = None
    """The records' own JSON text where the file had it. Sent as it is."""

    def __len__(self) -> int:
        return len(self.times)

    def slice(self, start: int, stop: int) -> Batch:
        """Tuples start .. stop-1."""
        return Batch(
            columns=self.columns.slice(start, stop - start),
            keys=self.keys.slice(start, stop - start),
            times=self.times[start:stop],
            lines=None if self.lines is None else self.lines.slice(start, stop - start),
        )

    def at(self, time_ms: int, *, column: str | None, unit: TimeUnit) -> Batch:
        """The same tuples with the event time `time_ms`, in the time column too."""
        times = np.full(len(self), time_ms, np.int64)
        columns = self.columns
        if column is not None and column in columns.column_names:
            place = columns.column_names.index(column)
            columns = columns.set_column(place, column, render_times(times, unit))
        return Batch(columns=columns, keys=self.keys, times=times)


class Source(Protocol):
    """A stream of keyed tuples. `batches` may be called again and starts over."""

    name: str
    """What the user calls it."""
    column_names: list[str]
    """Columns that records carry."""
    time: str | None
    """The column that holds the event time, if records carry it."""
    time_unit: TimeUnit
    rows: int | None
    """Number of tuples. None: endless."""
    key: str
    """The column that is the record key."""

    def batches(self, tuples: int = BATCH_TUPLES) -> Iterator[Batch]:
        """The tuples in order, cut into batches of at most `tuples`. The cut changes nothing else."""


@dataclass(frozen=True)
class SourceFormat:
    """A registered source format: `open(rest, options)`, where rest is a path or the text after 'name:'.

    A format of files also has `look`: the same options with what the beginning of the file tells, and in words how the
    file will be read.
    """

    name: str
    summary: str
    open: Callable[[str, SourceOptions], Source]
    suffixes: tuple[str, ...] = ()
    look: Callable[[str, SourceOptions], tuple[SourceOptions, str]] | None = None
    takes: frozenset[str] = frozenset()
    """Which of --delimiter, --no-header and --encoding mean something to it."""


class TableSource:
    """A bounded source that lies in memory."""

    def __init__(self, name: str, whole: Batch, *, key: str, time: str | None, time_unit: TimeUnit) -> None:
        self.name = name
        self.column_names: list[str] = whole.columns.column_names
        self.key = key
        self.time = time
        self.time_unit = time_unit
        self.rows: int | None = len(whole)
        self._whole = whole

    def batches(self, tuples: int = BATCH_TUPLES) -> Iterator[Batch]:
        for start in range(0, len(self._whole), tuples):
            yield self._whole.slice(start, min(start + tuples, len(self._whole)))


def bounded(
    name: str,
    table: pa.Table,
    options: SourceOptions,
    *,
    key: str | None = None,
    time: str | None = None,
    time_unit: TimeUnit = "ms",
    lines: pa.Array | None = None,
) -> TableSource:
    """A source from a whole table: keys and event times taken, sorted by time (stable), columns chosen.

    `key`, `time` and `time_unit` are what the format suggests. The options win.
    """
    key, time = options.key or key, options.time or time
    unit = options.time_unit or time_unit
    if key is None:
        raise ConfigError(
            f"{name}: which column is the record key?",
            hint=f"--key; columns: {', '.join(table.column_names)}",
        )
    columns = None if options.columns is None else [_outermost(table, column) for column in options.columns]
    keys = _column_at(name, table, key)
    require_columns(name, table.column_names, tuple(columns or ()))
    if time is None:
        times = _numbered(name, len(table), options.event_rate)
    else:
        times = parse_times(_column_at(name, table, time), unit, name=time, where=name)
    whole = Batch(
        columns=table if columns is None else table.select(list(dict.fromkeys(columns))),
        keys=key_bytes(keys, key=key, where=name),
        times=times,
        lines=lines if options.columns is None and options.keep_lines else None,
    )
    if not options.keep_order:
        whole = sorted_by_time(whole)
    return TableSource(name, whole, key=key, time=time, time_unit=unit)


def _outermost(table: pa.Table, column: str) -> str:
    """The column of the table that holds the one of this name, which may be a field within others (`user.id`)."""
    if column in table.column_names:
        return column
    try:
        return paths.segments(column)[0]
    except ValueError:
        return column


def _column_at(name: str, table: pa.Table, column: str) -> pa.ChunkedArray:
    """The column, or the field within others. ConfigError where there is none."""
    outer = _outermost(table, column)
    if outer == column or outer not in table.column_names:
        require_columns(name, table.column_names, (column,))
        return table.column(column)
    try:
        return pc.struct_field(table.column(outer), list(paths.segments(column)[1:]))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ConfigError(
            f"{name} has no field {column!r}: {outer!r} is {table.column(outer).type}",
            hint="choose with --key, --time (or the query's settings)",
        ) from None


def require_columns(name: str, present: list[str], wanted: tuple[str | None, ...]) -> None:
    """Raise ConfigError when a wanted column is not there. None is no column."""
    missing = [column for column in dict.fromkeys(wanted) if column is not None and column not in present]
    if not missing:
        return
    shown = ", ".join(repr(column) for column in present[:30]) + (", ..." if len(present) > 30 else "")
    hint = "choose with --key, --time, --columns (or the query's settings)"
    unnamed, wants_unnamed = (
        all(_NUMBERED.fullmatch(column) for column in columns) for columns in (present, missing)
    )
    if wants_unnamed and not unnamed:
        hint = "c0, c1, ... are the columns of a file without names: give --no-header"
    elif unnamed and not wants_unnamed:
        hint = "--no-header says that the first row has no names: drop it, or choose among these"
    elif len(present) == 1:
        hint = "only one column: is the delimiter right? Give --delimiter (and --no-header without names)"
    raise ConfigError(f"{name} has no column {', '.join(map(repr, missing))}; it has {shown}", hint=hint)


_NUMBERED = re.compile(r"c\d+")


def sorted_by_time(batch: Batch) -> Batch:
    """The tuples in order of event time. Equal times keep their order."""
    times = batch.times
    if len(times) < 2 or bool((times[1:] >= times[:-1]).all()):
        return batch
    order = np.argsort(times, kind="stable")
    indices = pa.array(order)
    return Batch(
        columns=batch.columns.take(indices).combine_chunks(),
        keys=batch.keys.take(indices),
        times=times[order],
        lines=None if batch.lines is None else batch.lines.take(indices),
    )


def key_bytes(column: pa.ChunkedArray | pa.Array, *, key: str, where: str) -> pa.Array:
    """A key column as record keys: the bytes of its text. A null stays null."""
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_nested(flat.type):
        raise ConfigError(
            f"{where}: the key column {key!r} holds objects or lists", hint="choose another --key"
        )
    if not pa.types.is_large_binary(flat.type) and not pa.types.is_binary(flat.type):
        flat = flat.cast(pa.large_string())
    return flat.cast(pa.large_binary())


def _numbered(name: str, rows: int, rate: float | None) -> np.ndarray:
    if rate is None:
        raise ConfigError(
            f"{name}: which column is the event time?",
            hint="--time COLUMN, or --event-rate R to number the rows at R tuples per second of event time",
        )
    return numbered_times(0, rows, rate=rate)
