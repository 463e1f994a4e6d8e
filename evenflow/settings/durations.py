"""Durations as people write them ("60s", "1h", "500ms"), held as int milliseconds."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_PATTERN = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)\s*$")


def parse_duration(value: Any) -> int:
    """Milliseconds of "1500ms", "60s", "5m", "1h" or "2d". An integer counts as milliseconds.

    Raises ValueError for anything else, including negative or fractional milliseconds.
    """
    if isinstance(value, bool):  # a bool is an int to Python
        raise ValueError("a duration is written like '60s' or '500ms'")
    if isinstance(value, int):
        if value < 0:
            raise ValueError("a duration is not negative")
        return value
    match = _PATTERN.match(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not a duration; write it like '60s', '500ms', '5m', '1h' or '1d'")
    exact = float(match[1]) * _UNITS[match[2]]
    if exact != int(exact):
        raise ValueError(f"{value!r} is not a whole number of milliseconds")
    return int(exact)


def format_duration(milliseconds: int) -> str:
    """The duration in its largest unit that is exact, e.g. 60000 -> "1m", 1500 -> "1500ms"."""
    for unit in ("d", "h", "m", "s"):
        if milliseconds and milliseconds % _UNITS[unit] == 0:
            return f"{milliseconds // _UNITS[unit]}{unit}"
    return f"{milliseconds}ms"


Duration = Annotated[
    int,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
]
"""Milliseconds as an int, written in files as text with a unit."""
