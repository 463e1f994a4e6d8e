"""Result columns that are expressions over other result columns: `ratio = "= total / n"`.

Such a column has no partials: it is computed of the results of its row, when these come out. So it is right
for any routing if they are. The language is that of derived columns (`evenflow.expressions`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Aggregate, Call, Documentation
from evenflow.errors import ConfigError
from evenflow.expressions.columns import Columns, resolved
from evenflow.grammar.aggregate_spec import EXPRESSION
from evenflow.grammar.arrow_types import ARROW_TYPES, arrow_type
from evenflow.grammar.column_types import MOST_SCALE, ColumnType
from evenflow.numeric.arrays import Bools, one_chunk
from evenflow.text.spelling import did_you_mean

if TYPE_CHECKING:
    from evenflow.expressions.engine import Engine
    from evenflow.expressions.parser import TypedExpression

_NAME = "evenflow result"
"""The name of the derived column that an expression is for its engine. No result column that is read has
it.
"""


class Output(NamedTuple):
    """A result column."""

    label: str
    """Name of the column."""
    aggregate: Aggregate
    """What computes the column."""
    call: Call
    """What the aggregate is called with."""


@dataclass(frozen=True, kw_only=True)
class ResultExpression:
    """An expression over result columns."""

    reads: tuple[Output, ...]
    """The result columns that the expression reads, in order of appearance."""
    columns: Columns
    """The expression with its types."""

    @property
    def typed(self) -> TypedExpression:
        """The expression with the types of what it reads."""
        return self.columns.derived[_NAME]

    @cached_property
    def _engine(self) -> Engine:
        # Made when the first rows are computed: settings load without Polars.
        from evenflow.expressions.engine import Engine

        return Engine(self.columns)

    def values(self, partials: pa.Table) -> tuple[pa.Array, Bools]:
        """The value of each row of partials, null where it does not fit its type,
        and where that is so. Shape (rows,).
        """
        rows = partials.num_rows
        if not rows:
            return pa.nulls(0, arrow_type(self.typed.type)), np.zeros(0, np.bool_)
        columns = {
            label: _single_chunk(function.finish(partials, call)) for label, function, call in self.reads
        }
        results, wrong, _ = self._engine.compute(columns, rows)
        return results[_NAME], wrong[_NAME]


def expressed(label: str, text: str, others: Mapping[str, Output]) -> Output:
    """The result column `label = "= text"`.
    others: the aggregates of the query by label, which the text may read.

    Raises ConfigError for a text that is no expression over these, or gives a text.
    """
    expression = _expression(label, text, others)
    return Output(label, _aggregate(expression), Call(options=(expression,)))


def condition(text: str, outputs: Sequence[Output]) -> ResultExpression:
    """The condition `having = text` over these result columns.
    Raises ConfigError for a text that is no such condition.
    """
    expression = _expression("having", text, {output.label: output for output in outputs})
    if expression.typed.kind.name != "truth":
        raise ConfigError(
            f"having = {text!r} is {expression.typed.kind.words}, but a condition is needed",
            hint="compare it with something",
        )
    return expression


def expression_of(output: Output) -> ResultExpression | None:
    """The expression that this result column is. None for an aggregate."""
    return output.call.options[0] if output.aggregate.name == EXPRESSION else None


def column_type(type_: pa.DataType) -> ColumnType | None:
    """The type of `[query.types]` whose values have this Arrow type.
    None if there is none: a list, or 38 digits.
    """
    plain = next((name for name, arrow in ARROW_TYPES.items() if arrow == type_), None)
    if plain is None and pa.types.is_decimal(type_) and 1 <= type_.scale <= MOST_SCALE:
        declared = f"decimal({type_.scale})"
        return declared if arrow_type(declared) == type_ else None
    return plain


def _expression(label: str, text: str, others: Mapping[str, Output]) -> ResultExpression:
    from evenflow.expressions.parser import read

    subject = label if label == "having" else f"aggregate {label}"
    names = read(text, subject).columns
    types: dict[str, str] = {}
    for name in names:
        if name not in others:
            known = ", ".join(others) or "there is none"
            raise ConfigError(
                f"{subject} = '= {text}' reads {name!r}, which is no aggregate beside"
                f" it{did_you_mean(name, others)}",
                hint=f"an expression over results reads aggregates of the same query or view: {known}",
            )
        _, function, call = others[name]
        result = function.result_type(call)
        type_ = column_type(result)
        if type_ is None:
            raise ConfigError(
                f"{subject} = '= {text}' reads {name!r}, a {result}, which no expression can read",
                hint=(
                    "declare the column of a sum as float64 or int64 in [query.types]"
                    if pa.types.is_decimal(result)
                    else "take an aggregate that gives one value"
                ),
            )
        types[name] = type_
    try:
        columns = resolved(
            {_NAME: text}, None, {name: {"a result": type_} for name, type_ in types.items()}, types
        )
    except ConfigError as error:
        raise ConfigError(error.message.replace(f"columns.{_NAME}", subject), hint=error.hint) from None
    except ValueError as error:
        raise ConfigError(f"{subject}: {error}") from None
    typed = columns.derived[_NAME]
    if typed.type == "string" or typed.kind.scale > MOST_SCALE:
        raise ConfigError(
            f"{subject} = '= {text}' gives {typed.kind.words}",
            hint=(
                f"an expression over results gives a number with up to {MOST_SCALE} digits behind the point,"
                " a date, or true or false"
            ),
        )
    return ResultExpression(reads=tuple(others[name] for name in names), columns=columns)


def _aggregate(expression: ResultExpression) -> Aggregate:
    unfit: Callable[[pa.Table, Call], int] = lambda partials, call: int(  # noqa: E731
        np.count_nonzero(expression.values(partials)[1])
    )
    return Aggregate(
        name=EXPRESSION,
        forms=(f"{EXPRESSION} expression",),
        partials=lambda call: (),
        result_type=lambda call: arrow_type(expression.typed.type),
        finish=lambda partials, call: expression.values(partials)[0],
        unfit=unfit,
        documentation=_DOCUMENTATION,
    )


def _single_chunk(column: Any) -> pa.Array:
    return one_chunk(column) if isinstance(column, pa.ChunkedArray) else column


_DOCUMENTATION = Documentation(
    computes="an expression over other result columns of the same row",
    nulls="as in SQL",
    bound="exact for what the row holds",
    state="none",
)
