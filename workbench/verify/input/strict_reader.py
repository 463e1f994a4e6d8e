"""One record, read strictly in plain Python.
This code decides whether the record is readable, and what it holds.

Slow and simple on purpose. records.py reads the bulk in DuckDB and sends here whatever is not plainly fine.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import islice
from typing import Any

from evenflow.grammar.column_types import ANY_VALUE, decimal_scale
from evenflow.grammar.explosion import BLANKS, MOST_ELEMENTS
from evenflow.grammar.paths import segments
from evenflow.settings import Query, Settings
from workbench.registered.records import RegisteredRecords
from workbench.unreadable import Number, Unreadable
from workbench.verify.input.deep_json import Fields, read_deep

MAX_TIME = 8_640_000_000_000_000
"""Largest event time (ms) on either side of 1970 that is readable: 100 million days."""


def readable_times(settings: Settings) -> tuple[int, int]:
    """First and last event time (ms) that is readable: of the years 100 to 9899 if the sink asks for it."""
    return (-59_011_459_200_000, 250_246_627_199_999) if settings.results.dated else (-MAX_TIME, MAX_TIME)


CSV_NULLS = ("", "NA", "null", "NULL")
"""What an empty number or time looks like in csv. Text is never null there."""

_INTEGER = re.compile(r"-?[0-9]+")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
"""Arrow's csv reader takes whole numbers in this form too, as 64 bits."""
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_MOST_EXPONENT_DIGITS = 9
"""Digits of the exponent of a number that count_distinct counts among values of any kind."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)")
_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:[T ](\d{2}:\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:\s?(?:(Z)|([+-])(\d{2}):?([0-5]\d)))?)?",
    re.ASCII,
)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]|u(?![dD][89a-fA-F])|[^u]|(u))", re.DOTALL)
"""Escapes of a valid JSON text. Group 1 matches only for half of a surrogate pair."""
_DAYS_OF_400_YEARS = 146_097
csv.field_size_limit(2**31 - 1)  # the default refuses keys above 128 KiB


@dataclass(frozen=True)
class ParsedRecord:
    """What was read of a record."""

    key: bytes | None
    """The bytes of the record's key if the query groups by them (`@key`) and there is one, else None."""
    time: int
    """Event time in ms."""
    cells: tuple[Any, ...]
    """The other columns, in order.
    If `query.explode` takes the record apart, the columns of its elements are lists."""
    elements: int = 1
    """How many tuples the record holds."""


def cell_types(query: Query) -> dict[str, str]:
    """Column -> its type, in order, for all columns that are read for more than the event time."""
    columns = query.resolved
    read = {*query.key_columns, *query.value_columns, *query.lookup_key}
    for derived_column in columns.derived.values():
        read.update(derived_column.columns)
    if columns.where is not None:
        read.update(columns.where.columns)
    return {name: type_ for name, type_ in columns.read.items() if name in read}


def filters_before_keys(query: Query) -> bool:
    """Whether a record without a key may still be readable, because no tuple of it is kept."""
    return query.where is not None or query.explode is not None


