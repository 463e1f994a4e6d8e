"""The table of the language: which nodes of sqlglot's tree may stand in an expression,
and what each accepts and yields.

A rule gets a node and the kinds of its operands. It returns the kind of the node, or raises Unfit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date

from sqlglot import exp

from evenflow.expressions.kinds import DATE, FLOAT, NOTHING, TEXT, TRUTH, Kind, Name

Rule = Callable[[exp.Expression, Sequence[Kind]], Kind]
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOST_LENGTH, _MOST_PLACE = 2**31, 1_000_000
"""Most characters of a text, and the largest place or length that an expression may name."""


_NO_NUMBER = (
    ". A record that holds text in a column of numbers is rejected before an expression is computed: no"
    " expression sees that text, and none turns it into a number. Write null there, which IS NOT NULL finds"
)


class Unfit(Exception):
    """An operator or function does not accept its operands. The text says why."""


def _numbers(kinds: Sequence[Kind]) -> None:
    for kind in kinds:
        if not kind.number:
            raise Unfit(f"it takes numbers, not {kind.words}")


def _all(operand: Kind) -> Callable[[Sequence[Kind]], None]:
    def check(kinds: Sequence[Kind]) -> None:
        for kind in kinds:
            if kind not in (operand, NOTHING):
                raise Unfit(f"it takes {operand.words}, not {kind.words}")

    return check


_texts, _truths, _dates = _all(TEXT), _all(TRUTH), _all(DATE)


def _exact(kinds: Sequence[Kind], most: Callable[[Sequence[int]], int], scale: int) -> Kind:
    """The kind of an exact number made of these.
    most: its bound, given the bounds of the operands at this scale.
    """
    # In units of 10^-scale: a number of a smaller scale grows by the missing digits.
    aligned = [kind.most * 10 ** (scale - kind.scale) for kind in kinds]
    return Kind("decimal" if any(kind.name == "decimal" for kind in kinds) else "whole", most(aligned), scale)


def _sum(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    _numbers(kinds)
    if any(not kind.exact for kind in kinds):
        return FLOAT
    return _exact(kinds, sum, max(kind.scale for kind in kinds))


def _product(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    _numbers(kinds)
    first, second = kinds
    if not (first.exact and second.exact):
        return FLOAT
    name: Name = "decimal" if "decimal" in (first.name, second.name) else "whole"
    return Kind(name, first.most * second.most, first.scale + second.scale)


def _quotient(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    _numbers(kinds)
    return FLOAT


def _rest(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    for kind in kinds:
        if kind.name not in ("whole", "nothing"):
            raise Unfit(f"it takes whole numbers, not {kind.words}")
    return Kind("whole", max(kind.most for kind in kinds))


def _same(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    _numbers(kinds)
    return kinds[0]


def _rounded(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    (kind,) = kinds
    if kind.name not in ("float", "nothing"):
        raise Unfit(f"it takes a floating-point number, not {kind.words}")
    return FLOAT


def _root(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    _numbers(kinds)
    return FLOAT


def comparable(kinds: Sequence[Kind]) -> Kind:
    """The kind as which values of these kinds can be compared or can replace each other. Raises Unfit if
    there is none.
    """
    value_kinds = [kind for kind in kinds if kind != NOTHING]
    if not value_kinds:
        return NOTHING
    if all(kind.number for kind in value_kinds):
        if any(kind == FLOAT for kind in value_kinds):
            return FLOAT
        return _exact(value_kinds, max, max(kind.scale for kind in value_kinds))
    if len({kind.name for kind in value_kinds}) > 1:
        mixed = "it mixes " + " and ".join(dict.fromkeys(kind.words for kind in value_kinds))
        raise Unfit(
            mixed + (_NO_NUMBER if TEXT in value_kinds and any(kind.number for kind in value_kinds) else "")
        )
    return value_kinds[0]


def _compared(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    comparable(kinds)
    return TRUTH


def _logical(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    _truths(kinds)
    return TRUTH


def _either(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    return comparable(kinds)


def _text_to(result: Kind) -> Rule:
    def rule(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
        _texts(kinds)
        return result

    return rule


def _part(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    _texts(kinds[:1])
    for number in [
        child for key, child in node.args.items() if key != "this" and isinstance(child, exp.Expression)
    ]:
        digits = str(number.this) if isinstance(number, exp.Literal) and not number.is_string else ""
        if not (digits.isdigit() and 1 <= int(digits) <= _MOST_PLACE):
            raise Unfit(
                f"places and lengths are whole numbers that stand in the text, from 1 to {_MOST_PLACE:,}"
            )
    return TEXT


def _replaced(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    _texts(kinds)
    _, *literals = [child for child in node.args.values() if isinstance(child, exp.Expression)]
    if len(literals) != 2 or not all(isinstance(text, exp.Literal) and text.is_string for text in literals):
        raise Unfit("what is replaced, and by what, are texts in quotes")
    if not literals[0].this:
        raise Unfit("what is replaced cannot be empty")
    return TEXT


def _like(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    _texts(kinds)
    if not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
        raise Unfit("the pattern is a text in quotes")
    return TRUTH


def _member(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    if len(kinds) < 2:
        raise Unfit("name the values between the brackets")
    return _compared(node, kinds)


def _null_test(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    if not isinstance(node.expression, exp.Null):
        raise Unfit("behind IS stands NULL or NOT NULL; compare with = true otherwise")
    return TRUTH


def _date_part(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    _dates(kinds[-1:])
    return Kind("whole", 10_000)


def _extracted(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    if str(node.this).upper() not in ("YEAR", "MONTH", "DAY"):
        raise Unfit("of a date it takes YEAR, MONTH or DAY")
    _dates(kinds[-1:])
    return Kind("whole", 10_000)


def _cast(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    (kind,), to = kinds, node.args["to"].this
    if to == exp.DataType.Type.DOUBLE and kind.number:
        return FLOAT
    if to == exp.DataType.Type.DATE and isinstance(node.this, exp.Literal) and node.this.is_string:
        return _day(str(node.this.this))
    if to in (exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR) and kind.name in ("whole", "text", "date"):
        return TEXT
    raise Unfit(
        f"{kind.words} cannot be cast so: a number becomes DOUBLE, and a whole number, date or text VARCHAR."
        " Declare what a column holds in [query.types] instead"
    )


def _day(text: str) -> Kind:
    try:
        # `fromisoformat` would also read 20260131 and 2026-W05-6.
        if not _DAY.fullmatch(text):
            raise ValueError
        date.fromisoformat(text)
    except ValueError:
        raise Unfit("there is no such day; write it like DATE '2026-01-31'") from None
    return DATE


def _literal(node: exp.Expression, kinds: Sequence[Kind]) -> Kind:
    """The kind of a constant: 'x' is text, 1e3 floating point, 5 a whole number,
    and 5.10 a decimal of scale 2.
    """
    text = str(node.this)
    if node.args.get("is_string"):
        return TEXT
    if "e" in text.lower():
        return FLOAT
    whole, _, behind = text.partition(".")
    if not behind and "." not in text:  # `5.` is a decimal of scale 0
        return Kind("whole", int(whole))
    return Kind("decimal", int((whole + behind) or "0"), len(behind))


RULES: Mapping[type[exp.Expression], Rule] = {
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.Mul: _product,
    exp.Div: _quotient,
    exp.Mod: _rest,
    exp.Neg: _same,
    exp.Abs: _same,
    exp.Floor: _rounded,
    exp.Ceil: _rounded,
    exp.Sqrt: _root,
    exp.EQ: _compared,
    exp.NEQ: _compared,
    exp.LT: _compared,
    exp.LTE: _compared,
    exp.GT: _compared,
    exp.GTE: _compared,
    exp.Between: _compared,
    exp.In: _member,
    exp.And: _logical,
    exp.Or: _logical,
    exp.Not: _logical,
    exp.Is: _null_test,
    exp.Coalesce: _either,
    exp.Nullif: lambda node, kinds: (comparable(kinds), kinds[0])[1],
    exp.Like: _like,
    exp.StartsWith: _text_to(TRUTH),
    exp.EndsWith: _text_to(TRUTH),
    exp.Lower: _text_to(TEXT),
    exp.Upper: _text_to(TEXT),
    exp.Trim: _text_to(TEXT),
    exp.DPipe: _text_to(TEXT),
    exp.Replace: _replaced,
    exp.Length: _text_to(Kind("whole", _MOST_LENGTH)),
    exp.Substring: _part,
    exp.Left: _part,
    exp.Year: _date_part,
    exp.Month: _date_part,
    exp.Day: _date_part,
    exp.Extract: _extracted,
    exp.Cast: _cast,
    exp.Literal: _literal,
    exp.Boolean: lambda node, kinds: TRUTH,
    exp.Null: lambda node, kinds: NOTHING,
    exp.Paren: lambda node, kinds: kinds[0],
}
"""The nodes that may stand in an expression besides columns and CASE (see `parser`), each with its rule."""

SAID = (
    "+ - * / %, comparisons, AND OR NOT, IS [NOT] NULL, IN, BETWEEN, LIKE, CASE WHEN, coalesce, nullif, abs,"
    " floor, ceil, sqrt, lower, upper, trim, length, substr, left, starts_with, ends_with, replace, ||, year,"
    " month, day, CAST(.. AS DOUBLE | VARCHAR), DATE '2026-01-31'"
)
"""The language in one line, for messages and docs."""
