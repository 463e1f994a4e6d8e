"""The expression that says what a tuple costs, with the columns that it reads.

A cost changes balance, never results. So columns that only the cost reads are kept apart from those of the
query: what such a column holds is no reason to reject a record. For the same reason a cost may count the
elements of a list, which no other expression can: nobody has to find the same number again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenflow.errors import ConfigError
from evenflow.expressions.columns import Columns
from evenflow.grammar.column_types import ANY_VALUE
from evenflow.grammar.explosion import Explosion

if TYPE_CHECKING:
    from evenflow.expressions.parser import Expression, TypedExpression


@dataclass(frozen=True)
class ElementCount:
    """A number of elements that an expression reads."""

    source: Explosion
    """What is taken apart, and how."""
    each: bool
    """Whether it lies in the elements of a record that is itself taken apart."""


@dataclass(frozen=True)
class Cost:
    """What a tuple costs."""

    expression: TypedExpression
    """How the cost is computed."""
    types: Mapping[str, str]
    """The type of each column that the expression reads."""
    of_record: Mapping[str, str]
    """Columns of the record that nothing but the cost reads. A list that is counted has the type `list`."""
    of_element: Mapping[str, str]
    """Columns of an element that nothing but the cost reads, likewise."""
    each: bool
    """Whether the elements of a record can cost differently. False: the cost reads the record alone."""
    repeated: tuple[str, ...]
    """Texts of the record that the expression reads beside something of its elements."""
    sizes: Mapping[str, ElementCount]
    """Those of the columns in `types` that hold numbers of elements, and no column of a record."""

    @property
    def column(self) -> str | None:
        """The column whose values are the costs. None if they have to be computed."""
        from sqlglot import exp

        return self.expression.columns[0] if isinstance(self.expression.tree, exp.Column) else None

    @property
    def read(self) -> list[str]:
        """The columns of the record, the elements and the query that the cost reads or counts."""
        names = (self.sizes[name].source.column if name in self.sizes else name for name in self.types)
        return list(dict.fromkeys(names))


def cost_of(text: str, columns: Columns, explosion: Explosion | None, setting: str) -> Cost:
    """The cost that this text says. ConfigError if it is wrong, no number, or the same for all tuples.

    columns: of the query. explosion: what the query takes apart. setting: its name, for messages.
    """
    from evenflow.expressions.kinds import kind_of
    from evenflow.expressions.parser import read, typed
    from evenflow.expressions.sizes import SIZE, sizes_in

    expression = read(text, setting, sizes=True)
    if not expression.columns:
        raise ConfigError(
            f"{setting} = {text!r} reads no column, so all tuples would cost the same",
            hint="name a column, or leave it out",
        )
    inner = _of_elements(columns, explosion)
    counted = sizes_in(expression.tree)
    # What `explode` itself says is the record's, and the same for each of its elements.
    sizes = {
        name: ElementCount(
            source, source != explosion and (source.column in inner or _within(explosion, source.column))
        )
        for name, source in counted.items()
    }
    plain = [name for name in expression.columns if name not in counted]
    own = {name: _number_or(name, expression) for name in plain if not _is_column(columns, name)}
    types = {
        name: "int64" if name in counted else own[name] if name in own else _as_number(columns.type_of(name))
        for name in expression.columns
    }
    cost = typed(expression, lambda name: SIZE if name in counted else kind_of(types[name]), setting)
    if not cost.kind.number or cost.kind.name == "nothing":
        raise ConfigError(
            f"{setting} = {text!r} is {cost.kind.words}, but a cost is a number",
            hint="name a column of numbers, or compute a number, such as length(...)",
        )
    for source in counted.values():
        if source != explosion:
            own |= _counted(source, columns, explosion, own, f"{setting} = {text!r}")
    outer = [name for name in plain if name not in inner and not _within(explosion, name)]
    each = len(outer) < len(plain) or any(size.each for size in sizes.values())
    return Cost(
        expression=cost,
        types=types,
        of_record={name: type_ for name, type_ in own.items() if not _within(explosion, name)},
        of_element={name: type_ for name, type_ in own.items() if _within(explosion, name)},
        each=each,
        repeated=tuple(name for name in outer if each and types[name] == "string"),
        sizes=sizes,
    )


def _as_number(type_: str) -> str:
    """The type in an expression. Of a column of any value, an expression reads the numbers."""
    return "float64" if type_ == ANY_VALUE else type_


def _is_column(columns: Columns, name: str) -> bool:
    return name in columns.source_types or name in columns.derived


def _within(explosion: Explosion | None, name: str) -> bool:
    """Whether a column of the record stands in an element of what is taken apart."""
    return explosion is not None and explosion.within(name) is not None


def _of_elements(columns: Columns, explosion: Explosion | None) -> set[str]:
    """The derived and looked-up columns that come of an element."""
    inner: set[str] = set(columns.looked_up if columns.each else ())
    for name, derived in columns.derived.items():  # each stands after those that it reads
        if any(
            read in inner or (read not in columns.derived and _within(explosion, read))
            for read in derived.columns
        ):
            inner.add(name)
    return inner


def _counted(
    source: Explosion, columns: Columns, explosion: Explosion | None, own: Mapping[str, str], named: str
) -> dict[str, str]:
    """The column that has to be read to count this, with its type. Empty if the query has it.

    own: columns that only the cost reads, with their types. named: the setting, for messages. ConfigError if
    the column is needed as something else.
    """
    name, type_ = source.column, "list" if source.way == "list" else "string"
    hint = f"write size(split({name}, ';')) or size(words({name})) to count the parts of a text"
    if type_ == "list" and explosion is not None and explosion.way != "list" and _within(explosion, name):
        raise ConfigError(
            f"{named} counts the list {name!r}, but explode = {str(explosion)!r} makes texts", hint=hint
        )
    in_query = _is_column(columns, name)
    read = columns.type_of(name) if in_query else own.get(name, type_)
    if read != type_:
        whose = "the query" if in_query else "it also"
        noun = "the list" if type_ == "list" else "parts of the text"
        raise ConfigError(
            f"{named} counts {noun} {name!r}, but {whose} reads this column as {read}",
            hint=hint if read == "string" else "name another column",
        )
    return {} if in_query else {name: type_}


def _number_or(name: str, expression: Expression) -> str:
    """The type that the expression needs a column as. A column is a number if its uses tell no type."""
    from sqlglot import exp

    from evenflow.expressions.inference import inferred
    from evenflow.expressions.parser import Expression

    # The expression as a whole is a number. So what stands at its top is the operand of an addition.
    zero = exp.Add(this=exp.Literal.number(0), expression=exp.Paren(this=expression.tree.copy()))
    return inferred(name, [Expression(expression.text, expression.columns, zero)]) or "float64"
