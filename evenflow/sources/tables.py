"""Looks at the first lines of a text file: are they JSON objects, or rows of a table?"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence

DELIMITERS = (",", "\t", ";", "|", " ")
"""Delimiters that are tried, in this order."""
_LOOKED_AT = 200
_LEAST_ROWS = 5


def are_objects(lines: Sequence[str]) -> bool:
    """Whether the lines are JSON objects. Only the first three are looked at."""
    try:
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines[:3])
    except (ValueError, RecursionError):  # RecursionError: brackets within brackets, thousands deep
        return False


def delimiter_of(lines: Sequence[str], candidates: Sequence[str] = DELIMITERS) -> str | None:
    """The first candidate that cuts every row into the same number of columns, at least two.
    None if none does.
    """
    return next((delimiter for delimiter in candidates if _columns(lines, delimiter) is not None), None)


def is_table(lines: Sequence[str]) -> bool:
    """Whether the lines are a table: enough rows, which one delimiter cuts into the same number of
    columns.
    """
    return len(lines) >= _LEAST_ROWS and delimiter_of(lines) is not None


def _columns(lines: Sequence[str], delimiter: str) -> int | None:
    try:
        rows = [row for row in csv.reader(lines[:_LOOKED_AT], delimiter=delimiter) if row]
    except csv.Error:
        return None
    if len(rows) > _LEAST_ROWS:
        rows.pop()  # the lines looked at may end within a quoted field
    widths = {len(row) for row in rows}
    return max(widths) if len(widths) == 1 and max(widths) > 1 else None
