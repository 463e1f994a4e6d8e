"""What an aggregate is: the partial columns that it needs, and how they become its value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from evenflow.aggregates.partials.grouping import Grouping
from evenflow.aggregates.partials.wide_sums import WIDE
from evenflow.aggregates.size_limits import Room
from evenflow.errors import ConfigError
from evenflow.grammar.aggregate_spec import AggregateSpec
from evenflow.grammar.arrow_types import ARROW_TYPES, arrow_type
from evenflow.grammar.column_types import ANY_VALUE, ColumnType, decimal_scale

ROWS = "rows"
"""Name of the hidden partial of every plan: the number of tuples. A key with 0 tuples has left the window."""

NUMBERS = ("int64", "float64", "decimal(S)")
ANYTHING = (*ARROW_TYPES, "decimal(S)")
"""Every type that a column may have."""

Reduction = Callable[[pa.Array | None, Grouping], pa.Array]
"""(a column, its groups) -> one row per group, in group order.

Reductions that do the same compare equal, so that aggregates can share a partial column.
"""


class Exact(NamedTuple):
    """What an oracle says of the values of a key in a window."""

    value: Any
    """The result, null if there is none or if it does not fit."""
    tolerance: float
    """How far another result may be from it, 0 for results that are no numbers."""
    fits: bool
    """Whether the type and the room hold it."""


def stored(type_: pa.DataType) -> pa.DataType:
    """Type of such a value in partials.
    The texts of a window may have more than the 2 GiB that `string` holds.
    """
    return pa.large_string() if pa.types.is_string(type_) else type_


@dataclass(frozen=True, kw_only=True)
class PartialColumn:
    """One column of a partial table.

    If several aggregates of a query have equal partial columns, the column is computed once.
    """

    name: str
    """Name of the column in the partial table."""
    type: pa.DataType
    """Arrow type of the column."""
    source: str | None
    """The value column that `combine` reads. None: the row itself."""
    combine: str | Reduction
    """The reduction, or the name of one (reductions.py), that makes the column from rows."""
    merge: str | Reduction
    """The reduction, or the name of one, that makes the column from partials."""
    timed: bool = False
    """Whether `combine` gets structs of the event time (`time`, ms) and the `value`."""
    invertible: bool = False
    """Whether subtracting a partial that was added before gives back exactly what was there. `merge` must
    then be a reduction that `subtract_column` knows."""
    shares_state: bool = False
    """Whether the column holds sets or counters. Such columns share `query.max_state_bytes`."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """What an aggregate is called with."""

    column: str = ""
    """The value column, "" for none."""
    type: pa.DataType = pa.int64()  # noqa: RUF009 - Arrow's types are immutable
    """The column's Arrow type in frames."""
    options: tuple[Any, ...] = ()
    """The options that are written after the column, as `Aggregate.read` made them."""
    room: Room = Room()  # noqa: RUF009 - a Room is frozen
    """What the partials and the result may take."""


@dataclass(frozen=True, kw_only=True)
class Documentation:
    """What docs/aggregates.md says of an aggregate: a text for each row of its table."""

    computes: str
    """What the result is."""
    nulls: str
    """What becomes of values that are null, and when the result is null."""
    bound: str
    """How far a result may be from the truth."""
    state: str
    """What a key takes in a window."""


Recomputation = Callable[[list[Any], Call], Exact]
"""(the values that are not null, by event time, those of one time in ascending order) -> the exact
result over them.
"""


def no_options(written: tuple[str, ...]) -> tuple[Any, ...]:
    """The options of an aggregate that takes none. Raises ValueError if some are written."""
    if written:
        raise ValueError("it takes no options")
    return ()


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """One aggregate function, by its name in `[query.aggregates]`."""

    name: str
    """The name that a query writes."""
    forms: tuple[str, ...]
    """How the aggregate may be written, where `column` stands for a column."""
    partials: Callable[[Call], tuple[PartialColumn, ...]]
    """The partial columns of a call."""
    result_type: Callable[[Call], pa.DataType]
    """The Arrow type of a call's result."""
    finish: Callable[[pa.Table, Call], pa.Array]
    """The result of each row of a table that holds the partial columns. One that does not fit its type is
    null, never an error."""
    documentation: Documentation
    """Texts for docs/aggregates.md."""
    over: tuple[str, ...] = NUMBERS
    """The types of column that the aggregate takes."""
    read: Callable[[tuple[str, ...]], tuple[Any, ...]] = no_options
    """Makes values of the options that are written after the column.
    It raises ValueError for wrong options."""
    unfit: Callable[[pa.Table, Call], int] = lambda partials, call: 0
    """How many rows of the partials have a result that does not fit its type."""
    bound: Callable[[Call], str] | None = None
    """How far a result of this call may be from the truth, in words.
    None: `documentation.bound` holds for all calls.
    """
    oracle: Recomputation | None = None
    """Computes the value in one go. It is for aggregates that evenflow does not bring: `verify` has SQL
    for the others.
    """

    def bound_of(self, call: Call) -> str:
        """How far a result of this call may be from the truth, in words."""
        return self.documentation.bound if self.bound is None else self.bound(call)

    @property
    def takes_column(self) -> bool:
        """Whether the aggregate may be called with a column."""
        return any("(" in form for form in self.forms)

    def call(self, label: str, spec: AggregateSpec, column_type: ColumnType) -> Call:
        """The call that `label = spec` writes. Raises ConfigError if it cannot be computed as written."""
        subject = f"aggregate {label} = {str(spec)!r}"
        if spec.column is None:
            if self.name in self.forms:
                return Call()
            raise ConfigError(f"{subject} names no column", hint=f"write {self._forms()}")
        if not self.takes_column:
            raise ConfigError(
                f"{subject}: {self.name} takes no column, it is over tuples", hint=f"write {self._forms()}"
            )
        written = "decimal(S)" if decimal_scale(column_type) is not None else column_type
        # A column has values of any kind only if every aggregate of it takes them (`Query.any_columns`).
        if column_type != ANY_VALUE and written not in self.over:
            needs = "a number" if self.over == NUMBERS else f"one of {', '.join(self.over)}"
            raise ConfigError(
                f"{subject}: column {spec.column!r} is a {column_type}, but {self.name} needs {needs}",
                hint=f"declare it in [query.types] as one of: {', '.join(self.over)}",
            )
        try:
            options = self.read(spec.options)
        except ValueError as error:
            raise ConfigError(f"{subject}: {error}", hint=f"write {self._forms()}") from None
        return Call(column=spec.column, type=arrow_type(column_type), options=options)

    def _forms(self) -> str:
        return " or ".join(f"'{form}'" for form in self.forms)


ROWS_COLUMN = PartialColumn(
    name=ROWS, type=pa.int64(), source=None, combine="count_all", merge="sum_counts", invertible=True
)


def count_column(column: str) -> PartialColumn:
    """Partial column: how many values of this column are not null."""
    return PartialColumn(
        name=f"cnt_{column}",
        type=pa.int64(),
        source=column,
        combine="count",
        merge="sum_counts",
        invertible=True,
    )


def sum_column(column: str, type_: pa.DataType) -> PartialColumn:
    """Partial column: sum of the values that are not null, 0 if there are none.

    The sum of an int64 or decimal column has 128 bits and cannot overflow. Such a sum is exactly invertible.
    A sum of float64 is not, because it is rounded.
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
