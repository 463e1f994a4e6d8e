"""The grammar of JSON as kernels: strings, numbers, words and whatever is nested.

Every function takes the block and where to begin, and returns where what it read ends. A record stands before a line
feed, which ends every string, number and word, so only white space must look for the record's end. A code other than 0
(see `reasons`) comes with the place of the fault.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenflow.kernels import inlined, kernel
from partitioner_service.reading.reasons import HALF_PAIR, NO_JSON
from partitioner_service.reading.strings import four_digits

WHOLE, FRACTION, EXPONENT, WORD = range(4)
"""How a number is written. A word: NaN, Inf, Infinity."""


@inlined
def space(data: Any, at: int, stop: int) -> int:
    while at < stop and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@kernel
def _escape(data: Any, at: int) -> tuple[int, int]:
    """The escape that begins here -> (end, code)."""
    letter = data[at + 1]
    if letter != 117:  # u
        fine = (
            letter == 34 or letter == 92 or letter == 47 or letter == 98
            or letter == 102 or letter == 110 or letter == 114 or letter == 116
        )  # fmt: skip
        return at + 2, 0 if fine else NO_JSON
    code = four_digits(data, at + 2)
    if code < 0:
        return at, NO_JSON
    if code < 0xD800 or code > 0xDFFF:
        return at + 6, 0
    if code > 0xDBFF or data[at + 6] != 92 or data[at + 7] != 117:
        return at, HALF_PAIR
    low = four_digits(data, at + 8)
    return at + 12, 0 if 0xDC00 <= low <= 0xDFFF else HALF_PAIR


@kernel
def string(data: Any, at: int) -> tuple[int, int, int, int]:
    """From behind a quote to the next -> (where it is, all bytes or-ed, whether there are escapes, code)."""
    seen = 0
    escapes = 0
    while True:
        byte = data[at]
        if byte == 34:
            return at, seen, escapes, 0
        if byte < 32:
            return at, seen, escapes, NO_JSON
        if byte == 92:
            escapes = 1
            at, code = _escape(data, at)
            if code != 0:
                return at, seen, escapes, code
        else:
            seen |= byte
            at += 1


@kernel
def _word(data: Any, at: int) -> int:
    """End of NaN, Inf or Infinity; 0 when there is none of them."""
    if data[at] == 78:
        return at + 3 if data[at + 1] == 97 and data[at + 2] == 78 else 0
    if data[at] != 73 or data[at + 1] != 110 or data[at + 2] != 102:
        return 0
    if data[at + 3] != 105:
        return at + 3
    rest = data[at + 4] == 110 and data[at + 5] == 105 and data[at + 6] == 116 and data[at + 7] == 121
    return at + 8 if rest else 0


@kernel
def number(data: Any, at: int) -> tuple[int, int, int, int, int]:
    """A number -> (end, how it is written, digits, decimals, digits as a whole number); end 0: it is none."""
    if data[at] == 45:
        at += 1
    if data[at] == 78 or data[at] == 73:
        return _word(data, at), WORD, 0, 0, 0
    digits = np.int64(0)
    begin = at
    while 48 <= data[at] <= 57:
        digits = digits * 10 + (data[at] - 48)
        at += 1
    count = at - begin
    if count == 0 or (data[begin] == 48 and count > 1):
        return 0, WHOLE, 0, 0, 0
    how = WHOLE
    decimals = 0
    if data[at] == 46:
        at += 1
        begin = at
        while 48 <= data[at] <= 57:
            digits = digits * 10 + (data[at] - 48)
            at += 1
        how = FRACTION
        decimals = at - begin
        if decimals == 0:
            return 0, how, 0, 0, 0
    if data[at] == 101 or data[at] == 69:
        at += 1
        if data[at] == 43 or data[at] == 45:
            at += 1
        begin = at
        while 48 <= data[at] <= 57:
            at += 1
        how = EXPONENT
        if at == begin:
            return 0, how, 0, 0, 0
    return at, how, count + decimals, decimals, int(digits)


@kernel
def literal(data: Any, at: int) -> int:
    """End of null, true or false; 0 when there is none of them."""
    if data[at] == 110:
        return at + 4 if data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108 else 0
    if data[at] == 116:
        return at + 4 if data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101 else 0
    if data[at] != 102:
        return 0
    rest = data[at + 1] == 97 and data[at + 2] == 108 and data[at + 3] == 115 and data[at + 4] == 101
    return at + 5 if rest else 0


@kernel
def _scalar(data: Any, at: int) -> tuple[int, int]:
    """A string, number, truth or null that nobody needs -> (end or fault, code)."""
    here = data[at]
    if here == 34:
        end, _, _, code = string(data, at + 1)
        return end + (code == 0), code
    end = (
        number(data, at)[0]
        if here == 45 or 48 <= here <= 57 or here == 78 or here == 73
        else literal(data, at)
    )
    if end == 0:
        return at, NO_JSON
    return end, 0


@kernel
def _name(data: Any, at: int, stop: int) -> tuple[int, int]:
    """The name of a field that nobody needs, and its colon -> (where its value begins or fault, code)."""
    if data[at] != 34:
        return at, NO_JSON
    at, _, _, code = string(data, at + 1)
    if code != 0:
        return at, code
    at = space(data, at + 1, stop)
    if data[at] != 58:
        return at, NO_JSON
    return space(data, at + 1, stop), 0


@kernel
def nested(data: Any, at: int, stop: int, scratch: Any) -> tuple[int, int]:
    """An object or a list at any depth -> (end or fault, code). `scratch` takes the brackets that are still open."""
    depth = 0
    while True:
        if data[at] == 123 or data[at] == 91:
            closing = data[at] + 2
            scratch[depth] = closing
            depth += 1
            at = space(data, at + 1, stop)
            if data[at] != closing:
                if closing == 125:
                    at, code = _name(data, at, stop)
                    if code != 0:
                        return at, code
                continue
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
        if data[at] != 44:
            return at, NO_JSON
        at = space(data, at + 1, stop)
        if scratch[depth - 1] == 125:
            at, code = _name(data, at, stop)
            if code != 0:
                return at, code
