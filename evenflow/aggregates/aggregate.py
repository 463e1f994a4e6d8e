"""What an aggregate is: the partial columns it needs, and how they become its value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from evenflow.aggregates.wide import WIDE
from evenflow.errors import ConfigError
from evenflow.settings.query import AggregateSpec, ColumnType

ROWS = "rows"
"""The hidden partial of every plan: number of tuples. An entry with 0 of them has left the window."""

ARROW_TYPES: dict[str, pa.DataType] = {"int64": pa.int64(), "float64": pa.float64()}


@dataclass(frozen=True, kw_only=True)
class PartialColumn:
    """One column of a partial table.

    `combine` and `merge` name the reductions (reductions.py) that make it from rows and from other
    partials; `source` is the value column read by `combine` (None: the row itself). `invertible` says
    that subtracting a partial that was added before gives back exactly what was there; `merge` is then
    a reduction that `subtract_column` knows.
    Equal columns of different aggregates are computed once.
    """

    name: str
    type: pa.DataType
    source: str | None
    combine: str
    merge: str
    invertible: bool


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """One aggregate function, by its name in `[query.aggregates]`.

    `partials(column, type)` declares its partial columns, `result_type(type)` what it yields, and
    `finish(partials, column)` computes that from a table holding those columns, row by row. A value that
    does not fit its type is null, never an error; `unfit(partials, column)` says how many rows have one.
    """

    name: str
    takes_column: bool
    partials: Callable[[str, pa.DataType], tuple[PartialColumn, ...]]
    result_type: Callable[[pa.DataType], pa.DataType]
    finish: Callable[[pa.Table, str], pa.Array]
    unfit: Callable[[pa.Table, str], int] = lambda partials, column: 0

    def check(self, label: str, spec: AggregateSpec, column_type: ColumnType) -> None:
        """Raise ConfigError unless this aggregate can be computed as written (`label = spec`)."""
        if self.takes_column and spec.column is None:
            raise ConfigError(
                f"aggregate {label} = {str(spec)!r} names no column", hint=f"write '{self.name}(column)'"
            )
        if not self.takes_column and spec.column is not None:
            raise ConfigError(
                f"aggregate {label} = {str(spec)!r}: {self.name} takes no column, it is over tuples",
                hint=f"write '{self.name}'",
            )
        if self.takes_column and column_type not in ARROW_TYPES:
            raise ConfigError(
                f"aggregate {label} = {str(spec)!r}: column {spec.column!r} is a {column_type}, "
                f"but {self.name} needs a number",
                hint=f"declare it in [query.types] as one of: {', '.join(ARROW_TYPES)}",
            )


ROWS_COLUMN = PartialColumn(
    name=ROWS, type=pa.int64(), source=None, combine="count_all", merge="sum_counts", invertible=True
)


def count_column(column: str) -> PartialColumn:
    """How many values of this column were not null."""
    return PartialColumn(
        name=f"cnt_{column}",
        type=pa.int64(),
        source=column,
        combine="count",
        merge="sum_counts",
        invertible=True,
    )


def sum_column(column: str, type_: pa.DataType) -> PartialColumn:
    """Sum of the values that were not null; 0 when there was none.

    That of an int64 column has 128 bits and cannot overflow; it alone is exactly invertible.
    """
    return PartialColumn(
        name=f"sum_{column}",
        type=WIDE if pa.types.is_integer(type_) else type_,
        source=column,
        combine="sum",
        merge="sum",
        invertible=pa.types.is_integer(type_),
    )
