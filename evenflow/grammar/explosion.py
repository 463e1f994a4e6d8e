"""One record,
several tuples: `explode = "items" | "split(value, ';')" | "words(value)"` (docs/expressions.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from evenflow.grammar import paths

_SPLIT = re.compile(r"\s*split\s*\(\s*(.+?)\s*,\s*(?:'((?:[^']|'')+)'|\"([^\"]+)\")\s*\)\s*", re.DOTALL)
_WORDS = re.compile(r"\s*words\s*\(\s*(.+?)\s*\)\s*", re.DOTALL)
BLANKS = " \t\n\v\f\r"
"""The characters that separate words."""
MOST_ELEMENTS = 100_000
"""The most tuples that a record may become."""


@dataclass(frozen=True)
class Explosion:
    """What `explode` says, parsed."""

    column: str
    """The column that is taken apart. In the rest of the query its name stands for one element."""
    way: Literal["list", "split", "words"] = "list"
    """Whether the column is a JSON list, or a text cut at a separator ("split") or at blanks ("words")."""
    separator: str = ""
    """Where a text is cut, for "split" only."""

    @classmethod
    def parse(cls, text: str) -> Explosion:
        """The meaning of the setting `explode`. The message of the ValueError says how to write it."""
        split, words = _SPLIT.fullmatch(text), _WORDS.fullmatch(text)
        if split is not None:
            # In single quotes, as in SQL, two single quotes stand for one.
            quoted, doubly = split[2], split[3]
            explosion = cls(split[1], "split", quoted.replace("''", "'") if quoted is not None else doubly)
        elif words is not None:
            explosion = cls(words[1], "words")
        else:
            explosion = cls(text.strip())
        if not explosion.column or explosion.column.startswith("@") or re.search(r"[(),]", explosion.column):
            raise ValueError(
                f"explode = {text!r:.200} is none of 'COLUMN' (a list in JSON), \"split(COLUMN, ';')\" and"
                " 'words(COLUMN)' (a text)"
            )
        paths.check([explosion.column])
        return explosion

    def __str__(self) -> str:
        if self.way == "list":
            return self.column
        if self.way == "words":
            return f"words({self.column})"
        return "split({}, '{}')".format(self.column, self.separator.replace("'", "''"))

    def within(self, name: str) -> tuple[str, ...] | None:
        """The fields on the way from an element to the column `name`, outermost first.

        () if the column is the element itself. None if it is not part of an element, but a column of the
        record.
        """
        if self.way != "list":
            return () if name == self.column else None
        outer, path = paths.segments(self.column), paths.segments(name)
        return path[len(outer) :] if path[: len(outer)] == outer else None
