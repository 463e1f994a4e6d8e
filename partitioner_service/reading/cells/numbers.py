"""Cells to numbers: the numbers that the pass over the block has not converted, and the numbers of csv."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.numeric.arrays import Float64s, Int64s, UInt8s, Whole
from evenflow.numeric.kernels import inlined, kernel
from partitioner_service.reading.cells.cells import (
    ABSENT,
    ESCAPED,
    FLOAT,
    INT,
    LONG,
    NULL,
    TEXT,
    VALUE,
    Cells,
)
from partitioner_service.reading.cells.characters import (
    MINUS,
    PLUS,
    POINT,
    SMALL,
    SMALL_E,
    SMALL_X,
    ZERO,
    is_blank,
    is_digit,
    spells,
)
from partitioner_service.reading.cells.faults import Faults
from partitioner_service.reading.cells.reasons import NOT_WHOLE, OTHER_TYPE_TEXT, TOO_LARGE
from partitioner_service.reading.cells.strings import CSV, PLAIN, hexadecimal, texts

EXACT_FLOAT = 15
"""With at most so many digits, any whole number is exact as a double."""
_NA, _NULL, _LARGE_NULL = tuple(b"NA"), tuple(b"null"), tuple(b"NULL")
# Powers of ten up to 10^22 are exact as doubles.
POWERS: Float64s = 10.0 ** np.arange(EXACT_FLOAT + 1, dtype=np.float64)


def convert_long(data: UInt8s, cells: Cells, kinds: Int64s) -> None:
    """Convert LONG cells to doubles. A number that is too large becomes infinite.

    The cells must hold valid numbers.
    """
    for column in np.flatnonzero(kinds == FLOAT).tolist():
        rows = np.flatnonzero(cells.states[column] == LONG)
        if len(rows):
            written = texts(data, cells, column, PLAIN, rows)
            cells.floats[column, rows] = written.cast(pa.float64()).to_numpy(zero_copy_only=False)
            cells.states[column, rows] = VALUE


@inlined
def _is_null(data: UInt8s, at: int, length: int) -> bool:
    """Whether a csv field that should hold a number or time means null: it is empty, NA, null or NULL."""
    if length == 0:
        return True
    if length == len(_NA):
        return spells(data, at, _NA)
    return length == len(_NULL) and (spells(data, at, _NULL) or spells(data, at, _LARGE_NULL))


@kernel
def _whole(data: UInt8s, at: int, stop: int) -> tuple[Whole, int]:
    """-?[0-9]+, or 0x and at most 16 hexadecimal digits, which are the 64 bits of int64 -> (value, code)."""
    if stop - at > 2 and data[at] == ZERO and data[at + 1] | SMALL == SMALL_X:
        at += 2
        bits = np.uint64(0)
        if stop - at > 16:
            return 0, TOO_LARGE
        while at < stop:
            digit = hexadecimal(data[at])
            if digit < 0:
                return 0, OTHER_TYPE_TEXT
            bits = bits * np.uint64(16) + np.uint64(digit)
            at += 1
        return np.int64(bits), 0
    negative = at < stop and data[at] == MINUS
    if negative:
        at += 1
    if at == stop:
        return 0, OTHER_TYPE_TEXT
    while at < stop - 1 and data[at] == ZERO:  # leading zeros must not count as digits
        at += 1
    begin = at
    value = np.uint64(0)
    while at < stop and is_digit(data[at]):
        value = value * np.uint64(10) + np.uint64(data[at] - ZERO)
        at += 1
    if at < stop:
        return 0, OTHER_TYPE_TEXT
    # 19 digits always fit uint64, so the comparison with int64's limit is right. More digits may have
    # wrapped.
    most = np.uint64(1) << np.uint64(63)
    if not negative:
        most -= np.uint64(1)
    if at - begin > 19 or value > most:
        return 0, TOO_LARGE
    return -np.int64(value) if negative else np.int64(value), 0


@kernel
def _decimal(data: UInt8s, at: int, stop: int) -> tuple[float, int]:
    """[+-]?([0-9]+.?[0-9]*|.[0-9]+)([eE][+-]?[0-9]+)? -> (value, code).

    Code -1 means that the number is right, but needs `convert_long`.
    """
    negative = at < stop and data[at] == MINUS
    if at < stop and (negative or data[at] == PLUS):
        at += 1
    begin = at
    digits = np.int64(0)
    while at < stop and is_digit(data[at]):
        digits = digits * 10 + (data[at] - ZERO)
        at += 1
    count = at - begin
    decimals = 0
    if at < stop and data[at] == POINT:
        at += 1
        begin = at
        while at < stop and is_digit(data[at]):
            digits = digits * 10 + (data[at] - ZERO)
            at += 1
        decimals = at - begin
    if count + decimals == 0:
        return 0.0, OTHER_TYPE_TEXT
    long = count + decimals > EXACT_FLOAT
    if at < stop and data[at] | SMALL == SMALL_E:
        long = True
        at += 1
        if at < stop and (data[at] == PLUS or data[at] == MINUS):
            at += 1
        begin = at
        while at < stop and is_digit(data[at]):
            at += 1
        if at == begin:
            return 0.0, OTHER_TYPE_TEXT
    if at < stop:
        return 0.0, OTHER_TYPE_TEXT
    if long:
        return 0.0, -1
    # Both are exact doubles, and division rounds correctly. So the quotient is the double nearest to the
    # text.
    value = np.float64(digits) / POWERS[decimals]
    return -value if negative else value, 0


@kernel
def _read_numbers(data: UInt8s, cells: Cells, column: int, kind: int, codes: UInt8s) -> None:
    """Convert the VALUE cells of a column.

    White space around a number is skipped. codes: is set for faulty cells.
    """
    for row in range(codes.shape[0]):
        if cells.states[column, row] != VALUE:
            continue
        at = cells.begins[column, row]
        stop = at + cells.lengths[column, row]
        if _is_null(data, at, stop - at):
            cells.states[column, row] = NULL
            continue
        while at < stop and is_blank(data[at]):
            at += 1
        while at < stop and is_blank(data[stop - 1]):
            stop -= 1
        cells.begins[column, row] = at
        cells.lengths[column, row] = stop - at
        if kind == INT:
            cells.ints[column, row], codes[row] = _whole(data, at, stop)
            # A number that is not whole deserves a better reason than "text".
            if codes[row] == OTHER_TYPE_TEXT and _decimal(data, at, stop)[1] <= 0:
                codes[row] = NOT_WHOLE
        else:
            cells.floats[column, row], code = _decimal(data, at, stop)
            if code < 0:
                cells.states[column, row] = LONG
            else:
                codes[row] = code


def convert_csv(data: UInt8s, cells: Cells, kinds: Int64s, faults: Faults) -> None:
    """Convert the fields of columns that need numbers. A field that holds no such number is a fault."""
    for column in np.flatnonzero(kinds != TEXT).tolist():
        rows = np.flatnonzero(cells.states[column] == ESCAPED)
        codes = np.zeros(len(faults.codes), np.uint8)
        _read_numbers(data, cells, column, kinds[column], codes)
        if len(rows):
            codes[rows] = _convert_quoted(data, cells, column, kinds[column], rows)
        for code in np.unique(codes[codes > 0]):
            faults.note(codes == code, code, column=column)
        cells.states[column][codes > 0] = ABSENT
    convert_long(data, cells, kinds)


def _convert_quoted(data: UInt8s, cells: Cells, column: int, kind: int, rows: Int64s) -> UInt8s:
    """Convert the fields of these rows, which have to be unquoted first. Returns their codes."""
    # The unquoted texts are a small block of their own, which the same functions convert.
    _, offsets, written = texts(data, cells, column, CSV, rows).buffers()
    kinds = np.array([kind], np.int64)
    bare = Cells.of(kinds, len(rows))
    bare.states[:] = VALUE
    ends = np.frombuffer(offsets, np.int32, len(rows) + 1)
    bare.begins[0], bare.lengths[0] = ends[:-1], np.diff(ends)
    plain = np.frombuffer(written, np.uint8)
    codes = np.zeros(len(rows), np.uint8)
    _read_numbers(plain, bare, 0, kind, codes)
    convert_long(plain, bare, kinds)
    for ours, theirs in ((cells.states, bare.states), (cells.ints, bare.ints), (cells.floats, bare.floats)):
        if ours.shape == cells.states.shape:  # `floats` has no cells if no column needs them
            ours[column, rows] = theirs[0]
    return codes
