"""Reads JSON that others wrote: headers, markers, plans, notes and committed metadata.

Rule "any bytes": a decoder takes any bytes. It raises NotStrict, which says why, for JSON that is too long,
is nested too deeply, is no object, or holds a number that is not finite or a value of another type than asked
for. No other exception leaves this module.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

# A JSON string with its quotes, or what begins one that does not end. Strings are removed before brackets are
# counted. No text is tried twice: the repetitions give nothing back, and a string without an end is a match.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_SHOWN = 200
"""Most characters of a value in a message."""
_T = TypeVar("_T")
INT64 = (-(2**63), 2**63 - 1)
"""Least and greatest int64."""


class NotStrict(ValueError):
    """These bytes are not the JSON that was asked for."""


class StrictObject:
    """A JSON object whose fields are read by type.
    Each method raises NotStrict for a missing field or another value.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def only(self, names: Iterable[str]) -> None:
        """Refuse fields of other names."""
        unknown = sorted(set(self.fields) - set(names))
        if unknown:
            raise NotStrict(f"unknown fields {shown(unknown)}")

    def whole(self, name: str, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included. True and 1.0 are refused."""
        return _whole(name, self._value(name), low, high)

    def text(self, name: str, *, most: int) -> str:
        """Printable text of at most `most` characters."""
        return _text(name, self._value(name), most)

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._value(name)
        if not isinstance(value, bool):
            raise _wrong(name, value, "true or false")
        return value

    def wholes(self, name: str, low: int, high: int, *, most: int) -> list[int]:
        """A list of at most `most` integers from `low` to `high`."""
        return [_whole(name, item, low, high) for item in self._items(name, most)]

    def texts(self, name: str, *, longest: int, most: int) -> list[str]:
        """A list of at most `most` texts of at most `longest` characters."""
        return [_text(name, item, longest) for item in self._items(name, most)]

    def part(self, name: str) -> StrictObject:
        """The object in this field."""
        value = self._value(name)
        if not isinstance(value, dict):
            raise _wrong(name, value, "an object")
        return StrictObject(value)

    def optional(self, name: str, take: Callable[..., _T], *words: Any, **more: Any) -> _T | None:
        """None for null. Otherwise what `take`, a method of this object, returns for the field."""
        return None if self._value(name) is None else take(name, *words, **more)

    def _value(self, name: str) -> Any:
        if name not in self.fields:
            raise NotStrict(f"field {name!r} is missing")
        return self.fields[name]

    def _items(self, name: str, most: int) -> list[Any]:
        value = self._value(name)
        if not isinstance(value, list) or len(value) > most:
            raise _wrong(name, value, f"a list of at most {most}")
        return value


def read_object(data: bytes | str | None, *, most_bytes: int, depth: int = 4) -> StrictObject:
    """The JSON object in these bytes: at most `most_bytes` of UTF-8, nested at most `depth` deep.

    Raises NotStrict for anything else, and also for a field that is there twice, NaN, and an infinite number.
    """
    if data is None:
        raise NotStrict("there is nothing")
    try:
        raw = data.encode() if isinstance(data, str) else bytes(data)
        if len(raw) > most_bytes:
            raise NotStrict(f"{len(raw)} bytes, more than {most_bytes}")
        _refuse_deeper(raw, depth)
        # Decoded as UTF-8 alone. `json.loads` would also take bytes in UTF-16 and UTF-32.
        fields = _READER.decode(raw.decode())
    except NotStrict:
        raise
    except (ValueError, RecursionError) as error:
        raise NotStrict(str(error)) from None
    if not isinstance(fields, dict):
        raise NotStrict("the JSON value is no object")
    return StrictObject(fields)


def shown(value: object) -> str:
    """The value's repr, shortened for messages and logs."""
    text = repr(value[:_SHOWN]) if isinstance(value, (bytes, str)) else repr(value)
    return text if len(text) <= _SHOWN + 2 else f"{text[:_SHOWN]}..."


def _refuse_deeper(raw: bytes, depth: int) -> None:
    """Raise NotStrict for JSON nested too deeply.
    This is done before it is parsed, because the parser recurses.
    """
    # So few brackets cannot nest deeper. This is the usual case, and it needs no search.
    if raw.count(b"[") + raw.count(b"{") <= depth:
        return
    level = 0
    for bracket in _BRACKET.findall(_STRING.sub(b"", raw)):
        level += 1 if bracket in b"[{" else -1
        if level > depth:
            raise NotStrict(f"nested more than {depth} deep")


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a JSON object, as an `object_pairs_hook` of `json`.
    NotStrict for a name that is there twice.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise NotStrict("a field is there twice")
    return fields


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotStrict(f"{text} is no finite number")
    return value


def _constant(text: str) -> NoReturn:
    raise NotStrict(f"{text} is no finite number")


_READER = json.JSONDecoder(object_pairs_hook=once_each, parse_float=_finite, parse_constant=_constant)
"""Made once, because `json.loads` with these words would make one for each text."""


def _whole(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _wrong(name, value, f"a whole number from {low} to {high}")
    return value


def _text(name: str, value: object, most: int) -> str:
    # Half of a surrogate pair could not be encoded again. It is not printable, so it is refused here.
    if not isinstance(value, str) or len(value) > most or not value.isprintable():
        raise _wrong(name, value, f"printable text of at most {most} characters")
    return value


def _wrong(name: str, value: object, expectation: str) -> NotStrict:
    return NotStrict(f"{name} is {shown(value)}, not {expectation}")
