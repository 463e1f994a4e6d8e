"""Whole numbers that stand for values: they have the order of the values,
and equal values have equal numbers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.partials.grouping import group_rows
from evenflow.aggregates.partials.wide_sums import words
from evenflow.numeric.arrays import Float64s, Int64s, viewed

_MAGNITUDE = np.int64(2**63 - 1)


def plain(values: pa.Array) -> pa.Array:
    """The values that are not null.
    -0.0 becomes 0.0, and every NaN the same NaN, so equal values have equal bytes.
    """
    present = values.drop_null()
    if not pa.types.is_floating(present.type):
        return present
    floats = present.to_numpy()
    return pa.array(np.where(np.isnan(floats), np.nan, floats + 0.0))


def order_keys(values: pa.Array) -> Int64s:
    """One number for each value, shape (n,). A null has any number.

    The numbers of a text column are places in the order of bytes among the texts of this array. So they
    compare with each other only, not with those of another array.
    """
    kind = values.type
    if pa.types.is_floating(kind):
        # The bits of doubles from 0.0 on are ordered as whole numbers. Below 0, the bits without the sign are
        # negated.
        bits = viewed(values.buffers()[1], np.int64, values.offset, len(values))
        return np.where(bits < 0, -(bits & _MAGNITUDE), bits)
    if pa.types.is_int64(kind):
        return viewed(values.buffers()[1], np.int64, values.offset, len(values))
    if pa.types.is_decimal(kind):
        # A decimal in frames has 18 digits, so the low word holds the whole number.
        return np.ascontiguousarray(words(values)["low"]).view(np.int64)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _places(values)
    if pa.types.is_date(kind):
        values = values.view(pa.int32())
    return pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)


def as_floats(values: pa.Array) -> Float64s:
    """The doubles nearest to the values of a column of numbers without nulls, shape (n,).

    A decimal counts with its value, not with its digits: 1.50 becomes 1.5.
    """
    if pa.types.is_floating(values.type):
        return viewed(values.buffers()[1], np.float64, values.offset, len(values))
    floats = order_keys(values).astype(np.float64)
    return floats / 10.0**values.type.scale if pa.types.is_decimal(values.type) else floats


def _places(texts: pa.Array) -> Int64s:
    """The place of each text among the different texts, in the order of their bytes."""
    if not len(texts):
        return np.zeros(0, np.int64)
    texts = texts.fill_null("") if texts.null_count else texts
    # Not `dictionary_encode`: Arrow's hash is public and has no secret, so texts can be chosen for which it
    # takes n^2 steps.
    wide = pa.types.is_large_string(texts.type)
    groups = group_rows(texts.cast(pa.large_binary() if wide else pa.binary()))
    different = texts.take(pa.array(groups.first))
    places = pc.rank(different, tiebreaker="dense").to_numpy().astype(np.int64)
    return places[groups.ids]
