"""A block of JSON records judged one by one in a compiled pass, needed cells found on the way."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenflow.arrays import Float64s, Int64s, UInt8s
from evenflow.kernels import inlined, kernel
from partitioner_service.reading.cells import (
    ABSENT,
    ESCAPED,
    FLOAT,
    INT,
    LIST,
    LONG,
    NULL,
    NUMBER,
    TEXT,
    TRUTH,
    VALUE,
)
from partitioner_service.reading.json_grammar import (
    EXPONENT,
    WHOLE,
    WORD,
    literal,
    nested,
    number,
    space,
    string,
)
from partitioner_service.reading.numbers import EXACT_FLOAT
from partitioner_service.reading.reasons import (
    CUT_OFF,
    MORE_JSON,
    NO_INNER,
    NO_JSON,
    NO_OBJECT,
    NOT_FINITE,
    NOT_UTF8,
    NOT_WHOLE,
    OTHER_TYPE_NESTED,
    OTHER_TYPE_NUMBER,
    OTHER_TYPE_TEXT,
    OTHER_TYPE_TRUTH,
    TOO_LARGE,
    TWICE,
)
from partitioner_service.reading.strings import is_utf8, unescape

_EXACT_INT = 18
"""Digits of a whole number that int64 surely holds."""


class Columns(NamedTuple):
    """The fields of records that are needed, as a tree: object 0 is the record, object f + 1 what field f holds.

    names: UTF-8, one after the other. tree: WIDE cells an object, as FIRST and so on say. kinds: what each column
    needs; powers: POWERS of `numbers`. (Few arrays: a kernel is handed all of them for each record.)
    """

    names: UInt8s
    tree: Int64s
    kinds: Int64s
    powers: Float64s


FIRST, STOP, COLUMN, THROUGH, BEGIN, END = range(6)
WIDE = 8
"""Of an object: its fields are FIRST .. STOP - 1. Of the field that holds it: the column that it is, -1 where others within
it are needed; a column that lies at or within it; and where its name begins and ends."""
SEEN, OPEN = range(2)
"""Rows of what is noted on the way: the last record in which an object came, and the objects around the one that is read."""


@inlined
def _field_named(columns: Any, data: Any, begin: int, length: int, outer: int, guess: int) -> int:
    """The needed field of this object and name, -1 when there is none; fields mostly come in the order of `guess`."""
    low = columns.tree[WIDE * outer + FIRST]
    count = columns.tree[WIDE * outer + STOP] - low
    for step in range(count):
        field = guess + step
        if field >= low + count:
            field -= count
        first = columns.tree[WIDE * field + WIDE + BEGIN]
        if columns.tree[WIDE * field + WIDE + END] - first == length:
            same = True
            for byte in range(length):
                if columns.names[first + byte] != data[begin + byte]:
                    same = False
                    break
            if same:
                return field
    return -1


@inlined
def _keep_number(
    cells: Any,
    columns: Any,
    column: int,
    row: int,
    negative: bool,
    how: int,
    digits: int,
    decimals: int,
    whole: int,
) -> int:
    """Convert a number that a column needs, unless it is left to Arrow; returns a code."""
    kind = columns.kinds[column]
    if kind == INT:
        if how != WHOLE:
            return NOT_WHOLE
        if digits > _EXACT_INT:
            most = np.uint64(1) << np.uint64(63)
            if not negative:
                most -= np.uint64(1)
            if digits > _EXACT_INT + 1 or np.uint64(whole) > most:
                return TOO_LARGE
        cells.ints[column, row] = -whole if negative else whole
        cells.states[column, row] = VALUE
    elif kind == FLOAT:
        if how == WORD:
            return NOT_FINITE
        if how == EXPONENT or digits > EXACT_FLOAT:
            cells.states[column, row] = LONG
        else:
            # Both are exact doubles, so their quotient is the double nearest to the text.
            value = np.float64(whole) / columns.powers[decimals]
            cells.floats[column, row] = -value if negative else value
            cells.states[column, row] = VALUE
    elif kind == NUMBER:
        if how == WORD:
            return NOT_FINITE
        cells.states[column, row] = VALUE
    else:
        return OTHER_TYPE_NUMBER
    return 0


@inlined
def _text_cell(data: Any, at: int, row: int, column: int, columns: Any, cells: Any) -> tuple[int, int, int]:
    """A string -> (end or fault, code, whose fault it is)."""
    begin = at + 1
    at, seen, escapes, code = string(data, begin)
    if code != 0:
        return at, code, -1
    if column >= 0:
        cells.begins[column, row] = begin
        cells.lengths[column, row] = at - begin
        if columns.kinds[column] != TEXT:
            code = OTHER_TYPE_TEXT
        elif seen >= 128 and not is_utf8(data, begin, at):
            code = NOT_UTF8
        cells.states[column, row] = ESCAPED if escapes else VALUE
    return at + 1, code, column


@inlined
def _number_cell(data: Any, at: int, row: int, column: int, columns: Any, cells: Any) -> tuple[int, int, int]:
    """A number -> (end or fault, code, whose fault it is)."""
    end, how, digits, decimals, whole = number(data, at)
    if end == 0:
        return at, NO_JSON, -1
    code = 0
    if column >= 0:
        cells.begins[column, row] = at
        cells.lengths[column, row] = end - at
        code = _keep_number(cells, columns, column, row, data[at] == 45, how, digits, decimals, whole)
    return end, code, column


@inlined
def _other_cell(data: Any, at: int, row: int, column: int, columns: Any, cells: Any) -> tuple[int, int, int]:
    """null, true or false -> (end or fault, code, whose fault it is)."""
    end = literal(data, at)
    if end == 0:
        return at, NO_JSON, -1
    code = 0
    if column >= 0:
        cells.states[column, row] = NULL
        if data[at] != 110:
            if columns.kinds[column] == TRUTH:
                cells.ints[column, row] = data[at] == 116
                cells.begins[column, row] = at
                cells.lengths[column, row] = end - at
                cells.states[column, row] = VALUE
            else:
                code = OTHER_TYPE_TRUTH
    return end, code, column


@inlined
def _cell(
    data: Any, at: int, stop: int, row: int, column: int, columns: Any, cells: Any, scratch: Any
) -> tuple[int, int, int]:
    """The value of a field that a column (or none, -1) needs -> (end or fault, code, whose fault it is)."""
    if column >= 0 and cells.states[column, row] != ABSENT:
        return at, TWICE, column
    here = data[at]
    if here == 34:
        return _text_cell(data, at, row, column, columns, cells)
    if here == 45 or 48 <= here <= 57 or here == 78 or here == 73:
        return _number_cell(data, at, row, column, columns, cells)
    if here != 123 and here != 91:
        return _other_cell(data, at, row, column, columns, cells)
    if column >= 0 and (here != 91 or columns.kinds[column] != LIST):
        return at, OTHER_TYPE_NESTED, column
    begin = at
    at, code = nested(data, at, stop, scratch)
    if column >= 0 and code == 0:
        cells.begins[column, row] = begin
        cells.lengths[column, row] = at - begin
        cells.states[column, row] = VALUE
    return at, code, -1


@inlined
def _outer(data: Any, at: int, row: int, field: int, noted: Any) -> tuple[int, int]:
    """Whether to go into what a field holds, within which others are needed -> (1 into it, 0 past it; code)."""
    if noted[SEEN, field + 1] == row:
        return 0, TWICE
    noted[SEEN, field + 1] = row
    if data[at] == 123:
        return 1, 0
    return 0, 0 if data[at] == 110 else NO_INNER


@kernel
def _record(
    data: Any, at: int, stop: int, row: int, columns: Any, cells: Any, scratch: Any, noted: Any
) -> tuple[int, int, int]:
    """An object from its first bracket to the end of the record -> (place of the fault, code, column or -1)."""
    depth = outer = guess = 0
    at = space(data, at + 1, stop)
    begun = True  # an object that has just begun may end at once
    while True:
        if not begun or data[at] != 125:
            if data[at] != 34:
                return at, NO_JSON, -1
            begin = at + 1
            at, _, escapes, code = string(data, begin)
            if code != 0:
                return at, code, -1
            if escapes:
                length = unescape(data, begin, at, scratch, 0)
                field = _field_named(columns, scratch, 0, length, outer, guess)
            else:
                field = _field_named(columns, data, begin, at - begin, outer, guess)
            column = -1
            if field >= 0:
                guess = field + 1
                column = columns.tree[WIDE * field + WIDE + COLUMN]
            at = space(data, at + 1, stop)
            if data[at] != 58:
                return at, NO_JSON, -1
            at = space(data, at + 1, stop)
            if field >= 0 and column < 0:
                into, code = _outer(data, at, row, field, noted)
                if code != 0:
                    return at, code, columns.tree[WIDE * field + WIDE + THROUGH]
                if into:
                    noted[OPEN, depth] = outer
                    depth += 1
                    outer = field + 1
                    guess = columns.tree[WIDE * outer + FIRST]
                    at = space(data, at + 1, stop)
                    begun = True
                    continue
            at, code, whose = _cell(data, at, stop, row, column, columns, cells, scratch)
            if code != 0:
                return at, code, whose
            at = space(data, at, stop)
        while data[at] == 125:
            at = space(data, at + 1, stop)
            if depth == 0:
                return at, 0 if at == stop else MORE_JSON, -1
            depth -= 1
            guess = outer
            outer = noted[OPEN, depth]
        if data[at] != 44:
            return at, NO_JSON, -1
        at = space(data, at + 1, stop)
        begun = False


@kernel
def scan(data: Any, begins: Any, columns: Any, cells: Any, faults: Any, scratch: Any, noted: Any) -> None:
    """Judge the records that have no fault yet, and find their cells.

    columns: Columns; cells: Cells, all ABSENT; faults: Faults. scratch: bytes, as many as the longest record has.
    noted: shape (2, objects), SEEN all -1.
    A record with a fault has no cells.
    """
    for row in range(begins.shape[0] - 1):
        if faults.codes[row] != 0:
            continue
        begin = begins[row]
        stop = begins[row + 1] - 1
        at = space(data, begin, stop)
        code = NO_OBJECT
        column = -1
        if data[at] == 123:
            at, code, column = _record(data, at, stop, row, columns, cells, scratch, noted)
        if code != 0:
            faults.codes[row] = CUT_OFF if code == NO_JSON and at >= stop else code
            faults.columns[row] = column
            faults.at[row] = min(at, stop) - begin
            for other in range(columns.kinds.shape[0]):
                cells.states[other, row] = ABSENT
