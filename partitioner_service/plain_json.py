"""Plain JSON records to columns in one compiled pass; anything that is not plain is left to Arrow's reader.

Plain is: one flat object a record, separated by spaces at most, strings without escapes, integers of at most 18
digits, decimals of at most 15 digits without exponent, `null`, `true`, `false`, every needed column at most once
and of its type. On plain records the result equals Arrow's, at about a fifth of its time; that is why `read` gives
up (None) at the first byte that is not plain instead of judging it: what is bad is decided in one place only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenflow.arrays import Bools, UInt8s
from evenflow.kernels import kernel

_INT, _FLOAT, _STRING = 0, 1, 2
_KINDS = {pa.int64(): _INT, pa.float64(): _FLOAT, pa.string(): _STRING}
_POWERS = 10.0 ** np.arange(16)


@kernel
def _scan(
    block: Any,
    names: Any,
    name_ends: Any,
    kinds: Any,
    powers: Any,
    ints: Any,
    floats: Any,
    lengths: Any,
    valid: Any,
) -> bool:
    """Fill the columns, shape (columns, rows); of a string, `ints` is where it begins. False: not plain.

    The block ends with a line feed, so no look at the next byte is past its end.
    """
    columns, rows = valid.shape
    at = 0
    size = block.shape[0]
    for row in range(rows):
        if at >= size or block[at] != 123:  # {
            return False
        at += 1
        guess = 0
        while True:
            while block[at] == 32:
                at += 1
            if block[at] != 34:  # "
                return False
            at += 1
            begin = at
            while block[at] != 34:
                if block[at] < 32 or block[at] >= 128 or block[at] == 92:
                    return False
                at += 1
            length = at - begin
            at += 1
            column = -1
            for step in range(columns):
                other = (guess + step) % columns
                first = name_ends[other]
                if name_ends[other + 1] - first == length:
                    same = True
                    for byte in range(length):
                        if names[first + byte] != block[begin + byte]:
                            same = False
                            break
                    if same:
                        column = other
                        break
            while block[at] == 32:
                at += 1
            if block[at] != 58:  # :
                return False
            at += 1
            while block[at] == 32:
                at += 1
            if column >= 0:
                guess = column + 1
                if lengths[column, row] != -1:
                    return False
                lengths[column, row] = 0
            here = block[at]
            if here == 34:
                at += 1
                begin = at
                while block[at] != 34:
                    if block[at] < 32 or block[at] == 92 or (column < 0 and block[at] >= 128):
                        return False
                    at += 1
                if column >= 0:
                    if kinds[column] != _STRING:
                        return False
                    ints[column, row] = begin
                    lengths[column, row] = at - begin
                    valid[column, row] = True
                at += 1
            elif here == 45 or 48 <= here <= 57:
                negative = here == 45
                if negative:
                    at += 1
                begin = at
                number = np.int64(0)
                while 48 <= block[at] <= 57:
                    number = number * 10 + (block[at] - 48)
                    at += 1
                    if at - begin > 18:
                        return False
                digits = at - begin
                if digits == 0 or (block[begin] == 48 and digits > 1):
                    return False
                decimals = 0
                if block[at] != 46:
                    if negative and number == 0:
                        return False
                else:
                    at += 1
                    begin = at
                    while 48 <= block[at] <= 57:
                        number = number * 10 + (block[at] - 48)
                        at += 1
                        if digits + at - begin > 15:
                            return False
                    decimals = at - begin
                    if decimals == 0 or (column >= 0 and kinds[column] != _FLOAT):
                        return False
                if column >= 0:
                    if kinds[column] == _INT:
                        ints[column, row] = -number if negative else number
                    elif kinds[column] == _FLOAT:
                        if digits > 15:
                            return False
                        # Both are exact doubles, so their quotient is the double nearest to the text.
                        value = np.float64(number) / powers[decimals]
                        floats[column, row] = -value if negative else value
                    else:
                        return False
                    valid[column, row] = True
            elif here == 110:  # null
                if block[at + 1] != 117 or block[at + 2] != 108 or block[at + 3] != 108:
                    return False
                at += 4
            elif here == 116 and column < 0:  # true
                if block[at + 1] != 114 or block[at + 2] != 117 or block[at + 3] != 101:
                    return False
                at += 4
            elif here == 102 and column < 0:  # false
                if (
                    block[at + 1] != 97
                    or block[at + 2] != 108
                    or block[at + 3] != 115
                    or block[at + 4] != 101
                ):
                    return False
                at += 5
            else:
                return False
            while block[at] == 32:
                at += 1
            if block[at] == 44:  # ,
                at += 1
                continue
            if block[at] == 125:  # }
                at += 1
                break
            return False
        if block[at] != 10:
            return False
        at += 1
    return bool(at == size)


@kernel
def _offsets(lengths: Any, out: Any) -> int:
    total = 0
    for row in range(lengths.shape[0]):
        out[row] = total
        if lengths[row] > 0:
            total += lengths[row]
    out[lengths.shape[0]] = total
    return total


@kernel
def _copy(block: Any, begins: Any, lengths: Any, out: Any) -> None:
    at = 0
    for row in range(begins.shape[0]):
        begin = begins[row]
        for byte in range(lengths[row]):
            out[at + byte] = block[begin + byte]
        if lengths[row] > 0:
            at += lengths[row]


class PlainReader:
    """Reads blocks of plain records with the columns of one schema (int64, float64, string)."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        encoded = [name.encode() for name in schema.names]
        self._names = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
        self._ends = np.cumsum([0, *map(len, encoded)])
        self._kinds = np.array([_KINDS[kind] for kind in schema.types], np.int64)

    def read(self, records: Sequence[bytes | None]) -> pa.Table | None:
        """The needed columns of each record, a row each, or None when a record is not plain."""
        joined = b"\n".join([*records, b""])  # type: ignore[list-item]
        block = np.frombuffer(joined, np.uint8)
        shape = (len(self._kinds), len(records))
        ints, floats = np.zeros(shape, np.int64), np.zeros(shape if (self._kinds == _FLOAT).any() else (1, 1))
        lengths, valid = np.full(shape, -1, np.int32), np.zeros(shape, np.bool_)
        if not _scan(block, self._names, self._ends, self._kinds, _POWERS, ints, floats, lengths, valid):
            return None
        columns = [
            self._strings(block, ints[place], lengths[place], valid[place])
            if kind == _STRING
            else _numbers((ints if kind == _INT else floats)[place], valid[place])
            for place, kind in enumerate(self._kinds)
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)

    @staticmethod
    def _strings(block: UInt8s, begins: Any, lengths: Any, valid: Bools) -> pa.StringArray:
        offsets = np.empty(len(begins) + 1, np.int32)
        data = np.empty(_offsets(lengths, offsets), np.uint8)
        _copy(block, begins, lengths, data)
        nulls = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.StringArray.from_buffers(len(begins), pa.py_buffer(offsets), pa.py_buffer(data), nulls)


def _numbers(values: npt.NDArray[Any], valid: Bools) -> pa.Array:
    return pa.array(values) if valid.all() else pa.array(values, mask=~valid)
