"""Texts to columns of types that are neither plain numbers nor plain text: booleans, dates, decimals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.numeric.arrays import Bools, Int32s, Int64s, UInt8s, viewed
from evenflow.numeric.kernels import inlined, kernel
from partitioner_service.reading.cells.characters import MINUS, PLUS, POINT, ZERO, is_blank, is_digit

CSV_NULLS = ("", "NA", "null", "NULL")
"""Texts that mean null in a csv column whose type is not text."""
_DIGITS = 18
"""Digits of a decimal. So many always fit int64."""
_MARCH_OF_0 = 719_468
"""Days from the first of March of the year 0 to the first of January of 1970."""
_TRUE, _FALSE = pa.array(["true", "True", "TRUE"]), pa.array(["false", "False", "FALSE"])


def truths(texts: pa.StringArray) -> tuple[pa.BooleanArray, Bools]:
    """Booleans of csv fields, and which fields are neither true nor false. Null stays null."""
    true = pc.is_in(texts, _TRUE)
    wrong = pc.and_(pc.is_valid(texts), pc.invert(pc.or_(true, pc.is_in(texts, _FALSE))))
    return pc.if_else(pc.is_valid(texts), true, None), wrong.to_numpy(zero_copy_only=False)


class Texts(NamedTuple):
    """Texts as Arrow stores them."""

    offsets: Int32s
    """Text n is data[offsets[n]:offsets[n + 1]]."""
    data: UInt8s
    """All texts, one after the other, in UTF-8."""
    valid: Bools
    """Whether each text is there and not null."""


def text_parts(texts: pa.StringArray) -> Texts:
    """The parts of an array of texts."""
    rows = len(texts)
    _, offsets, data = texts.buffers()
    return Texts(
        viewed(offsets, np.int32, texts.offset, rows + 1),
        viewed(data, np.uint8, 0, 0 if data is None else data.size),
        pc.is_valid(texts).to_numpy(zero_copy_only=False),
    )


@inlined
def _number(data: UInt8s, at: int, digits: int) -> int:
    """The number in so many decimal digits, -1 if one of them is no digit."""
    value = 0
    for place in range(at, at + digits):
        byte = data[place]
        if not is_digit(byte):
            return -1
        value = value * 10 + (byte - ZERO)
    return value


@kernel
def _days(texts: Texts, out: Int32s, right: Bools) -> None:
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
        # 31, 30, 31, ... from January to July, and the same again from August on.
        length = 31 - (month - 1) % 7 % 2
        if month == 2:
            length = 29 if leap else 28
        if day > length:
            continue
        # The year is counted from March. Then the leap day is its last day, and any five months from March or
        # August on have 153 days.
        year -= month <= 2
        of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
        out[row] = 365 * year + year // 4 - year // 100 + year // 400 + of_year - _MARCH_OF_0
        right[row] = True


def dates(texts: pa.StringArray) -> tuple[pa.Date32Array, Bools]:
    """Dates of the form 2026-01-31, from the year 1 on, and which texts are no such date. Null stays null."""
    days, right = np.zeros(len(texts), np.int32), np.zeros(len(texts), np.bool_)
    parts = text_parts(texts)
    _days(parts, days, right)
    return pa.array(days, pa.int32(), mask=~right).cast(pa.date32()), parts.valid & ~right


@kernel
def _units(texts: Texts, scale: int, out: Int64s, wrong: Bools) -> None:
    """Numbers like -12.50 in units of 10^-scale. White space around a number is skipped.

    wrong: is set for a text that is no number, that has more than 18 digits, or that has a digit other than 0
    beyond the first `scale` digits behind the point.
    """
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
        digits = 0  # without leading zeros
        behind = -1  # digits behind the point, -1 before the point
        has_digit = False
        right = True
        while at < stop and right:
            byte = data[at]
            if byte == POINT and behind < 0:
                behind = 0
            elif is_digit(byte):
                has_digit = True
                if behind >= scale:
                    right = byte == ZERO
                else:
                    if behind >= 0:
                        behind += 1
                    if digits > 0 or byte != ZERO:
                        digits += 1
                    if digits <= _DIGITS:  # beyond that, int64 could overflow: the number is refused anyway
                        units = units * 10 + (byte - ZERO)
            else:
                right = False
            at += 1
        # Fill up the digits behind the point that the text does not have.
        for _ in range(scale - max(behind, 0)):
            if units != 0:
                digits += 1
            if digits <= _DIGITS:
                units *= 10
        if not right or not has_digit or digits > _DIGITS:
            wrong[row] = True
        else:
            out[row] = -units if negative else units


def decimals(texts: pa.StringArray, scale: int) -> tuple[pa.Decimal128Array, Bools]:
    """Decimals with at most 18 digits, `scale` of them behind the point, and which texts are no such number.

    Null stays null.
    """
    units, wrong = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    parts = text_parts(texts)
    _units(parts, scale, units, wrong)
    return decimal_array(units, scale, parts.valid & ~wrong), wrong


def decimal_array(units: Int64s, scale: int, valid: Bools) -> pa.Decimal128Array:
    """Decimals from whole units of 10^-scale. valid: which of them are not null."""
    # Arrow's decimal128 has 16 bytes, the low 8 first. The upper 8 repeat the sign bit.
    words = np.empty((len(units), 2), np.int64)
    words[:, 0] = units
    words[:, 1] = units >> 63
    nulls = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.decimal128(_DIGITS, scale), len(units), [nulls, pa.py_buffer(words)])
