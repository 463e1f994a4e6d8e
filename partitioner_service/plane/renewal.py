"""Keeps the committed offsets of quiet input partitions young.

Kafka deletes offsets that were committed long ago (`offsets.retention.minutes`). It spares those of a group
that has members. So what is renewed here matters once the members are gone: then every partition has the
whole retention before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

_EVERY = 3_600.0
"""Seconds after which a partition's state is committed again. Brokers keep offsets for days."""


class Renewal:
    """Remembers when an owned partition last committed. clock: for intervals (s)."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._committed: dict[int, float] = {}

    def due(self, owned: Collection[int]) -> set[int]:
        """The partitions among these that have committed nothing for an hour.

        A partition that is new to the instance is due an hour later: its state may have been committed long
        ago, but it was read just now, by a member.
        """
        now = self._clock()
        self._committed = {partition: self._committed.get(partition, now) for partition in owned}
        return {partition for partition, at in self._committed.items() if now - at >= _EVERY}

    def committed(self, partitions: Iterable[int]) -> None:
        """Note that the states of these partitions were committed."""
        self._committed |= dict.fromkeys(partitions, self._clock())
