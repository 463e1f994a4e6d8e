"""The expression that says what a tuple costs, with the columns that it reads.

A cost changes balance, never results. So columns that only the cost reads are kept apart from those of the query: what
such a column holds is no reason to reject a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenflow.errors import ConfigError
from evenflow.expressions.columns import Columns
from evenflow.grammar.column_types import ANY_VALUE

if TYPE_CHECKING:
    from evenflow.expressions.checked import Expression, Typed


@dataclass(frozen=True)
class Cost:
    """What a tuple costs.

    types: the type of each column that the expression reads. of_record, of_element: the columns among them that nothing
    else reads, by where they stand. each: whether the elements of a record can cost differently. False: the cost reads
    the record alone. repeated: texts of the record that the expression reads beside something of its elements.
    """

    expression: Typed
    types: Mapping[str, str]
    of_record: Mapping[str, str]
    of_element: Mapping[str, str]
    each: bool
    repeated: tuple[str, ...]

    @property
    def column(self) -> str | None:
        """The column whose values are the costs. None if they have to be computed."""
        from sqlglot import exp

        return self.expression.columns[0] if isinstance(self.expression.tree, exp.Column) else None


def cost_of(text: str, columns: Columns, within: Callable[[str], bool], what: str) -> Cost:
    """The cost that this text says. ConfigError if it is wrong, no number, or the same for all tuples.

    columns: of the query. within: whether a column of the record stands in an element of what is taken apart. what: name
    of the setting, for messages.
    """
    from evenflow.expressions.checked import read, typed
    from evenflow.expressions.kinds import kind_of

    expression = read(text, what)
    if not expression.columns:
        raise ConfigError(
            f"{what} = {text!r} reads no column, so all tuples would cost the same",
            hint="name a column, or leave it out",
        )
    own = {name: _number_or(name, expression) for name in expression.columns if not _known(columns, name)}
    types = {
        name: own[name] if name in own else _as_number(columns.type_of(name)) for name in expression.columns
    }
    found = typed(expression, lambda name: kind_of(types[name]), what)
    if not found.kind.number or found.kind.name == "nothing":
        raise ConfigError(
            f"{what} = {text!r} is {found.kind.words}, but a cost is a number",
            hint="name a column of numbers, or compute a number, such as length(...)",
        )
    inner = _of_elements(columns, within)
    outer = [name for name in types if name not in inner and not within(name)]
    each = len(outer) < len(types)
    return Cost(
        expression=found,
        types=types,
        of_record={name: type_ for name, type_ in own.items() if not within(name)},
        of_element={name: type_ for name, type_ in own.items() if within(name)},
        each=each,
        repeated=tuple(name for name in outer if each and types[name] == "string"),
    )


def _as_number(type_: str) -> str:
    """The type in an expression. Of a column of any value, an expression reads the numbers."""
    return "float64" if type_ == ANY_VALUE else type_


def _known(columns: Columns, name: str) -> bool:
    return name in columns.read or name in columns.derived


def _of_elements(columns: Columns, within: Callable[[str], bool]) -> set[str]:
    """The derived columns that read something of an element."""
    inner: set[str] = set()
    for name, derived in columns.derived.items():  # each stands after those that it reads
        if any(read in inner or (read not in columns.derived and within(read)) for read in derived.columns):
            inner.add(name)
    return inner


def _number_or(name: str, expression: Expression) -> str:
    """The type that the expression needs a column as. A column is a number if its uses tell no type."""
    from sqlglot import exp

    from evenflow.expressions.checked import Expression
    from evenflow.expressions.inferred import inferred

    # The expression as a whole is a number. So what stands at its top is the operand of an addition.
    zero = exp.Add(this=exp.Literal.number(0), expression=exp.Paren(this=expression.tree.copy()))
    return inferred(name, [Expression(expression.text, expression.columns, zero)]) or "float64"
