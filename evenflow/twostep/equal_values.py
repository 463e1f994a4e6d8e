"""Which values of two columns are the same to a reader. Null equals null, NaN equals NaN, and -0.0 equals 0.0."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.arrays import Bools, Int64s, one_chunk


def equal_rows(one: pa.Table, other: pa.Table) -> Bools:
    """Whether row i of one table has the same values as row i of the other, shape (rows,).

    The tables have equal schemas and lengths.
    """
    same = np.ones(one.num_rows, np.bool_)
    for name in one.schema.names:
        same &= _equal(one_chunk(one[name]), one_chunk(other[name]))
    return same


def _equal(one: pa.Array, other: pa.Array) -> Bools:
    there, too = _there(one), _there(other)
    same: Bools = there == too
    both = np.flatnonzero(there & too)
    if len(both) < len(one):
        one, other = one.take(pa.array(both)), other.take(pa.array(both))
    same[both] = _equal_present(one, other)
    return same


def _equal_present(one: pa.Array, other: pa.Array) -> Bools:
    """As `_equal`, for columns without nulls."""
    kind = one.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _equal_lists(one, other)
    if pa.types.is_struct(kind):
        same = np.ones(len(one), np.bool_)
        for left, right in zip(one.flatten(), other.flatten(), strict=True):
            same &= _equal(left, right)
        return same
    found = pc.equal(one, other)
    if pa.types.is_floating(kind):
        found = pc.or_(found, pc.and_(pc.is_nan(one), pc.is_nan(other)))
    answer: Bools = found.to_numpy(zero_copy_only=False)
    return answer


def _equal_lists(one: pa.Array, other: pa.Array) -> Bools:
    sizes = _sizes(one)
    same: Bools = sizes == _sizes(other)
    alike = pa.array(np.flatnonzero(same))
    entries = _equal(one.take(alike).flatten(), other.take(alike).flatten())
    # Entries are compared as two flat arrays. One entry that differs makes its whole list differ.
    of = np.repeat(np.flatnonzero(same), sizes[same])
    same[of[~entries]] = False
    return same


def _there(column: pa.Array) -> Bools:
    there: Bools = column.is_valid().to_numpy(zero_copy_only=False)
    return there


def _sizes(lists: pa.Array) -> Int64s:
    sizes: Int64s = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes
