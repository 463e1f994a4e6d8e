"""A compiled pass over a block of JSON records.

It judges each record by itself, and finds the needed cells on the way. No function below looks for the end of
the record at every byte. A record stands before a line feed, which ends every string, number and word (see
`json_grammar`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import Int64s, Rows, UInt8s
from evenflow.numeric.kernels import inlined, kernel
from partitioner_service.reading.cells.cells import (
    ABSENT,
    ANY,
    ESCAPED,
    FLOAT,
    INT,
    LIST,
    LONG,
    NULL,
    NUMBER,
    OF_NUMBER,
    OF_TRUTH,
    TEXT,
    TRUTH,
    VALUE,
    Cells,
)
from partitioner_service.reading.cells.characters import (
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
from partitioner_service.reading.cells.faults import Faults
from partitioner_service.reading.cells.numbers import EXACT_FLOAT, POWERS
from partitioner_service.reading.cells.reasons import (
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
from partitioner_service.reading.cells.strings import is_utf8, unescape
from partitioner_service.reading.json.grammar import (
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

_EXACT_INT = 18
"""With at most so many digits, any whole number fits int64."""
_NOT_ASCII = 0x80
"""This bit is set in every byte of a character that is not ASCII."""


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
"""An object, and the field that holds this object.

first, stop: the needed fields within the object are first .. stop - 1.
column: the column that the field itself is, -1 if only fields within it are needed.
through: a column at the field or within it, which a fault of the field is reported for.
begin, end: the name of the field is names[begin:end].
"""


class Columns(NamedTuple):
    """The needed fields of records, as a tree."""

    names: UInt8s
    """Names of the fields in UTF-8, one after the other."""
    tree: Rows
    """Array of FIELD. Object 0 is the record. Object f + 1 is what field f holds."""
    kinds: Int64s
    """What each column needs (`cells`)."""


class ScannedBlock(NamedTuple):
    """A block that is read, and what is found in it."""

    data: UInt8s
    """The bytes of the block."""
    columns: Columns
    """What is looked for."""
    cells: Cells
    """Take what is found. All are ABSENT at the start."""
    scratch: UInt8s
    """Room for as many bytes as the longest record has, plus one."""
    last_rows: Int64s
    """For each object of the tree, the last record that held it, -1 at the start."""
    around: Int64s
    """The objects around the object that is being read, the outermost first."""


@inlined
def _field_named(columns: Columns, name: UInt8s, outer: int, guess: int) -> int:
    """The needed field with this name in the object `outer`, -1 if there is none.

    guess: the field to compare first. Most records have their fields in the same order, so the guess is
    mostly right.
    """
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
def _keep_number(reading: ScannedBlock, column: int, row: int, negative: bool, numeral: Number) -> int:
    """Convert a number that a column needs, unless it is left to Arrow. Returns the code of a fault, or 0."""
    cells = reading.cells
    kind = reading.columns.kinds[column]
    if kind == INT:
        if numeral.how != WHOLE:
            return NOT_WHOLE
        if numeral.digits > _EXACT_INT:
            # 19 digits may exceed int64, but never uint64. So the digits, which wrapped as int64, are
            # compared unsigned.
            most = np.uint64(1) << np.uint64(63)
            if not negative:
                most -= np.uint64(1)
            if numeral.digits > _EXACT_INT + 1 or np.uint64(numeral.whole) > most:
                return TOO_LARGE
        cells.ints[column, row] = -numeral.whole if negative else numeral.whole
        cells.states[column, row] = VALUE
    elif kind == FLOAT:
        if numeral.how == WORD:
            return NOT_FINITE
        if numeral.how == EXPONENT or numeral.digits > EXACT_FLOAT:
            cells.states[column, row] = LONG
        else:
            # Both are exact doubles, and division rounds correctly. So the quotient is the double nearest to
            # the text.
            value = np.float64(numeral.whole) / POWERS[numeral.decimals]
            cells.floats[column, row] = -value if negative else value
            cells.states[column, row] = VALUE
    elif kind in (NUMBER, ANY):
        if numeral.how == WORD:
            return NOT_FINITE
        cells.states[column, row] = VALUE
        if kind == ANY:
            cells.ints[column, row] = OF_NUMBER
    else:
        return OTHER_TYPE_NUMBER
    return 0


@inlined
def _text_cell(reading: ScannedBlock, at: int, row: int, column: int) -> tuple[int, int, int]:
    """A string -> (where it ends or the fault is, code, column of the fault or -1)."""
    cells = reading.cells
    begin = at + 1
    at, all_bits, escapes, code = string(reading.data, begin)
    if code != 0:
        return at, code, -1
    if column >= 0:
        cells.begins[column, row] = begin
        cells.lengths[column, row] = at - begin
        if reading.columns.kinds[column] not in (TEXT, ANY):
            code = OTHER_TYPE_TEXT
        # `all_bits` has all bytes or-ed: below 0x80 the whole string is ASCII, and the slow check is not
        # needed.
        elif all_bits >= _NOT_ASCII and not is_utf8(reading.data, begin, at):
            code = NOT_UTF8
        cells.states[column, row] = ESCAPED if escapes else VALUE
    return at + 1, code, column


@inlined
def _number_cell(reading: ScannedBlock, at: int, row: int, column: int) -> tuple[int, int, int]:
    """A number -> (where it ends or the fault is, code, column of the fault or -1)."""
    numeral = number(reading.data, at)
    if numeral.end == 0:
        return at, NO_JSON, -1
    code = 0
    if column >= 0:
        reading.cells.begins[column, row] = at
        reading.cells.lengths[column, row] = numeral.end - at
        code = _keep_number(reading, column, row, reading.data[at] == MINUS, numeral)
    return numeral.end, code, column


@inlined
def _other_cell(reading: ScannedBlock, at: int, row: int, column: int) -> tuple[int, int, int]:
    """null, true or false -> (where it ends or the fault is, code, column of the fault or -1)."""
    cells = reading.cells
    end = literal(reading.data, at)
    if end == 0:
        return at, NO_JSON, -1
    code = 0
    if column >= 0:
        cells.states[column, row] = NULL
        if reading.data[at] != SMALL_N:
            kind = reading.columns.kinds[column]
            if kind in (TRUTH, ANY):
                cells.ints[column, row] = OF_TRUTH if kind == ANY else reading.data[at] == SMALL_T
                cells.begins[column, row] = at
                cells.lengths[column, row] = end - at
                cells.states[column, row] = VALUE
            else:
                code = OTHER_TYPE_TRUTH
    return end, code, column


@inlined
def _cell(reading: ScannedBlock, at: int, stop: int, row: int, column: int) -> tuple[int, int, int]:
    """The value of a field -> (where it ends or the fault is, code, column of the fault or -1).

    column: the column that needs the value, -1 if none does.
    """
    cells = reading.cells
    if column >= 0 and cells.states[column, row] != ABSENT:
        return at, TWICE, column
    byte = reading.data[at]
    if byte == QUOTE:
        return _text_cell(reading, at, row, column)
    if begins_number(byte):
        return _number_cell(reading, at, row, column)
    if byte != OPEN_OBJECT and byte != OPEN_LIST:
        return _other_cell(reading, at, row, column)
    if column >= 0 and (byte != OPEN_LIST or reading.columns.kinds[column] != LIST):
        return at, OTHER_TYPE_NESTED, column
    begin = at
    at, code = nested(reading.data, at, stop, reading.scratch)
    if column >= 0 and code == 0:
        cells.begins[column, row] = begin
        cells.lengths[column, row] = at - begin
        cells.states[column, row] = VALUE
    return at, code, -1


@inlined
def _outer(reading: ScannedBlock, at: int, row: int, field: int) -> tuple[int, int]:
    """Whether to go into the object that a field holds, as fields within it are needed -> (1 or 0, code)."""
    if reading.last_rows[field + 1] == row:
        return 0, TWICE
    reading.last_rows[field + 1] = row
    if reading.data[at] == OPEN_OBJECT:
        return 1, 0
    return 0, 0 if reading.data[at] == SMALL_N else NO_INNER


@inlined
def _field(reading: ScannedBlock, at: int, outer: int, guess: int) -> tuple[int, int, int]:
    """The name of a field from its first quote on -> (closing quote or fault, code, needed field or -1)."""
    begin = at + 1
    at, _, escapes, code = string(reading.data, begin)
    if code != 0:
        return at, code, -1
    if escapes:
        length = unescape(reading.data, begin, at, reading.scratch, 0)
        return at, 0, _field_named(reading.columns, reading.scratch[:length], outer, guess)
    return at, 0, _field_named(reading.columns, reading.data[begin:at], outer, guess)


@inlined
def _record(reading: ScannedBlock, at: int, stop: int, row: int) -> tuple[int, int, int]:
    """The object that a record is, from its first bracket
    on -> (where it ends or the fault is, code, column or -1).

    Needed objects within objects are entered in the same loop. `around` is the stack of the objects that are
    still open.
    """
    data = reading.data
    tree = reading.columns.tree
    depth = outer = guess = 0
    at = space(data, at + 1, stop)
    begun = True  # an object may end right after its first bracket, but not right after a comma
    while True:
        if not begun or data[at] != CLOSE_OBJECT:
            if data[at] != QUOTE:
                return at, NO_JSON, -1
            at, code, field = _field(reading, at, outer, guess)
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
                into, code = _outer(reading, at, row, field)
                if code != 0:
                    return at, code, tree[field + 1]["through"]
                if into:
                    reading.around[depth] = outer
                    depth += 1
                    outer = field + 1
                    guess = tree[outer]["first"]
                    at = space(data, at + 1, stop)
                    begun = True
                    continue
            at, code, whose = _cell(reading, at, stop, row, column)
            if code != 0:
                return at, code, whose
            at = space(data, at, stop)
        while data[at] == CLOSE_OBJECT:
            at = space(data, at + 1, stop)
            if depth == 0:
                return at, 0 if at == stop else MORE_JSON, -1
            depth -= 1
            # Object f + 1 is what field f holds. So `outer`, read as a field, is the field behind the object
            # that ends.
            guess = outer
            outer = reading.around[depth]
        if data[at] != COMMA:
            return at, NO_JSON, -1
        at = space(data, at + 1, stop)
        begun = False


@kernel
def scan(reading: ScannedBlock, begins: Int64s, faults: Faults) -> None:
    """Judge the records that have no fault yet, and find their cells.

    All cells of a record with a fault are ABSENT.

    begins: where each record begins, and where the last record ends, shape (records + 1,).
    """
    for row in range(begins.shape[0] - 1):
        if faults.codes[row] != 0:
            continue
        begin = begins[row]
        stop = begins[row + 1] - 1  # the line feed behind the record
        at = space(reading.data, begin, stop)
        code = NO_OBJECT
        column = -1
        if reading.data[at] == OPEN_OBJECT:
            at, code, column = _record(reading, at, stop, row)
        if code != 0:
            # If the fault is at the line feed behind the record, the record was right so far, and ended too
            # soon.
            faults.codes[row] = CUT_OFF if code == NO_JSON and at >= stop else code
            faults.columns[row] = column
            faults.at[row] = min(at, stop) - begin
            # Cells before the fault were found already.
            for other in range(reading.columns.kinds.shape[0]):
                reading.cells.states[other, row] = ABSENT
