"""How much longer an expression can make the texts that it reads, and how long it makes them at least."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from evenflow.expressions.columns import Columns
from evenflow.expressions.kinds import TEXT
from evenflow.expressions.parser import kind_at
from evenflow.limits import LOOKUP_TEXT_BYTES

if TYPE_CHECKING:
    import polars as pl

_CHANGED_CASE = 3
"""U+0390 has 2 bytes, and 6 in capitals. No character grows more."""
_NUMBER = 48
"""Bytes of a number or date as text."""
_CHARACTER = 4
"""Most bytes of a character, and so how many times shorter another case can be at most."""


class Growth(NamedTuple):
    """A bound for the bytes of a text."""

    factor: int = 1
    """At most so many times the bytes of what is read, and `added` more."""
    added: int = 0
    """Bytes besides, however little is read."""

    def __add__(self, other: object) -> Growth:
        assert isinstance(other, Growth)
        return Growth(self.factor + other.factor, self.added + other.added)

    def __mul__(self, times: object) -> Growth:
        assert isinstance(times, int)
        return Growth(self.factor * times, self.added * times)


def growths(columns: Columns) -> dict[str, Growth]:
    """The growth of each column that is text and is derived or comes from a lookup file, by name."""
    growth_by_name = {
        name: Growth(0, LOOKUP_TEXT_BYTES) for name, type_ in columns.looked_up.items() if type_ == "string"
    }
    for name, derived in columns.derived.items():
        growth = _growth(derived.tree, growth_by_name)
        if derived.type == "string":
            growth_by_name[name] = growth
    return growth_by_name


def _growth(node: exp.Expression, derived: Mapping[str, Growth]) -> Growth:
    if isinstance(node, exp.Column):
        return derived.get(node.name, Growth()) if kind_at(node) == TEXT else Growth(0, _NUMBER)
    if isinstance(node, exp.Literal):
        return Growth(0, len(str(node.this).encode()))
    inner = [
        _growth(child, derived) for child in node.iter_expressions() if isinstance(child, exp.Expression)
    ]
    if isinstance(node, exp.DPipe):
        return sum(inner, Growth(0, 0))
    widest = Growth(
        max((growth.factor for growth in inner), default=0),
        max((growth.added for growth in inner), default=0),
    )
    if isinstance(node, exp.Lower | exp.Upper):
        return widest * _CHANGED_CASE
    if isinstance(node, exp.Replace):
        old, new = (len(str(node.args[part].this).encode()) for part in ("expression", "replacement"))
        return widest * max(1, -(-new // old))
    return widest


def least_bytes(node: exp.Expression) -> pl.Expr | None:
    """A number of bytes that the text which this node yields has at least, for each row. It is found without
    making the text, and is null exactly where the text is null.

    None if only the text itself tells where it is null.
    """
    import polars  # not at the top of the file: polars is an optional dependency

    node = _bare(node)
    if isinstance(node, exp.Column):
        return polars.col(node.name).str.len_bytes().cast(polars.Int64) if kind_at(node) == TEXT else None
    if isinstance(node, exp.Literal) and node.is_string:
        return polars.lit(len(str(node.this).encode()), polars.Int64)
    if isinstance(node, exp.DPipe):
        parts = least_bytes(node.this), least_bytes(node.expression)
        return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]
    if not isinstance(node, exp.Lower | exp.Upper | exp.Replace | exp.Trim):
        return None
    inner, least = _bare(node.this), least_bytes(node.this)
    if least is None:
        return None
    if isinstance(node, exp.Lower | exp.Upper):
        return least // _CHARACTER
    if isinstance(node, exp.Replace):
        old, new = (str(node.args[part].this) for part in ("expression", "replacement"))
        longer = len(new.encode()) - len(old.encode())
        if isinstance(inner, exp.Column):
            times = polars.col(inner.name).str.count_matches(old, literal=True).cast(polars.Int64)
            return least + times * longer
        if longer >= 0:
            return least
    return least * 0


def _bare(node: exp.Expression) -> exp.Expression:
    """The node without parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
