"""Cells to text: UTF-8, escapes of JSON, doubled quotes of csv, and the few bytes of a cell that a reason shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.arrays import Bools, Int64s, UInt8s
from evenflow.kernels import kernel
from partitioner_service.reading.cells import ABSENT, ESCAPED, VALUE, Cells

JSON, CSV, PLAIN = range(3)
"""How a cell that is ESCAPED was written; of PLAIN text none is."""

_SHOWN = 40
"""Bytes of a cell that a reason shows; a character that begins among them is shown whole."""
_BEHIND_SHOWN = 3 + 3
"""The rest of that character, at most, and three dots."""


@kernel
def utf8_length(data: Any, at: int, stop: int) -> int:
    """Bytes of the character that begins here and ends by `stop`, 0 when none does."""
    first = data[at]
    if first < 0x80:
        return 1
    if first < 0xC2 or first > 0xF4:
        return 0
    length = 2 + (first >= 0xE0) + (first >= 0xF0)
    if at + length > stop:
        return 0
    second = data[at + 1]
    overlong = (first == 0xE0 and second < 0xA0) or (first == 0xF0 and second < 0x90)
    surrogate_or_beyond = (first == 0xED and second > 0x9F) or (first == 0xF4 and second > 0x8F)
    if overlong or surrogate_or_beyond:
        return 0
    for place in range(1, length):
        if data[at + place] & 0xC0 != 0x80:
            return 0
    return length


@kernel
def is_utf8(data: Any, at: int, stop: int) -> bool:
    """Whether these bytes are text."""
    while at < stop:
        length = utf8_length(data, at, stop)
        if length == 0:
            return False
        at += length
    return True


@kernel
def hexadecimal(digit: int) -> int:
    """Value of a hexadecimal digit, -1 for anything else."""
    if 48 <= digit <= 57:
        return digit - 48
    letter = digit | 32
    return letter - 87 if 97 <= letter <= 102 else -1


@kernel
def four_digits(data: Any, at: int) -> int:
    """What stands behind `\\u`, -1 when it is not four hexadecimal digits."""
    code = 0
    for place in range(4):
        digit = hexadecimal(data[at + place])
        if digit < 0:
            return -1
        code = code * 16 + digit
    return code


@kernel
def _write_character(code: int, out: Any, at: int) -> int:
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | (code >> 6)
        out[at + 1] = 0x80 | (code & 63)
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | (code >> 12)
        out[at + 1] = 0x80 | ((code >> 6) & 63)
        out[at + 2] = 0x80 | (code & 63)
        return at + 3
    out[at] = 0xF0 | (code >> 18)
    out[at + 1] = 0x80 | ((code >> 12) & 63)
    out[at + 2] = 0x80 | ((code >> 6) & 63)
    out[at + 3] = 0x80 | (code & 63)
    return at + 4


@kernel
def unescape(data: Any, at: int, stop: int, out: Any, to: int) -> int:
    """Write a JSON string whose escapes were proven; returns where it ends in `out`."""
    while at < stop:
        if data[at] != 92:
            out[to] = data[at]
            at += 1
            to += 1
            continue
        letter = data[at + 1]
        at += 2
        if letter == 117:  # u
            code = four_digits(data, at)
            at += 4
            if 0xD800 <= code <= 0xDBFF:
                code = 0x10000 + ((code - 0xD800) << 10) + four_digits(data, at + 2) - 0xDC00
                at += 6
            to = _write_character(code, out, to)
            continue
        if letter == 98:  # b
            letter = 8
        elif letter == 102:  # f
            letter = 12
        elif letter == 110:  # n
            letter = 10
        elif letter == 114:  # r
            letter = 13
        elif letter == 116:  # t
            letter = 9
        out[to] = letter
        to += 1
    return to


@kernel
def unquote(data: Any, at: int, stop: int, out: Any, to: int) -> int:
    """Write a csv field that begins with a quote; returns where it ends in `out`."""
    at += 1
    quoted = True
    while at < stop:
        if quoted and data[at] == 34:
            at += 1
            quoted = at < stop and data[at] == 34
            if not quoted:
                continue
        out[to] = data[at]
        to += 1
        at += 1
    return to


@kernel
def _write_all(
    data: Any, states: Any, begins: Any, lengths: Any, written: int, out: Any, offsets: Any
) -> None:
    to = 0
    for row in range(states.shape[0]):
        offsets[row] = to
        begin = begins[row]
        if states[row] == ESCAPED:
            if written == JSON:
                to = unescape(data, begin, begin + lengths[row], out, to)
            else:
                to = unquote(data, begin, begin + lengths[row], out, to)
        elif states[row] >= VALUE:
            for byte in range(lengths[row]):
                out[to + byte] = data[begin + byte]
            to += lengths[row]
    offsets[states.shape[0]] = to


def texts(
    data: UInt8s, cells: Cells, column: int, written: int, rows: Int64s | None = None
) -> pa.StringArray:
    """Text of a column, of these rows or of all; null where nothing is there. Bytes are not checked."""
    states, begins, lengths = (
        array[column] if rows is None else array[column, rows]
        for array in (cells.states, cells.begins, cells.lengths)
    )
    valid = states >= VALUE
    out = np.empty(int(lengths.sum(where=valid, dtype=np.int64)), np.uint8)
    offsets = np.empty(len(states) + 1, np.int32)
    _write_all(data, states, begins, lengths, written, out, offsets)
    nulls = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.StringArray.from_buffers(len(states), pa.py_buffer(offsets), pa.py_buffer(out), nulls)


@kernel
def _write_shown(data: Any, begins: Any, lengths: Any, out: Any, offsets: Any) -> None:
    to = 0
    for row in range(begins.shape[0]):
        offsets[row] = to
        at = begins[row]
        stop = at + lengths[row]
        most = min(stop, at + _SHOWN)
        while at < most:
            length = utf8_length(data, at, stop)
            if length < 2:
                out[to] = data[at] if 32 <= data[at] < 127 else 63
                length = 1
                to += 1
            else:
                for byte in range(length):
                    out[to + byte] = data[at + byte]
                to += length
            at += length
        if at < stop:
            for _ in range(3):
                out[to] = 46
                to += 1
    offsets[begins.shape[0]] = to


def shown(data: UInt8s, cells: Cells, columns: Int64s, rows: Int64s) -> pa.BinaryArray:
    """How these cells, each (column, row), begin as they were written."""
    begins, lengths = cells.begins[columns, rows], cells.lengths[columns, rows]
    out = np.empty(int((np.minimum(lengths, _SHOWN) + _BEHIND_SHOWN).sum(dtype=np.int64)), np.uint8)
    offsets = np.empty(len(rows) + 1, np.int32)
    _write_shown(data, begins, lengths, out, offsets)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    )


@kernel
def _check(data: Any, states: Any, begins: Any, lengths: Any, wrong: Any) -> None:
    for row in range(states.shape[0]):
        if states[row] >= VALUE and not is_utf8(data, begins[row], begins[row] + lengths[row]):
            wrong[row] = True
            states[row] = ABSENT


def check_utf8(data: UInt8s, cells: Cells, column: int) -> Bools:
    """Which cells of a column are not UTF-8; they are ABSENT then."""
    wrong = np.zeros(cells.states.shape[1], np.bool_)
    _check(data, cells.states[column], cells.begins[column], cells.lengths[column], wrong)
    return wrong
