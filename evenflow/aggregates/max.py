"""max(column): the largest value that is not null; null when there is none. NaN yields to numbers."""

from __future__ import annotations

import pyarrow as pa

from evenflow.aggregates.aggregate import Aggregate, PartialColumn


def _partials(column: str, type_: pa.DataType) -> tuple[PartialColumn, ...]:
    name = f"max_{column}"
    return (
        PartialColumn(name=name, type=type_, source=column, combine="max", merge="max", invertible=False),
    )


MAX = Aggregate(
    name="max",
    takes_column=True,
    partials=_partials,
    result_type=lambda type_: type_,
    finish=lambda partials, column: partials[f"max_{column}"],
)
