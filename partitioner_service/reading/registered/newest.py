"""A memory of what was made of schemas, with a bound for how large all of it is together."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Newest(Generic[K, V]):
    """Remembers what was used last. most: bound of the sum of the sizes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._size = 0

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __getitem__(self, key: K) -> V:
        """The entry of this key, which becomes the newest. Raises KeyError."""
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def put(self, key: K, value: V, size: int) -> V:
        """Remember a new entry, and forget the oldest ones that there is no room for. Returns the value.

        The entry itself is remembered however large it is.
        """
        self._entries[key] = value, size
        self._size += size
        while self._size > self._most and len(self._entries) > 1:
            _, (_, size) = self._entries.popitem(last=False)
            self._size -= size
        return value
