"""One record, read strictly in plain Python: the judge of what is readable, and what it says.

Slow and simple on purpose. records.py reads the bulk in DuckDB and sends here whatever is not plainly fine.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from evenflow.settings import Settings
from workbench.verify.deep import read_deep

MAX_TIME = 8_640_000_000_000_000
"""Largest event time (ms) either side of 1970 that is readable."""

CSV_NULLS = ("", "NA", "null", "NULL")
"""What an empty number or time looks like in csv; text is never null there."""

_INTEGER = re.compile(r"-?[0-9]+")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
"""Arrow's csv reader takes whole numbers in this form too, as 64 bits."""
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:[T ](\d{2}:\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:\s?(?:(Z)|([+-])(\d{2}):?([0-5]\d)))?)?",
    re.ASCII,
)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]|u(?![dD][89a-fA-F])|[^u]|(u))", re.DOTALL)
"""Escapes of a valid JSON text; group 1 is there for half of a surrogate pair."""
_DAYS_OF_400_YEARS = 146_097
csv.field_size_limit(2**31 - 1)  # the default refuses keys above 128 KiB


class Unreadable(Exception):
    """The record holds no tuple of this query; the text says why."""


@dataclass(frozen=True)
class Read:
    """A tuple: key bytes, event time in ms, and the aggregated columns in the query's order."""

    key: bytes
    time: int
    values: tuple[int | float | None, ...]


class _Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


class StrictReader:
    """Reads records as `settings.input` and `settings.query` say."""

    def __init__(self, settings: Settings) -> None:
        self._input = settings.input
        self._query = settings.query
        self._needed = settings.needed_columns

    def read(self, key: bytes | None, value: bytes | None, timestamp: int) -> Read:
        """The tuple in this record; raises Unreadable."""
        cells = self._cells(value) if self._needed else {}
        return Read(
            self._key(cells, key),
            self._time(cells, timestamp),
            tuple(self._number(cells, column, kind) for column, kind in self._query.value_columns.items()),
        )

    def _cells(self, value: bytes | None) -> dict[str, Any]:
        if value is None:
            raise Unreadable("the record has no value")
        # invalid bytes in a column that nobody reads do no harm: they become lone surrogates
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
        names = [name for name, _ in pairs]
        twice = [column for column in self._needed if names.count(column) > 1]
        if twice:
            raise Unreadable(f"field {twice[0]!r} is there twice")
        return dict(pairs)

    def _text(self, cell: Any, column: str) -> str:
        if not isinstance(cell, str) or isinstance(cell, _Number):
            raise Unreadable(f"column {column!r} is no text")
        if _LONE_SURROGATE.search(cell):
            raise Unreadable(f"column {column!r} is not UTF-8")
        return cell

    def _written(self, cells: dict[str, Any], column: str) -> str | None:
        """A number as it was written, None for null."""
        cell = cells.get(column)
        if cell is None:
            return None
        if self._input.format == "json":
            if not isinstance(cell, _Number):
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
        if not _INTEGER.fullmatch(text) or len(text.lstrip("-0")) > 100 or not -(2**63) <= int(text) < 2**63:
            raise Unreadable(f"column {column!r} is no 64-bit integer: {text[:40]!r}")
        return int(text)

    def _float(self, cells: dict[str, Any], column: str) -> float | None:
        text = self._written(cells, column)
        if text is None:
            return None
        if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
            raise Unreadable(f"column {column!r} is no finite number: {text[:40]!r}")
        return float(text)

    def _number(self, cells: dict[str, Any], column: str, kind: str) -> int | float | None:
        if kind == "int64":
            return self._integer(cells, column)
        if kind == "float64":
            return self._float(cells, column)
        raise Unreadable(f"column {column!r} is text and cannot be aggregated")

    def _key(self, cells: dict[str, Any], key: bytes | None) -> bytes:
        column = self._query.key
        if column == "@key":
            if key is None:
                raise Unreadable("the record has no key")
            return key
        if self._query.column_type(column) == "int64":
            number = self._integer(cells, column)
            if number is None:
                raise Unreadable(f"key column {column!r} is missing or null")
            return str(number).encode()
        if cells.get(column) is None:
            raise Unreadable(f"key column {column!r} is missing or null")
        return self._text(cells[column], column).encode()

    def _time(self, cells: dict[str, Any], timestamp: int) -> int:
        column, unit = self._query.time, self._query.time_unit
        if column == "@timestamp":
            if timestamp < 0:
                raise Unreadable("the record has no timestamp")
            time: int | None = timestamp
        else:
            time = self._iso(cells, column) if unit == "iso" else self._epoch(cells, column, unit)
        if time is None:
            raise Unreadable(f"time column {column!r} is missing or null")
        if abs(time) > MAX_TIME:
            raise Unreadable(f"event time {time} ms is out of range")
        return time

    def _epoch(self, cells: dict[str, Any], column: str, unit: str) -> int | None:
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
            # Python's first year is 1, ISO's is 0; the calendar repeats itself after 400 years.
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


class _Pairs(list[tuple[str, Any]]):
    """Fields of a JSON object in order, so that a repeated one is seen."""


def _parsed(text: str) -> list[tuple[str, Any]]:
    """Fields of the object; raises ValueError when it is none."""
    try:
        found = json.loads(
            text,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_Number,  # NaN in a column that nobody reads does no harm
            object_pairs_hook=_Pairs,
        )
    except (RecursionError, ValueError):
        return read_deep(text, _Number)
    if not isinstance(found, _Pairs):
        raise ValueError("the JSON value is no object")
    return found
