"""Reads, checks and types an expression that a user wrote. So every error is known before a topic is
touched.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from evenflow.errors import ConfigError
from evenflow.expressions.kinds import NOTHING, TRUTH, Kind, type_of
from evenflow.expressions.rules import RULES, SAID, Unfit, comparable
from evenflow.expressions.sizes import SAID as SAID_OF_SIZES
from evenflow.expressions.sizes import as_column, is_size, near
from evenflow.grammar import paths

DIALECT = "duckdb"
_MOST_NODES, _DEEPEST = 500, 80
"""Most nodes of an expression's tree, and its greatest depth."""
_NAMES = exp.Column | exp.Identifier | exp.DataType | exp.Var
ColumnKind = Callable[[str], Kind]


@dataclass(frozen=True)
class Expression:
    """An expression of the language whose columns have no types yet."""

    text: str
    """As the user wrote it."""
    columns: tuple[str, ...]
    """Names of the columns that it reads, in order of appearance."""
    tree: exp.Expression
    """The tree that sqlglot made of the text."""


@dataclass(frozen=True)
class TypedExpression:
    """An expression whose columns have types."""

    text: str
    """As the user wrote it."""
    columns: tuple[str, ...]
    """Names of the columns that it reads, in order of appearance."""
    tree: exp.Expression
    """The tree that sqlglot made of the text, where each node has its kind in `meta` (see `kind_at`)."""
    kind: Kind
    """What the expression yields."""

    @property
    def type(self) -> str:
        """Type of a column that holds the expression's values.
        'string' if the expression yields nothing but null.
        """
        return "string" if self.kind == NOTHING else type_of(self.kind)


def kind_at(node: exp.Expression) -> Kind | None:
    """What a node of a typed tree yields, or of a copy of such a tree. None for a node that was put in
    later.
    """
    return node.meta.get("kind")


@lru_cache(maxsize=256)
def read(text: str, setting: str, *, sizes: bool = False) -> Expression:
    """The expression in `text`. Raises ConfigError, which says what is wrong.

    setting: its name, for messages. sizes: whether it may count elements, as `size(items)` does (`sizes`).
    """
    hint = f"{_HINT}, {SAID_OF_SIZES}" if sizes else _HINT
    try:
        trees = sqlglot.parse(text, read=DIALECT)
        if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
            raise ConfigError(f"{setting} = {text!r} is not one SQL expression", hint=hint)
        tree = from_below(trees[0], _column)
        if sizes:
            tree = from_below(tree, as_column)
    except SqlglotError as error:
        raise ConfigError(f"{setting} = {text!r} is no SQL expression{_place(error)}", hint=hint) from None
    except Unfit as error:
        raise ConfigError(f"{setting} = {text!r}: {error}", hint=hint) from None
    except RecursionError:  # sqlglot's parser recurses, and so does `from_below`
        raise ConfigError(f"{setting} is nested too deeply", hint=hint) from None
    nodes: list[Any] = list(tree.walk())
    if len(nodes) > _MOST_NODES:
        raise ConfigError(f"{setting} has {len(nodes)} parts, more than {_MOST_NODES}")
    if max(node.depth for node in nodes) > _DEEPEST:
        raise ConfigError(f"{setting} is nested too deeply", hint=hint)
    for node in nodes:
        if not isinstance(node, _NAMES | exp.Case | exp.If) and type(node) not in RULES:
            raise ConfigError(
                f"{setting} = {text!r}: {_shown(node)} is not in the language{_nearest(node, sizes)}",
                hint=hint,
            )
        if isinstance(node, exp.Null) and not _may_be_null(node):
            raise ConfigError(f"{setting} = {text!r}: ask for null with IS NULL or IS NOT NULL", hint=hint)
    columns = dict.fromkeys(node.name for node in nodes if isinstance(node, exp.Column))
    return Expression(text, tuple(columns), tree)


def typed(expression: Expression, column: ColumnKind, setting: str) -> TypedExpression:
    """The expression with types. column: tells the kind of a column by its name. ConfigError if a type
    does not fit.
    """
    # `read` caches trees, and `_kind` writes into the tree.
    tree = expression.tree.copy()
    try:
        kind = _kind(tree, column)
    except Unfit as error:
        raise ConfigError(f"{setting} = {expression.text!r}: {error}", hint=_HINT) from None
    return TypedExpression(expression.text, expression.columns, tree, kind)


def condition(expression: Expression, column: ColumnKind, setting: str) -> TypedExpression:
    """As `typed`, for a condition. Raises ConfigError also if the expression is neither true nor false."""
    typed_condition = typed(expression, column, setting)
    if typed_condition.kind != TRUTH:
        raise ConfigError(
            f"{setting} = {expression.text!r} is {typed_condition.kind.words}, but a condition is needed",
            hint="compare it with something",
        )
    return typed_condition


def is_place(node: exp.Expression) -> bool:
    """Whether the node is a place or a length within a text, and not a number that is computed with."""
    return isinstance(node, exp.Literal) and isinstance(node.parent, exp.Substring | exp.Left)


