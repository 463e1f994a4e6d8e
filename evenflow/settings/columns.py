"""The columns of a query: which the record must hold, which are derived from them, and the type of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenflow.expressions.checked import Expression, Typed


@dataclass(frozen=True)
class Columns:
    """read: type of each column of the record, in a fixed order. derived: by name, each behind those that it reads. where:
    the condition, None without one.
    """

    read: Mapping[str, str]
    derived: Mapping[str, Typed] = field(default_factory=dict)
    where: Typed | None = None

    def type_of(self, name: str) -> str:
        """Of a column that is read, or derived."""
        return self.derived[name].type if name in self.derived else self.read[name]


def resolved(
    texts: Mapping[str, str],
    where: str | None,
    uses: Mapping[str, Mapping[str, str]],
    types: Mapping[str, str],
) -> Columns:
    """The columns behind these expressions.

    texts: derived columns by name. where: the condition. uses: of other columns, what each is needed as, by what for. types:
    those that are declared. Raises ConfigError for an expression that is wrong, ValueError for one column in two uses, a
    cycle, and a column whose type nothing tells.
    """
    from evenflow.expressions.checked import condition, read, typed
    from evenflow.expressions.kinds import kind_of

    expressions = {name: read(text, f"columns.{name}") for name, text in texts.items()}
    chosen = None if where is None else read(where, "where")
    everything = [*expressions.values(), *([] if chosen is None else [chosen])]
    needed = {name: dict(needs) for name, needs in uses.items() if name not in texts}
    for expression in everything:
        for name in expression.columns:
            if name not in texts:
                _note(needed, name, expression, everything, types)
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


def _as_held(kind: Any) -> Any:
    """A derived column that another expression reads has passed through its own type."""
    from evenflow.expressions.kinds import kind_of, type_of

    return kind_of(type_of(kind)) if kind.name != "nothing" else kind


def _note(
    needed: dict[str, dict[str, str]],
    name: str,
    expression: Expression,
    everything: list[Expression],
    types: Mapping[str, str],
) -> None:
    """What an expression needs a column as: what is declared, or what it is needed as elsewhere, or what its use tells."""
    from evenflow.expressions.inferred import inferred

    type_ = types.get(name)
    if type_ is None and name in needed:
        return
    if type_ is None:
        type_ = inferred(name, everything)
    if type_ is None:
        raise ValueError(
            f"{expression.text!r} does not tell what column {name!r} holds: declare it in types, as in "
            f'types = {{ {name} = "float64" }}'
        )
    needed.setdefault(name, {})["an expression"] = type_


def one_type(column: str, needed: Mapping[str, str]) -> str:
    """The type that serves every use. ValueError where no value is both."""
    kinds = set(needed.values())
    if kinds == {"int64", "float64"} and needed.get("a number") == "float64":
        return "int64"  # a whole number can be aggregated as any other
    if len(kinds) > 1:
        told = " and ".join(f"{use} ({kind})" for use, kind in needed.items())
        raise ValueError(
            f"column {column!r} is needed as {told}, which no value is both: declare its type in types (of the key and of "
            "aggregated columns; time_unit says what the time is), or take another column"
        )
    return kinds.pop()


def _in_order(derived: Mapping[str, Expression]) -> list[str]:
    """The names of derived columns, each behind those that it reads. ValueError names a cycle."""
    order: list[str] = []
    waiting: list[str] = []

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
