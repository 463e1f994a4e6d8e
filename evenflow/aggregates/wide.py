"""Sums of int64 values as 128-bit integers: no sum of int64 values can overflow one.

A column of them is of Arrow's type decimal128(38, 0). A kernel sees it as uint64[n, 2]: each row holds the
low and the high word of a two's complement number. Fewer than 2^63 addends of at most 2^63 each stay
within 2^126, which has 38 digits, so `validate(full=True)` passes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.arrays import Bools, Float64s, Int32s, Int64s, UInt64s, viewed
from evenflow.kernels import kernel

WIDE = pa.decimal128(38, 0)
"""Arrow type of a sum of int64 values."""


@kernel
def add_int64s(of: Int32s, values: UInt64s, valid: Bools, out: UInt64s) -> None:
    """Add int64 values, seen as uint64, to the 128-bit sum of their row's group."""
    masked = valid.shape[0] > 0
    for row in range(of.shape[0]):
        if masked and not valid[row]:
            continue
        group, value = of[row], values[row]
        low = out[group, 0] + value
        carry = np.uint64(1) if low < value else np.uint64(0)
        out[group, 0] = low
        out[group, 1] += carry - (value >> np.uint64(63))  # minus one: the high word of a negative value


@kernel
def add_wide(of: Int32s, values: UInt64s, valid: Bools, out: UInt64s) -> None:
    """Add 128-bit values to the sum of their row's group."""
    masked = valid.shape[0] > 0
    for row in range(of.shape[0]):
        if masked and not valid[row]:
            continue
        group, value = of[row], values[row, 0]
        low = out[group, 0] + value
        carry = np.uint64(1) if low < value else np.uint64(0)
        out[group, 0] = low
        out[group, 1] += values[row, 1] + carry


@kernel
def subtract_wide(of: Int32s, values: UInt64s, valid: Bools, out: UInt64s) -> None:
    """Subtract 128-bit values from the sum of their row's group: the inverse of `add_wide`."""
    masked = valid.shape[0] > 0
    for row in range(of.shape[0]):
        if masked and not valid[row]:
            continue
        group, value = of[row], values[row, 0]
        low = out[group, 0]
        borrow = np.uint64(1) if low < value else np.uint64(0)
        out[group, 0] = low - value
        out[group, 1] -= values[row, 1] + borrow


def words(column: pa.Array) -> UInt64s:
    """Low and high word of each value of a WIDE column, uint64[n, 2], without a copy. Null rows hold anything."""
    return viewed(column.buffers()[1], np.uint64, 2 * column.offset, 2 * len(column)).reshape(-1, 2)


def from_words(sums: UInt64s, scale: int = 0) -> pa.Array:
    """The column whose words these are, uint64[n, 2], without a copy. `scale`: digits behind the point."""
    return pa.Array.from_buffers(
        pa.decimal128(WIDE.precision, scale), len(sums), [None, pa.py_buffer(sums)], null_count=0
    )


def narrowed(column: pa.Array) -> tuple[Int64s, Bools]:
    """Each value of a WIDE column as int64, and whether it fits (where not, the int64 means nothing)."""
    both = words(column).view(np.int64)
    return both[:, 0], both[:, 1] == both[:, 0] >> 63


def as_doubles(column: pa.Array) -> Float64s:
    """The double nearest to each value of a WIDE column (half to even). Of decimals, to how many last digits they are."""
    values, fits = narrowed(column)
    doubles = values.astype(np.float64)
    for row in np.flatnonzero(~fits).tolist():  # rare: one call for each sum beyond int64
        low, high = words(column)[row].tolist()
        doubles[row] = float((high - (high >> 63 << 64) << 64) + low)
    return doubles
