"""Answers to probes.

`alive` fails only for what a restart may heal, `healthy` also for what a restart does not heal.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

PATIENCE = 60.0
"""Seconds without progress before an alarm: a rebalance or the restart of a broker may take a while."""


@dataclass(frozen=True)
class Checks:
    """What is wrong with a part. None means that nothing is."""

    alive: str | None = None
    """Why the part is dead, so that a restart may heal it."""
    unhealthy: str | None = None
    """Why the part is unhealthy though alive."""
    warnings: tuple[str, ...] = ()
    """What a person should look at, in sentences, though the part is healthy."""

    @property
    def healthy(self) -> str | None:
        """Why the part is not healthy, None if it is. A part that is not alive is not healthy either."""
        return self.alive or self.unhealthy


class Turns:
    """Watches a loop that reports each of its turns. loop_name: for messages. clock: s."""

    def __init__(self, loop_name: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._loop_name, self._clock = loop_name, clock
        self._turned_at: float | None = None

    def turned(self) -> None:
        """Note that the loop has turned."""
        self._turned_at = self._clock()

    @property
    def begun(self) -> bool:
        """Whether the loop has ever turned."""
        return self._turned_at is not None

    def trouble(self, *, patience: float = PATIENCE) -> str | None:
        """What is wrong with the loop, None if nothing is.

        Before the first turn nothing is: a startup probe watches. patience: seconds without a turn that are
        no trouble.
        """
        still = 0.0 if self._turned_at is None else self._clock() - self._turned_at
        return None if still < patience else f"{self._loop_name} has not turned for {still:.0f} s"
