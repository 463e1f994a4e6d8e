"""Numbers in bins of equal relative width: what quantiles are read from.

This is DDSketch (Masson, Rim and Lee, VLDB 2019) with the mapping that it calls linearly interpolated, base 2: each
factor of two is cut into 128 bins of equal width, so a bin is the exponent and the first 7 bits of the mantissa of
a double. A quantile is the middle of its bin: off by at most 1/256 of its size. No logarithm is taken and nothing is
random, so a bin is the same on every machine, and counts are added in any order (KLL and REQ sketches of the usual
libraries draw random numbers that cannot be seeded, t-digests depend on the order).

Whole numbers are rounded down within their bin, so those below 256 are exact. Decimals are taken as whole numbers of
their last digit. Doubles below 1e-305 in size are taken for 0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn
from evenflow.aggregates.grouping import Grouping
from evenflow.aggregates.multisets import add_up, as_multisets, counted, multiset_type, present
from evenflow.aggregates.orders import order_keys
from evenflow.arrays import Float64s, Int64s

_DROPPED = 45
"""Bits of a double's mantissa that a bin does not tell: 52 less 7."""
_LEAST = 1 << 52 - _DROPPED
"""The first bin whose doubles are normal ones."""
_INFINITE = 0x7FF << 52 - _DROPPED
_ROUNDED, _CUT = np.uint64(2**53), np.uint64(1023)
_LARGEST = 2**63 - 1024
"""The largest double that fits into int64."""


def bins_column(call: Call) -> PartialColumn:
    """How many values fell into each bin."""
    return PartialColumn(
        name=f"dds_{call.column}",
        type=multiset_type(pa.int64()),
        source=call.column,
        combine=_combine,
        merge=add_up,
    )


def middles(bins: Int64s, type_: pa.DataType) -> pa.Array:
    """The value that stands for each bin of a column of this type."""
    sizes = np.abs(bins)
    inside = (sizes << _DROPPED) | np.where(sizes < _INFINITE, 1 << _DROPPED - 1, 0)
    floats = np.where(sizes < _LEAST, 0.0, inside.view(np.float64)) * np.where(bins < 0, -1.0, 1.0)
    if pa.types.is_floating(type_):
        return pa.array(floats + 0.0)
    largest = 10**type_.precision - 1 if pa.types.is_decimal(type_) else _LARGEST
    whole = np.clip(np.trunc(floats).clip(-_LARGEST, _LARGEST).astype(np.int64), -largest, largest)
    return whole_values(whole, type_)


def whole_values(whole: Int64s, type_: pa.DataType) -> pa.Array:
    """Whole numbers as int64, or as decimals that have so many of their last digit."""
    if not pa.types.is_decimal(type_):
        return pa.array(whole)
    both = np.ascontiguousarray(np.stack([whole, whole >> 63], axis=1))
    return pa.Array.from_buffers(type_, len(whole), [None, pa.py_buffer(both)], null_count=0)


def _combine(column: pa.Array | None, groups: Grouping) -> pa.Array:
    of, values, ones = present(column, groups)
    return as_multisets(counted(of, pa.array(_bins(values)), ones), groups.count)


def _bins(values: pa.Array) -> Int64s:
    numbers = _numbers(values)
    bits = np.abs(numbers).view(np.int64)
    sizes = np.minimum(bits >> _DROPPED, _INFINITE)
    return np.where(numbers < 0, -sizes, sizes)


def _numbers(values: pa.Array) -> Float64s:
    if pa.types.is_floating(values.type):
        return values.to_numpy()
    whole = order_keys(values)
    sizes = np.abs(whole).view(np.uint64)  # also of the least int64, whose size int64 does not hold
    # A double holds 53 bits. What is cut off first cannot round up, into the next bin.
    exact = np.where(sizes < _ROUNDED, sizes, sizes & ~_CUT).astype(np.float64)
    return np.where(whole < 0, -exact, exact)
