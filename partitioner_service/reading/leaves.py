"""What the leaves of a registered schema hold, and how that becomes cells of the types that the query needs.

A scan keeps the raw value of every needed cell and the number of the leaf it comes from. Whatever a leaf's type is, logical
types included, is dealt with here, for all cells of one leaf at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.arrays import Bools, Float64s, Int32s, Int64s
from evenflow.settings.query import decimal_scale
from partitioner_service.reading.cells import FLOAT, INT, TEXT, TRUTH, VALUE, Block, Cells
from partitioner_service.reading.reasons import (
    FAR_TIME,
    NOT_FINITE,
    NOT_UTF8,
    OTHER_FORM,
    TIME_OUT,
    TOO_LARGE,
    Faults,
)
from partitioner_service.reading.strings import check_utf8
from partitioner_service.reading.times import MAX_TIME, far, from_seconds

NOTHING = -1
"""In place of a leaf: the cell is absent or null."""
_WIDEST_DECIMAL = 16
_MOST_DIGITS = 38


@dataclass(frozen=True)
class Leaf:
    """What is held: bool, int, uint, float, text, bytes, enum, stamp (seconds, and nanoseconds as the length), or nested.

    logical: date, decimal, uuid, or the unit of a timestamp: ms, us, ns. symbols: text of the numbers of an enum.
    """

    holds: str
    logical: str = ""
    scale: int = 0
    symbols: tuple[tuple[int, str], ...] = ()


class Raw(NamedTuple):
    """Needed cells as they were found, each array of shape (columns, rows). leaves: NOTHING or the number of a leaf."""

    leaves: npt.NDArray[np.int16]
    ints: Int64s
    floats: Float64s
    begins: Int64s
    lengths: Int32s

    @classmethod
    def of(cls, columns: int, rows: int) -> Raw:
        """Nothing was found so far."""
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
    """A needed column: its place, kind of cell and declared type. unit: where it is the event time, its time_unit."""

    place: int
    kind: int
    type: str
    unit: str | None = None


class Filler:
    """Fills the cells of a block from what was found in it."""

    def __init__(self, block: Block, raw: Raw, cells: Cells, faults: Faults) -> None:
        self._block, self._raw, self._cells, self._faults = block, raw, cells, faults

    def fill(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        """The cells of these rows of a column, all found in one leaf. schemas: id of every record of the block."""
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
        if column.kind == FLOAT:
            wrong = from_seconds(self._cells.floats[column.place, rows])[1]
        else:
            ticks = self._cells.ints[column.place, rows]
            wrong = far(np.floor_divide(ticks, 1000) if column.unit == "us" else ticks)
        self._refuse(rows[wrong], FAR_TIME, column, schemas, leaf)

    def _way(self, column: Column, leaf: Leaf) -> Callable[[Column, Leaf, Int64s, Int64s], None] | None:
        """How a cell of this leaf becomes one of this column. None: not at all."""
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

    def _refuse(
        self, rows: Int64s, code: int, column: Column, schemas: Int64s, leaf: Leaf | None = None
    ) -> None:
        if not len(rows):
            return
        if leaf is not None:
            self._write(column, rows, pa.array(self._numbers(column, leaf, rows), pa.string()))
        wrong = np.zeros(len(self._faults.codes), np.bool_)
        wrong[rows] = True
        self._faults.note(wrong, code, column=column.place, at=schemas)
        self._cells.states[column.place, rows] = 0

    def _numbers(self, column: Column, leaf: Leaf, rows: Int64s) -> list[str]:
        """Numbers as a reason shows them."""
        if leaf.holds == "float":
            return list(map(repr, self._raw.floats[column.place, rows].tolist()))
        found = self._raw.ints[column.place, rows]
        return list(map(str, (found.view(np.uint64) if leaf.holds == "uint" else found).tolist()))

    def _whole(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        found = self._raw.ints[column.place, rows]
        self._cells.ints[column.place, rows] = found
        self._too_large(column, leaf, rows, schemas)

    def _too_large(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        if leaf.holds == "uint":
            self._refuse(rows[self._raw.ints[column.place, rows] < 0], TOO_LARGE, column, schemas, leaf)

    def _float(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        raw = self._raw
        if leaf.holds == "float":
            found = raw.floats[column.place, rows]
        elif leaf.holds == "uint":
            found = raw.ints[column.place, rows].view(np.uint64).astype(np.float64)
        else:
            found = raw.ints[column.place, rows].astype(np.float64)
        self._cells.floats[column.place, rows] = found
        self._refuse(rows[~np.isfinite(found)], NOT_FINITE, column, schemas, leaf)

    def _text(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        cells, place = self._cells, column.place
        cells.begins[place, rows] = self._raw.begins[place, rows]
        cells.lengths[place, rows] = self._raw.lengths[place, rows]

    def check_text(self, column: Column) -> None:
        """That all text of a column is UTF-8."""
        self._faults.note(
            check_utf8(self._block.data, self._cells, column.place), NOT_UTF8, column=column.place
        )

    def _write(self, column: Column, rows: Int64s, texts: pa.StringArray) -> None:
        """Cells whose text stands in no record. A null is refused by the caller."""
        _, offsets, data = texts.buffers()
        ends = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4)
        letters = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        begin = self._block.append(letters)
        self._cells.begins[column.place, rows] = begin + ends[:-1]
        self._cells.lengths[column.place, rows] = np.diff(ends)

    def _enum(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        numbers, names = pa.array([n for n, _ in leaf.symbols], pa.int64()), [s for _, s in leaf.symbols]
        which = pc.index_in(pa.array(self._raw.ints[column.place, rows]), value_set=numbers)
        self._write(column, rows, pc.fill_null(pa.array(names, pa.string()).take(which), ""))
        self._refuse(rows[which.is_null().to_numpy(zero_copy_only=False)], OTHER_FORM, column, schemas)

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
            found = raw.floats[column.place, rows]
            finite = np.isfinite(found)
            places = decimal_scale(column.type) or 0
            told = [repr(one) if "e" not in repr(one) else f"{one:.{places + 18}f}" for one in found.tolist()]
            self._write(column, rows, pa.array(told, pa.string()))
            self._refuse(rows[~finite], NOT_FINITE, column, schemas, leaf)
            return
        self._write(column, rows, pa.array(raw.ints[column.place, rows]).cast(pa.string()))
        self._too_large(column, leaf, rows, schemas)

    def _decimal(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        begins, lengths = (array[column.place, rows] for array in (self._raw.begins, self._raw.lengths))
        data = self._block.data.data
        wide = lengths > _WIDEST_DECIMAL
        told = [
            _placed(int.from_bytes(data[begin : begin + length], "big", signed=True), leaf.scale)
            for begin, length in zip(begins.tolist(), np.where(wide, 0, lengths).tolist(), strict=True)
        ]
        if column.kind == FLOAT:
            self._cells.floats[column.place, rows] = np.array(list(map(float, told)))
        else:
            self._write(column, rows, pa.array(told, pa.string()))
        self._refuse(rows[wide], OTHER_FORM, column, schemas)

    def _uuid(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        begins = self._raw.begins[column.place, rows].tolist()
        data = self._block.data
        told = [str(uuid.UUID(bytes=data[begin : begin + 16].tobytes())) for begin in begins]
        self._write(column, rows, pa.array(told, pa.string()))

    def _time(self, column: Column, leaf: Leaf, rows: Int64s, schemas: Int64s) -> None:
        """A timestamp says its own unit: it becomes what time_unit says."""
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


def _placed(units: int, scale: int) -> str:
    """The number of so many units of 10^-scale."""
    if not scale:
        return str(units)
    digits = str(abs(units)).rjust(scale + 1, "0")
    return f"{'-' if units < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def right_scale(scale: object) -> bool:
    """Whether a decimal of this scale can be read."""
    return isinstance(scale, int) and not isinstance(scale, bool) and 0 <= scale <= _MOST_DIGITS