class StrictReader:
    """Reads records as `settings.input` and `settings.query` say.

    registered: the reader of Avro and Protobuf. None: one is made from the settings if they need it.
    """

    def __init__(self, settings: Settings, *, registered: RegisteredRecords | None = None) -> None:
        self._input = settings.input
        self._query = settings.query
        self._needed = settings.needed_columns
        self._types = cell_types(settings.query)
        self._times = readable_times(settings)
        self._keyed = not filters_before_keys(settings.query)
        self._explosion = settings.query.explosion
        self._elements = settings.query.element_columns
        if registered is None and settings.input.registered and self._needed:
            registered = RegisteredRecords(settings)
        self._registered = registered

    def read(self, key: bytes | None, value: bytes | None, timestamp: int) -> ParsedRecord:
        """The tuple in this record, or its tuples with `query.explode`. Raises Unreadable.

        timestamp: that of the record in ms, negative if the record has none.
        """
        cells = self._cells(value) if self._needed else {}
        own, time = self._key(cells, key), self._time(cells, timestamp)
        if self._explosion is None:
            read = tuple(self._cell(cells, column, type_) for column, type_ in self._types.items())
            return ParsedRecord(own, time, read)
        elements = self._taken_apart(cells.get(self._explosion.column))
        columns = [
            [self._cell(element, column, type_) for element in elements]
            if column in self._elements
            else self._cell(cells, column, type_)
            for column, type_ in self._types.items()
        ]
        return ParsedRecord(own, time, tuple(columns), len(elements))

    def _taken_apart(self, whole: Any) -> list[dict[str, Any]]:
        """The columns of each element."""
        assert self._explosion is not None
        column = self._explosion.column
        if whole is None:
            parts: list[Any] = []
        elif self._explosion.way == "list":
            # Fields is a list too, but it stands for a JSON object.
            if not isinstance(whole, list) or isinstance(whole, Fields):
                raise Unreadable(f"column {column!r} is no list")
            parts = whole
        elif self._explosion.way == "split":
            # One more than is allowed is enough to know that there are too many.
            parts = self._text(whole, column).split(self._explosion.separator, MOST_ELEMENTS)
        else:
            words = re.finditer(f"[^{BLANKS}]+", self._text(whole, column))
            parts = [word[0] for word in islice(words, MOST_ELEMENTS + 1)]
        if len(parts) > MOST_ELEMENTS:
            raise Unreadable(f"column {column!r} has more than {MOST_ELEMENTS:,} elements")
        ways = {name: self._explosion.within(name) or () for name in self._elements}
        return [{name: _at(part, way, name) for name, way in ways.items()} for part in parts]

    def _cells(self, value: bytes | None) -> dict[str, Any]:
        if value is None:
            raise Unreadable("the record has no value")
        if self._registered is not None:
            return self._registered.cells(value)
        # Invalid bytes become lone surrogates, which `_text` refuses. In a column that nobody reads they do
        # no harm.
        text = value.decode("utf-8", "surrogateescape")
        if self._input.format == "text":
            return {"value": text}
        if self._input.format == "csv":
            return self._csv(text)
        return self._json(text)

    def _csv(self, text: str) -> dict[str, Any]:
        if not text.strip("\r\n"):
            raise Unreadable("the record is empty")
        if text.startswith("\ufeff"):
            raise Unreadable("the record begins with a byte order mark")
        try:
            lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=self._input.delimiter))
        except csv.Error as error:
            raise Unreadable(f"invalid csv: {error}") from None
        if len(lines) != 1:
            raise Unreadable(f"the record holds {len(lines)} lines")
        if len(lines[0]) != len(self._input.columns):
            raise Unreadable(f"{len(lines[0])} fields instead of {len(self._input.columns)}")
        return dict(zip(self._input.columns, lines[0], strict=True))

    def _json(self, text: str) -> dict[str, Any]:
        try:
            pairs = _parsed(text)
        except ValueError as error:
            raise Unreadable(f"invalid JSON: {error}") from None
        if any(escape[1] for escape in _ESCAPES.finditer(text)):
            raise Unreadable("invalid JSON: half of a surrogate pair")
        return {column: _at(pairs, segments(column), column) for column in self._needed}

    def _text(self, cell: Any, column: str) -> str:
        # A Number is a str as well: it keeps a JSON number as it was written.
        if not isinstance(cell, str) or isinstance(cell, Number):
            raise Unreadable(f"column {column!r} is no text")
        if _LONE_SURROGATE.search(cell):
            raise Unreadable(f"column {column!r} is not UTF-8")
        return cell

    def _written(self, cells: dict[str, Any], column: str) -> str | None:
        """The text of a number as it was written. None for null."""
        cell = cells.get(column)
        if cell is None:
            return None
        if self._input.format not in ("csv", "text"):
            if not isinstance(cell, Number):
                raise Unreadable(f"column {column!r} is no number")
            return str(cell)
        return None if cell in CSV_NULLS else cell.strip(" \t")

    def _integer(self, cells: dict[str, Any], column: str) -> int | None:
        text = self._written(cells, column)
        if text is None:
            return None
        if self._input.format == "csv" and _HEXADECIMAL.fullmatch(text):
            bits = int(text, 16)
            return bits - 2**64 if bits >= 2**63 else bits
        digits = text.lstrip("-0") or "0"
        # The length is tested before int() is called, and zeros are cut off: Python refuses to convert
        # thousands of digits.
        if not _INTEGER.fullmatch(text) or len(digits) > 100:
            raise Unreadable(f"column {column!r} is no 64-bit integer: {text[:40]!r}")
        number = -int(digits) if text.startswith("-") else int(digits)
        if not -(2**63) <= number < 2**63:
            raise Unreadable(f"column {column!r} is no 64-bit integer: {text[:40]!r}")
        return number

    def _float(self, cells: dict[str, Any], column: str) -> float | None:
        text = self._written(cells, column)
        if text is None:
            return None
        if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
            raise Unreadable(f"column {column!r} is no finite number: {text[:40]!r}")
        return float(text)

    def _cell(self, cells: dict[str, Any], column: str, type_: str) -> Any:
        scale = decimal_scale(type_)
        if type_ == "int64":
            value: Any = self._integer(cells, column)
        elif type_ == "float64":
            value = self._float(cells, column)
        elif type_ == "string":
            value = None if cells.get(column) is None else self._text(cells[column], column)
        elif type_ == ANY_VALUE:
            value = self._any(cells, column)
        elif type_ == "bool":
            value = self._truth(cells, column)
        elif type_ == "date":
            value = self._date(cells, column)
        else:
            assert scale is not None
            value = self._decimal(cells, column, scale)
        if self._keyed and value is None and column in self._query.key_columns:
            raise Unreadable(f"key column {column!r} is missing or null")
        return value

    def _any(self, cells: dict[str, Any], column: str) -> str | None:
        """The text of a value of any kind (`ANY_VALUE`). None for null."""
        cell = cells.get(column)
        if cell is None or (self._input.format == "csv" and cell in CSV_NULLS):
            return None
        if isinstance(cell, bool):
            return "true" if cell else "false"
        if not isinstance(cell, Number):
            return f'"{self._text(cell, column)}'
        exponent = _NUMBER.fullmatch(cell)
        if exponent is None or len((exponent[2] or "e")[1:].lstrip("+-").lstrip("0")) > _MOST_EXPONENT_DIGITS:
            raise Unreadable(f"column {column!r} is no number that is counted: {cell[:40]!r}")
        number = Decimal(cell).as_tuple()
        assert isinstance(number.exponent, int)  # only NaN and infinity have others
        digits = "".join(map(str, number.digits)).lstrip("0")
        short = digits.rstrip("0")
        power = number.exponent + len(digits) - len(short)
        return f"{'-' if number.sign else ''}{short}{f'e{power}' if power else ''}" if short else "0"

    def _truth(self, cells: dict[str, Any], column: str) -> bool | None:
        cell = cells.get(column)
        if cell is None or (self._input.format == "csv" and cell in CSV_NULLS):
            return None
        truth = cell if isinstance(cell, bool) else None
        if self._input.format == "csv":
            truth = {
                "true": True,
                "True": True,
                "TRUE": True,
                "false": False,
                "False": False,
                "FALSE": False,
            }.get(cell)
        if truth is None:
            raise Unreadable(f"column {column!r} is neither true nor false")
        return truth

    def _date(self, cells: dict[str, Any], column: str) -> date | None:
        cell = cells.get(column)
        if cell is None or (self._input.format == "csv" and cell in CSV_NULLS):
            return None
        text = self._text(cell, column)
        try:
            if not _DATE.fullmatch(text):
                raise ValueError
            return date.fromisoformat(text)
        except ValueError:
            raise Unreadable(f"column {column!r} holds no date: {text[:40]!r}") from None

    def _decimal(self, cells: dict[str, Any], column: str, scale: int) -> Decimal | None:
        text = self._written(cells, column)
        if text is None:
            return None
        number = Decimal(text) if _DECIMAL.fullmatch(text) else None
        # A decimal has 18 digits. The size is tested first, because quantize raises an error for a much
        # larger number.
        if (
            number is None
            or abs(number) >= Decimal(10) ** (18 - scale)
            or number != number.quantize(Decimal(1).scaleb(-scale))
        ):
            raise Unreadable(
                f"column {column!r} is no decimal with {scale} digits behind the point: {text[:40]!r}"
            )
        return number

    def _key(self, cells: dict[str, Any], key: bytes | None) -> bytes | None:
        if self._query.key != "@key":
            return None
        if self._keyed and key is None:
            raise Unreadable("the record has no key")
        return key

    def _time(self, cells: dict[str, Any], timestamp: int) -> int:
        column, unit = self._query.time, self._query.time_unit
        if column == "@timestamp":
            if timestamp < 0:
                raise Unreadable("the record has no timestamp")
            time: int | None = timestamp
        else:
            time = self._iso(cells, column) if unit == "iso" else self._since_1970(cells, column, unit)
        if time is None:
            raise Unreadable(f"time column {column!r} is missing or null")
        first, last = self._times
        if not first <= time <= last:
            raise Unreadable(f"event time {time} ms is out of range")
        return time

    def _since_1970(self, cells: dict[str, Any], column: str, unit: str) -> int | None:
        if unit == "s":
            seconds = self._float(cells, column)
            if seconds is None:
                return None
            if not math.isfinite(seconds * 1000):
                raise Unreadable(f"event time {seconds} s is out of range")
            return round(seconds * 1000)
        whole = self._integer(cells, column)
        return whole if whole is None or unit == "ms" else whole // 1000

    def _iso(self, cells: dict[str, Any], column: str) -> int | None:
        cell = cells.get(column)
        if cell is None:
            return None
        text = self._text(cell, column)
        if self._input.format == "csv" and text in CSV_NULLS:
            return None
        match = _ISO.fullmatch(text)
        if match is None:
            raise Unreadable(f"time column {column!r} is no ISO 8601 time: {text[:40]!r}")
        date, minutes, seconds, fraction, _, sign, zone_hours, zone_minutes = match.groups()
        try:
            # ISO has a year 0, and Python begins with year 1. The calendar repeats itself after 400 years.
            era = 400 if date.startswith("0000") else 0
            date = f"{int(date[:4]) + era:04}{date[4:]}"
            local = datetime.fromisoformat(f"{date}T{minutes or '00:00'}:{seconds or '00'}")
            zone = timedelta(hours=int(zone_hours or 0), minutes=int(zone_minutes or 0))
            offset = timezone(-zone if sign == "-" else zone)
        except ValueError as error:
            raise Unreadable(f"time column {column!r} is no time: {error}") from None
        since = local.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC) - offset.utcoffset(None)
        since -= timedelta(days=_DAYS_OF_400_YEARS if era else 0)
        return since // timedelta(milliseconds=1) + int(((fraction or "") + "000")[:3])


def _at(pairs: Any, path: tuple[str, ...], column: str) -> Any:
    """What the record holds at this path. None if a field on the way is missing or null.

    Raises Unreadable if a field on the way holds no object, or if a field is there twice.
    """
    node: Any = pairs
    for field in path:
        if node is None:
            return None
        if not isinstance(node, Fields):
            raise Unreadable(f"a field on the way to {column!r} holds no object")
        values = [value for name, value in node if name == field]
        if len(values) > 1:
            raise Unreadable(f"field {column!r} is there twice")
        node = values[0] if values else None
    return node


def _parsed(text: str) -> Fields:
    """Fields of the JSON object in this text. Raises ValueError if the text is no JSON object."""
    try:
        fields = json.loads(
            text,
            parse_int=Number,
            parse_float=Number,
            parse_constant=Number,  # NaN in a column that nobody reads does no harm
            object_pairs_hook=Fields,
        )
    except (RecursionError, ValueError):
        # Python's reader refuses deep nesting, Inf and -NaN, which the partitioner reads.
        return read_deep(text, Number)
    if not isinstance(fields, Fields):
        raise ValueError("the JSON value is no object")
    return fields
