"""Cells to text: UTF-8, the escapes of JSON, the doubled quotes of csv, and the bytes that a reason shows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.numeric.arrays import Bools, Int32s, Int64s, UInt8s
from evenflow.numeric.kernels import kernel
from partitioner_service.reading.cells.cells import ABSENT, ESCAPED, VALUE, Cells
from partitioner_service.reading.cells.characters import (
    BACKSLASH,
    BACKSPACE,
    BLANK,
    DELETE,
    FORM_FEED,
    LINE_FEED,
    POINT,
    QUESTION_MARK,
    QUOTE,
    RETURN,
    SMALL,
    SMALL_A,
    SMALL_B,
    SMALL_F,
    SMALL_N,
    SMALL_R,
    SMALL_T,
    SMALL_U,
    TAB,
    ZERO,
    is_digit,
)

JSON, CSV, PLAIN = range(3)
"""How an ESCAPED cell was written. PLAIN text has no ESCAPED cells."""

_SHOWN = 40
"""Bytes of a cell that a reason shows. A character that begins among these bytes is shown whole."""
_BEHIND_SHOWN = 3 + 3
"""Room for more bytes: three for the rest of that character, and three dots."""


@kernel
def utf8_length(data: UInt8s, at: int, stop: int) -> int:
    """Number of bytes of the character that begins here, 0 if no such character of UTF-8 ends by `stop`."""
    first = data[at]
    if first < 0x80:
        return 1
    # 0x80 to 0xBF are never first. 0xC0 and 0xC1 would write ASCII in two bytes. 0xF5 and more are beyond
    # Unicode.
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
def is_utf8(data: UInt8s, at: int, stop: int) -> bool:
    """Whether these bytes are UTF-8."""
    while at < stop:
        length = utf8_length(data, at, stop)
        if length == 0:
            return False
        at += length
    return True


@kernel
def hexadecimal(digit: int) -> int:
    """The value of a hexadecimal digit, -1 for any other byte."""
    if is_digit(digit):
        return digit - ZERO
    letter = digit | SMALL
    return letter - SMALL_A + 10 if SMALL_A <= letter <= SMALL_F else -1


@kernel
def four_digits(data: UInt8s, at: int) -> int:
    """The number that stands behind `\\u`, -1 if it is not four hexadecimal digits."""
    code = 0
    for place in range(4):
        digit = hexadecimal(data[at + place])
        if digit < 0:
            return -1
        code = code * 16 + digit
    return code


@kernel
def _write_character(code: int, out: UInt8s, at: int) -> int:
    """Write the character with this code point as UTF-8. Returns where it ends."""
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
def unescape(data: UInt8s, at: int, stop: int, out: UInt8s, to: int) -> int:
    """Write a JSON string without its escapes, which must be right. Returns where the text ends in `out`.

    The text never has more bytes than the string, because every escape has at least as many as what it stands
    for.
    """
    while at < stop:
        if data[at] != BACKSLASH:
            out[to] = data[at]
            at += 1
            to += 1
            continue
        letter = data[at + 1]
        at += 2
        if letter == SMALL_U:
            code = four_digits(data, at)
            at += 4
            if 0xD800 <= code <= 0xDBFF:
                # The first half of a surrogate pair: a backslash, a u and the second half follow.
                code = 0x10000 + ((code - 0xD800) << 10) + four_digits(data, at + 2) - 0xDC00
                at += 6
            to = _write_character(code, out, to)
            continue
        if letter == SMALL_B:
            letter = BACKSPACE
        elif letter == SMALL_F:
            letter = FORM_FEED
        elif letter == SMALL_N:
            letter = LINE_FEED
        elif letter == SMALL_R:
            letter = RETURN
        elif letter == SMALL_T:
            letter = TAB
        out[to] = letter
        to += 1
    return to


@kernel
def unquote(data: UInt8s, at: int, stop: int, out: UInt8s, to: int) -> int:
    """Write a csv field that begins with a quote, without its quoting.

    Returns where the text ends in `out`.
    """
    at += 1
    quoted = True
    while at < stop:
        if quoted and data[at] == QUOTE:
            # Two quotes write one. A single quote ends the quoted part, and what follows it is written as it
            # is.
            at += 1
            quoted = at < stop and data[at] == QUOTE
            if not quoted:
                continue
        out[to] = data[at]
        to += 1
        at += 1
    return to


class _Spans(NamedTuple):
    """The cells of one column. The arrays have shape (rows,)."""

    states: UInt8s
    """State of each cell, as in `Cells`."""
    begins: Int64s
    """Where the text of a cell begins in the block."""
    lengths: Int32s
    """Bytes of the text."""


class _Texts(NamedTuple):
    """Texts as Arrow stores them."""

    letters: UInt8s
    """All texts, one after the other."""
    offsets: Int32s
    """Text n is letters[offsets[n]:offsets[n + 1]]."""


@kernel
def _write_all(data: UInt8s, spans: _Spans, written: int, out: _Texts) -> None:
    """Write the text of each cell.

    A cell that holds nothing gives an empty text. written: JSON, CSV or PLAIN.
    """
    to = 0
    for row in range(spans.states.shape[0]):
        out.offsets[row] = to
        begin = spans.begins[row]
        length = spans.lengths[row]
        if spans.states[row] == ESCAPED:
            if written == JSON:
                to = unescape(data, begin, begin + length, out.letters, to)
            else:
                to = unquote(data, begin, begin + length, out.letters, to)
        elif spans.states[row] >= VALUE:
            for byte in range(length):
                out.letters[to + byte] = data[begin + byte]
            to += length
    out.offsets[spans.states.shape[0]] = to


def texts(
    data: UInt8s, cells: Cells, column: int, written: int, rows: Int64s | None = None
) -> pa.StringArray:
    """The texts of a column, in these rows or in all. A cell that holds nothing gives null.

    The bytes are not checked.

    written: JSON, CSV or PLAIN.
    """
    spans = _spans(cells, column, rows)
    valid = spans.states >= VALUE
    # The lengths as written are an upper bound: removing escapes or quotes only shortens a text.
    out = _no_texts(len(valid), int(spans.lengths.sum(where=valid, dtype=np.int64)))
    _write_all(data, spans, written, out)
    nulls = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.StringArray.from_buffers(
        len(valid), pa.py_buffer(out.offsets), pa.py_buffer(out.letters), nulls
    )


def _spans(cells: Cells, column: int, rows: Int64s | None = None) -> _Spans:
    """The cells of a column, in these rows or in all."""
    arrays = (cells.states, cells.begins, cells.lengths)
    return _Spans(*(array[column] if rows is None else array[column, rows] for array in arrays))


def _no_texts(count: int, letters: int) -> _Texts:
    """Room for `count` texts with `letters` bytes together."""
    return _Texts(np.empty(letters, np.uint8), np.empty(count + 1, np.int32))


@kernel
def _write_shown(data: UInt8s, begins: Int64s, lengths: Int32s, out: _Texts) -> None:
    """Write how each cell begins. A byte that cannot be printed becomes a question mark."""
    letters = out.letters
    to = 0
    for row in range(begins.shape[0]):
        out.offsets[row] = to
        at = begins[row]
        stop = at + lengths[row]
        most = min(stop, at + _SHOWN)
        while at < most:
            length = utf8_length(data, at, stop)
            if length < 2:
                letters[to] = data[at] if BLANK <= data[at] < DELETE else QUESTION_MARK
                length = 1
                to += 1
            else:
                for byte in range(length):
                    letters[to + byte] = data[at + byte]
                to += length
            at += length
        if at < stop:
            for _ in range(3):
                letters[to] = POINT
                to += 1
    out.offsets[begins.shape[0]] = to


def shown(data: UInt8s, cells: Cells, columns: Int64s, rows: Int64s) -> pa.BinaryArray:
    """How these cells begin, as they were written. columns, rows: of each cell, shape (n,)."""
    begins, lengths = cells.begins[columns, rows], cells.lengths[columns, rows]
    out = _no_texts(len(rows), int((np.minimum(lengths, _SHOWN) + _BEHIND_SHOWN).sum(dtype=np.int64)))
    _write_shown(data, begins, lengths, out)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(rows), [None, pa.py_buffer(out.offsets), pa.py_buffer(out.letters)]
    )


@kernel
def _check(data: UInt8s, spans: _Spans, wrong: Bools) -> None:
    """Make cells ABSENT that are not UTF-8, and set their rows in `wrong`."""
    for row in range(spans.states.shape[0]):
        begin = spans.begins[row]
        if spans.states[row] >= VALUE and not is_utf8(data, begin, begin + spans.lengths[row]):
            wrong[row] = True
            spans.states[row] = ABSENT


def check_utf8(data: UInt8s, cells: Cells, column: int) -> Bools:
    """Which cells of a column are not UTF-8. These cells become ABSENT."""
    wrong = np.zeros(cells.states.shape[1], np.bool_)
    _check(data, _spans(cells, column), wrong)
    return wrong
