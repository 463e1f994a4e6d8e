"""Computes expressions over the columns of a block, with Polars' SQL."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from evenflow.errors import ConfigError
from evenflow.expressions.growth import growths, least_bytes
from evenflow.expressions.kinds import DECIMAL_DIGITS, MOST_DIGITS
from evenflow.expressions.parser import DIALECT, TypedExpression, from_below, is_place, kind_at
from evenflow.grammar.arrow_types import arrow_type
from evenflow.grammar.column_types import decimal_scale
from evenflow.limits import DERIVED_BYTES
from evenflow.numeric.arrays import Bools, Float64s

if TYPE_CHECKING:
    import polars as pl

    from evenflow.expressions.columns import Columns

_ONE = "evenflow one"
"""Name of a column of 1.0, by which divisors are multiplied.

Polars multiplies by the rounded reciprocal of a divisor that is a constant, which gives other last digits. A
divisor that is multiplied by this column is no constant.
"""
_WHOLE = exp.DataType.build("HUGEINT", dialect=DIALECT)
_DOUBLE = exp.DataType.build("DOUBLE", dialect=DIALECT)


class Engine:
    """Computes the derived columns and the condition of a query for blocks of tuples.

    reads: names of the columns that the expressions need. Raises ConfigError for an expression that Polars
    cannot compute.
    """

    def __init__(self, columns: Columns) -> None:
        import polars  # not at the top of the file: polars is an optional dependency

        self._polars = polars
        self._types = columns.source_types
        self._derived = {
            name: (polars.sql_expr(rewritten(derived)), derived.type)
            for name, derived in columns.derived.items()
        }
        self._least = {
            name: (growth, least)
            for name, growth in growths(columns).items()
            if name in columns.derived and (least := least_bytes(columns.derived[name].tree)) is not None
        }
        self._where = None if columns.where is None else polars.sql_expr(rewritten(columns.where))
        read = [name for derived in columns.derived.values() for name in derived.columns]
        read += [] if columns.where is None else columns.where.columns
        self.reads = [name for name in columns.source_types if name in read]
        self._try()

    def _try(self) -> None:
        """Compute one row of nulls.
        So an expression that Polars cannot compute is refused before the first block.
        """
        nothing = {name: pa.nulls(1, arrow_type(self._types[name])) for name in self.reads}
        try:
            self.compute(nothing, 1)
        except self._polars.exceptions.PolarsError as error:
            raise ConfigError(f"an expression cannot be computed: {error}") from None

    def compute(
        self, columns: Mapping[str, pa.Array], rows: int
    ) -> tuple[dict[str, pa.Array], dict[str, Bools], Bools | None]:
        """(derived columns, where they do not fit, condition) of a block of `rows` tuples.

        columns: the columns of `reads`, by name. Derived columns are by name. A value that does not fit its
        type is null, and the second mapping says for each column which rows have such a value. The condition
        says for which tuples `where` is true, and is None without `where`.
        """
        frame = _frame(columns, self._types, rows)
        computed: dict[str, pa.Array] = {}
        wrong: dict[str, Bools] = {}
        longest = _longest(columns)
        for name, (expression, type_) in self._derived.items():
            long = self._too_long(frame, name, longest)
            some = frame if long is None else _without_texts(frame, long)
            computed[name], wrong[name] = _narrowed(_of_each(some, expression), type_)
            if long is not None:
                wrong[name] = wrong[name] | long.to_numpy()
            # A later derived column and the condition may read this one, as its type holds it.
            frame = frame.with_columns(_widened(name, computed[name], type_))
        if self._where is None:
            return computed, wrong, None
        return computed, wrong, _of_each(frame, self._where).fill_null(False).to_numpy()

    def _too_long(self, frame: pl.DataFrame, name: str, longest: int) -> pl.Series | None:
        """The rows of which it is known beforehand that this derived text is too long for a column. None if
        there are none.

        Such a text would take many times the memory of its record. longest: bytes of the longest text that
        is read.
        """
        if name not in self._least:
            return None
        growth, least = self._least[name]
        if growth.factor * longest + growth.added <= DERIVED_BYTES:  # as in almost every block
            return None
        long = _of_each(frame, least > DERIVED_BYTES).fill_null(False)
        return long if long.any() else None


class Numbers:
    """Computes one expression that yields numbers, for blocks of tuples.

    types: of the columns that the expression reads. setting: its name, for messages. Raises ConfigError for
    an expression that Polars cannot compute.
    """

    def __init__(self, expression: TypedExpression, types: Mapping[str, str], setting: str) -> None:
        import polars  # not at the top of the file: polars is an optional dependency

        self._types = {name: types[name] for name in expression.columns}
        self._expression = polars.sql_expr(rewritten(expression))
        try:
            self.compute({name: pa.nulls(1, arrow_type(type_)) for name, type_ in self._types.items()}, 1)
        except polars.exceptions.PolarsError as error:
            raise ConfigError(f"{setting} = {expression.text!r} cannot be computed: {error}") from None

    def compute(self, columns: Mapping[str, pa.Array], rows: int) -> Float64s:
        """The value for each of `rows` tuples, NaN where it is null. columns: by name. Shape (rows,)."""
        import polars

        value = _of_each(_frame(columns, self._types, rows), self._expression)
        numbers: Float64s = value.cast(polars.Float64).fill_null(float("nan")).to_numpy()
        return numbers


def _frame(columns: Mapping[str, pa.Array], types: Mapping[str, str], rows: int) -> pl.DataFrame:
    import polars

    series = [_widened(name, column, types[name]) for name, column in columns.items()]
    return polars.DataFrame([*series, polars.Series(_ONE, np.ones(rows))])


def _longest(columns: Mapping[str, pa.Array]) -> int:
    """Bytes of the longest text in these columns."""
    texts = [column for column in columns.values() if pa.types.is_string(column.type)]
    return max((pc.max(pc.binary_length(text)).as_py() or 0 for text in texts), default=0)


def _without_texts(frame: pl.DataFrame, rows: pl.Series) -> pl.DataFrame:
    """The frame, with null in place of every text of these rows."""
    import polars

    return frame.with_columns(
        polars.when(~rows).then(polars.col(name)).alias(name)
        for name, type_ in frame.schema.items()
        if type_ == polars.String
    )


def _widened(name: str, column: pa.Array, type_: str) -> pl.Series:
    """The column as Polars computes with it: whole numbers get 128 bits, and decimals get 38 digits."""
    import polars

    series: pl.Series = polars.Series(name, polars.from_arrow(column))
    if type_ == "int64":
        return series.cast(polars.Int128)
    scale = decimal_scale(type_)
    return series if scale is None else series.cast(polars.Decimal(MOST_DIGITS, scale))


def _of_each(frame: pl.DataFrame, expression: pl.Expr) -> pl.Series:
    """The value of the expression for every row.
    Polars gives a single value if the expression reads no column.
    """
    value = frame.select(expression.alias("value"))["value"]
    return value if len(value) == len(frame) else value.new_from_index(0, len(frame))


def _narrowed(value: pl.Series, type_: str) -> tuple[pa.Array, Bools]:
    """The values as a column of type `type_`, null where they do not fit, and which of them do not fit."""
    import polars

    scale = decimal_scale(type_)
    column = value
    if type_ == "int64":
        column = value.cast(polars.Int64, strict=False)
    elif type_ == "float64":
        column = value.cast(polars.Float64)
        # An infinite or undefined value makes the tuple unreadable.
        column = column.set(~column.is_finite(), None)
    elif scale is not None:
        # Polars computes with 38 digits, so values of more than 18 digits are taken out here.
        most = 10**DECIMAL_DIGITS
        wide = value.cast(polars.Decimal(MOST_DIGITS, scale))
        column = wide.set(wide.abs() >= Decimal(most).scaleb(-scale), None)
    elif type_ == "string" and value.dtype == polars.String:
        # An expression can make a text many times as long. Arrow's columns of text hold 2 GiB each.
        column = value.set(value.str.len_bytes() > DERIVED_BYTES, None)
    wrong: Bools = (column.is_null() & value.is_not_null()).to_numpy()
    return column.to_arrow().cast(arrow_type(type_)), wrong


def rewritten(expression: TypedExpression) -> str:
    """The SQL that makes Polars compute what the text says in the language.

    Whole numbers that stand in the text, or that functions yield, get 128 bits like those of columns. Both
    sides of a division become floating point. `trim` removes spaces only.
    """
    return str(from_below(expression.tree.copy(), _rewritten).sql(dialect=DIALECT, identify=True))


def _rewritten(node: exp.Expression) -> exp.Expression:
    if isinstance(node, exp.Div):
        unit = exp.column(_ONE, quoted=True)
        divisor = exp.Mul(this=exp.Paren(this=_cast(node.expression, _DOUBLE)), expression=unit)
        return exp.Div(this=_cast(node.this, _DOUBLE), expression=exp.Paren(this=divisor))
    # Columns have 128 bits already (`_widened`), and places in a text must stay plain numbers.
    kind = kind_at(node)
    if kind is not None and kind.name == "whole" and not isinstance(node, exp.Column) and not is_place(node):
        return _cast(node, _WHOLE)
    if isinstance(node, exp.Trim):
        space = exp.Literal.string(" ")
        return exp.Anonymous(
            this="rtrim",
            expressions=[exp.Anonymous(this="ltrim", expressions=[node.this.copy(), space]), space.copy()],
        )
    return node


def _cast(node: exp.Expression, to: exp.DataType) -> exp.Expression:
    return exp.Cast(this=node.copy(), to=to.copy())
