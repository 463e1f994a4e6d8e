"""When a line about progress is due, and what has grown since the last one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

EVERY = 10.0
"""Seconds between two lines."""


@dataclass(frozen=True)
class Beat:
    """What has grown in the last `seconds`, by counter."""

    seconds: float
    grown: Mapping[str, int]

    def per_second(self, counter: str) -> float:
        """Growth of this counter a second."""
        return self.grown[counter] / self.seconds if self.seconds > 0 else 0.0


class Heartbeat:
    """Turns successive snapshots of counters into beats: one every `every` seconds in which a counter has grown."""

    def __init__(self, *, every: float = EVERY, clock: Callable[[], float] = time.monotonic) -> None:
        self._every = every
        self._clock = clock
        self._at = clock()
        self._before: dict[str, int] = {}

    def due(self, counters: Mapping[str, int], *, now: bool = False) -> Beat | None:
        """The beat to tell of, or None. `now`: do not wait for the interval to be over (the last line of all)."""
        seconds = self._clock() - self._at
        if seconds < self._every and not now:
            return None
        grown = {name: count - self._before.get(name, 0) for name, count in counters.items()}
        self._at, self._before = self._clock(), dict(counters)
        return Beat(seconds, grown) if any(grown.values()) else None
