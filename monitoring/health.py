"""What probes are told: `alive` asks for what a restart may heal, `healthy` also for what it does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

PATIENCE = 60.0
"""Seconds without progress before anybody is alarmed: a rebalance or a broker that starts again may take a while."""


@dataclass(frozen=True)
class Checks:
    """What is wrong, None where nothing is. Who is not alive is not healthy either."""

    alive: str | None = None
    unhealthy: str | None = None

    @property
    def healthy(self) -> str | None:
        """What keeps it from being healthy."""
        return self.alive or self.unhealthy


class Turns:
    """A loop that says each time that it turns. clock: s."""

    def __init__(self, what: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._clock = what, clock
        self._turned_at: float | None = None

    def turned(self) -> None:
        """Once more."""
        self._turned_at = self._clock()

    @property
    def begun(self) -> bool:
        """Whether it has ever turned."""
        return self._turned_at is not None

    def trouble(self) -> str | None:
        """What is wrong with it. Before its first turn a startup probe watches, not we."""
        still = 0.0 if self._turned_at is None else self._clock() - self._turned_at
        return None if still < PATIENCE else f"{self._what} has not turned for {still:.0f} s"
