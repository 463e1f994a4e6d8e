"""Blocks of csv records. A record is one line of fields between delimiters.

A field that begins with a quote is quoted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import Int64s, UInt8s
from evenflow.numeric.kernels import inlined, kernel
from partitioner_service.reading.cells.cells import ABSENT, ESCAPED, FLOAT, INT, TEXT, VALUE, Block, Cells
from partitioner_service.reading.cells.characters import LINE_FEED, QUOTE, RETURN, spells
from partitioner_service.reading.cells.numbers import convert_csv
from partitioner_service.reading.cells.reasons import (
    BYTE_ORDER_MARK,
    EMPTY,
    MORE_LINES,
    NOT_UTF8,
    OTHER_FIELDS,
    Faults,
)
from partitioner_service.reading.cells.strings import CSV, check_utf8

_MARK = tuple(b"\xef\xbb\xbf")
"""The byte order mark of UTF-8."""


class Lines(NamedTuple):
    """Lines that are read, and what is found in them."""

    data: UInt8s
    """The bytes of the block."""
    delimiter: int
    """The byte between two fields."""
    places: Int64s
    """The column of each field, -1 for a field that is not needed."""
    cells: Cells
    """Take what is found."""


@inlined
def _ends_line(byte: int) -> bool:
    return byte in (LINE_FEED, RETURN)


@kernel
def _quoted(data: UInt8s, at: int, stop: int, delimiter: int) -> tuple[int, int, int]:
    """A field from its opening quote on -> (where it ends, where its text ends, whether to unquote it).

    A field has to be unquoted if it is more than one plain text between two quotes: if it holds doubled
    quotes, or if something follows its closing quote. What stands between the closing quote and the delimiter
    belongs to the field. A quote may stay open to the end of the record.
    """
    at += 1
    more = 0
    while True:
        while at < stop and data[at] != QUOTE:
            at += 1
        if at + 1 >= stop or data[at + 1] != QUOTE:
            break
        more = 1  # two quotes stand for one
        at += 2
    text = at
    at = min(at + 1, stop)
    while at < stop and data[at] != delimiter and not _ends_line(data[at]):
        more = 1
        at += 1
    return at, text, more


@kernel
def _line(lines: Lines, at: int, stop: int, row: int) -> tuple[int, int]:
    """The fields of one line -> (number of fields, where the line ends)."""
    data, delimiter = lines.data, lines.delimiter
    places, cells = lines.places, lines.cells
    field = 0
    while True:
        begin = at
        end = at
        state = VALUE
        if at < stop and data[at] == QUOTE:
            at, end, more = _quoted(data, at, stop, delimiter)
            if more:
                state = ESCAPED
                end = at
            else:
                begin += 1  # the cell is the text between the quotes
        else:
            while at < stop and data[at] != delimiter and not _ends_line(data[at]):
                at += 1
            end = at
        if field < places.shape[0] and places[field] >= 0:
            column = places[field]
            cells.states[column, row] = state
            cells.begins[column, row] = begin
            cells.lengths[column, row] = end - begin
        field += 1
        if at >= stop or data[at] != delimiter:
            return field, at
        at += 1


@kernel
def _split(lines: Lines, begins: Int64s, faults: Faults) -> None:
    """Find the cells of the records without a fault."""
    data = lines.data
    for row in range(begins.shape[0] - 1):
        if faults.codes[row] != 0:
            continue
        begin = begins[row]
        stop = begins[row + 1] - 1
        code = 0
        at = begin
        while at < stop and _ends_line(data[at]):
            at += 1
        if at == stop:
            code = EMPTY
        elif stop - begin >= len(_MARK) and spells(data, begin, _MARK):
            code = BYTE_ORDER_MARK
        else:
            fields, at = _line(lines, begin, stop, row)
            if at < stop:  # one line end may follow the line
                at += 2 if data[at] == RETURN and data[at + 1] == LINE_FEED and at + 1 < stop else 1
            if at < stop:
                code = MORE_LINES
                faults.at[row] = at - begin
            elif fields != lines.places.shape[0]:
                code = OTHER_FIELDS
                faults.at[row] = fields
        if code != 0:
            faults.codes[row] = code
            for column in range(lines.cells.states.shape[0]):
                lines.cells.states[column, row] = ABSENT


class CsvReader:
    """Finds the cells of these columns among the fields of a record.

    names, kinds: the needed columns, and what each needs. Columns of other types than int64 and float64 are
    read as text. fields: the names of all fields of a record, in order. delimiter: one ASCII character.
    """

    written = CSV

    def __init__(self, names: Sequence[str], kinds: Int64s, fields: Sequence[str], delimiter: str) -> None:
        self._kinds = np.where((kinds == INT) | (kinds == FLOAT), kinds, TEXT)
        self._places = np.array([names.index(name) if name in names else -1 for name in fields], np.int64)
        self._delimiter = ord(delimiter)

    def read(self, block: Block, faults: Faults) -> Cells:
        """Cells of the records without a fault. Notes the faults that are found."""
        cells = Cells.of(self._kinds, len(faults.codes))
        _split(Lines(block.data, self._delimiter, self._places, cells), block.begins, faults)
        for column in np.flatnonzero(self._kinds == TEXT).tolist():
            faults.note(check_utf8(block.data, cells, column), NOT_UTF8, column=column)
        convert_csv(block.data, cells, self._kinds, faults)
        return cells
