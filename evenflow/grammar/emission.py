"""Which rows of its windows a query emits: `emit = "all" | "changes" | "top(K, COLUMN)"`,
and `late` (docs/results.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

_TOP = re.compile(r"\s*top\s*\(\s*([0-9]{1,9})\s*,\s*(.*?)\s*\)\s*", re.DOTALL)
_ASCENDING = re.compile(r"(.*?)\s*,\s*ascending", re.DOTALL)
MOST_ROWS = 10_000
"""The most rows of a window that `top` can emit."""


@dataclass(frozen=True, kw_only=True)
class Emission:
    """What `emit` says, parsed, and for how long rows may come out again."""

    mode: Literal["all", "changes", "top"] = "all"
    """All rows of a window, those that differ from the window before, or the first by a column."""
    rows: int = 0
    """For `top`: how many rows of a window come out."""
    column: str = ""
    """For `top`: the result column by which they are the first."""
    ascending: bool = False
    """For `top`: whether the smallest values come first."""
    updates: int = 0
    """For how long (ms of event time) a window is still updated after it came out, 0 if it comes out once. It
    is `allowed_lateness` with `late = "update"`."""

    @classmethod
    def parse(cls, text: str) -> Emission:
        """The meaning of the setting `emit`. The message of the ValueError says how to write it."""
        word = text.strip()
        if word == "all" or word == "changes":
            return cls(mode="all" if word == "all" else "changes")
        match = _TOP.fullmatch(text)
        if match is None or not match[2]:
            raise ValueError(
                f"emit = {text!r:.200} is none of 'all', 'changes', 'top(10,"
                " COLUMN)' and 'top(10, COLUMN, ascending)'"
            )
        rows, column = int(match[1]), match[2]
        if not 1 <= rows <= MOST_ROWS:
            raise ValueError(f"emit = {text!r}: top gives out 1 to {MOST_ROWS:,} rows of a window")
        backwards = _ASCENDING.fullmatch(column)
        return cls(
            mode="top",
            rows=rows,
            column=column if backwards is None else backwards[1],
            ascending=backwards is not None,
        )

    def __str__(self) -> str:
        if self.mode != "top":
            return self.mode
        return f"top({self.rows}, {self.column}{', ascending' if self.ascending else ''})"

    def check_names(self, aggregates: Iterable[str]) -> None:
        """ValueError if an aggregate has the name of a column that the mode adds."""
        clashes = {name for name in aggregates if name.lower() in self.columns}
        if clashes:
            setting = "late = 'update'" if self.updates else f"emit = '{self}'"
            raise ValueError(
                f"{', '.join(sorted(clashes))} cannot name an aggregate: with"
                f" {setting} every result row has that field"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the mode adds to a row, beside the window's bounds,
        the key and the aggregates.
        """
        return {
            "all": ("revision",) if self.updates else (),
            "changes": ("revision", "gone"),
            "top": ("rank",),
        }[self.mode]
