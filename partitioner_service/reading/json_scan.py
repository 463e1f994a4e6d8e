"""A block of JSON records judged one by one in a compiled pass, needed cells found on the way."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.arrays import Int64s, Rows, UInt8s
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
    Cells,
)
from partitioner_service.reading.characters import (
    CLOSE_OBJECT,
    COLON,
    COMMA,
    MINUS,
    OPEN_LIST,
    OPEN_OBJECT,
    QUOTE,
    SMALL_N,
    SMALL_T,
)
from partitioner_service.reading.json_grammar import (
    EXPONENT,
    WHOLE,
    WORD,
    Number,
    begins_number,
    literal,
    nested,
    number,
    space,
    string,
)
from partitioner_service.reading.numbers import EXACT_FLOAT, POWERS
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
    Faults,
)
from partitioner_service.reading.strings import is_utf8, unescape

_EXACT_INT = 18
"""Digits of a whole number that int64 surely holds."""
_NOT_ASCII = 0x80
"""Set in every byte of a character that is not ASCII."""


FIELD = np.dtype(
    [
        ("first", np.int64),
        ("stop", np.int64),
        ("column", np.int64),
        ("through", np.int64),
        ("begin", np.int64),
        ("end", np.int64),
    ]
)
"""An object, and the field that holds it.