def from_below(node: exp.Expression, change: Callable[[exp.Expression], exp.Expression]) -> exp.Expression:
    """The tree with `change` applied to every node, to children before their parents.
    The given tree is used up.
    """
    for child in list(node.iter_expressions()):
        child.replace(from_below(child, change))
    return change(node)


_HINT = f"an expression may hold columns, numbers, 'text' and: {SAID}"


def _may_be_null(node: exp.Null) -> bool:
    """Whether NULL may stand here: after IS, or as a result of CASE.
    Elsewhere an engine may not know its type.
    """
    user = node.parent
    if isinstance(user, exp.If):
        return node is not user.this  # not as the condition
    return isinstance(user, exp.Is) or (isinstance(user, exp.Case) and node is user.args.get("default"))


def _place(error: SqlglotError) -> str:
    """Where sqlglot stopped, in words. Empty if sqlglot does not tell."""
    errors = getattr(error, "errors", None) or [{}]
    column, near = errors[0].get("col"), errors[0].get("highlight")
    return f" (column {column}{f', at {near!r}' if near else ''})" if column else ""


def _column(node: exp.Expression) -> exp.Expression:
    """A name as one column. A path of fields (a.b.c), which sqlglot reads as table and column,
    becomes one column, too.
    """
    if (
        isinstance(node, exp.Dot)
        and isinstance(node.this, exp.Column)
        and isinstance(node.expression, exp.Identifier)
    ):
        return exp.column(f"{node.this.name}.{paths.written([node.expression.name])}", quoted=True)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
        name = paths.written(part.name for part in node.parts)
        return node if name == node.name else exp.column(name, quoted=True)
    return node


def _kind(node: exp.Expression, column: ColumnKind) -> Kind:
    """The kind of a node. Notes in `meta` the kind of this node and of every node below it."""
    kind = node.meta["kind"] = _kind_of(node, column)
    return kind


def _kind_of(node: exp.Expression, column: ColumnKind) -> Kind:
    if isinstance(node, exp.Column):
        return column(node.name)
    if isinstance(node, exp.Case | exp.If):
        return _case(node, column)
    rule, shown = RULES[type(node)], _shown(node)
    kinds = [_kind(child, column) for child in _children(node)]
    try:
        kind = rule(node, kinds)
    except Unfit as error:
        raise Unfit(f"{shown}: {error}") from None
    if not kind.fits:
        raise Unfit(f"{shown} can have more than 38 digits: CAST one of its numbers AS DOUBLE")
    return kind


def _children(node: exp.Expression) -> Iterator[exp.Expression]:
    """The operands of an operator or function. Types, and the name of a part of a date, are no operands."""
    for key, value in node.args.items():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expression) and not isinstance(child, exp.DataType | exp.Var):
                if key == "this" and isinstance(node, exp.Extract):
                    continue
                yield child


def _case(node: exp.Expression, column: ColumnKind) -> Kind:
    """The kind of a CASE. Each WHEN has a condition, and all results are of one kind. Raises Unfit
    otherwise.
    """
    if isinstance(node, exp.Case) and node.this is not None:
        raise Unfit(f"{_shown(node)}: write CASE WHEN column = value THEN ...")
    # sqlglot reads `if(a, b, c)` as a node of its own, which has the fields of one WHEN and keeps ELSE in
    # "false".
    parts = node.args["ifs"] if isinstance(node, exp.Case) else [node]
    otherwise = node.args.get("default" if isinstance(node, exp.Case) else "false")
    for part in parts:
        condition = _kind(part.this, column)
        if condition.name not in ("truth", "nothing"):
            raise Unfit(f"{_shown(node)}: WHEN takes a condition, not {condition.words}")
    results = [part.args["true"] for part in parts] + ([otherwise] if otherwise is not None else [])
    try:
        return comparable([_kind(result, column) for result in results])
    except Unfit as error:
        raise Unfit(f"{_shown(node)}: {error}") from None


def _shown(node: exp.Expression) -> str:
    text = str(node.sql(dialect=DIALECT))
    return text if len(text) <= 60 else text[:57] + "..."


def _nearest(node: exp.Expression, sizes: bool) -> str:
    """For a function that is not known, " (did you mean ...?)" with a name like it. Empty if there is none.

    sizes: as of `read`.
    """
    if is_size(node):
        return ", except in partitioner.cost"
    suggestion = near(node) if sizes else ""
    if suggestion:
        return suggestion
    # SAID is a text for people. Its words that are identifiers are the functions and keywords of the
    # language.
    names = [word.strip(",") for word in SAID.split() if word.strip(",").isidentifier()]
    names += ["size"] if sizes else []
    matches = difflib.get_close_matches(str(node.name or type(node).__name__).lower(), names, n=1)
    return f" (did you mean {matches[0]}?)" if matches and isinstance(node, exp.Anonymous) else ""
