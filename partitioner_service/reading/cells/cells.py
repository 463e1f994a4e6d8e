"""A block of records as one array of bytes, and where the cells of the needed columns are in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from evenflow.grammar.column_types import ANY_VALUE
from evenflow.numeric.arrays import Bools, Float64s, Int32s, Int64s, UInt8s
from partitioner_service.reading.cells.faults import NO_VALUE, Faults
from partitioner_service.reading.cells.payloads import Payloads

ABSENT, NULL, VALUE, LONG, ESCAPED = range(5)
"""States of a cell. Every state from VALUE on means that the cell holds something.

LONG: a number that the pass over the block did not convert. ESCAPED: text that is written with escapes or
quotes.
"""

INT, FLOAT, TEXT, NUMBER, TRUTH, LIST, ANY = range(7)
"""What a column needs.

NUMBER: a number that is kept as it is written. TRUTH: true or false, kept as 1 or 0 in `ints`. LIST: a list
of JSON, kept as it is written, with its brackets. ANY: text, a number, true or false, kept as it is written.
`ints` says which of them it is.
"""

OF_TEXT, OF_NUMBER, OF_TRUTH = range(3)
"""What the cell of an ANY column holds. It is text where a reader says nothing."""

_NOTHING: UInt8s = np.frombuffer(b"\n", np.uint8)
_KINDS = {"int64": INT, "float64": FLOAT, "string": TEXT, "date": TEXT, "bool": TRUTH, "list": LIST}
_KINDS[ANY_VALUE] = ANY


def kind_of(type_: str) -> int:
    """What a column of this declared type needs. The type `list` is that of a column that is taken apart."""
    return _KINDS.get(type_, NUMBER)  # the only other type is decimal(s)


def kinds_of(types: Mapping[str, str]) -> Int64s:
    """What the columns of these declared types need."""
    return np.array([kind_of(type_) for type_ in types.values()], np.int64)


class Cells(NamedTuple):
    """Cells of the needed columns. Each array has shape (columns, rows)."""

    states: UInt8s
    """State of each cell: ABSENT, NULL, VALUE, LONG or ESCAPED."""
    begins: Int64s
    """Where the text of a cell begins in the block, without its quotes.
    It is set unless the cell is ABSENT or NULL."""
    lengths: Int32s
    """Bytes of that text, without its quotes."""
    ints: Int64s
    """The number in a VALUE cell of a column that needs a whole number or a truth value (1 or 0). Of an ANY
    column, what the cell holds."""
    floats: Float64s
    """The number in a VALUE cell of a column that needs a float. Shape (1, 1) if no column needs one."""

    @classmethod
    def of(cls, kinds: Int64s, rows: int) -> Cells:
        """Cells that are all ABSENT. kinds: what each column needs."""
        shape = (len(kinds), rows)
        return cls(
            np.zeros(shape, np.uint8),
            np.empty(shape, np.int64),
            np.empty(shape, np.int32),
            np.zeros(shape, np.int64),
            np.zeros(shape if (kinds == FLOAT).any() else (1, 1)),
        )

    def present(self, column: int) -> Bools:
        """For each row, whether this column holds anything."""
        mask: Bools = self.states[column] >= VALUE
        return mask


@dataclass
class Block:
    """Records one after the other, and what is wrong with them so far.

    Each record has a line feed behind it, so a look at the byte behind a record is never past the end of the
    block.
    """

    data: UInt8s
    """All records, one after the other."""
    begins: Int64s
    """Record n is data[begins[n] : begins[n + 1] - 1]. Shape (n + 1,)."""
    missing: Bools | None
    """For each record, whether it has no value. None means that every record has one."""
    faults: Faults
    """The faults of the records. Whoever finds one notes it here."""

    @classmethod
    def of(cls, values: Sequence[bytes | None]) -> Block:
        """The block of these records. A record without a value is empty in it, and a fault."""
        payloads = Payloads.of(values).compact()
        data = payloads.data if len(payloads) else _NOTHING
        return cls(
            data, payloads.begins, payloads.missing, _first_faults(payloads.missing, rows=len(payloads))
        )

    @classmethod
    def laid_out(cls, data: UInt8s, begins: Int64s) -> Block:
        """The block of records that stand in these bytes. data, begins: as of the fields."""
        return cls(data, begins, None, Faults.none(len(begins) - 1))

    @classmethod
    def unread(cls, rows: int) -> Block:
        """A block of so many records of which nothing is read: it has none of their bytes."""
        return cls(_NOTHING, np.zeros(1, np.int64), None, Faults.none(rows))

    @property
    def rows(self) -> int:
        """Number of records."""
        return len(self.faults.codes)

    def afresh(self) -> Block:
        """The same records, with no other fault than that a value is missing. What is noted in one of the two
        is not in the other.
        """
        return replace(self, faults=_first_faults(self.missing, rows=self.rows))

    def copied(self) -> Block:
        """The same records with the same faults. What is noted in one of the two is not in the other."""
        return replace(self, faults=self.faults.copied())

    def append(self, text: UInt8s) -> int:
        """Put text behind the records, for cells whose text stands in no record.

        Returns where the text begins.
        """
        begin = len(self.data)
        self.data = np.concatenate([self.data, text])
        # `frombuffer` gave a read-only array, and numba would compile every kernel again for a writable one.
        self.data.setflags(write=False)
        return begin

    @property
    def longest(self) -> int:
        """Number of bytes of the longest record."""
        return int(np.diff(self.begins).max(initial=1)) - 1


def _first_faults(missing: Bools | None, *, rows: int) -> Faults:
    faults = Faults.none(rows)
    if missing is not None:
        faults.note(missing, NO_VALUE)
    return faults
