"""One value of a record."""

from __future__ import annotations

from typing import Any, NamedTuple

TICKS = {"timestamp-millis": 1, "timestamp-micros": 1_000, "timestamp-nanos": 1_000_000}
"""Avro's logical type of a timestamp -> how many of its units are a millisecond."""
MOST_VALUES = 100_000
"""Values of a record of which all fields are read. Each becomes an object of a hundred times its bytes."""
LONGEST_NAME = 1_000
"""Characters of the names on the way to a field, and of the full name of a type. A long name stands in that
of each field within it.
"""


class RegisteredCell(NamedTuple):
    """One value of a record."""

    kind: str
    """bool, int, float, text, bytes, enum, stamp (ms since 1970) or nested (a list, map or object)."""
    value: Any
    """The value. None for a null, and for what is nested."""
    logical: str = ""
    """Avro's logical type. Empty if there is none that fits."""
    scale: int = 0
    """The scale of a decimal."""


NESTED = RegisteredCell("nested", None)
