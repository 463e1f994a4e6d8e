"""Expressions over records that are taken apart: which can be computed once a record,
and which need each element.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from sqlglot import exp

from evenflow.expressions.columns import Columns
from evenflow.expressions.parser import TypedExpression


def record_and_element_columns(columns: Columns, elements: Container[str]) -> tuple[Columns, Columns]:
    """(what reads the record alone, what reads something of an element). elements: the columns of an element.

    A derived column of the first kind counts as a column that is read in the second. A condition is cut at
    its outermost ANDs. The tuples for which it is true are those for which both parts are.
    """
    inner: dict[str, TypedExpression] = {}
    outer: dict[str, TypedExpression] = {}
    own = columns.looked_up if columns.each else {}
    for name, derived in columns.derived.items():
        of_element = any(read in elements or read in own or read in inner for read in derived.columns)
        (inner if of_element else outer)[name] = derived
    parts: tuple[list[exp.Expression], list[exp.Expression]] = [], []
    if columns.where is not None:
        for part in _conjuncts(columns.where.tree):
            parts[any(name in elements or name in own or name in inner for name in _names(part))].append(part)
    read = {name: type_ for name, type_ in columns.read.items() if name not in elements}
    inner_read = {**columns.read, **{name: derived.type for name, derived in outer.items()}}
    wheres = [_together(columns.where, some) for some in parts]
    looked_up = columns.looked_up
    return Columns(read, outer, wheres[0], looked_up), Columns(inner_read, inner, wheres[1], looked_up)


def _conjuncts(tree: exp.Expression) -> Iterator[exp.Expression]:
    if isinstance(tree, exp.Paren):
        yield from _conjuncts(tree.this)
    elif isinstance(tree, exp.And):
        yield from _conjuncts(tree.this)
        yield from _conjuncts(tree.expression)
    else:
        yield tree


def _names(tree: exp.Expression) -> list[str]:
    return list(dict.fromkeys(node.name for node in tree.find_all(exp.Column)))


def _together(where: TypedExpression | None, parts: list[exp.Expression]) -> TypedExpression | None:
    """The condition that all these parts of `where` are true. None if there are none."""
    if where is None or not parts:
        return None
    tree = parts[0].copy()
    for part in parts[1:]:
        tree = exp.And(this=tree, expression=exp.Paren(this=part.copy()))
    return TypedExpression(where.text, tuple(_names(tree)), tree, where.kind)
