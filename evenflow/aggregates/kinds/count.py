"""count: how many tuples, whatever their values. count(column): how many values that are not null."""

from __future__ import annotations

import pyarrow as pa

from evenflow.aggregates.aggregate import (
    ANYTHING,
    ROWS,
    ROWS_COLUMN,
    Aggregate,
    Call,
    Documentation,
    count_column,
)

COUNT = Aggregate(
    name="count",
    forms=("count", "count(column)"),
    over=ANYTHING,
    partials=lambda call: (count_column(call.column) if call.column else ROWS_COLUMN,),
    result_type=lambda call: pa.int64(),
    finish=lambda partials, call: partials[_name(call)],
    documentation=Documentation(
        computes="how many tuples; of a column, how many values",
        nulls="`count` counts every tuple, `count(column)` no null; never null itself",
        bound="exact",
        state="8 bytes",
    ),
)


def _name(call: Call) -> str:
    return count_column(call.column).name if call.column else ROWS
