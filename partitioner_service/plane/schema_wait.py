"""How an instance waits for a schema registry: each pause is longer, and only the first is logged."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from partitioner_service.reading.registered.schemas import SchemasToCome

log = logging.getLogger("partitioner_service")

_SHORTEST, _LONGEST = 0.1, 2.0
"""Pauses in seconds. The longest is well below the time that a transaction may last,
so an open one still commits.
"""


class SchemaWait:
    """A wait that begins when a schema first cannot be had, and ends when a block has been read."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        self._why = ""
        self._pause = _SHORTEST

    def next(self, why: Exception) -> float:
        """Seconds to wait before the registry is asked again. why: the error that says what is missing."""
        self._why = str(why)
        if isinstance(why, SchemasToCome):  # the registry answers, so there is nothing to wait for
            return 0.0
        if self._since is None:
            self._since = self._clock()
            log.warning("waiting for schemas, nothing is lost: %s", why)
        pause = self._pause
        self._pause = min(2 * pause, _LONGEST)
        return pause

    def over(self) -> None:
        """End the wait, because a block has been read: all its schemas are there."""
        if self._since is not None:
            log.info("the schemas are there, after %.1f s", self._clock() - self._since)
            self._since, self._pause = None, _SHORTEST

    def standing_still(self) -> list[dict[str, Any]]:
        """What the status page shows, and after a while the health page. Empty unless the instance waits."""
        if self._since is None:
            return []
        seconds = round(self._clock() - self._since, 1)
        return [{"what": "registry", "seconds": seconds, "reason": self._why}]
