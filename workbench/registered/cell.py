"""One value of a record."""

from __future__ import annotations

from typing import Any, NamedTuple

TICKS = {"timestamp-millis": 1, "timestamp-micros": 1_000, "timestamp-nanos": 1_000_000}
"""Avro's logical type of a timestamp -> how many of its units are a millisecond."""


class RegisteredCell(NamedTuple):
    """One value of a record.

    kind: bool, int, float, text, bytes, enum, stamp (ms since 1970) or nested (a list, map or object, with no value here).
    logical: Avro's logical type, empty if there is none that fits. scale: that of a decimal.
    """

    kind: str
    value: Any
    logical: str = ""
    scale: int = 0


NESTED = RegisteredCell("nested", None)
