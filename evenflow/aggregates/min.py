"""min(column): the smallest value that is not null; null when there is none. NaN yields to numbers."""

from __future__ import annotations

import pyarrow as pa

from evenflow.aggregates.aggregate import Aggregate, PartialColumn


def _partials(column: str, type_: pa.DataType) -> tuple[PartialColumn, ...]:
    name = f"min_{column}"
    return (
        PartialColumn(name=name, type=type_, source=column, combine="min", merge="min", invertible=False),
    )


MIN = Aggregate(
    name="min",
    takes_column=True,
    partials=_partials,
    result_type=lambda type_: type_,
    finish=lambda partials, column: partials[f"min_{column}"],
)
