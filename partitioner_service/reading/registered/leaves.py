"""What the leaves of a registered schema hold, and how their values become the cells that the query needs.

A scan keeps the raw value of every needed cell, and the number of the leaf that the value comes from. The
types of leaves, logical types included, are dealt with here, for all cells of one leaf at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.numeric.arrays import Bools, Float64s, Int32s, Int64s, UInt8s
from partitioner_service.reading.cells.cells import (
    ANY,
    FLOAT,
    INT,
    OF_NUMBER,
    OF_TEXT,
    OF_TRUTH,
    TEXT,
    TRUTH,
    VALUE,
    Block,
    Cells,
)
from partitioner_service.reading.cells.reasons import (
    FAR_TIME,
    NOT_FINITE,
    NOT_UTF8,
    OTHER_FORM,
    TIME_OUT,
    TOO_LARGE,
)
from partitioner_service.reading.cells.strings import check_utf8
from partitioner_service.reading.cells.times import MAX_TIME, far, from_seconds

NOTHING = -1
"""Stands in place of a leaf: the cell is absent or null."""
_WIDEST_DECIMAL = 16
"""Bytes of a decimal that is read."""
_MOST_DIGITS = 38
"""Largest scale of a decimal that is read. 16 bytes have so many digits."""


@dataclass(frozen=True)
class Leaf:
    """What a leaf of a schema holds."""

    holds: str
    """One of bool, int, uint, float, text, bytes, enum, nested or stamp. A stamp has its seconds in
    `Raw.ints`, and its nanoseconds in `Raw.lengths`."""
    logical: str = ""
    """One of date, decimal, uuid, or the unit of a timestamp (ms, us, ns). Empty for other types."""
    scale: int = 0
    """Digits behind the point, if the leaf is a decimal."""
    symbols: tuple[tuple[int, str], ...] = ()
    """(number, name) pairs, if the leaf is an enum."""

    @cached_property
    def numbers(self) -> Int64s:
        """The numbers of the symbols, in their order."""
        return np.array(sorted(number for number, _ in self.symbols), np.int64)

    @cached_property
    def names(self) -> pa.StringArray:
        """The names of `numbers`."""
        return pa.array([name for _, name in sorted(self.symbols)], pa.string())


class Leaves:
    """The leaves of a program in the making, by number."""

    def __init__(self) -> None:
        self._numbers: dict[Leaf | str, int] = {}
        self._leaves: list[Leaf] = []

    def number(self, leaf: Leaf, name: str = "") -> int:
        """The number of this leaf. Equal leaves have one number.

        name: full name of the type, if the leaf is an enum. To compare its symbols would take long.
        """
        key = name or leaf
        if key not in self._numbers:
            self._numbers[key] = len(self._leaves)
            self._leaves.append(leaf)
        return self._numbers[key]

    def all(self) -> tuple[Leaf, ...]:
        """Leaf number n is the n-th."""
        return tuple(self._leaves)


class Raw(NamedTuple):
    """The needed cells as they were found. Each array has shape (columns, rows)."""

    leaves: npt.NDArray[np.int16]
    """The number of the leaf that a cell comes from, or NOTHING."""
    ints: Int64s
    """Value of a whole number, a truth value or an enum."""
    floats: Float64s
    """Value of a float."""
    begins: Int64s
    """Where text or bytes begin in the block."""
    lengths: Int32s
    """How many bytes these have."""

    @classmethod
    def of(cls, columns: int, rows: int) -> Raw:
        """Cells of which nothing has been found yet."""
        shape = (columns, rows)
        return cls(
            np.full(shape, NOTHING, np.int16),
            np.zeros(shape, np.int64),
            np.zeros(shape),
            np.zeros(shape, np.int64),
            np.zeros(shape, np.int32),
        )


@dataclass(frozen=True)
class Column:
    """A needed column."""

    place: int
    """The column's row in `Cells` and `Raw`."""
    kind: int
    """Kind of the column's cells (`kind_of`)."""
    type: str
    """Declared type of the column."""
    unit: str | None = None
    """`query.time_unit` if the column is the event time, else None."""


