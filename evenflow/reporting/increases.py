"""Decides when a line about progress is due, and computes how much has grown since the last line."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

EVERY = 10.0
"""Seconds between two lines."""


@dataclass(frozen=True)
class Increase:
    """By how much counters have grown since the last line about progress."""

    seconds: float
    """Time since then."""
    grown: Mapping[str, int]
    """By counter, its growth."""

    def per_second(self, counter: str) -> float:
        """Growth of this counter per second."""
        return self.grown[counter] / self.seconds if self.seconds > 0 else 0.0


class Increases:
    """Turns successive snapshots of counters into increases.

    There is one after `every` seconds, if a counter has grown. clock: seconds that never go back.
    """

    def __init__(self, *, every: float = EVERY, clock: Callable[[], float] = time.monotonic) -> None:
        self._every = every
        self._clock = clock
        self._at = clock()
        self._before: dict[str, int] = {}

    def due(self, counters: Mapping[str, int], *, now: bool = False) -> Increase | None:
        """The increase to log, or None.
        now: do not wait for the end of the interval, as for a service's last line.
        """
        seconds = self._clock() - self._at
        if seconds < self._every and not now:
            return None
        grown = {name: count - self._before.get(name, 0) for name, count in counters.items()}
        self._at, self._before = self._clock(), dict(counters)
        return Increase(seconds, grown) if any(grown.values()) else None
