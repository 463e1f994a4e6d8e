"""Values of any kind to texts that tell the kind, so that count_distinct can compare them.

`"a` is the text a, `true` and `false` are the truth values, and `15e-1` is the number 1.5. The text of a
number is that of its value, however it is written: an optional minus, digits that neither begin nor end with
0, and the power of ten behind `e` unless it is 0. The number 0 is `0`, with either sign.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.numeric.arrays import Bools, Int32s, Int64s, UInt8s
from evenflow.numeric.kernels import inlined, kernel
from partitioner_service.reading.cells.cells import OF_NUMBER, OF_TEXT
from partitioner_service.reading.cells.characters import (
    MINUS,
    PLUS,
    POINT,
    QUOTE,
    SMALL,
    SMALL_E,
    ZERO,
    is_digit,
)
from partitioner_service.reading.cells.typed_columns import Texts, text_parts

MOST_EXPONENT_DIGITS = 9
"""Digits of an exponent that is read, without leading zeros."""
_ROOM = 24
"""Bytes that the text of a value may have beyond what is written: a quote,
or an `e` with a sign and 20 digits.
"""


@inlined
def _write_whole(number: int, out: UInt8s, to: int) -> int:
    """Write a whole number in decimal digits. Returns where it ends."""
    if number < 0:
        out[to] = MINUS
        to += 1
        number = -number
    end = to
    rest = number
    while rest > 0:
        rest //= 10
        end += 1
    at = end
    while number > 0:
        at -= 1
        out[at] = ZERO + number % 10
        number //= 10
    return end


@inlined
def _exponent(data: UInt8s, at: int, stop: int) -> tuple[int, bool]:
    """The exponent behind an `e` -> (its value, whether it has too many digits)."""
    negative = data[at] == MINUS
    if negative or data[at] == PLUS:
        at += 1
    while at < stop and data[at] == ZERO:
        at += 1
    if stop - at > MOST_EXPONENT_DIGITS:
        return 0, True
    exponent = np.int64(0)
    while at < stop:
        exponent = exponent * 10 + (data[at] - ZERO)
        at += 1
    return int(-exponent if negative else exponent), False


@inlined
def _write_number(data: UInt8s, at: int, stop: int, out: UInt8s, to: int) -> tuple[int, bool]:
    """Write the text
    of a number, which must be one -> (where it ends, whether its exponent has too many digits).
    """
    start = to
    if data[at] == MINUS:
        out[to] = MINUS
        to += 1
    if data[at] == MINUS or data[at] == PLUS:
        at += 1
    power = np.int64(0)
    first = end = to  # the digits that are written, and the last of them that is not 0
    behind = False
    while at < stop and (is_digit(data[at]) or data[at] == POINT):
        if data[at] == POINT:
            behind = True
        else:
            power -= behind
            if to > first or data[at] != ZERO:
                out[to] = data[at]
                to += 1
                if data[at] != ZERO:
                    end = to
        at += 1
    large = False
    if at < stop and data[at] | SMALL == SMALL_E:
        written, large = _exponent(data, at + 1, stop)
        power += written
    if end == first:
        out[start] = ZERO
        return start + 1, large
    power += to - end
    to = end
    if power != 0:
        out[to] = SMALL_E
        to = _write_whole(int(power), out, to + 1)
    return to, large


@kernel
def _write_all(texts: Texts, kinds: Int64s, out: UInt8s, offsets: Int32s, large: Bools) -> None:
    to = 0
    for row in range(kinds.shape[0]):
        offsets[row] = to
        if not texts.valid[row]:
            continue
        at = texts.offsets[row]
        stop = texts.offsets[row + 1]
        if kinds[row] == OF_NUMBER:
            to, large[row] = _write_number(texts.data, at, stop, out, to)
            continue
        if kinds[row] == OF_TEXT:
            out[to] = QUOTE
            to += 1
        for place in range(at, stop):
            out[to] = texts.data[place]
            to += 1
    offsets[kinds.shape[0]] = to


def any_values(texts: pa.StringArray, kinds: Int64s) -> tuple[pa.StringArray, Bools]:
    """The texts of these values, and which of them are numbers whose exponent has too many digits.
    Null stays null.

    texts: the values as they are written. kinds: OF_TEXT, OF_NUMBER or OF_TRUTH, shape (n,).
    """
    parts = text_parts(texts)
    written = int(parts.offsets[-1]) - int(parts.offsets[0])
    out, offsets = np.empty(written + _ROOM * len(texts), np.uint8), np.empty(len(texts) + 1, np.int32)
    large = np.zeros(len(texts), np.bool_)
    _write_all(parts, kinds, out, offsets, large)
    nulls = None if parts.valid.all() else pa.py_buffer(np.packbits(parts.valid, bitorder="little"))
    letters = pa.py_buffer(out[: offsets[-1]].copy())
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), letters, nulls), large


def numbers_of(values: pa.StringArray) -> pa.DoubleArray:
    """The numbers among such texts, null in place of all other values."""
    number = pc.match_substring_regex(values, "^-?[0-9]")
    return pc.if_else(number, values, None).cast(pa.float64())
