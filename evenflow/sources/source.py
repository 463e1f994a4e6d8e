"""What a source is: batches of typed columns, record keys and event times. Also how a table becomes a
source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.errors import ConfigError
from evenflow.generation.rank_laws import numbered_times
from evenflow.grammar import paths
from evenflow.grammar.column_types import ColumnType, decimal_scale
from evenflow.grammar.inputs import FileFormat, TimeUnit
from evenflow.settings import Settings
from evenflow.sources.event_time import parse_times, render_times

BATCH_TUPLES = 50_000
"""Tuples in a batch, which are the most that are rendered at once."""

_ARROW_TYPES = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.string(),
}


def arrow_type(kind: ColumnType) -> pa.DataType:
    """The Arrow type as which a file's column of this type is read,
    so that a record carries the value exactly.

    A date is read as its text.
    """
    scale = decimal_scale(kind)
    return _ARROW_TYPES[kind] if scale is None else pa.decimal128(38, scale)


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """How to read a source. None in a field means: as the source itself suggests."""

    format: FileFormat | None = None
    """Format of the file. None: its name or its content tells it."""
    columns_named: bool = False
    """Whether the user named columns of this file. A text file is then a table and not running text."""
    key: str | None = None
    """Column whose bytes are the record key."""
    time: str | None = None
    """Column that holds the event time."""
    time_unit: TimeUnit | None = None
    """Unit of the time column. None means ms for a file."""
    columns: tuple[str, ...] | None = None
    """Columns that records carry, in this order. None: all."""
    values: tuple[str, ...] = ()
    """Value columns. A generator gives the first of these names to its value column."""
    types: dict[str, ColumnType] = field(default_factory=dict)
    """Declared types of columns. Other types are inferred."""
    delimiter: str | None = None
    """Field delimiter of CSV. None: the first rows show it (a tab for .tsv)."""
    header: bool = True
    """Whether CSV starts with column names. Otherwise the names are `names`, or c0, c1, ..."""
    names: tuple[str, ...] | None = None
    """Names of the columns of CSV without a header, if a data set defines them."""
    encoding: str = "utf-8"
    """Character encoding of CSV and text files."""
    keep_order: bool = False
    """Whether to keep the order of the file instead of sorting by event time."""
    event_rate: float | None = None
    """Tuples per second of event time, for a source without a time column."""
    first: int | None = None
    """With `keep_order`: only the first tuples, at most this many, will be used,
    so a format need not read on.
    """
    keep_lines: bool = True
    """Whether to send JSON lines as they are if all columns are sent."""

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
        """Options that read what a query needs: its key, event time and types, unless they are given here.

        If `values` is given without `columns`, the key, the time and the values are sent. A query by '@key'
        or '@timestamp' names no column. The column is then `key` or `time`, or the one that the source
        suggests.
        """
        query, text = settings.query, settings.input.format == "text"
        columns_named = bool(key or time or columns or values)
        first = next(iter(query.key_columns), None)
        explosion = query.explosion
        of_element = (
            explosion is not None and explosion.way == "list" and explosion.within(first or "") is not None
        )
        # A derived or looked-up key, or a key within an element of a list, is no column of the file.
        named_key = None if text or first in query.computed_columns or of_element else first
        named_time = None if query.time.startswith("@") or event_rate is not None else query.time
        key = key or named_key
        if time_unit is None and time in (None, query.time) and named_time is not None:
            time_unit = query.time_unit
        time = time or named_time
        if columns is None and text:  # a text record holds one column
            columns = values[:1] or None
        elif columns is None and values:
            parts = (
                [name for name in query.key_columns if name not in query.computed_columns]
                if key == named_key
                else []
            )
            columns = tuple(dict.fromkeys(name for name in (key, *parts, time, *values) if name is not None))
        # Columns that the query reads as text stay text, even if they look like numbers.
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
    """The records' JSON text as the file has it, which is sent as it is.
    None: records are rendered from `columns`.
    """

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
        """The same tuples, all with the event time `time_ms`.
        The time column, if there is one, is changed too.

        The records' own JSON text is dropped, because it would hold the former time.
        """
        times = np.full(len(self), time_ms, np.int64)
        columns = self.columns
        if column is not None and column in columns.column_names:
            place = columns.column_names.index(column)
            columns = columns.set_column(place, column, render_times(times, unit))
        return Batch(columns=columns, keys=self.keys, times=times)


class Source(Protocol):
    """A stream of keyed tuples. Each call of `batches` starts from the beginning."""

    name: str
    """The source as the user wrote it."""
    column_names: list[str]
    """Columns that records carry."""
    time: str | None
    """The column that holds the event time. None if the source has none."""
    time_unit: TimeUnit
    rows: int | None
    """Number of tuples. None: endless."""
    key: str
    """The column that is the record key."""

    def batches(self, tuples: int = BATCH_TUPLES) -> Iterator[Batch]:
        """The tuples in order, in batches of at most `tuples`.
        The size of the batches does not change the tuples.
        """


@dataclass(frozen=True)
class SourceFormat:
    """A registered source format."""

    name: str
    """The name by which a source is written: "name:rest"."""
    summary: str
    """What such a source is, in one line."""
    open: Callable[[str, SourceOptions], Source]
    """Makes the source from (rest, options), where rest is a path or the text behind 'name:'."""
    suffixes: tuple[str, ...] = ()
    """Endings of its files."""
    look: Callable[[str, SourceOptions], tuple[SourceOptions, str]] | None = None
    """Reads the beginning of a file. Returns the options with what it saw, and in words how the file will be
    read. None where nothing has to be seen beforehand."""
    takes: frozenset[str] = frozenset()
    """The options of --delimiter, --no-header and --encoding that the format uses."""


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

    @property
    def same_time(self) -> int | None:
        """The event time (ms) that all tuples have. None if they differ, or if there is but one tuple."""
        times = self._whole.times
        return int(times[0]) if len(times) > 1 and times.min() == times.max() else None

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
    """A source from a whole table: it takes keys and event times, chooses columns,
    and sorts by time (stable).

    key, time, time_unit: what the format suggests. The options win. lines: the JSON text of each row.
    ConfigError for a missing column, a key that holds objects or lists, or an event time that cannot be
    parsed.
    """
    key, time = options.key or key, options.time or time
    unit = options.time_unit or time_unit
    if key is None:
        raise ConfigError(
            f"{name}: which column is the record key?",
            hint=f"--key; columns: {', '.join(table.column_names)}",
        )
    columns = (
        None
        if options.columns is None
        else [outermost(table.column_names, column) for column in options.columns]
    )
    keys = column_at(name, table, key)
    require_columns(name, table.column_names, tuple(columns or ()))
    if time is None:
        times = _numbered(name, len(table), options.event_rate)
    else:
        times = parse_times(column_at(name, table, time), unit, name=time, where=name)
    whole = Batch(
        columns=table if columns is None else table.select(list(dict.fromkeys(columns))),
        keys=key_bytes(keys, key=key, where=name),
        times=times,
        lines=lines if options.columns is None and options.keep_lines else None,
    )
    if not options.keep_order:
        whole = sorted_by_time(whole)
    return TableSource(name, whole, key=key, time=time, time_unit=unit)


def outermost(present: list[str], column: str) -> str:
    """The column of those present that holds the column of this name,
    which may be a field within others (`user.id`).
    """
    if column in present:
        return column
    try:
        return paths.segments(column)[0]
    except ValueError:
        return column


def column_at(name: str, table: pa.Table, column: str) -> pa.ChunkedArray:
    """The column, or the field within others, of this name. ConfigError if there is none."""
    outer = outermost(table.column_names, column)
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


def require_columns(name: str, present: list[str], names: tuple[str | None, ...]) -> None:
    """Raise ConfigError if a column of these names is not present. None among the names is ignored."""
    missing = [column for column in dict.fromkeys(names) if column is not None and column not in present]
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
    """The tuples in the order of event time. Tuples with equal times keep their order."""
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
    """A key column as record keys: the bytes of its text. A null stays null.
    ConfigError for objects or lists.
    """
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
