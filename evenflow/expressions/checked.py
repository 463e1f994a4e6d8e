"""A text that a user wrote, read and typed. Everything that is wrong with it is said before a topic is touched."""

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
from evenflow.settings import paths

DIALECT = "duckdb"
_MOST_NODES, _DEEPEST = 500, 80
_NAMES = exp.Column | exp.Identifier | exp.DataType | exp.Var
ColumnKind = Callable[[str], Kind]


@dataclass(frozen=True)
class Expression:
    """text: as it was written. columns: names that it reads, in order of appearance. tree: sqlglot's."""

    text: str
    columns: tuple[str, ...]
    tree: exp.Expression


@dataclass(frozen=True)
class Typed:
    """An expression whose columns are known. tree: each node has its kind in `meta`, see `kind_at`."""

    text: str
    columns: tuple[str, ...]
    tree: exp.Expression
    kind: Kind

    @property
    def type(self) -> str:
        """Of a column that holds its values. Text for nothing but nulls."""
        return "string" if self.kind == NOTHING else type_of(self.kind)


def kind_at(node: exp.Expression) -> Kind | None:
    """What a node of a typed tree, or of a copy of one, yields. None for one that was put in later."""
    return node.meta.get("kind")


@lru_cache(maxsize=256)
def read(text: str, what: str) -> Expression:
    """The expression that stands in `text`. what: the setting, for messages. ConfigError says what is wrong with it."""
    try:
        trees = sqlglot.parse(text, read=DIALECT)
    except SqlglotError as error:
        raise ConfigError(f"{what} = {text!r} is no SQL expression{_place(error)}", hint=_HINT) from None
    except RecursionError:
        raise ConfigError(f"{what} is nested too deeply", hint=_HINT) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
        raise ConfigError(f"{what} = {text!r} is not one SQL expression", hint=_HINT)
    tree = from_below(trees[0], _column)
    nodes: list[Any] = list(tree.walk())
    if len(nodes) > _MOST_NODES:
        raise ConfigError(f"{what} has {len(nodes)} parts, more than {_MOST_NODES}")
    if max(node.depth for node in nodes) > _DEEPEST:
        raise ConfigError(f"{what} is nested too deeply", hint=_HINT)
    for node in nodes:
        if not isinstance(node, _NAMES | exp.Case | exp.If) and type(node) not in RULES:
            raise ConfigError(
                f"{what} = {text!r}: {_shown(node)} is not in the language{_nearest(node)}", hint=_HINT
            )
        if isinstance(node, exp.Null) and not _may_be_null(node):
            raise ConfigError(f"{what} = {text!r}: ask for null with IS NULL or IS NOT NULL", hint=_HINT)
    columns = dict.fromkeys(node.name for node in nodes if isinstance(node, exp.Column))
    return Expression(text, tuple(columns), tree)


def typed(expression: Expression, column: ColumnKind, what: str) -> Typed:
    """The expression over these columns. column: what each of them holds. ConfigError where something does not fit."""
    tree = expression.tree.copy()
    try:
        kind = _kind(tree, column)
    except Unfit as error:
        raise ConfigError(f"{what} = {expression.text!r}: {error}", hint=_HINT) from None
    return Typed(expression.text, expression.columns, tree, kind)


def condition(expression: Expression, column: ColumnKind, what: str) -> Typed:
    """As `typed`. ConfigError too for what is neither true nor false."""
    found = typed(expression, column, what)
    if found.kind != TRUTH:
        raise ConfigError(
            f"{what} = {expression.text!r} is {found.kind.words}, but a condition is needed",
            hint="compare it with something",
        )
    return found


def is_place(node: exp.Expression) -> bool:
    """Whether this is the number of a letter, and not one that is computed with."""
    return isinstance(node, exp.Literal) and isinstance(node.parent, exp.Substring | exp.Left)


def from_below(node: exp.Expression, change: Callable[[exp.Expression], exp.Expression]) -> exp.Expression:
    """The tree with every node changed, each after what is below it. The tree that is given is used up."""
    for child in list(node.iter_expressions()):
        child.replace(from_below(child, change))
    return change(node)


_HINT = f"an expression may hold columns, numbers, 'text' and: {SAID}"


def _may_be_null(node: exp.Null) -> bool:
    """NULL is asked for, or is what a CASE yields: elsewhere an engine may not know what type it has."""
    user = node.parent
    if isinstance(user, exp.If):
        return node is not user.this
    return isinstance(user, exp.Is) or (isinstance(user, exp.Case) and node is user.args.get("default"))


def _place(error: SqlglotError) -> str:
    """Where sqlglot stopped."""
    told = getattr(error, "errors", None) or [{}]
    column, near = told[0].get("col"), told[0].get("highlight")
    return f" (column {column}{f', at {near!r}' if near else ''})" if column else ""


def _column(node: exp.Expression) -> exp.Expression:
    """A name, be it the path of a field within others, as one column of that name."""
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
    """The kind of a node, which is noted at it, and at all below it."""
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
    """What an operator or function is applied to. A type or the part of a date is none of it."""
    for key, value in node.args.items():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expression) and not isinstance(child, exp.DataType | exp.Var):
                if key == "this" and isinstance(node, exp.Extract):
                    continue
                yield child


def _case(node: exp.Expression, column: ColumnKind) -> Kind:
    """CASE with conditions: they are true or false, and all results are of one kind."""
    if isinstance(node, exp.Case) and node.this is not None:
        raise Unfit(f"{_shown(node)}: write CASE WHEN column = value THEN ...")
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


def _nearest(node: exp.Expression) -> str:
    """A name that may have been meant, for a function that nobody knows."""
    names = [word.strip(",") for word in SAID.split() if word.strip(",").isidentifier()]
    near = difflib.get_close_matches(str(node.name or type(node).__name__).lower(), names, n=1)
    return f" (did you mean {near[0]}?)" if near and isinstance(node, exp.Anonymous) else ""