first, stop: the needed fields within it are first .. stop - 1.
column: the column that the field is, -1 where others within it are needed.
through: a column that lies at or within it.
begin, end: its name is names[begin:end].
"""


class Columns(NamedTuple):
    """The fields of records that are needed, as a tree.

    names: UTF-8, one after the other.
    tree: of FIELD. Object 0 is the record, object f + 1 is what field f holds.
    kinds: what each column needs.
    """

    names: UInt8s
    tree: Rows
    kinds: Int64s


class Reading(NamedTuple):
    """A block that is read, and what is found in it.

    data: the bytes of the block.
    cells: all ABSENT at the start.
    scratch: as many bytes as the longest record has.
    seen: the last record in which each object of the tree came, -1 at the start.
    around: the objects around the one that is read, the outermost first.
    """

    data: UInt8s
    columns: Columns
    cells: Cells
    scratch: UInt8s
    seen: Int64s
    around: Int64s


@inlined
def _field_named(columns: Columns, name: UInt8s, outer: int, guess: int) -> int:
    """The needed field of this object and name, -1 when there is none. Fields mostly come in the order of `guess`."""
    low = columns.tree[outer]["first"]
    count = columns.tree[outer]["stop"] - low
    length = name.shape[0]
    for step in range(count):
        field = guess + step
        if field >= low + count:
            field -= count
        first = columns.tree[field + 1]["begin"]
        if columns.tree[field + 1]["end"] - first == length:
            same = True
            for byte in range(length):
                if columns.names[first + byte] != name[byte]:
                    same = False
                    break
            if same:
                return field
    return -1


@inlined
def _keep_number(it: Reading, column: int, row: int, negative: bool, found: Number) -> int:
    """Convert a number that a column needs, unless it is left to Arrow. Returns a code."""
    cells = it.cells
    kind = it.columns.kinds[column]
    if kind == INT:
        if found.how != WHOLE:
            return NOT_WHOLE
        if found.digits > _EXACT_INT:
            most = np.uint64(1) << np.uint64(63)
            if not negative:
                most -= np.uint64(1)
            if found.digits > _EXACT_INT + 1 or np.uint64(found.whole) > most:
                return TOO_LARGE
        cells.ints[column, row] = -found.whole if negative else found.whole
        cells.states[column, row] = VALUE
    elif kind == FLOAT:
        if found.how == WORD:
            return NOT_FINITE
        if found.how == EXPONENT or found.digits > EXACT_FLOAT:
            cells.states[column, row] = LONG
        else:
            # Both are exact doubles, so their quotient is the double nearest to the text.
            value = np.float64(found.whole) / POWERS[found.decimals]
            cells.floats[column, row] = -value if negative else value
            cells.states[column, row] = VALUE
    elif kind == NUMBER:
        if found.how == WORD:
            return NOT_FINITE
        cells.states[column, row] = VALUE
    else:
        return OTHER_TYPE_NUMBER
    return 0


@inlined
def _text_cell(it: Reading, at: int, row: int, column: int) -> tuple[int, int, int]:
    """A string -> (end or fault, code, whose fault it is)."""
    cells = it.cells
    begin = at + 1
    at, seen, escapes, code = string(it.data, begin)
    if code != 0:
        return at, code, -1
    if column >= 0:
        cells.begins[column, row] = begin
        cells.lengths[column, row] = at - begin
        if it.columns.kinds[column] != TEXT:
            code = OTHER_TYPE_TEXT
        elif seen >= _NOT_ASCII and not is_utf8(it.data, begin, at):
            code = NOT_UTF8
        cells.states[column, row] = ESCAPED if escapes else VALUE
    return at + 1, code, column


@inlined
def _number_cell(it: Reading, at: int, row: int, column: int) -> tuple[int, int, int]:
    """A number -> (end or fault, code, whose fault it is)."""
    found = number(it.data, at)
    if found.end == 0:
        return at, NO_JSON, -1
    code = 0
    if column >= 0:
        it.cells.begins[column, row] = at
        it.cells.lengths[column, row] = found.end - at
        code = _keep_number(it, column, row, it.data[at] == MINUS, found)
    return found.end, code, column


@inlined
def _other_cell(it: Reading, at: int, row: int, column: int) -> tuple[int, int, int]:
    """null, true or false -> (end or fault, code, whose fault it is)."""
    cells = it.cells
    end = literal(it.data, at)
    if end == 0:
        return at, NO_JSON, -1
    code = 0
    if column >= 0:
        cells.states[column, row] = NULL
        if it.data[at] != SMALL_N:
            if it.columns.kinds[column] == TRUTH:
                cells.ints[column, row] = it.data[at] == SMALL_T
                cells.begins[column, row] = at
                cells.lengths[column, row] = end - at
                cells.states[column, row] = VALUE
            else:
                code = OTHER_TYPE_TRUTH
    return end, code, column


@inlined
def _cell(it: Reading, at: int, stop: int, row: int, column: int) -> tuple[int, int, int]:
    """The value of a field that a column (or none, -1) needs -> (end or fault, code, whose fault it is)."""
    cells = it.cells
    if column >= 0 and cells.states[column, row] != ABSENT:
        return at, TWICE, column
    here = it.data[at]
    if here == QUOTE:
        return _text_cell(it, at, row, column)
    if begins_number(here):
        return _number_cell(it, at, row, column)
    if here != OPEN_OBJECT and here != OPEN_LIST:
        return _other_cell(it, at, row, column)
    if column >= 0 and (here != OPEN_LIST or it.columns.kinds[column] != LIST):
        return at, OTHER_TYPE_NESTED, column
    begin = at
    at, code = nested(it.data, at, stop, it.scratch)
    if column >= 0 and code == 0:
        cells.begins[column, row] = begin
        cells.lengths[column, row] = at - begin
        cells.states[column, row] = VALUE
    return at, code, -1


@inlined
def _outer(it: Reading, at: int, row: int, field: int) -> tuple[int, int]:
    """Whether to go into what a field holds, within which others are needed -> (1 into it, 0 past it, code)."""
    if it.seen[field + 1] == row:
        return 0, TWICE
    it.seen[field + 1] = row
    if it.data[at] == OPEN_OBJECT:
        return 1, 0
    return 0, 0 if it.data[at] == SMALL_N else NO_INNER


@inlined
def _field(it: Reading, at: int, outer: int, guess: int) -> tuple[int, int, int]:
    """The name of a field, from its quote on -> (the quote behind it or fault, code, which needed field or -1)."""
    begin = at + 1
    at, _, escapes, code = string(it.data, begin)
    if code != 0:
        return at, code, -1
    if escapes:
        length = unescape(it.data, begin, at, it.scratch, 0)
        return at, 0, _field_named(it.columns, it.scratch[:length], outer, guess)
    return at, 0, _field_named(it.columns, it.data[begin:at], outer, guess)


@inlined
def _record(it: Reading, at: int, stop: int, row: int) -> tuple[int, int, int]:
    """An object from its first bracket to the end of the record -> (place of the fault, code, column or -1)."""
    data = it.data
    tree = it.columns.tree
    depth = outer = guess = 0
    at = space(data, at + 1, stop)
    begun = True  # an object that has just begun may end at once
    while True:
        if not begun or data[at] != CLOSE_OBJECT:
            if data[at] != QUOTE:
                return at, NO_JSON, -1
            at, code, field = _field(it, at, outer, guess)
            if code != 0:
                return at, code, -1
            column = -1
            if field >= 0:
                guess = field + 1
                column = tree[field + 1]["column"]
            at = space(data, at + 1, stop)
            if data[at] != COLON:
                return at, NO_JSON, -1
            at = space(data, at + 1, stop)
            if field >= 0 and column < 0:
                into, code = _outer(it, at, row, field)
                if code != 0:
                    return at, code, tree[field + 1]["through"]
                if into:
                    it.around[depth] = outer
                    depth += 1
                    outer = field + 1
                    guess = tree[outer]["first"]
                    at = space(data, at + 1, stop)
                    begun = True
                    continue
            at, code, whose = _cell(it, at, stop, row, column)
            if code != 0:
                return at, code, whose
            at = space(data, at, stop)
        while data[at] == CLOSE_OBJECT:
            at = space(data, at + 1, stop)
            if depth == 0:
                return at, 0 if at == stop else MORE_JSON, -1
            depth -= 1
            guess = outer
            outer = it.around[depth]
        if data[at] != COMMA:
            return at, NO_JSON, -1
        at = space(data, at + 1, stop)
        begun = False


@kernel
def scan(it: Reading, begins: Int64s, faults: Faults) -> None:
    """Judge the records that have no fault yet, and find their cells. A record with a fault has no cells.

    begins: where each record begins, and where the last one ends, shape (records + 1,).
    """
    for row in range(begins.shape[0] - 1):
        if faults.codes[row] != 0:
            continue
        begin = begins[row]
        stop = begins[row + 1] - 1
        at = space(it.data, begin, stop)
        code = NO_OBJECT
        column = -1
        if it.data[at] == OPEN_OBJECT:
            at, code, column = _record(it, at, stop, row)
        if code != 0:
            faults.codes[row] = CUT_OFF if code == NO_JSON and at >= stop else code
            faults.columns[row] = column
            faults.at[row] = min(at, stop) - begin
            for other in range(it.columns.kinds.shape[0]):
                it.cells.states[other, row] = ABSENT
