"""Reads JSON objects that Python's own reader refuses and the partitioner reads: of any depth, and with
Inf or -NaN.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed leaves it out
from typing import Any

from evenflow.grammar.paths import MOST_LEVELS

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|-?NaN|-?Inf(?:inity)?")
_WORDS = {"true": True, "false": False, "null": None}
_DEEPEST = MOST_LEVELS + 1
"""How many brackets can be around a column: those of its objects,
and that of the list whose elements they may be.
"""
_CLOSERS = {"{": "}", "[": "]"}


class Fields(list[tuple[str, Any]]):
    """Fields of a JSON object in order. A dict would hide that a field is repeated."""


def read_deep(text: str, number: Callable[[str], Any]) -> Fields:
    """Fields of the JSON object in this text, in order. Raises ValueError if the text is no JSON object.

    Objects and lists that lie deeper than any column are empty. number: makes a number from its text.
    """
    scanner = _Scanner(text, number)
    scanner.run()
    return scanner.outermost


class _Scanner:
    """Reads values, names and brackets one after the other, without recursion, so that any depth can be read.

    `_open` holds the closing brackets that are still to come. `_objects` holds what lies in each open bracket
    so far, and `_names` the field of each that is being read.
    """

    def __init__(self, text: str, number: Callable[[str], Any]) -> None:
        self.outermost = Fields()
        self._text, self._number = text, number
        self._at = 0
        self._open: list[str] = []
        self._objects: list[Fields] = []
        self._names: list[str] = []

    def run(self) -> None:
        """Read the whole text."""
        if self._next() != "{":
            raise ValueError("the JSON value is no object")
        self._value()
        while self._open:
            self._after_value()
        if self._next():
            raise self._error("extra data")

    def _value(self) -> None:
        """Read one value. If it is an object or a list, read on until its first value that is neither,
        or its end.
        """
        while (char := self._next()) in _CLOSERS and char:
            self._open.append(_CLOSERS[char])
            self._objects.append(Fields())
            # A list gets the empty name, so that its elements are stored as the fields of an object are.
            self._names.append("")
            self._at += 1
            if self._next() == self._open[-1]:
                self._close()
                return
            if char == "{":
                self._field_name()
        self._field(self._scalar(char))

    def _after_value(self) -> None:
        char = self._next()
        if char == self._open[-1]:
            self._close()
        elif char == ",":
            self._at += 1
            if self._open[-1] == "}":
                self._field_name()
            self._value()
        else:
            raise self._error("a comma or a closing bracket is missing")

    def _close(self) -> None:
        closed, fields = self._open.pop(), self._objects.pop()
        self._names.pop()
        self._at += 1
        if not self._open:
            self.outermost = fields
        self._field(fields if closed == "}" else [value for _, value in fields])

    def _field(self, value: Any) -> None:
        # What lies deeper is read, so that errors in it are seen, but not kept.
        if self._open and len(self._open) <= _DEEPEST:
            self._objects[-1].append((self._names[-1], value))

    def _field_name(self) -> None:
        if self._next() != '"':
            raise self._error("a field has no name")
        self._names[-1] = self._string()
        if self._next() != ":":
            raise self._error("a colon is missing")
        self._at += 1

    def _scalar(self, char: str) -> Any:
        if char == '"':
            return self._string()
        if (match := _NUMBER.match(self._text, self._at)) is not None:
            self._at = match.end()
            return self._number(match[0])
        for word, value in _WORDS.items():
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return value
        raise self._error("a value is missing")

    def _string(self) -> str:
        # True: raw control characters are refused.
        text, self._at = scanstring(self._text, self._at + 1, True)
        return str(text)

    def _next(self) -> str:
        space = _SPACE.match(self._text, self._at)
        self._at = self._at if space is None else space.end()
        return self._text[self._at : self._at + 1]

    def _error(self, problem: str) -> ValueError:
        return ValueError(f"{problem} at character {self._at}")
