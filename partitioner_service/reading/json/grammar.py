"""The grammar of JSON as kernels: strings, numbers, words, and objects and lists at any depth.

Every function takes the block and where to begin, and returns where the thing that it read ends. A code other
than 0 (see `reasons`) comes with the place of the fault instead.

A record stands before a line feed, which ends every string, number and word. So only the functions that skip
white space have to look for the end of the record.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import UInt8s
from evenflow.numeric.kernels import inlined, kernel
from partitioner_service.reading.cells.characters import (
    BACKSLASH,
    BLANK,
    CAPITAL_E,
    CAPITAL_I,
    CAPITAL_N,
    CLOSE_OBJECT,
    CLOSING,
    COLON,
    COMMA,
    MINUS,
    OPEN_LIST,
    OPEN_OBJECT,
    PLUS,
    POINT,
    QUOTE,
    SLASH,
    SMALL_B,
    SMALL_E,
    SMALL_F,
    SMALL_N,
    SMALL_R,
    SMALL_T,
    SMALL_U,
    ZERO,
    is_digit,
    is_space,
    spells,
)
from partitioner_service.reading.cells.reasons import HALF_PAIR, NO_JSON
from partitioner_service.reading.cells.strings import four_digits

WHOLE, FRACTION, EXPONENT, WORD = range(4)
"""How a number is written. WORD: NaN, Inf or Infinity, which are not JSON, but which some writers produce."""
_NULL, _TRUE, _FALSE = tuple(b"null"), tuple(b"true"), tuple(b"false")
_NAN, _INF, _INFINITY = tuple(b"NaN"), tuple(b"Inf"), tuple(b"Infinity")
_HIGH, _LOW, _BEHIND = 0xD800, 0xDC00, 0xE000
"""The halves of a surrogate pair.
The first half is from _HIGH on and below _LOW, the second from _LOW on, below _BEHIND.
"""


class Number(NamedTuple):
    """A number as it is written."""

    end: int
    """Where the number ends, 0 if there is none."""
    how: int
    """WHOLE, FRACTION, EXPONENT or WORD."""
    digits: int
    """Number of digits before an exponent."""
    decimals: int
    """How many of these digits stand behind the point."""
    whole: int
    """These digits as a whole number. It wraps if there are too many digits for int64."""


@inlined
def space(data: UInt8s, at: int, stop: int) -> int:
    """Where the white space that begins here ends."""
    while at < stop and is_space(data[at]):
        at += 1
    return at


@kernel
def _escape(data: UInt8s, at: int) -> tuple[int, int]:
    """The escape that begins here -> (end, code)."""
    letter = data[at + 1]
    if letter != SMALL_U:
        fine = letter in (QUOTE, BACKSLASH, SLASH, SMALL_B, SMALL_F, SMALL_N, SMALL_R, SMALL_T)
        return at + 2, 0 if fine else NO_JSON
    code = four_digits(data, at + 2)
    if code < 0:
        return at, NO_JSON
    if code < _HIGH or code >= _BEHIND:
        return at + 6, 0
    if code >= _LOW or data[at + 6] != BACKSLASH or data[at + 7] != SMALL_U:
        return at, HALF_PAIR
    low = four_digits(data, at + 8)
    return at + 12, 0 if _LOW <= low < _BEHIND else HALF_PAIR


@kernel
def string(data: UInt8s, at: int) -> tuple[int, int, int, int]:
    """A string from behind its first quote
    on -> (closing quote, all bytes or-ed, whether it has escapes, code).
    """
    all_bits = 0
    escapes = 0
    while True:
        byte = data[at]
        if byte == QUOTE:
            return at, all_bits, escapes, 0
        if byte < BLANK:  # a control character must be escaped
            return at, all_bits, escapes, NO_JSON
        if byte == BACKSLASH:
            escapes = 1
            at, code = _escape(data, at)
            if code != 0:
                return at, all_bits, escapes, code
        else:
            all_bits |= byte
            at += 1


@kernel
def _word(data: UInt8s, at: int) -> int:
    """Where NaN, Inf or Infinity ends, 0 if none of them stands here."""
    if spells(data, at, _NAN):
        return at + len(_NAN)
    if not spells(data, at, _INF):
        return 0
    if data[at + len(_INF)] != _INFINITY[len(_INF)]:
        return at + len(_INF)
    return at + len(_INFINITY) if spells(data, at, _INFINITY) else 0


@kernel
def number(data: UInt8s, at: int) -> Number:
    """The number that begins here."""
    if data[at] == MINUS:
        at += 1
    if data[at] == CAPITAL_N or data[at] == CAPITAL_I:
        return Number(_word(data, at), WORD, 0, 0, 0)
    digits = np.int64(0)
    begin = at
    while is_digit(data[at]):
        digits = digits * 10 + (data[at] - ZERO)
        at += 1
    count = at - begin
    if count == 0 or (data[begin] == ZERO and count > 1):  # JSON has no leading zeros
        return Number(0, WHOLE, 0, 0, 0)
    how = WHOLE
    decimals = 0
    if data[at] == POINT:
        at += 1
        begin = at
        while is_digit(data[at]):
            digits = digits * 10 + (data[at] - ZERO)
            at += 1
        how = FRACTION
        decimals = at - begin
        if decimals == 0:
            return Number(0, how, 0, 0, 0)
    if data[at] == SMALL_E or data[at] == CAPITAL_E:
        at += 1
        if data[at] == PLUS or data[at] == MINUS:
            at += 1
        begin = at
        while is_digit(data[at]):
            at += 1
        how = EXPONENT
        if at == begin:
            return Number(0, how, 0, 0, 0)
    return Number(at, how, count + decimals, decimals, int(digits))


@kernel
def literal(data: UInt8s, at: int) -> int:
    """Where null, true or false ends, 0 if none of them stands here."""
    if spells(data, at, _NULL):
        return at + len(_NULL)
    if spells(data, at, _TRUE):
        return at + len(_TRUE)
    return at + len(_FALSE) if spells(data, at, _FALSE) else 0


@inlined
def begins_number(byte: int) -> bool:
    """Whether a number may begin with this byte."""
    return is_digit(byte) or byte in (MINUS, CAPITAL_N, CAPITAL_I)


@kernel
def _scalar(data: UInt8s, at: int) -> tuple[int, int]:
    """A string, number, boolean or null that nobody needs -> (where it ends or the fault is, code)."""
    byte = data[at]
    if byte == QUOTE:
        end, _, _, code = string(data, at + 1)
        return end + (code == 0), code  # past the closing quote, or at the fault
    end = number(data, at).end if begins_number(byte) else literal(data, at)
    if end == 0:
        return at, NO_JSON
    return end, 0


@kernel
def _name(data: UInt8s, at: int, stop: int) -> tuple[int, int]:
    """The name of a field that nobody needs, and its colon -> (where the value begins or the fault is,
    code).
    """
    if data[at] != QUOTE:
        return at, NO_JSON
    at, _, _, code = string(data, at + 1)
    if code != 0:
        return at, code
    at = space(data, at + 1, stop)
    if data[at] != COLON:
        return at, NO_JSON
    return space(data, at + 1, stop), 0


@kernel
def nested(data: UInt8s, at: int, stop: int, scratch: UInt8s) -> tuple[int, int]:
    """An object or a list with all that it holds -> (where it ends or the fault is, code).

    scratch: a stack for the brackets that are still to be closed. So the depth is bounded by the record's
    length alone.
    """
    depth = 0
    while True:
        if data[at] == OPEN_OBJECT or data[at] == OPEN_LIST:
            closing = data[at] + CLOSING
            scratch[depth] = closing
            depth += 1
            at = space(data, at + 1, stop)
            if data[at] != closing:
                if closing == CLOSE_OBJECT:
                    at, code = _name(data, at, stop)
                    if code != 0:
                        return at, code
                continue  # with the first value within the brackets
        else:
            at, code = _scalar(data, at)
            if code != 0:
                return at, code
            at = space(data, at, stop)
        while data[at] == scratch[depth - 1]:
            depth -= 1
            at += 1
            if depth == 0:
                return at, 0
            at = space(data, at, stop)
        if data[at] != COMMA:
            return at, NO_JSON
        at = space(data, at + 1, stop)
        if scratch[depth - 1] == CLOSE_OBJECT:
            at, code = _name(data, at, stop)
            if code != 0:
                return at, code
