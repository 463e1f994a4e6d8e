"""sum(column): the sum of the values that are not null. Null if there are none.

A sum has the type of its column, but a sum of decimals is a decimal128(38, S), so that it always fits. A sum
of int64 values that does not fit into int64 is null, and `unfit` counts it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.aggregate import Aggregate, Call, Documentation, count_column, sum_column
from evenflow.aggregates.partials.wide_sums import narrowed
from evenflow.numeric.arrays import one_chunk


def _finish(partials: pa.Table, call: Call) -> pa.Array:
    counts, sums = one_chunk(partials[f"cnt_{call.column}"]), one_chunk(partials[f"sum_{call.column}"])
    if pa.types.is_integer(call.type):
        values, fits = narrowed(sums)
        sums = pa.array(values, mask=None if fits.all() else ~fits)
    # `all` of no rows is null, so this asks for False.
    if pc.all(pc.greater(counts, 0)).as_py() is not False:
        return sums
    return pc.if_else(pc.greater(counts, 0), sums, pa.scalar(None, sums.type))


def _unfit(partials: pa.Table, call: Call) -> int:
    if not pa.types.is_integer(call.type):
        return 0
    return int(np.count_nonzero(~narrowed(one_chunk(partials[f"sum_{call.column}"]))[1]))


SUM = Aggregate(
    name="sum",
    forms=("sum(column)",),
    partials=lambda call: (sum_column(call.column, call.type), count_column(call.column)),
    result_type=lambda call: (
        sum_column(call.column, call.type).type if pa.types.is_decimal(call.type) else call.type
    ),
    finish=_finish,
    unfit=_unfit,
    bound=lambda call: "1e-9 of the sum of their sizes" if pa.types.is_floating(call.type) else "exact",
    documentation=Documentation(
        computes="the sum, of the column's type; of `decimal(S)` a decimal of 38 digits",
        nulls=(
            "ignored; null where there is no value, and where a sum of whole numbers does not fit into int64"
        ),
        bound="exact for whole numbers and decimals; for floats 1e-9 of the sum of their sizes",
        state="24 bytes (16 for floats)",
    ),
)
