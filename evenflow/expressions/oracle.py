"""The same expressions as SQL for DuckDB: what `evenflow verify` compares with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from evenflow.expressions.checked import DIALECT, Typed, from_below, is_place, kind_at
from evenflow.expressions.kinds import DECIMAL_DIGITS
from evenflow.settings.query import decimal_scale

if TYPE_CHECKING:
    import duckdb


def opened(db: duckdb.DuckDBPyConnection) -> None:
    """Give the connection what expressions need: letters of every alphabet become large and small as Unicode has it."""
    from duckdb.func import FunctionNullHandling

    for name, change in (("lower", str.lower), ("upper", str.upper)):
        own = f"evenflow_{name}"
        db.create_function(
            own, _null_safe(change), ["VARCHAR"], "VARCHAR", null_handling=FunctionNullHandling.SPECIAL
        )
        db.execute(f"CREATE OR REPLACE TEMP MACRO {name}(x) AS {own}(x)")


def _null_safe(change: Any) -> Any:
    return lambda text: None if text is None else change(text)


def derived_sql(expression: Typed) -> tuple[str, str]:
    """SQL of the value, null where it does not fit its type, and of whether it fits."""
    # A list of one keeps null apart from what cannot be computed.
    value = f"(TRY([({rewritten(expression)})]))[1]"
    narrow = narrowed_sql(value, expression.type)
    return narrow, f"(({value}) IS NULL OR ({narrow}) IS NOT NULL)"


def narrowed_sql(value: str, type_: str) -> str:
    """SQL of the value as a column of this type holds it. Null where it does not."""
    scale = decimal_scale(type_)
    if type_ == "int64":
        return f"TRY_CAST({value} AS BIGINT)"
    if type_ == "float64":
        return f"CASE WHEN isfinite({value}::DOUBLE) THEN {value}::DOUBLE END"
    return value if scale is None else f"TRY_CAST({value} AS DECIMAL({DECIMAL_DIGITS}, {scale}))"


def rewritten(expression: Typed) -> str:
    """The text with names in quotes, exact numbers held with all their digits, and null for what is taken modulo 0."""
    tree = from_below(expression.tree.copy(), _rewritten)
    return str(tree.sql(dialect=DIALECT, identify=True))


def _rewritten(node: exp.Expression) -> exp.Expression:
    kind = kind_at(node)
    if isinstance(node, exp.Trim):
        # Left to itself, DuckDB takes every space separator of Unicode away.
        node = exp.Anonymous(this="trim", expressions=[node.this.copy(), exp.Literal.string(" ")])
    elif isinstance(node, exp.Mod):
        # DuckDB stops here.
        divisor = exp.func("nullif", node.expression.copy(), exp.Literal.number(0))
        node = exp.Mod(this=node.this.copy(), expression=divisor)
    if kind is not None and kind.exact and not is_place(node):
        # Where DuckDB brings two scales together it cuts off what is beyond 38 digits: it is told how few there are.
        digits = max(len(str(kind.most)), kind.scale, 1)
        return exp.Cast(
            this=node.copy(), to=exp.DataType.build(f"DECIMAL({digits}, {kind.scale})", dialect=DIALECT)
        )
    return node
