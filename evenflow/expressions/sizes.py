"""`size(items)` in an expression: the number of elements of a list, or of the parts of a text.

What is counted is written as `explode` writes it: `items`, `split(tags, ';')` or `words(text)`. In the tree
each size is a column of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from evenflow.expressions.kinds import Kind
from evenflow.expressions.rules import Unfit
from evenflow.grammar.explosion import Explosion

SAID = "size(items) of a list, size(split(tags, ';')) or size(words(text)) of a text"
"""The forms of a size in one line, for messages."""
SIZE = Kind("whole", 2**31)
"""What a size yields. A block of records has less than 2 GiB, so no list in it has more elements."""
_COUNTED = "counted"


def is_size(node: exp.Expression) -> bool:
    """Whether the node calls the function `size`."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "size"


def near(node: exp.Expression) -> str:
    """What to write instead of a function that is none of the language, but has to do with sizes.
    Empty for others.
    """
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, exp.ArraySize) or name in ("cardinality", "list_size"):
        return " (did you mean size?)"
    return " but in size(...)" if isinstance(node, exp.Split) or name == "words" else ""


def as_column(node: exp.Expression) -> exp.Expression:
    """A call of `size` as the column that holds the sizes. Any other node as it is. Unfit if nothing of this
    form can be counted.
    """
    if not is_size(node):
        return node
    counted = _counted(node.expressions)
    if counted is None:
        raise Unfit(f"{node.sql(dialect='duckdb')!s:.60} counts nothing: write {SAID}")
    column = exp.column(f"size({counted})", quoted=True)
    column.meta[_COUNTED] = counted
    return column


def sizes_in(tree: exp.Expression) -> dict[str, Explosion]:
    """What the sizes in this tree count, by the names of their columns."""
    columns = tree.find_all(exp.Column)
    return {node.name: node.meta[_COUNTED] for node in columns if _COUNTED in node.meta}


def _counted(operands: Sequence[Any]) -> Explosion | None:
    """What a call of `size` with these operands counts. None if that cannot be counted."""
    if len(operands) != 1:
        return None
    (operand,) = operands
    if _is_plain(operand):
        return Explosion(operand.name)
    if isinstance(operand, exp.Split) and _is_plain(operand.this) and operand.args.get("limit") is None:
        separator = operand.expression
        if isinstance(separator, exp.Literal) and separator.is_string and separator.this:
            return Explosion(operand.this.name, "split", str(separator.this))
    if isinstance(operand, exp.Anonymous) and operand.name.lower() == "words":
        parts = operand.expressions
        if len(parts) == 1 and _is_plain(parts[0]):
            return Explosion(parts[0].name, "words")
    return None


def _is_plain(node: Any) -> bool:
    """Whether the node is a column, and not a size."""
    return (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier) and _COUNTED not in node.meta
    )
