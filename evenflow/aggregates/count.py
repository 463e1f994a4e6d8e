"""count: how many tuples, whatever their values."""

from __future__ import annotations

import pyarrow as pa

from evenflow.aggregates.aggregate import ROWS, ROWS_COLUMN, Aggregate

COUNT = Aggregate(
    name="count",
    takes_column=False,
    partials=lambda column, type_: (ROWS_COLUMN,),
    result_type=lambda type_: pa.int64(),
    finish=lambda partials, column: partials[ROWS],
)
