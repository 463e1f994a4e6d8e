"""How aggregates are written in `[query.aggregates]` and in the aggregates of a view."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

_NAME = r"[^\W\d][\w.-]*(?::[^\W\d][\w.]*)?"
"""A name, or `module:Class` for an aggregate of one's own. Whether it is known is for the registry to say."""
_CALL = re.compile(rf"^\s*({_NAME})\s*(?:\(\s*([^()]*?)\s*\))?\s*$")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
EXPRESSION = "="
"""What stands before an expression over other result columns, and is the function of its `AggregateSpec`."""
RESERVED_RESULT_NAMES = frozenset({"window_start", "window_end", "key", "key_base64", "revision"})
HIDDEN_COLUMN = "_tuples"
"""Names of the columns with which `verify` counts tuples begin so (`AggregatePlan.tuples_schema`)."""


class AggregateSpec(BaseModel):
    """One result column as written in `[query.aggregates]`.

    `count`, `function(column)`, `function(column, option, ...)`, or `= expression` over other result columns.
    The last has the function `EXPRESSION` and the expression as its only option.
    """

    model_config = ConfigDict(frozen=True)

    function: str
    """The aggregate's name, or EXPRESSION."""
    column: str | None = None
    """The value column, None without one."""
    options: tuple[str, ...] = ()
    """What is written behind the column, or the expression."""

    @classmethod
    def parse(cls, text: Any) -> Any:
        """`"mean(dep_delay)"` -> the function mean of the column dep_delay.
        ValueError for text that is no aggregate.

        Anything that is not text is returned as it is, so that pydantic validates it.
        """
        if not isinstance(text, str):
            return text
        if text.lstrip().startswith(EXPRESSION):
            return cls(function=EXPRESSION, options=(text.lstrip().removeprefix(EXPRESSION).strip(),))
        match = _CALL.match(text)
        if match is None:
            raise ValueError(f"{text!r} is not an aggregate; write 'count' or 'function(column)'")
        column, *options = (word.strip() for word in (match[2] or "").split(","))
        if not column and options:
            raise ValueError(f"{text!r} names no column; write 'function(column, option)'")
        return cls(function=match[1], column=column or None, options=tuple(options))

    @property
    def expression(self) -> str | None:
        """The expression over other result columns. None for an aggregate."""
        return self.options[0] if self.function == EXPRESSION and self.options else None

    def __str__(self) -> str:
        if self.expression is not None:
            return f"{EXPRESSION} {self.expression}"
        return (
            self.function
            if self.column is None
            else f"{self.function}({', '.join((self.column, *self.options))})"
        )


def _names_are_free(value: dict[str, AggregateSpec]) -> dict[str, AggregateSpec]:
    if not value:
        raise ValueError('a query needs at least one aggregate, e.g. count = "count"')
    lower: dict[str, str] = {}
    for name in value:
        if not name or "\0" in name or _SURROGATE.search(name):
            raise ValueError(
                f"{name!r} cannot name an aggregate: write at least one"
                " character of Unicode, none of them NUL"
            )
        if name.lower() in RESERVED_RESULT_NAMES:
            raise ValueError(
                f"{name} cannot name an aggregate: every result row has the field {name.lower()}, and tables"
                " do not tell upper from lower case"
            )
        if name.lower().startswith(HIDDEN_COLUMN):
            raise ValueError(
                f"{name} cannot name an aggregate: names that begin with {HIDDEN_COLUMN} are those of"
                " evenflow's own counts in result rows"
            )
        # `setdefault` returns an earlier name that is the same in lower case, or this one.
        twin = lower.setdefault(name.lower(), name)
        if twin != name:
            raise ValueError(
                f"{twin!r} and {name!r} cannot both name aggregates: tables do not tell upper from lower case"
            )
    return value


Aggregates = Annotated[
    dict[str, Annotated[AggregateSpec, BeforeValidator(AggregateSpec.parse)]], AfterValidator(_names_are_free)
]
"""Aggregates by the name of their result column."""
