"""What records look like, whatever the query: which columns there are, and what they hold."""

from __future__ import annotations

import csv
import json
import math
import re
import reprlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Literal

import numpy as np

from evenflow.grammar.explosion import BLANKS, Explosion
from evenflow.grammar.inputs import TimeUnit
from evenflow.grammar.paths import MOST_LEVELS, segments, written
from evenflow.settings import InputSettings
from evenflow.text.strict_json import INT64
from workbench.registered.cell import LONGEST_NAME
from workbench.unreadable import Unreadable

Kind = Literal["text", "whole number", "decimal", "truth value", "null", "nested"]
NumericUnit = Literal["s", "ms", "us", "ns"]
Row = dict[str, Any]

NUMBERS: frozenset[Kind] = frozenset({"whole number", "decimal"})
_EXAMPLES = 1_000
_EXAMPLE_ROOM, _EXAMPLE_OBJECT = 10_000_000, 50
"""Characters of all examples together. Each counts for so many more, which its object takes."""
_LONG_TEXT = 1_000
"""Characters of a text that are kept."""
_CELLS = 500_000
"""About how many values are looked at. Of many wide records only every second, third, ... record is taken."""
_MOST_CELLS = 2_000_000
"""How many fields are looked at, those within objects and of elements among them."""
_MOST_NAMES, _NAME_ROOM = 10_000, 3_000_000
"""How many columns are kept, and how many characters their names have together."""
_MOST_SECONDS = 10.0
"""How long records are looked at. Each takes a bounded time."""
_MOST_FIELDS = 1_000
"""About how many fields of a record are looked at."""
_MOST_PARTS = 100
"""How many elements of a record that is taken apart are looked at."""
_INT64_DIGITS = len(str(-(2**63)))
_NAME = re.compile(r"[^@(),\s]([^(),]*[^(),\s])?")
_CSV_NULLS = frozenset({"", "NA", "null", "NULL"})
PER_MS: dict[NumericUnit, float] = {"s": 1e-3, "ms": 1.0, "us": 1e3, "ns": 1e6}
"""How many of each unit are a millisecond."""
EARLIEST, LATEST = 631_152_000_000, 4_102_444_800_000
"""1990 and 2100 in ms. Numbers between them are taken for event times."""


@dataclass(frozen=True)
class Column:
    """What a column of the sample holds."""

    name: str
    """Name of the column. A field within an object is named by its path, such as "outer.inner"."""
    kinds: Mapping[Kind, int]
    """Kind -> number of records that hold it."""
    examples: tuple[Any, ...]
    """Some of the values that are not null, with numbers as numbers."""
    distinct: int
    """How many different texts and numbers there are."""

    @property
    def present(self) -> int:
        """How many records have the column, null or not."""
        return sum(self.kinds.values())

    @property
    def filled(self) -> int:
        """How many records hold something in the column."""
        return self.present - self.kinds.get("null", 0)

    def count(self, kinds: Iterable[Kind]) -> int:
        """How many records hold one of these kinds in the column."""
        return sum(self.kinds.get(kind, 0) for kind in kinds)

    @property
    def mostly(self) -> Kind:
        """The commonest kind but null. "null" if the column holds nothing else."""
        filled: dict[Kind, int] = {kind: count for kind, count in self.kinds.items() if kind != "null"}
        return max(filled, key=filled.__getitem__, default="null")


@dataclass(frozen=True)
class RecordShape:
    """Columns of the sampled records."""

    records: int
    """How many records were looked at."""
    rows: int
    """How many of these hold columns at all, or how many tuples they become."""
    columns: Mapping[str, Column]
    """Name -> column. Fields within objects are columns too, such as "outer.inner"."""
    fields: Mapping[int, int]
    """Number of fields -> CSV records that have so many."""

    def column(self, name: str) -> Column:
        """The column of this name. If there is none, an empty column."""
        return self.columns.get(name) or Column(name, {}, (), 0)


