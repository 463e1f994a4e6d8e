"""Infers the type of a column from what expressions do with it.
Used where [query.types] does not give the type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from evenflow.expressions.parser import Expression

_NUMBERS = exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Abs | exp.Floor | exp.Ceil | exp.Sqrt | exp.Neg
_TEXTS = (
    exp.Like
    | exp.StartsWith
    | exp.EndsWith
    | exp.Lower
    | exp.Upper
    | exp.Trim
    | exp.DPipe
    | exp.Replace
    | exp.Length
) | (exp.Substring | exp.Left)
_DATES = exp.Year | exp.Month | exp.Day | exp.Extract
_COMPARED = (
    exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE | exp.Between | exp.In | exp.Coalesce | exp.Nullif
)
_CONDITIONS = exp.And | exp.Or | exp.Not


def inferred(column: str, expressions: Iterable[Expression]) -> str | None:
    """The type of a column by its uses in these expressions.
    None if the uses tell no type, or different types.
    """
    types = {
        type_
        for expression in expressions
        for node in expression.tree.find_all(exp.Column)
        if node.name == column
        for type_ in _by_use(node)
    }
    # "float64" stands for any number here, and `%` asks for a whole one.
    if types == {"int64", "float64"}:
        return "int64"
    return types.pop() if len(types) == 1 else None


def only_compared_with_null(column: str, expressions: Iterable[Expression]) -> bool:
    """Whether these expressions ask of the column only whether it is null, which values of any kind
    answer.
    """
    return all(
        isinstance(_user(node), exp.Is)
        for expression in expressions
        for node in expression.tree.find_all(exp.Column)
        if node.name == column
    )


def _user(node: exp.Expr) -> exp.Expr | None:
    """The operator or function that this node is an operand of. None for a whole expression."""
    user = node.parent
    while isinstance(user, exp.Paren):
        user = user.parent
    return user


def _by_use(node: exp.Expression) -> Iterator[str]:
    """The types that one use of a column tells, by the operator or function that the column is an operand
    of.
    """
    user = _user(node)
    if isinstance(user, exp.Mod):
        yield "int64"
    elif isinstance(user, _NUMBERS):
        yield "float64"
    elif isinstance(user, _TEXTS):
        yield "string"
    elif isinstance(user, _DATES):
        yield "date"
    elif user is None or isinstance(user, _CONDITIONS):
        yield "bool"
    elif isinstance(user, _COMPARED):
        for beside in user.iter_expressions():
            yield from _like(beside)


def _like(node: exp.Expression) -> Iterator[str]:
    """The type of a column that is compared with this node. Nothing if the node does not tell."""
    if isinstance(node, exp.Neg | exp.Paren):
        yield from _like(node.this)
    elif isinstance(node, exp.Literal):
        yield "string" if node.is_string else "float64"
    elif isinstance(node, exp.Boolean):
        yield "bool"
    elif isinstance(node, _NUMBERS | exp.Mod | exp.Length | _DATES):
        yield "float64"
    elif isinstance(node, _TEXTS):
        yield "string"
    elif isinstance(node, exp.Cast) and node.args["to"].this == exp.DataType.Type.DATE:
        yield "date"
