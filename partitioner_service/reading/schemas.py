"""The schemas of the ids that records name.

Each schema is asked for once, and a stream of made-up ids cannot flood the registry.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from topics.registry import Lookup, RegisteredSchema, RegistryAway

_FORGET_AFTER = 60.0
"""Seconds for which an id without a schema is remembered."""
_MOST_PER_SECOND = 200
_MOST_SCHEMAS = 10_000


class Schemas:
    """Remembers schemas for good (at most 10,000), and for a minute that an id has no schema.

    most: number of ids without a schema that are remembered. At most 200 of these ids are asked for in a
    second. If a block names more, it waits. Its ids are then remembered until the block has been read,
    however long that takes.
    """

    def __init__(
        self, registry: Lookup, *, most: int = 100_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._registry, self._most, self._clock = registry, most, clock
        self._known: dict[int, RegisteredSchema] = {}
        self._unknown: dict[int, float] = {}
        self._waiting = False
        self._second, self._asked = clock(), 0

    def of(self, ids: Iterable[int]) -> dict[int, RegisteredSchema | None]:
        """The schema of each of these ids, None for an id that has no schema.

        Raises RegistryAway while not all answers are known, and ConfigError if the registry refuses us.
        Answers that came before the error are kept, so the next call goes on from there.
        """
        wanted = list(ids)
        # Nothing is forgotten while a block waits. Otherwise a block of many unknown ids might never be
        # complete.
        if not self._waiting:
            self._forget()
        self._waiting = True
        for number in wanted:
            if number not in self._known and number not in self._unknown:
                self._ask(number)
        self._waiting = False
        return {number: self._known.get(number) for number in wanted}

    def _ask(self, number: int) -> None:
        now = self._clock()
        if now - self._second >= 1.0:
            self._second, self._asked = now, 0
        if self._asked >= _MOST_PER_SECOND:
            raise RegistryAway(
                f"records name more than {_MOST_PER_SECOND} schema ids a second that the registry does not have"
            )
        found = self._registry.schema(number)
        if found is None:
            self._asked += 1
            self._unknown[number] = now
        else:
            if len(self._known) >= _MOST_SCHEMAS:
                self._known.pop(next(iter(self._known)))  # the one that was learned first
            self._known[number] = found

    def _forget(self) -> None:
        """Forget that ids have no schema: a schema may be registered after the first record that names it."""
        before = self._clock() - _FORGET_AFTER
        self._unknown = {number: at for number, at in self._unknown.items() if at >= before}
        if len(self._unknown) > self._most:
            self._unknown.clear()