class Filler:
    """Fills the cells of a block from the raw values.

    It notes a fault for a value that does not become such a cell.
    """

    def __init__(self, block: Block, raw: Raw, cells: Cells) -> None:
        self._block, self._raw, self._cells = block, raw, cells
        self._letters: list[UInt8s] = []
        self._end = len(block.data)

    def fill(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        """Fill the cells of a column in these rows, which must all come from this leaf.

        schemas: the schema id of every record of the block.
        """
        if not len(rows):
            return
        if column.unit is not None and (leaf.logical in ("ms", "us", "ns") or leaf.holds == "stamp"):
            self._time(column, leaf, rows, schemas)
            return
        how = self._way(column, leaf)
        if how is None:
            self._refuse(rows, OTHER_FORM, column, schemas)
            return
        self._cells.states[column.place, rows] = VALUE
        how(column, leaf, rows, schemas)
        if column.unit is not None and column.kind in (INT, FLOAT):
            self._far(column, leaf, rows, schemas)

    def _far(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        """Refuse event times that are too far from 1970."""
        if column.kind == FLOAT:
            wrong = from_seconds(self._cells.floats[column.place, rows])[1]
        else:
            ticks = self._cells.ints[column.place, rows]
            wrong = far(np.floor_divide(ticks, 1000) if column.unit == "us" else ticks)
        self._refuse(rows[wrong], FAR_TIME, column, schemas, leaf)

    def _way(self, column: Column, leaf: Leaf) -> Callable[[Column, Leaf, Int64s, Int64s], None] | None:
        """The method that turns values of this leaf into cells of this column. None if none can."""
        if column.kind == ANY:
            return self._any if _kind_of(leaf) is not None else None
        number = leaf.holds in ("int", "uint") and leaf.logical != "date"
        if column.kind == TRUTH:
            return self._whole if leaf.holds == "bool" else None
        if column.kind == INT:
            return self._whole if number else None
        if column.kind == FLOAT:
            if leaf.logical == "decimal":
                return self._decimal
            return self._float if number or leaf.holds == "float" else None
        if column.kind == TEXT and column.type == "date":
            if leaf.holds == "text":
                return self._text
            return self._date if leaf.logical == "date" else None
        if column.kind == TEXT:
            ways = {"text": self._text, "enum": self._enum}
            return self._uuid if leaf.logical == "uuid" and leaf.holds == "bytes" else ways.get(leaf.holds)
        if leaf.logical == "decimal":
            return self._decimal
        if leaf.holds == "text":  # Protobuf has no decimals of its own
            return self._text
        return self._digits if number or leaf.holds == "float" else None

    def _any(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        kind = _kind_of(leaf)
        assert kind is not None  # `_way` says who reads a leaf
        self._cells.ints[column.place, rows] = kind
        ways = {"text": self._text, "enum": self._enum, "bytes": self._uuid, "int": self._date}
        if kind == OF_TEXT:
            ways[leaf.holds](column, leaf, rows, schemas)
        elif kind == OF_TRUTH:
            true = self._raw.ints[column.place, rows] != 0
            self._write(column, rows, pa.array(np.where(true, "true", "false"), pa.string()))
        elif leaf.logical == "decimal":
            self._decimal(column, leaf, rows, schemas)
        elif leaf.holds == "float":
            self._digits(column, leaf, rows, schemas)
        else:
            self._write(column, rows, pa.array(self._numbers(column, leaf, rows), pa.string()))

    def _refuse(
        self, rows: Int64s, code: int, column: Column, schemas: Int64s, leaf: Leaf | None = None
    ) -> None:
        """Note a fault of these rows and empty their cells.

        leaf: if the reason shows the numbers, the leaf they are of.
        """
        if not len(rows):
            return
        if leaf is not None:
            self._write(column, rows, pa.array(self._numbers(column, leaf, rows), pa.string()))
        self._block.faults.note_rows(rows, code, column=column.place, at=schemas)
        self._cells.states[column.place, rows] = 0

    def _numbers(self, column: Column, leaf: Leaf, rows: Int64s) -> list[str]:
        """The numbers in these rows, as a reason shows them."""
        if leaf.holds == "float":
            return list(map(repr, self._raw.floats[column.place, rows].tolist()))
        numbers = self._raw.ints[column.place, rows]
        return list(map(str, (numbers.view(np.uint64) if leaf.holds == "uint" else numbers).tolist()))

    def _whole(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        numbers = self._raw.ints[column.place, rows]
        self._cells.ints[column.place, rows] = numbers
        self._too_large(column, leaf, rows, schemas)

    def _too_large(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        """Refuse unsigned numbers from 2^63 on. As int64 they are negative."""
        if leaf.holds == "uint":
            self._refuse(rows[self._raw.ints[column.place, rows] < 0], TOO_LARGE, column, schemas, leaf)

    def _float(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        raw = self._raw
        if leaf.holds == "float":
            floats = raw.floats[column.place, rows]
        elif leaf.holds == "uint":
            floats = raw.ints[column.place, rows].view(np.uint64).astype(np.float64)
        else:
            floats = raw.ints[column.place, rows].astype(np.float64)
        self._cells.floats[column.place, rows] = floats
        self._refuse(rows[~np.isfinite(floats)], NOT_FINITE, column, schemas, leaf)

    def _text(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        cells, place = self._cells, column.place
        cells.begins[place, rows] = self._raw.begins[place, rows]
        cells.lengths[place, rows] = self._raw.lengths[place, rows]

    def finish(self) -> None:
        """Put the texts that stand in no record behind the block, all at once: that copies the block."""
        if self._letters:
            self._block.append(np.concatenate(self._letters))
            self._letters = []

    def check_text(self, column: Column) -> None:
        """Note a fault for every text of a column that is not UTF-8."""
        self._block.faults.note(
            check_utf8(self._block.data, self._cells, column.place), NOT_UTF8, column=column.place
        )

    def _write(self, column: Column, rows: Int64s, texts: pa.StringArray) -> None:
        """Set cells whose text stands in no record. `finish` puts it behind the block. The caller refuses
        nulls.
        """
        _, offsets, data = texts.buffers()
        # An array may be a slice: its offsets begin `texts.offset` entries of four bytes into the buffer.
        ends = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4)
        letters = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        begin = self._end
        self._letters.append(letters)
        self._end += len(letters)
        self._cells.begins[column.place, rows] = begin + ends[:-1]
        self._cells.lengths[column.place, rows] = np.diff(ends)

    def _enum(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        numbers = self._raw.ints[column.place, rows]
        which = np.minimum(np.searchsorted(leaf.numbers, numbers), len(leaf.numbers) - 1)
        wrong = leaf.numbers[which] != numbers
        names = leaf.names.take(pa.array(which, mask=wrong))
        self._write(column, rows, pc.fill_null(names, ""))
        self._refuse(rows[wrong], OTHER_FORM, column, schemas)

    def _date(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        days = self._raw.ints[column.place, rows]
        wrong = (days < _FIRST_DAY) | (days > _LAST_DAY)
        self._write(
            column, rows, pa.array(np.where(wrong, 0, days).astype(np.int32), pa.date32()).cast(pa.string())
        )
        self._refuse(rows[wrong], OTHER_FORM, column, schemas)

    def _digits(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        raw = self._raw
        if leaf.holds == "float":
            floats = raw.floats[column.place, rows]
            finite = np.isfinite(floats)
            # Decimals are read without exponents, so a number with an exponent is written out, to its last
            # digit.
            texts = [text if "e" not in text else f"{Decimal(text):f}" for text in map(repr, floats.tolist())]
            self._write(column, rows, pa.array(texts, pa.string()))
            self._refuse(rows[~finite], NOT_FINITE, column, schemas, leaf)
            return
        self._write(column, rows, pa.array(raw.ints[column.place, rows]).cast(pa.string()))
        self._too_large(column, leaf, rows, schemas)

    def _decimal(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        begins, lengths = (array[column.place, rows] for array in (self._raw.begins, self._raw.lengths))
        data = self._block.data.data
        wide = lengths > _WIDEST_DECIMAL
        # Avro writes the units of a decimal as a signed number, the highest byte first. A wide one counts as
        # 0 here.
        texts = [
            _placed(int.from_bytes(data[begin : begin + length], "big", signed=True), leaf.scale)
            for begin, length in zip(begins.tolist(), np.where(wide, 0, lengths).tolist(), strict=True)
        ]
        if column.kind == FLOAT:
            self._cells.floats[column.place, rows] = np.array(list(map(float, texts)))
        else:
            self._write(column, rows, pa.array(texts, pa.string()))
        self._refuse(rows[wide], OTHER_FORM, column, schemas)

    def _uuid(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        begins = self._raw.begins[column.place, rows].tolist()
        data = self._block.data
        texts = [str(uuid.UUID(bytes=data[begin : begin + 16].tobytes())) for begin in begins]
        self._write(column, rows, pa.array(texts, pa.string()))

    def _time(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        """Convert a timestamp from its own unit to the query's time_unit."""
        ticks = self._raw.ints[column.place, rows]
        if leaf.holds == "stamp":
            wrong: Bools = (ticks > MAX_TIME // 1000) | (ticks < -(MAX_TIME // 1000))
            ms = np.where(wrong, 0, ticks) * 1000
            ms += self._raw.lengths[column.place, rows] // 1_000_000
        else:
            ms = np.floor_divide(ticks, {"ms": 1, "us": 1_000, "ns": 1_000_000}[leaf.logical])
            wrong = (ms > MAX_TIME) | (ms < -MAX_TIME)
        if column.unit == "iso":
            wrong |= (ms < _FIRST_ISO) | (ms > _LAST_ISO)
        ms = np.where(wrong, 0, ms)
        self._cells.states[column.place, rows] = VALUE
        if column.unit == "iso":
            self._write(column, rows, pa.array(ms).cast(pa.timestamp("ms")).cast(pa.string()))
        elif column.unit == "s":
            self._cells.floats[column.place, rows] = ms / 1000
        else:
            self._cells.ints[column.place, rows] = ms * (1000 if column.unit == "us" else 1)
        self._refuse(rows[wrong], TIME_OUT, column, schemas)


_FIRST_DAY, _LAST_DAY = (int(np.datetime64(day, "D").astype(int)) for day in ("0001-01-01", "9999-12-31"))
_FIRST_ISO, _LAST_ISO = _FIRST_DAY * 86_400_000, (_LAST_DAY + 1) * 86_400_000 - 1
"""ms since 1970. Texts of dates and times have years of four digits."""


def _kind_of(leaf: Leaf) -> int | None:
    """OF_TEXT, OF_NUMBER or OF_TRUTH: what a value of this leaf is. None if it is none of them."""
    if leaf.holds == "bool":
        return OF_TRUTH
    if leaf.holds in ("text", "enum"):
        return OF_TEXT
    if leaf.logical in ("date", "uuid"):
        return OF_TEXT
    return OF_NUMBER if leaf.logical == "decimal" or leaf.holds in ("int", "uint", "float") else None


def _placed(units: int, scale: int) -> str:
    """The text of so many units of 10^-scale."""
    if not scale:
        return str(units)
    digits = str(abs(units)).rjust(scale + 1, "0")
    return f"{'-' if units < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def right_scale(scale: object) -> bool:
    """Whether a decimal of this scale can be read."""
    return isinstance(scale, int) and not isinstance(scale, bool) and 0 <= scale <= _MOST_DIGITS
