"""Cells to columns of declared types, for what is no plain number and no plain text: truths, dates, decimals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.arrays import Bools, Int32s, Int64s, UInt8s, viewed
from evenflow.kernels import inlined, kernel
from partitioner_service.reading.characters import MINUS, PLUS, POINT, ZERO, is_blank, is_digit

CSV_NULLS = ("", "NA", "null", "NULL")
"""What is null in a csv field that holds no text."""
_DIGITS = 18
_MARCH_OF_0 = 719_468
"""Days from the first of March of the year 0 to 1970."""
_TRUE, _FALSE = pa.array(["true", "True", "TRUE"]), pa.array(["false", "False", "FALSE"])


def truths(texts: pa.StringArray) -> tuple[pa.BooleanArray, Bools]:
    """true and false of csv fields, and which are neither. Null stays null."""
    true = pc.is_in(texts, _TRUE)
    wrong = pc.and_(pc.is_valid(texts), pc.invert(pc.or_(true, pc.is_in(texts, _FALSE))))
    return pc.if_else(pc.is_valid(texts), true, None), wrong.to_numpy(zero_copy_only=False)


class _Texts(NamedTuple):
    """Texts, of which text n is data[offsets[n]:offsets[n + 1]]. valid: which are there."""

    offsets: Int32s
    data: UInt8s
    valid: Bools


def _parts(texts: pa.StringArray) -> _Texts:
    rows = len(texts)
    _, offsets, data = texts.buffers()
    return _Texts(
        viewed(offsets, np.int32, texts.offset, rows + 1),
        viewed(data, np.uint8, 0, 0 if data is None else data.size),
        pc.is_valid(texts).to_numpy(zero_copy_only=False),
    )


@inlined
def _number(data: UInt8s, at: int, digits: int) -> int:
    """So many decimal digits as a number, -1 where one is none."""
    found = 0
    for place in range(at, at + digits):
        byte = data[place]
        if not is_digit(byte):
            return -1
        found = found * 10 + (byte - ZERO)
    return found


@kernel
def _days(texts: _Texts, out: Int32s, right: Bools) -> None:
    """Days since 1970 of texts like 2026-01-31."""
    data = texts.data
    for row in range(out.shape[0]):
        at = texts.offsets[row]
        if not texts.valid[row] or texts.offsets[row + 1] - at != 10:
            continue
        if data[at + 4] != MINUS or data[at + 7] != MINUS:
            continue
        year, month, day = _number(data, at, 4), _number(data, at + 5, 2), _number(data, at + 8, 2)
        if year < 1 or month < 1 or month > 12 or day < 1:
            continue
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        length = 31 - (month - 1) % 7 % 2
        if month == 2:
            length = 29 if leap else 28
        if day > length:
            continue
        # Years that begin in March have their leap day at the end, and months of 153 days in five.
        year -= month <= 2
        of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
        out[row] = 365 * year + year // 4 - year // 100 + year // 400 + of_year - _MARCH_OF_0
        right[row] = True


def dates(texts: pa.StringArray) -> tuple[pa.Date32Array, Bools]:
    """Days of the form 2026-01-31, from the year 1 on, and which texts are none. Null stays null."""
    days, right = np.zeros(len(texts), np.int32), np.zeros(len(texts), np.bool_)
    parts = _parts(texts)
    _days(parts, days, right)
    return pa.array(days, pa.int32(), mask=~right).cast(pa.date32()), parts.valid & ~right


@kernel
def _units(texts: _Texts, scale: int, out: Int64s, wrong: Bools) -> None:
    """Numbers like -12.50 in units of 10^-scale. White space around them is skipped."""
    data = texts.data
    for row in range(out.shape[0]):
        if not texts.valid[row]:
            continue
        at = texts.offsets[row]
        stop = texts.offsets[row + 1]
        while at < stop and is_blank(data[at]):
            at += 1
        while at < stop and is_blank(data[stop - 1]):
            stop -= 1
        negative = at < stop and data[at] == MINUS
        if at < stop and (negative or data[at] == PLUS):
            at += 1
        units = np.int64(0)
        digits = 0
        behind = -1
        seen = False
        right = True
        while at < stop and right:
            byte = data[at]
            if byte == POINT and behind < 0:
                behind = 0
            elif is_digit(byte):
                seen = True
                if behind >= scale:
                    right = byte == ZERO
                else:
                    if behind >= 0:
                        behind += 1
                    if digits > 0 or byte != ZERO:
                        digits += 1
                    if digits <= _DIGITS:
                        units = units * 10 + (byte - ZERO)
            else:
                right = False
            at += 1
        for _ in range(scale - max(behind, 0)):
            if units != 0:
                digits += 1
            if digits <= _DIGITS:
                units *= 10
        if not right or not seen or digits > _DIGITS:
            wrong[row] = True
        else:
            out[row] = -units if negative else units


def decimals(texts: pa.StringArray, scale: int) -> tuple[pa.Decimal128Array, Bools]:
    """Exact numbers with at most 18 digits, `scale` of them behind the point, and which texts are none. Null stays null."""
    units, wrong = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    parts = _parts(texts)
    _units(parts, scale, units, wrong)
    return held(units, scale, parts.valid & ~wrong), wrong


def held(units: Int64s, scale: int, valid: Bools) -> pa.Decimal128Array:
    """Decimals of so many units of 10^-scale each."""
    words = np.empty((len(units), 2), np.int64)
    words[:, 0] = units
    words[:, 1] = units >> 63
    nulls = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.decimal128(_DIGITS, scale), len(units), [nulls, pa.py_buffer(words)])
