"""Which values of two columns are the same to a reader.
Null equals null, NaN equals NaN, and -0.0 equals 0.0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.numeric.arrays import Bools, Int64s, one_chunk


def equal_rows(first: pa.Table, second: pa.Table) -> Bools:
    """Whether row i of the first table has the same values as row i of the second, shape (rows,).

    The tables have equal schemas and lengths.
    """
    same = np.ones(first.num_rows, np.bool_)
    for name in first.schema.names:
        same &= _equal(one_chunk(first[name]), one_chunk(second[name]))
    return same


def _equal(first: pa.Array, second: pa.Array) -> Bools:
    first_valid, second_valid = _valid(first), _valid(second)
    same: Bools = first_valid == second_valid
    both = np.flatnonzero(first_valid & second_valid)
    if len(both) < len(first):
        first, second = first.take(pa.array(both)), second.take(pa.array(both))
    same[both] = _equal_present(first, second)
    return same


def _equal_present(first: pa.Array, second: pa.Array) -> Bools:
    """As `_equal`, for columns without nulls."""
    kind = first.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _equal_lists(first, second)
    if pa.types.is_struct(kind):
        same = np.ones(len(first), np.bool_)
        for left, right in zip(first.flatten(), second.flatten(), strict=True):
            same &= _equal(left, right)
        return same
    equal = pc.equal(first, second)
    if pa.types.is_floating(kind):
        equal = pc.or_(equal, pc.and_(pc.is_nan(first), pc.is_nan(second)))
    answer: Bools = equal.to_numpy(zero_copy_only=False)
    return answer


def _equal_lists(first: pa.Array, second: pa.Array) -> Bools:
    sizes = _sizes(first)
    same: Bools = sizes == _sizes(second)
    alike = pa.array(np.flatnonzero(same))
    entries = _equal(first.take(alike).flatten(), second.take(alike).flatten())
    # Entries are compared as two flat arrays. One entry that differs makes its whole list differ.
    rows = np.repeat(np.flatnonzero(same), sizes[same])
    same[rows[~entries]] = False
    return same


def _valid(column: pa.Array) -> Bools:
    valid: Bools = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _sizes(lists: pa.Array) -> Int64s:
    sizes: Int64s = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes
