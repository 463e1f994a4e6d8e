"""mean(column): sum divided by count of the values that are not null; null when there is none.

The sum of int64 values is exact, is rounded once to the nearest double, and the quotient once more: the mean
is off by less than 2^-52 of its size, and is the nearest double when the sum is below 2^53. It always fits.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.aggregate import Aggregate, count_column, sum_column
from evenflow.aggregates.wide import as_doubles
from evenflow.arrays import one_chunk


def _finish(partials: pa.Table, column: str) -> pa.Array:
    counts, total = one_chunk(partials[f"cnt_{column}"]), one_chunk(partials[f"sum_{column}"])
    divisor = pc.if_else(pc.greater(counts, 0), counts, pa.scalar(None, pa.int64()))
    if pa.types.is_decimal(total.type):
        total = pa.array(as_doubles(total))
    return pc.divide(total, divisor.cast(pa.float64(), safe=False))


MEAN = Aggregate(
    name="mean",
    takes_column=True,
    partials=lambda column, type_: (sum_column(column, type_), count_column(column)),
    result_type=lambda type_: pa.float64(),
    finish=_finish,
)
