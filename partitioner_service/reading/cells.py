"""A block of records as one array of bytes, and where the cells of its needed columns are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenflow.arrays import Bools, Float64s, Int32s, Int64s, UInt8s

ABSENT, NULL, VALUE, LONG, ESCAPED = range(5)
"""States of a cell. LONG: a number that the pass over the block did not convert. ESCAPED: text that is not as written."""

INT, FLOAT, TEXT, NUMBER, TRUTH, LIST = range(6)
"""What a column needs. NUMBER: one that is kept as it is written. TRUTH: true or false, 1 or 0 in `ints`. LIST: a list of
JSON, kept as it is written, brackets and all.
"""

_KINDS = {"int64": INT, "float64": FLOAT, "string": TEXT, "date": TEXT, "bool": TRUTH, "list": LIST}


def kind_of(type_: str) -> int:
    """What a column of this declared type needs. `list` is what is taken apart."""
    return _KINDS.get(type_, NUMBER)


class Cells(NamedTuple):
    """Cells of the needed columns, each array of shape (columns, rows).

    begins, lengths: where the text of a cell stands in the block, without its quotes. They are set unless the cell is
    ABSENT or NULL. ints, floats: the number in a VALUE cell of a column that needs one.
    """

    states: UInt8s
    begins: Int64s
    lengths: Int32s
    ints: Int64s
    floats: Float64s

    @classmethod
    def of(cls, kinds: Int64s, rows: int) -> Cells:
        """All ABSENT."""
        shape = (len(kinds), rows)
        return cls(
            np.zeros(shape, np.uint8),
            np.empty(shape, np.int64),
            np.empty(shape, np.int32),
            np.zeros(shape, np.int64),
            np.zeros(shape if (kinds == FLOAT).any() else (1, 1)),
        )

    def there(self, column: int) -> Bools:
        """Of each row: whether this column holds anything."""
        found: Bools = self.states[column] >= VALUE
        return found


@dataclass
class Block:
    """Records one after the other, each with a line feed behind it so that a look at the next byte is never past the end.

    Record n is data[begins[n] : begins[n + 1] - 1]. missing: of each record whether it has no value.
    """

    data: UInt8s
    begins: Int64s
    missing: Bools | None

    @classmethod
    def of(cls, values: Sequence[bytes | None]) -> Block:
        """These records. One without a value is empty."""
        missing = None
        if None in values:
            missing = np.fromiter((value is None for value in values), np.bool_, len(values))
            values = [value or b"" for value in values]
        begins = np.zeros(len(values) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, values), np.int64, len(values)) + 1, out=begins[1:])  # type: ignore[arg-type]
        return cls(np.frombuffer(b"\n".join([*values, b""]) or b"\n", np.uint8), begins, missing)  # type: ignore[list-item]

    def append(self, text: UInt8s) -> int:
        """Put text behind the records, for cells whose text stands in none of them. Returns where it begins."""
        begin = len(self.data)
        self.data = np.concatenate([self.data, text])
        self.data.setflags(write=False)  # as it was: kernels are compiled for an array that nobody writes to
        return begin

    @property
    def longest(self) -> int:
        """Bytes of the longest record."""
        return int(np.diff(self.begins).max(initial=1)) - 1
