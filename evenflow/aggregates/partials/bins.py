"""Numbers in bins of nearly equal relative width. Quantiles are read from the counts of the bins.

This is DDSketch (Masson, Rim and Lee, VLDB 2019) with the mapping that the paper calls linearly interpolated,
base 2. Each factor of two is cut into 128 bins of equal width. So a bin is the exponent and the first 7 bits
of the mantissa of a double. A quantile is the middle of its bin, which is off by at most 1/256 of its size.

No logarithm is taken and nothing is random. So a number has the same bin on every machine, and counts may be
added in any order. (KLL and REQ sketches of the usual libraries draw random numbers that cannot be seeded.
t-digests depend on the order.)

A whole number is rounded down within its bin, so whole numbers below 256 are exact. A decimal is taken as the
whole number of its last digits. A double below 1e-305 in size is taken for 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn
from evenflow.aggregates.partials.grouping import Grouping
from evenflow.aggregates.partials.multisets import AddUp, bounded, counted, multiset_type, present
from evenflow.aggregates.partials.orders import order_keys
from evenflow.numeric.arrays import Float64s, Int64s

_DROPPED = 45
"""Bits of a double's mantissa that a bin leaves out: all 52 but the first 7."""
_LEAST = 1 << 52 - _DROPPED
"""The first bin whose doubles are normal ones."""
_INFINITE = 0x7FF << 52 - _DROPPED
"""The bin of infinity: 0x7FF is the largest exponent of a double. NaN goes there, too."""
_ROUNDED, _CUT = np.uint64(2**53), np.uint64(1023)
"""From 2^53 on, a double rounds whole numbers. 10 bits are cut off before, so that 53 of 63 are left."""
_LARGEST = 2**63 - 1024
"""The largest double that fits into int64."""


def bins_column(call: Call) -> PartialColumn:
    """Partial column: how many values fell into each bin."""
    return PartialColumn(
        name=f"dds_{call.column}",
        type=multiset_type(pa.int64()),
        source=call.column,
        combine=CountBins(call.room.state),
        merge=AddUp(call.room.state),
        shares_state=True,
    )


def middles(bins: Int64s, type_: pa.DataType) -> pa.Array:
    """The value that stands for each bin, as a column of type `type_`. Shape (n,) -> (n,)."""
    sizes = np.abs(bins)
    # The bin's bits with the highest bit that was left out set: the middle of the bin. Infinity has no
    # middle.
    inside = (sizes << _DROPPED) | np.where(sizes < _INFINITE, 1 << _DROPPED - 1, 0)
    floats = np.where(sizes < _LEAST, 0.0, inside.view(np.float64)) * np.where(bins < 0, -1.0, 1.0)
    if pa.types.is_floating(type_):
        return pa.array(floats + 0.0)  # -0.0 becomes 0.0
    largest = 10**type_.precision - 1 if pa.types.is_decimal(type_) else _LARGEST
    whole = np.clip(np.trunc(floats).clip(-_LARGEST, _LARGEST).astype(np.int64), -largest, largest)
    return whole_values(whole, type_)


def whole_values(whole: Int64s, type_: pa.DataType) -> pa.Array:
    """Whole numbers as a column of int64, or as decimals in units of their last digit."""
    if not pa.types.is_decimal(type_):
        return pa.array(whole)
    # A decimal128 is two words. The high word of an int64 repeats its sign: 0 or -1.
    both = np.ascontiguousarray(np.stack([whole, whole >> 63], axis=1))
    return pa.Array.from_buffers(type_, len(whole), [None, pa.py_buffer(both)], null_count=0)


@dataclass(frozen=True)
class CountBins:
    """Reduction from numbers to the counts of their bins, null if these take more than `room` bytes."""

    room: int
    """Bytes that the counts of a group may take."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The counts of each group."""
        group_ids, values, ones = present(column, groups)
        return bounded(counted(group_ids, pa.array(_bins(values)), ones), groups.count, self.room)


def _bins(values: pa.Array) -> Int64s:
    numbers = _numbers(values)
    # The bits of a double above 0 are exponent, then mantissa. As a whole number they have the order of the
    # doubles.
    bits = np.abs(numbers).view(np.int64)
    sizes = np.minimum(bits >> _DROPPED, _INFINITE)
    return np.where(numbers < 0, -sizes, sizes)


def _numbers(values: pa.Array) -> Float64s:
    if pa.types.is_floating(values.type):
        return values.to_numpy()
    whole = order_keys(values)
    sizes = np.abs(whole).view(np.uint64)  # uint64, because int64 does not hold the size of its least number
    # A double holds 53 bits. Rounding could carry a number up into the next bin, so the bits beyond are cut
    # off first.
    exact = np.where(sizes < _ROUNDED, sizes, sizes & ~_CUT).astype(np.float64)
    return np.where(whole < 0, -exact, exact)
