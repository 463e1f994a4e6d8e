"""mean(column): sum divided by count of the values that are not null. Null if there are none.

The sum of int64 values is exact. It is rounded once to the nearest double, and the quotient is rounded once
more. So the mean is off by less than 2^-52 of its size. If the sum is below 2^53, the mean is the nearest
double. It always fits its type. For decimals the divisor has a power of ten as well, so the mean is off by
less than 2^-51 of its size.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.aggregate import Aggregate, Call, Documentation, count_column, sum_column
from evenflow.aggregates.partials.wide_sums import as_doubles
from evenflow.numeric.arrays import one_chunk


def _finish(partials: pa.Table, call: Call) -> pa.Array:
    counts, total = one_chunk(partials[f"cnt_{call.column}"]), one_chunk(partials[f"sum_{call.column}"])
    # Null instead of 0 as the divisor makes the mean of no values null.
    divisor = pc.if_else(pc.greater(counts, 0), counts, pa.scalar(None, pa.int64())).cast(
        pa.float64(), safe=False
    )
    if pa.types.is_decimal(total.type):
        if total.type.scale:
            divisor = pc.multiply(divisor, 10.0**total.type.scale)
        total = pa.array(as_doubles(total))
    return pc.divide(total, divisor)


MEAN = Aggregate(
    name="mean",
    forms=("mean(column)",),
    partials=lambda call: (sum_column(call.column, call.type), count_column(call.column)),
    result_type=lambda call: pa.float64(),
    finish=_finish,
    bound=lambda call: (
        "1e-9 of the mean of their sizes" if pa.types.is_floating(call.type) else "2^-51 of its size"
    ),
    documentation=Documentation(
        computes="sum divided by count, a double",
        nulls="ignored; null where there is no value",
        bound="of whole numbers and decimals 2^-51 of its size; of floats 1e-9 of the mean of their sizes",
        state="that of sum",
    ),
)
