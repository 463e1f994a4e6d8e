"""Cells to numbers: what the pass over the block leaves, and the numbers of csv."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.arrays import Float64s, Int64s, UInt8s, Whole
from evenflow.kernels import inlined, kernel
from partitioner_service.reading.cells import ABSENT, ESCAPED, FLOAT, INT, LONG, NULL, TEXT, VALUE, Cells
from partitioner_service.reading.reasons import NOT_WHOLE, OTHER_TYPE_TEXT, TOO_LARGE, Faults
from partitioner_service.reading.strings import CSV, PLAIN, hexadecimal, texts

EXACT_FLOAT = 15
"""Digits that a double holds exactly."""
POWERS: Float64s = 10.0 ** np.arange(EXACT_FLOAT + 1, dtype=np.float64)


def convert_long(data: UInt8s, cells: Cells, kinds: Int64s) -> None:
    """Numbers that are LONG become doubles, infinite where they are too large. Their grammar is proven."""
    for column in np.flatnonzero(kinds == FLOAT).tolist():
        rows = np.flatnonzero(cells.states[column] == LONG)
        if len(rows):
            written = texts(data, cells, column, PLAIN, rows)
            cells.floats[column, rows] = written.cast(pa.float64()).to_numpy(zero_copy_only=False)
            cells.states[column, rows] = VALUE


@inlined
def _is_null(data: Any, at: int, length: int) -> bool:
    """Whether a number or time of csv is null: empty, NA, null or NULL."""
    if length == 0:
        return True
    if length == 2:
        return bool(data[at] == 78 and data[at + 1] == 65)
    if length != 4:
        return False
    if data[at] == 110:
        return bool(data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108)
    return bool(data[at] == 78 and data[at + 1] == 85 and data[at + 2] == 76 and data[at + 3] == 76)


@kernel
def _whole(data: Any, at: int, stop: int) -> tuple[Whole, int]:
    """-?[0-9]+ or 0x and at most 16 digits, as 64 bits -> (value, code)."""
    if stop - at > 2 and data[at] == 48 and data[at + 1] | 32 == 120:
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
    negative = at < stop and data[at] == 45
    if negative:
        at += 1
    if at == stop:
        return 0, OTHER_TYPE_TEXT
    while at < stop - 1 and data[at] == 48:
        at += 1
    begin = at
    value = np.uint64(0)
    while at < stop and 48 <= data[at] <= 57:
        value = value * np.uint64(10) + np.uint64(data[at] - 48)
        at += 1
    if at < stop:
        return 0, OTHER_TYPE_TEXT
    most = np.uint64(1) << np.uint64(63)
    if not negative:
        most -= np.uint64(1)
    if at - begin > 19 or value > most:
        return 0, TOO_LARGE
    return -np.int64(value) if negative else np.int64(value), 0


@kernel
def _decimal(data: Any, at: int, stop: int, powers: Any) -> tuple[float, int]:
    """[+-]?([0-9]+.?[0-9]*|.[0-9]+)([eE][+-]?[0-9]+)? -> (value, code); code -1: right, but not converted."""
    negative = at < stop and data[at] == 45
    if at < stop and (negative or data[at] == 43):
        at += 1
    begin = at
    digits = np.int64(0)
    while at < stop and 48 <= data[at] <= 57:
        digits = digits * 10 + (data[at] - 48)
        at += 1
    count = at - begin
    decimals = 0
    if at < stop and data[at] == 46:
        at += 1
        begin = at
        while at < stop and 48 <= data[at] <= 57:
            digits = digits * 10 + (data[at] - 48)
            at += 1
        decimals = at - begin
    if count + decimals == 0:
        return 0.0, OTHER_TYPE_TEXT
    long = count + decimals > EXACT_FLOAT
    if at < stop and data[at] | 32 == 101:
        long = True
        at += 1
        if at < stop and (data[at] == 43 or data[at] == 45):
            at += 1
        begin = at
        while at < stop and 48 <= data[at] <= 57:
            at += 1
        if at == begin:
            return 0.0, OTHER_TYPE_TEXT
    if at < stop:
        return 0.0, OTHER_TYPE_TEXT
    if long:
        return 0.0, -1
    value = np.float64(digits) / powers[decimals]
    return -value if negative else value, 0


@kernel
def _read_numbers(data: Any, column: int, kind: int, powers: Any, cells: Any, codes: Any) -> None:
    """Numbers of the cells that are VALUE, with white space around them; codes of those that are none."""
    for row in range(codes.shape[0]):
        if cells.states[column, row] != VALUE:
            continue
        at = cells.begins[column, row]
        stop = at + cells.lengths[column, row]
        if _is_null(data, at, stop - at):
            cells.states[column, row] = NULL
            continue
        while at < stop and (data[at] == 32 or data[at] == 9):
            at += 1
        while at < stop and (data[stop - 1] == 32 or data[stop - 1] == 9):
            stop -= 1
        cells.begins[column, row] = at
        cells.lengths[column, row] = stop - at
        if kind == INT:
            cells.ints[column, row], codes[row] = _whole(data, at, stop)
            if codes[row] == OTHER_TYPE_TEXT and _decimal(data, at, stop, powers)[1] <= 0:
                codes[row] = NOT_WHOLE
        else:
            cells.floats[column, row], code = _decimal(data, at, stop, powers)
            if code < 0:
                cells.states[column, row] = LONG
            else:
                codes[row] = code


def convert_csv(data: UInt8s, cells: Cells, kinds: Int64s, faults: Faults) -> None:
    """Fields of columns that need numbers become such; what is none is a fault."""
    for column in np.flatnonzero(kinds != TEXT).tolist():
        rows = np.flatnonzero(cells.states[column] == ESCAPED)
        codes = np.zeros(len(faults.codes), np.uint8)
        _read_numbers(data, column, kinds[column], POWERS, cells, codes)
        if len(rows):
            codes[rows] = _convert_quoted(data, cells, column, kinds[column], rows)
        for code in np.unique(codes[codes > 0]):
            faults.note(codes == code, code, column=column)
        cells.states[column][codes > 0] = ABSENT
    convert_long(data, cells, kinds)


def _convert_quoted(data: UInt8s, cells: Cells, column: int, kind: int, rows: Int64s) -> UInt8s:
    """The same for fields that are not as written; returns their codes."""
    _, offsets, written = texts(data, cells, column, CSV, rows).buffers()
    kinds = np.array([kind], np.int64)
    bare = Cells.of(kinds, len(rows))
    bare.states[:] = VALUE
    ends = np.frombuffer(offsets, np.int32, len(rows) + 1)
    bare.begins[0], bare.lengths[0] = ends[:-1], np.diff(ends)
    plain = np.frombuffer(written, np.uint8)
    codes = np.zeros(len(rows), np.uint8)
    _read_numbers(plain, 0, kind, POWERS, bare, codes)
    convert_long(plain, bare, kinds)
    for ours, theirs in ((cells.states, bare.states), (cells.ints, bare.ints), (cells.floats, bare.floats)):
        if ours.shape == cells.states.shape:
            ours[column, rows] = theirs[0]
    return codes
