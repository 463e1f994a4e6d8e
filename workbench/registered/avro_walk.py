"""Whether bytes are one record of an Avro schema: a walk that reads no value, and where its arrays and maps
are.

fastavro takes an enum's symbol -1 for the last one, 2 for true, and a number of 20 bytes for its lowest 64
bits. It reads array items that take no bytes until memory ends, and nested records until the stack ends. The
partitioner rejects all of these, and so does this walk. A record that it lets pass cannot harm fastavro.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.unreadable import Unreadable

_DEEPEST = 250
"""How many levels of a record are read. This keeps the walk, which is recursive, off Python's limit."""
_STEPS, _STEPS_PER_BYTE = 100_000, 100
"""Bound of the values in a record.
Types that take no bytes can name each other so often that a walk never ends.
"""
_SIZES = {"boolean": 1, "float": 4, "double": 8}
_KEY = {"type": "string"}
"""Type of the keys of a map."""
_NO_ITEMS = b"\0"
"""An array or a map without items."""


class AvroWalk:
    """Walks through one record. types: name -> type, as in `AvroSchema`. data: the record, after the
    schema's id too. most: values above which a record is unreadable.
    """

    def __init__(self, types: Mapping[str, Any], data: bytes, *, most: int | None = None) -> None:
        self._types, self._data = types, data
        self._steps = _STEPS + _STEPS_PER_BYTE * len(data) if most is None else most
        self._outer: list[tuple[int, int]] = []
        self._within = 0

    def emptied(self) -> bytes:
        """The record that was walked through, with all arrays and maps empty, so that no item becomes an
        object.
        """
        pieces, at = [], 0
        for begin, end in self._outer:
            pieces += [self._data[at:begin], _NO_ITEMS]
            at = end
        return b"".join([*pieces, self._data[at:]])

    def end(self, schema: Any, at: int, depth: int = 0) -> int:
        """The place after the value of this schema that begins at `at`. Raises Unreadable."""
        self._steps -= 1
        if depth > _DEEPEST or self._steps <= 0:
            raise Unreadable("the record is nested too deeply, or has too many values")
        if isinstance(schema, list):
            branch, at = self._place(at, len(schema))
            return self.end(schema[branch], at, depth)
        if schema == "null":
            return at
        if isinstance(schema, str):
            schema = self._types[schema]
        if "fields" in schema:
            for field in schema["fields"]:
                at = self.end(field["type"], at, depth + 1)
            return at
        kind = schema["type"]
        if kind in ("array", "map"):
            self._within += 1
            end = self._items_end(schema, at, depth + 1)
            self._within -= 1
            if not self._within:
                self._outer.append((at, end))
            return end
        if kind == "enum":
            return self._place(at, len(schema["symbols"]))[1]
        if kind in ("int", "long"):
            return long(self._data, at)[1]
        if kind == "boolean" and self._data[at : at + 1] > b"\1":
            raise Unreadable("neither true nor false")
        size = schema["size"] if kind == "fixed" else _SIZES.get(kind, 0)
        if kind in ("bytes", "string"):
            size, at = long(self._data, at)
        if not 0 <= size <= len(self._data) - at:
            raise Unreadable("a length reaches beyond the record")
        return at + size

    def _place(self, at: int, places: int) -> tuple[int, int]:
        """Which of so many branches or symbols stands here, and the place after its number."""
        place, at = long(self._data, at)
        if not 0 <= place < places:
            raise Unreadable("a union has no such branch, or an enum no such symbol")
        return place, at

    def _items_end(self, schema: Any, at: int, depth: int) -> int:
        """The place after an array or a map. Its items come in blocks, and a block of 0 items is the last."""
        while True:
            count, at = long(self._data, at)
            if count < 0:  # then the size of the block in bytes follows
                _, at = long(self._data, at)
            if not count:
                return at
            for _ in range(abs(count)):
                if schema["type"] == "map":
                    at = self.end(_KEY, at, depth)
                at = self.end(schema["values" if schema["type"] == "map" else "items"], at, depth)


def long(data: bytes, at: int) -> tuple[int, int]:
    """The whole number at this place, and the place after it: 7 bits a byte, the lowest first, zigzag-coded.

    Raises Unreadable if the number does not end or has more than 64 bits.
    """
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Unreadable("a number does not end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 128:
            break
    if value >= 2**64:
        raise Unreadable("a number is too long")
    return value >> 1 ^ -(value & 1), at  # zigzag: 0, 1, 2, 3 stand for 0, -1, 1, -2
