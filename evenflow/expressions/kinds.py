"""Kinds: what an expression yields, and how large its numbers can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenflow.grammar.column_types import ANY_VALUE, decimal_scale

Name = Literal["whole", "decimal", "float", "text", "truth", "date", "nothing"]
_WORDS: dict[str, str] = {
    "whole": "a whole number",
    "decimal": "a decimal",
    "float": "a floating-point number",
    "text": "text",
    "truth": "true or false",
    "date": "a date",
    "nothing": "null",
}
MOST_DIGITS = 38
"""Digits of whole numbers and decimals that both engines can compute with."""
DECIMAL_DIGITS = 18
"""Digits of a decimal that is read, or that is the result of an expression."""


@dataclass(frozen=True)
class Kind:
    """What an expression yields."""

    name: Name
    """Which sort of value it is."""
    most: int = 0
    """Largest absolute value of a whole number, or of a decimal in units of 10^-scale."""
    scale: int = 0
    """Digits of a decimal behind the point."""

    @property
    def words(self) -> str:
        """The kind in words, for messages."""
        return _WORDS[self.name] + (f" with {self.scale} digits behind the point" if self.scale else "")

    @property
    def exact(self) -> bool:
        """Whether this is a number that is never rounded."""
        return self.name in ("whole", "decimal")

    @property
    def number(self) -> bool:
        """Whether arithmetic accepts this kind. Null is accepted everywhere."""
        return self.exact or self.name in ("float", "nothing")

    @property
    def fits(self) -> bool:
        """Whether both engines can hold every number of this kind."""
        return self.most < 10**MOST_DIGITS


FLOAT, TEXT, TRUTH, DATE, NOTHING = (
    Kind("float"),
    Kind("text"),
    Kind("truth"),
    Kind("date"),
    Kind("nothing"),
)
INT64 = Kind("whole", most=2**63)
# Of a column of any value, expressions ask only whether it is null (`inferred.only_compared_with_null`).
_OF_TYPE = {"int64": INT64, "float64": FLOAT, "string": TEXT, "bool": TRUTH, "date": DATE, ANY_VALUE: TEXT}


def kind_of(type_: str) -> Kind:
    """The kind of a column of this declared type."""
    scale = decimal_scale(type_)
    if scale is not None:
        return Kind("decimal", most=10**DECIMAL_DIGITS, scale=scale)
    return _OF_TYPE[type_]


def type_of(kind: Kind) -> str:
    """The type of a column that holds values of this kind. This is the inverse of `kind_of`."""
    if kind.name == "decimal":
        return f"decimal({kind.scale})"
    return {"whole": "int64", "float": "float64", "text": "string", "truth": "bool", "date": "date"}[
        kind.name
    ]