def shape_of(
    settings: InputSettings,
    values: Sequence[bytes | None],
    *,
    explosion: Explosion | None = None,
    registered: Callable[[bytes], Row] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> RecordShape:
    """The columns of these record values, read as input.format says, as far as 10 s go.

    registered: reads a record of avro or protobuf, or raises Unreadable. Without it the columns of such
    records are not known. explosion: what is taken apart. A record that holds nothing to take apart stays as
    it is. Fields with very long names are left out.
    """
    deadline = clock() + _MOST_SECONDS
    # The width of the newest records tells how many records keep the number of values within `_CELLS`. Half
    # of the time at most goes into it.
    width = 1
    for row in _rows(settings, values[-10:], registered):
        width = max(width, len(row))
        if clock() > deadline - _MOST_SECONDS / 2:
            break
    some = values[:: 1 + len(values) * width // _CELLS]
    fields: Counter[int] = Counter()
    columns, records = _Columns(), 0
    # One row at a time: as objects, the fields of a record may take fifty times its bytes.
    for value in some:
        if columns.cells > _MOST_CELLS or clock() > deadline:
            break
        records += 1
        if settings.format == "csv" and (parts := split_line(value, settings.delimiter)) is not None:
            fields[len(parts)] += 1
        for row in _rows(settings, [value], registered):
            named = _flat(row) if settings.format == "json" else row
            for part in [named] if explosion is None else _exploded(named, explosion):
                if clock() > deadline:
                    break
                columns.add(part)
    return RecordShape(records, columns.rows, columns.columns(), dict(fields))


def _flat(row: Row, outer: tuple[str, ...] = ()) -> Row:
    """The fields of a record and the fields within its objects, by the names that settings give them.

    A field without a name is left out, and so is one with a long name: settings name neither. outer: the
    fields on the way to this record.
    """
    fields: Row = {}
    waiting: list[tuple[tuple[str, ...], Row]] = [(outer, row)] if len(outer) < MOST_LEVELS else []
    while waiting and len(fields) < _MOST_FIELDS:
        path, nested = waiting.pop()
        room = LONGEST_NAME - sum(map(len, path))
        for name, value in islice(nested.items(), _MOST_FIELDS - len(fields)):
            if not 0 < len(name) <= room:
                continue
            inner = (*path, name)
            fields[written(inner)] = value
            if isinstance(value, dict) and len(inner) < MOST_LEVELS:
                waiting.append((inner, value))
    return fields


def _exploded(row: Row, explosion: Explosion) -> Iterator[Row]:
    """The tuples of a record. Each has the record's other columns too."""
    whole = row.get(explosion.column)
    parts: list[Any] = []
    if explosion.way == "list" and isinstance(whole, list):
        parts = whole[:_MOST_PARTS]
    elif explosion.way == "split" and isinstance(whole, str):
        parts = list(whole.split(explosion.separator, _MOST_PARTS)[:_MOST_PARTS])
    elif explosion.way == "words" and isinstance(whole, str):
        parts = [word for word in re.split(f"[{BLANKS}]+", whole, maxsplit=_MOST_PARTS) if word]
    if not parts:
        yield row
        return
    outer = segments(explosion.column)
    rest = {name: value for name, value in row.items() if explosion.within(name) is None}
    for part in parts:
        inner = _flat(part, outer) if isinstance(part, dict) else {}
        yield rest | {explosion.column: part} | inner


def _rows(
    settings: InputSettings, values: Sequence[bytes | None], registered: Callable[[bytes], Row] | None
) -> Iterator[Row]:
    read: dict[str, Callable[[bytes | None], Row | None]] = {
        "json": _json_row,
        "text": _text_row,
        "csv": lambda value: _csv_row(settings, value),
    }
    if settings.registered:
        return iter(()) if registered is None else _registered_rows(values, registered)
    return (row for row in map(read[settings.format], values) if row is not None)


def _registered_rows(values: Sequence[bytes | None], registered: Callable[[bytes], Row]) -> Iterator[Row]:
    for value in values:
        if value is not None:
            with suppress(Unreadable):
                yield registered(value)


def split_line(value: bytes | None, delimiter: str) -> list[str] | None:
    """The fields of a csv record. None if the record is no text, or not exactly one line."""
    if value is None:
        return None
    try:
        lines = list(csv.reader([value.decode()], delimiter=delimiter))
    except (UnicodeDecodeError, csv.Error):
        return None
    return lines[0] if len(lines) == 1 and lines[0] else None


def can_be_named(column: str) -> bool:
    """Whether settings can name this column, as key, as time and within an aggregate."""
    return column.isprintable() and _NAME.fullmatch(column) is not None


def kind_of(value: Any) -> Kind:
    """What a value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "truth value"
    if isinstance(value, int):
        return "whole number"
    if isinstance(value, float):
        return "decimal"
    return "text" if isinstance(value, str) else "nested"


def unit_of(examples: Sequence[Any]) -> TimeUnit | Literal["ns"] | None:
    """The unit in which most of these values are times between 1990 and 2100. None if there is no such
    unit.
    """
    texts = [value for value in examples if isinstance(value, str)]
    if texts:
        return "iso" if len(texts) == len(examples) and all(map(_is_iso, texts[:100])) else None
    numbers = [value for value in examples if isinstance(value, int | float) and not isinstance(value, bool)]
    finite = [value for value in numbers if math.isfinite(value)]
    if not finite or len(numbers) < len(examples):
        return None
    middle = float(np.median(np.array(finite, np.float64)))
    # The ranges of the units do not overlap, so at most one fits.
    for unit, per_ms in PER_MS.items():
        if EARLIEST <= middle / per_ms <= LATEST:
            return unit
    return None


def _json_row(value: bytes | None) -> Row | None:
    if value is None:
        return None
    try:
        record = json.loads(value, parse_int=_whole)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _text_row(value: bytes | None) -> Row | None:
    try:
        return None if value is None else {"value": value.decode()}
    except UnicodeDecodeError:
        return None


def _csv_row(settings: InputSettings, value: bytes | None) -> Row | None:
    fields = split_line(value, settings.delimiter)
    if fields is None:
        return None
    return {name: _csv_value(field) for name, field in zip(settings.columns, fields, strict=False)}


def _csv_value(field: str) -> str | int | float | None:
    if field in _CSV_NULLS:
        return None
    for number in (_whole, float):
        try:
            return number(field)
        except ValueError:
            continue
    return field


def _whole(text: str) -> int | float:
    """The whole number as an int of 64 bits, or as a float (perhaps infinite)
    if it is larger. Raises ValueError.
    """
    # Python's int() refuses very long texts, and nothing of that length fits 64 bits.
    if len(text) > _INT64_DIGITS:
        return float(text)
    whole = int(text)
    return whole if INT64[0] <= whole <= INT64[1] else float(whole)


class _Columns:
    """Gathers what the columns of rows hold: of each value no more than a short text, and no more than
    `_MOST_NAMES` columns. Columns that are too many or whose names are too long together are left out.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.cells = 0
        self._room, self._name_room = _EXAMPLE_ROOM, _NAME_ROOM
        self._kinds: dict[str, Counter[Kind]] = {}
        self._examples: dict[str, list[Any]] = {}
        self._distinct: dict[str, set[Any]] = {}

    def add(self, row: Row) -> None:
        self.rows += 1
        self.cells += len(row)
        for name, value in row.items():
            kind = kind_of(value)
            if name not in self._kinds:
                if len(self._kinds) >= _MOST_NAMES or len(name) > self._name_room:
                    continue
                self._name_room -= len(name)
                self._kinds[name], self._examples[name], self._distinct[name] = Counter(), [], set()
            self._kinds[name][kind] += 1
            if kind != "null" and len(self._examples[name]) < _EXAMPLES and self._room > 0:
                example = _example(value)
                self._examples[name].append(example)
                text = example.text if isinstance(example, Excerpt) else example
                self._room -= _EXAMPLE_OBJECT + (len(text) if isinstance(text, str) else 0)
            if kind in ("text", "whole number", "decimal"):
                # Of a text its hash: two of them are hardly ever one, and a text may take four times its
                # bytes.
                self._distinct[name].add(hash(value) if isinstance(value, str) else value)

    def columns(self) -> dict[str, Column]:
        return {
            name: Column(name, dict(kinds), tuple(self._examples[name]), len(self._distinct[name]))
            for name, kinds in self._kinds.items()
        }


def _example(value: Any) -> Any:
    """The value, or the beginning of it."""
    if isinstance(value, str):
        return value[:_LONG_TEXT]
    if isinstance(value, list | dict):
        return Excerpt(_SHORT.repr(value)[:_EXCERPT])
    return value


_SHORT = reprlib.Repr()
_SHORT.maxlevel = 2
_EXCERPT = 100


@dataclass(frozen=True)
class Excerpt:
    """The beginning of a list or an object."""

    text: str
    """As it is shown."""

    def __repr__(self) -> str:
        return self.text


def _is_iso(text: str) -> bool:
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return len(text) >= len("2026-01-01")
