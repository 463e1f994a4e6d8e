"""The schemas of the ids that records name: each is asked for once, and no stream of made-up ids can flood the registry."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from topics.registry import Lookup, RegisteredSchema, RegistryAway

_FORGET_AFTER = 60.0
_MOST_PER_SECOND = 200
_MOST_SCHEMAS = 10_000


class Schemas:
    """Remembers every schema for good, and for a while that there is none of an id.

    most: ids without a schema that are remembered. No more than 200 of them are asked for in a second: beyond that the block
    waits, and its ids are remembered until it has been read, however long that takes.
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
        """The schema of each of these ids, None where there is none.

        Raises RegistryAway while not all are known, and ConfigError when the registry refuses us. What was learned until
        then is kept, so asking again goes on from there.
        """
        wanted = list(ids)
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
                self._known.pop(next(iter(self._known)))
            self._known[number] = found

    def _forget(self) -> None:
        """A schema may be registered after the first record that names it."""
        before = self._clock() - _FORGET_AFTER
        self._unknown = {number: at for number, at in self._unknown.items() if at >= before}
        if len(self._unknown) > self._most:
            self._unknown.clear()
