"""The columns of a query: those that the record must hold, those that are derived from them,
and the type of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from evenflow.grammar.column_types import ANY_VALUE
from evenflow.grammar.paths import toml_name

if TYPE_CHECKING:
    from evenflow.expressions.parser import Expression, TypedExpression

_Items: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Columns:
    """The columns of a query."""

    read: Mapping[str, str]
    """The type of each column that is read from the record, in a fixed order."""
    derived: Mapping[str, TypedExpression] = field(default_factory=dict)
    """The derived columns by name, each after the derived columns that it reads."""
    where: TypedExpression | None = None
    """The condition of the filter, None if there is none."""
    looked_up: Mapping[str, str] = field(default_factory=dict)
    """The type of each column that comes from a lookup file."""
    each: bool = False
    """Whether the elements of a record that is taken apart have such columns of their own,
    and not the record."""

    def type_of(self, name: str) -> str:
        """The type of a column that is read, looked up or derived. KeyError for any other."""
        return self.derived[name].type if name in self.derived else self.source_types[name]

    @property
    def source_types(self) -> Mapping[str, str]:
        """The type of each column that is there before any is derived:
        those of the record and of a lookup file.
        """
        return {**self.read, **self.looked_up} if self.looked_up else self.read

    def looked_up_in(self, columns: Mapping[str, str], *, each: bool) -> Columns:
        """These columns, of which those named here (with their types) come from a lookup file and not
        from the record.
        """
        if not columns:
            return self
        read = {name: type_ for name, type_ in self.read.items() if name not in columns}
        return replace(self, read=read, looked_up=columns, each=each)


def resolved(
    texts: Mapping[str, str],
    where: str | None,
    uses: Mapping[str, Mapping[str, str]],
    types: Mapping[str, str],
) -> Columns:
    """The columns that these expressions and the other uses of columns need.

    texts: the expression of each derived column, by name. where: the condition. uses: the types that the rest
    of the query needs a column as, for each column by use. types: the declared types.

    Raises ConfigError for an expression that is wrong. Raises ValueError for a column that is needed as two
    types, for derived columns that read each other in a cycle, and for a column whose type nothing tells.
    """
    key = (_items(texts), where, tuple((name, _items(kinds)) for name, kinds in uses.items()), _items(types))
    return _resolved(*key)


@lru_cache(maxsize=64)
def _resolved(
    texts: _Items, where: str | None, uses: tuple[tuple[str, _Items], ...], types: _Items
) -> Columns:
    """As `resolved`, of items. A query is asked for its columns many times,
    and its users copy the trees they change.
    """
    # Imported here, so that settings without expressions load without them.
    from evenflow.expressions.kinds import kind_of
    from evenflow.expressions.parser import condition, read, typed

    expressions = {name: read(text, f"columns.{name}") for name, text in texts}
    chosen = None if where is None else read(where, "where")
    everything = [*expressions.values(), *([] if chosen is None else [chosen])]
    needed = {name: dict(needs) for name, needs in uses if name not in expressions}
    for expression in everything:
        for name in expression.columns:
            if name not in expressions:
                _note(needed, name, expression, everything, dict(types))
    columns = {name: one_type(name, needs) for name, needs in needed.items()}
    derived: dict[str, Any] = {}

    def kind(name: str) -> Any:
        return derived[name].kind if name in derived else kind_of(columns[name])

    try:
        order = _in_order(expressions)
    except ValueError as cycle:
        raise ValueError(f"derived columns read each other in a circle: {cycle}") from None
    for name in order:
        derived[name] = typed(expressions[name], lambda column: _as_held(kind(column)), f"columns.{name}")
    condition_ = None if chosen is None else condition(chosen, lambda column: _as_held(kind(column)), "where")
    return Columns(columns, derived, condition_)


def _items(words: Mapping[str, str]) -> _Items:
    return tuple(words.items())


def _as_held(kind: Any) -> Any:
    """The kind of a column as another expression that reads it sees it.

    A derived column takes one of the column types first, and its kind is then the kind of this type.
    """
    from evenflow.expressions.kinds import kind_of, type_of

    return kind_of(type_of(kind)) if kind.name != "nothing" else kind


def _note(
    needed: dict[str, dict[str, str]],
    name: str,
    expression: Expression,
    everything: list[Expression],
    types: Mapping[str, str],
) -> None:
    """Add to `needed` the type that an expression needs a column as.

    The declared type counts first, then the type that the rest of the query needs, then what the column's
    uses in expressions tell. ValueError if none of them tells a type. A column of any value is a number to
    expressions, unless they only ask whether it is null.
    """
    from evenflow.expressions.inference import inferred, only_compared_with_null

    type_ = types.get(name)
    if type_ is None and name in needed:
        if set(needed[name].values()) == {ANY_VALUE} and not only_compared_with_null(name, everything):
            needed[name] = {"a number": "float64"}
        return
    if type_ is None:
        type_ = inferred(name, everything)
    if type_ is None:
        raise ValueError(
            f"{expression.text!r} does not tell what column {name!r} holds: declare it in types, as in "
            f'types = {{ {toml_name(name)} = "float64" }}'
        )
    needed.setdefault(name, {})["an expression"] = type_


def one_type(column: str, needed: Mapping[str, str]) -> str:
    """The type that serves every use of the column. needed: type by use.
    ValueError if no type serves all uses.
    """
    kinds = set(needed.values())
    if kinds == {"int64", "float64"} and needed.get("a number") == "float64":
        # An aggregate asks for float64 unless a type is declared. A whole number can be aggregated as well.
        return "int64"
    if len(kinds) > 1:
        uses = " and ".join(f"{use} ({kind})" for use, kind in needed.items())
        raise ValueError(
            f"column {column!r} is needed as {uses}, which no value is both: declare its type in types (of"
            " the key and of aggregated columns; time_unit says what the time is), or take another column"
        )
    return kinds.pop()


def _in_order(derived: Mapping[str, Expression]) -> list[str]:
    """The names of the derived columns, each after those that it reads. ValueError names a cycle."""
    order: list[str] = []
    waiting: list[str] = []  # the path of the depth-first search: a name that comes up again closes a cycle

    def visit(name: str) -> None:
        if name in order:
            return
        if name in waiting:
            raise ValueError(" -> ".join([*waiting[waiting.index(name) :], name]))
        waiting.append(name)
        for read in derived[name].columns:
            if read in derived:
                visit(read)
        waiting.pop()
        order.append(name)

    for name in derived:
        visit(name)
    return order
