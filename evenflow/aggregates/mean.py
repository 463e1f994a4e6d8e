"""mean(column): sum divided by count of the values that are not null; null when there is none."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.aggregate import Aggregate, count_column, sum_column


def _finish(partials: pa.Table, column: str) -> pa.Array:
    counts = partials[f"cnt_{column}"]
    divisor = pc.if_else(pc.greater(counts, 0), counts, pa.scalar(None, pa.int64()))
    total = partials[f"sum_{column}"].cast(pa.float64(), safe=False)
    return pc.divide(total, divisor.cast(pa.float64(), safe=False))


MEAN = Aggregate(
    name="mean",
    takes_column=True,
    partials=lambda column, type_: (sum_column(column, type_), count_column(column)),
    result_type=lambda type_: pa.float64(),
    finish=_finish,
)
