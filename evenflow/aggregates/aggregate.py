"""What an aggregate is: the partial columns it needs, and how they become its value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evenflow.aggregates.grouping import Grouping
from evenflow.aggregates.wide import WIDE
from evenflow.errors import ConfigError
from evenflow.settings.aggregate_spec import AggregateSpec
from evenflow.settings.query import ColumnType, decimal_scale

ROWS = "rows"
"""The hidden partial of every plan: number of tuples. An entry with 0 of them has left the window."""

ARROW_TYPES: dict[str, pa.DataType] = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
}
NUMBERS = ("int64", "float64", "decimal(S)")
ANYTHING = (*ARROW_TYPES, "decimal(S)")
"""Every type that a column may have."""

Reduction = Callable[[pa.Array | None, Grouping], pa.Array]
"""(a column, its groups) -> one row per group, in group order. Reductions that do the same are equal."""


def arrow_type(declared: ColumnType) -> pa.DataType:
    """Type of a value column in frames."""
    scale = decimal_scale(declared)
    return ARROW_TYPES[declared] if scale is None else pa.decimal128(18, scale)


def stored(type_: pa.DataType) -> pa.DataType:
    """Type of such a value in partials: the texts of a window may have more than the 2 GiB that string holds."""
    return pa.large_string() if pa.types.is_string(type_) else type_


@dataclass(frozen=True, kw_only=True)
class PartialColumn:
    """One column of a partial table.

    `combine` and `merge` are reductions, or names of some (reductions.py), that make it from rows and from other
    partials. `source` is the value column read by `combine` (None: the row itself). `timed`: `combine` gets structs
    of the event time (`time`, ms) and the `value`. `invertible` says
    that subtracting a partial that was added before gives back exactly what was there. `merge` is then
    a reduction that `subtract_column` knows.
    Equal columns of different aggregates are computed once.
    """

    name: str
    type: pa.DataType
    source: str | None
    combine: str | Reduction
    merge: str | Reduction
    timed: bool = False
    invertible: bool = False


@dataclass(frozen=True, kw_only=True)
class Call:
    """What an aggregate is called with: a value column ("": none), its type in frames, and the options, read."""

    column: str = ""
    type: pa.DataType = pa.int64()  # noqa: RUF009 - Arrow's types are immutable
    options: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Said:
    """What people are told of an aggregate (docs/aggregates.md)."""

    computes: str
    nulls: str
    bound: str
    state: str


def no_options(written: tuple[str, ...]) -> tuple[Any, ...]:
    """Of an aggregate that takes a column alone."""
    if written:
        raise ValueError("it takes no options")
    return ()


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """One aggregate function, by its name in `[query.aggregates]`.

    `forms`: how it may be written, `column` standing for a column. `over`: the types of column it takes.
    `read(options)` makes values of what is written behind the column. ValueError says what is wrong.
    `partials(call)` declares its partial columns, `result_type(call)` what it yields, and
    `finish(partials, call)` computes that from a table holding those columns, row by row. A value that
    does not fit its type is null, never an error. `unfit(partials, call)` says how many rows have one.
    """

    name: str
    forms: tuple[str, ...]
    partials: Callable[[Call], tuple[PartialColumn, ...]]
    result_type: Callable[[Call], pa.DataType]
    finish: Callable[[pa.Table, Call], pa.Array]
    said: Said
    over: tuple[str, ...] = NUMBERS
    read: Callable[[tuple[str, ...]], tuple[Any, ...]] = no_options
    unfit: Callable[[pa.Table, Call], int] = lambda partials, call: 0
    bound: Callable[[Call], str] | None = None
    """How far a result of this call may be from the truth. None: as `said` says of all calls."""

    def bound_of(self, call: Call) -> str:
        """How far a result of this call may be from the truth, in words."""
        return self.said.bound if self.bound is None else self.bound(call)

    @property
    def takes_column(self) -> bool:
        """Whether it may be over a column."""
        return any("(" in form for form in self.forms)

    def call(self, label: str, spec: AggregateSpec, column_type: ColumnType) -> Call:
        """What `label = spec` calls it with. ConfigError unless it can be computed as written."""
        what = f"aggregate {label} = {str(spec)!r}"
        if spec.column is None:
            if self.name in self.forms:
                return Call()
            raise ConfigError(f"{what} names no column", hint=f"write {self._forms()}")
        if not self.takes_column:
            raise ConfigError(
                f"{what}: {self.name} takes no column, it is over tuples", hint=f"write {self._forms()}"
            )
        if ("decimal(S)" if decimal_scale(column_type) is not None else column_type) not in self.over:
            needs = "a number" if self.over == NUMBERS else f"one of {', '.join(self.over)}"
            raise ConfigError(
                f"{what}: column {spec.column!r} is a {column_type}, but {self.name} needs {needs}",
                hint=f"declare it in [query.types] as one of: {', '.join(self.over)}",
            )
        try:
            options = self.read(spec.options)
        except ValueError as error:
            raise ConfigError(f"{what}: {error}", hint=f"write {self._forms()}") from None
        return Call(column=spec.column, type=arrow_type(column_type), options=options)

    def _forms(self) -> str:
        return " or ".join(f"'{form}'" for form in self.forms)


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
    """Sum of the values that were not null. 0 when there was none.

    That of an int64 or decimal column has 128 bits and cannot overflow. They alone are exactly invertible.
    """
    exact = not pa.types.is_floating(type_)
    scale = type_.scale if pa.types.is_decimal(type_) else 0
    return PartialColumn(
        name=f"sum_{column}",
        type=pa.decimal128(WIDE.precision, scale) if exact else type_,
        source=column,
        combine="sum",
        merge="sum",
        invertible=exact,
    )
