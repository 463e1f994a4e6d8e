"""Sums of int64 values as 128-bit integers, which no such sum can overflow.

A column of sums has Arrow's type decimal128(38, 0). A kernel sees it as records of WORDS: the low and the
high word of a two's complement number. Fewer than 2^63 addends of at most 2^63 each stay within 2^126. That
number has 38 digits, so Arrow's `validate(full=True)` passes.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa

from evenflow.numeric.arrays import Bools, Float64s, Int32s, Int64s, Rows, UInt64s, records, viewed
from evenflow.numeric.kernels import kernel

WIDE = pa.decimal128(38, 0)
"""Arrow type of a sum of int64 values."""
WORDS = np.dtype([("low", np.uint64), ("high", np.uint64)])
_SIGNED = np.dtype([("low", np.int64), ("high", np.int64)])


@kernel
def add_int64s(group_ids: Int32s, values: UInt64s, valid: Bools, out: Rows) -> None:
    """Add int64 values, seen as uint64, to the 128-bit sum of their row's group."""
    masked = valid.shape[0] > 0
    for row in range(group_ids.shape[0]):
        if masked and not valid[row]:
            continue
        total, value = out[group_ids[row]], values[row]
        low = total["low"] + value
        carry = np.uint64(1) if low < value else np.uint64(0)  # the sum has wrapped around
        total["low"] = low
        total["high"] += carry - (value >> np.uint64(63))  # minus one: the high word of a negative value


@kernel
def add_wide(group_ids: Int32s, values: Rows, valid: Bools, out: Rows) -> None:
    """Add 128-bit values to the sum of their row's group."""
    masked = valid.shape[0] > 0
    for row in range(group_ids.shape[0]):
        if masked and not valid[row]:
            continue
        total, value = out[group_ids[row]], values[row]["low"]
        low = total["low"] + value
        carry = np.uint64(1) if low < value else np.uint64(0)
        total["low"] = low
        total["high"] += values[row]["high"] + carry


@kernel
def subtract_wide(group_ids: Int32s, values: Rows, valid: Bools, out: Rows) -> None:
    """Subtract 128-bit values from the sum of their row's group. This is the exact inverse of `add_wide`."""
    masked = valid.shape[0] > 0
    for row in range(group_ids.shape[0]):
        if masked and not valid[row]:
            continue
        total, value = out[group_ids[row]], values[row]["low"]
        low = total["low"]
        borrow = np.uint64(1) if low < value else np.uint64(0)
        total["low"] = low - value
        total["high"] -= values[row]["high"] + borrow


def no_sums(groups: int) -> Rows:
    """A sum of 0 for each group, shape (groups,)."""
    return records(groups, WORDS)


def words(column: pa.Array) -> Rows:
    """The words of each value of a WIDE column, shape (rows,), without a copy.
    The words of a null may be anything.
    """
    both = viewed(column.buffers()[1], np.uint64, 2 * column.offset, 2 * len(column))
    return cast(Rows, both.view(WORDS))


def from_words(sums: Rows, scale: int = 0) -> pa.Array:
    """The column whose words these are, shape (rows,), without a copy. `scale`: digits behind the point."""
    return pa.Array.from_buffers(
        pa.decimal128(WIDE.precision, scale), len(sums), [None, pa.py_buffer(sums)], null_count=0
    )


def narrowed(column: pa.Array) -> tuple[Int64s, Bools]:
    """Each value of a WIDE column as int64, and whether it fits, both of shape (rows,).

    An int64 that does not fit means nothing.
    """
    # A value fits if its high word only repeats the sign of its low word.
    both = words(column).view(_SIGNED)
    return both["low"], both["high"] == both["low"] >> 63


def as_doubles(column: pa.Array) -> Float64s:
    """The double nearest to each value of a WIDE column (ties to even), shape (rows,).

    A decimal counts as a whole number of its last digits: 1.50 becomes 150.0.
    """
    values, fits = narrowed(column)
    doubles = values.astype(np.float64)
    for row in np.flatnonzero(~fits).tolist():  # rare: one call for each sum beyond int64
        # Python's whole numbers have no bound, and its float() rounds them to the nearest double.
        # The words are unsigned, and the first difference gives the high word its sign.
        low, high = words(column)[row].item()
        doubles[row] = float((high - (high >> 63 << 64) << 64) + low)
    return doubles
