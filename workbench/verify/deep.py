"""JSON objects that Python's own reader does not take but the partitioner does: of any depth, and with Inf or -NaN."""

from __future__ import annotations

import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|-?NaN|-?Inf(?:inity)?")
_WORDS = {"true": True, "false": False, "null": None}
_CLOSERS = {"{": "}", "[": "]"}


def read_deep(text: str, number: Callable[[str], Any]) -> list[tuple[str, Any]]:
    """Fields of the object in order; raises ValueError when it is no JSON object.

    A field that holds an object or a list has an empty list as its value. `number` makes a number from its text.
    """
    scanner = _Scanner(text, number)
    scanner.run()
    return scanner.fields


class _Scanner:
    """Reads values, names and brackets one after the other; `open` holds the brackets still to be closed."""

    def __init__(self, text: str, number: Callable[[str], Any]) -> None:
        self.fields: list[tuple[str, Any]] = []
        self._text, self._number = text, number
        self._at = 0
        self._open: list[str] = []
        self._name = ""

    def run(self) -> None:
        """Read it all."""
        if self._next() != "{":
            raise ValueError("the JSON value is no object")
        self._value()
        while self._open:
            self._after_value()
        if self._next():
            raise self._error("extra data")

    def _value(self) -> None:
        """One value; of an object or a list, all brackets that begin with it."""
        while (char := self._next()) in _CLOSERS and char:
            self._open.append(_CLOSERS[char])
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
        self._open.pop()
        self._at += 1
        self._field([])

    def _field(self, value: Any) -> None:
        if len(self._open) == 1:
            self.fields.append((self._name, value))

    def _field_name(self) -> None:
        if self._next() != '"':
            raise self._error("a field has no name")
        name = self._string()
        if len(self._open) == 1:
            self._name = name
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
        text, self._at = scanstring(self._text, self._at + 1, True)
        return str(text)

    def _next(self) -> str:
        space = _SPACE.match(self._text, self._at)
        self._at = self._at if space is None else space.end()
        return self._text[self._at : self._at + 1]

    def _error(self, what: str) -> ValueError:
        return ValueError(f"{what} at character {self._at}")
