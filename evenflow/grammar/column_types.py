"""The types that a column of a query may have, as they are written in `[query.types]`."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

_DECIMAL = re.compile(r"^decimal\(([1-9]|1[0-2])\)$")
DecimalType = Annotated[str, Field(pattern=_DECIMAL.pattern)]
"""`decimal(S)`: at most 18 digits, of which S (1 to `MOST_SCALE`) are behind the point."""
ColumnType = Literal["int64", "float64", "string", "bool", "date"] | DecimalType
PLAIN_TYPES = ("int64", "float64", "string", "bool", "date")
"""The types that have no scale."""
MOST_SCALE = 12
ANY_VALUE = "any"
"""The type of an undeclared column that only count_distinct reads: text, a number, true or false.
No setting has it.

Its values are texts that tell the kind: `"a` is the text a, `15e-1` the number 1.5, `true` the truth value.
"""


def decimal_scale(kind: ColumnType) -> int | None:
    """S of `decimal(S)`. None for any other text."""
    match = _DECIMAL.fullmatch(kind)
    return None if match is None else int(match[1])
