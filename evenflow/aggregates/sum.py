"""sum(column): of the values that are not null; null when there is none. Same type as the column.

A sum of int64 values that does not fit in int64 is null, and counted by `unfit`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.aggregate import Aggregate, count_column, sum_column
from evenflow.aggregates.wide import narrowed
from evenflow.arrays import one_chunk


def _finish(partials: pa.Table, column: str) -> pa.Array:
    counts, sums = one_chunk(partials[f"cnt_{column}"]), one_chunk(partials[f"sum_{column}"])
    if pa.types.is_decimal(sums.type):
        values, fits = narrowed(sums)
        sums = pa.array(values, mask=None if fits.all() else ~fits)
    if pc.all(pc.greater(counts, 0)).as_py() is not False:
        return sums
    return pc.if_else(pc.greater(counts, 0), sums, pa.scalar(None, sums.type))


def _unfit(partials: pa.Table, column: str) -> int:
    sums = one_chunk(partials[f"sum_{column}"])
    return int(np.count_nonzero(~narrowed(sums)[1])) if pa.types.is_decimal(sums.type) else 0


SUM = Aggregate(
    name="sum",
    takes_column=True,
    partials=lambda column, type_: (sum_column(column, type_), count_column(column)),
    result_type=lambda type_: type_,
    finish=_finish,
    unfit=_unfit,
)
