"""The same expressions as SQL for DuckDB. `evenflow verify` compares results with what DuckDB computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from evenflow.expressions.kinds import DECIMAL_DIGITS
from evenflow.expressions.parser import DIALECT, TypedExpression, from_below, is_place, kind_at
from evenflow.grammar.column_types import decimal_scale
from evenflow.limits import DERIVED_BYTES

if TYPE_CHECKING:
    import duckdb


def opened(db: duckdb.DuckDBPyConnection) -> None:
    """Prepare a connection for expressions: `lower` and `upper` change the letters of every alphabet
    by Unicode's rules.
    """
    from duckdb.func import FunctionNullHandling

    for name, change in (("lower", str.lower), ("upper", str.upper)):
        own = f"evenflow_{name}"
        if db.execute("SELECT 1 FROM duckdb_functions() WHERE function_name = ?", [own]).fetchone():
            continue  # prepared before
        db.create_function(
            own, _null_safe(change), ["VARCHAR"], "VARCHAR", null_handling=FunctionNullHandling.SPECIAL
        )
        db.execute(f"CREATE OR REPLACE TEMP MACRO {name}(x) AS {own}(x)")


def _null_safe(change: Any) -> Any:
    return lambda text: None if text is None else change(text)


def derived_sql(expression: TypedExpression) -> tuple[str, str]:
    """(SQL of the value, which is null if it does not fit its type, SQL of whether it fits)."""
    # TRY gives null for a value that cannot be computed. Within a list of one, a value that is null stays
    # apart from that.
    value = f"(TRY([({rewritten(expression)})]))[1]"
    narrow = narrowed_sql(value, expression.type)
    return narrow, f"(({value}) IS NULL OR ({narrow}) IS NOT NULL)"


def renamed(
    expression: TypedExpression, names: Mapping[str, str], *, table: str | None = None
) -> TypedExpression:
    """The expression with each column under another name, and of this table. names: column -> its name."""
    tree = expression.tree.copy()

    def change(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column):
            return node
        column = exp.column(names[node.name], table=table, quoted=True)
        column.meta.update(node.meta)
        return column

    return replace(expression, tree=from_below(tree, change))


def narrowed_sql(value: str, type_: str) -> str:
    """SQL of the value as a column of this type holds it. It is null if it does not fit."""
    scale = decimal_scale(type_)
    if type_ == "int64":
        return f"TRY_CAST({value} AS BIGINT)"
    if type_ == "float64":
        return f"CASE WHEN isfinite({value}::DOUBLE) THEN {value}::DOUBLE END"
    if type_ == "string":
        return f"CASE WHEN strlen({value}::VARCHAR) <= {DERIVED_BYTES} THEN {value}::VARCHAR END"
    return value if scale is None else f"TRY_CAST({value} AS DECIMAL({DECIMAL_DIGITS}, {scale}))"


def rewritten(expression: TypedExpression) -> str:
    """The SQL that makes DuckDB compute what the text says in the language.

    Names are in quotes, exact numbers keep all of their digits, `%` by zero is null, and `trim` removes
    spaces only.
    """
    tree = from_below(expression.tree.copy(), _rewritten)
    return str(tree.sql(dialect=DIALECT, identify=True))


def _rewritten(node: exp.Expression) -> exp.Expression:
    kind = kind_at(node)
    if isinstance(node, exp.Trim):
        # Without this, DuckDB would remove every space separator of Unicode.
        node = exp.Anonymous(this="trim", expressions=[node.this.copy(), exp.Literal.string(" ")])
    elif isinstance(node, exp.Mod):
        # DuckDB would raise an error for `%` by zero.
        divisor = exp.func("nullif", node.expression.copy(), exp.Literal.number(0))
        node = exp.Mod(this=node.this.copy(), expression=divisor)
    if kind is not None and kind.exact and not is_place(node):
        # When DuckDB brings two scales together, it cuts off what is beyond 38 digits. So each number is cast
        # to the few digits that it can have.
        digits = max(len(str(kind.most)), kind.scale, 1)
        return exp.Cast(
            this=node.copy(), to=exp.DataType.build(f"DECIMAL({digits}, {kind.scale})", dialect=DIALECT)
        )
    return node
