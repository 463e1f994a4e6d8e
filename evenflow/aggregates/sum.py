"""sum(column): of the values that are not null; null when there is none. Same type as the column."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.aggregate import Aggregate, count_column, sum_column


def _finish(partials: pa.Table, column: str) -> pa.Array:
    counts, sums = partials[f"cnt_{column}"], partials[f"sum_{column}"]
    return pc.if_else(pc.greater(counts, 0), sums, pa.scalar(None, sums.type))


SUM = Aggregate(
    name="sum",
    takes_column=True,
    partials=lambda column, type_: (sum_column(column, type_), count_column(column)),
    result_type=lambda type_: type_,
    finish=_finish,
)
