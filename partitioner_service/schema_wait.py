"""How an instance waits for a schema registry: longer each time, and it says so once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

log = logging.getLogger("partitioner_service")

_SHORTEST, _LONGEST = 0.1, 2.0
"""Seconds. The longest is well within a transaction: what is open is committed in between."""


class SchemaWait:
    """Begins with the first failure, and ends when a block has been read."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        self._why = ""
        self._pause = _SHORTEST

    def next(self, why: Exception) -> float:
        """Seconds to wait before the registry is asked again."""
        self._why = str(why)
        if self._since is None:
            self._since = self._clock()
            log.warning("waiting for schemas, nothing is lost: %s", why)
        pause = self._pause
        self._pause = min(2 * pause, _LONGEST)
        return pause

    def over(self) -> None:
        """A block has been read: all its schemas are there."""
        if self._since is not None:
            log.info("the schemas are there, after %.1f s", self._clock() - self._since)
            self._since, self._pause = None, _SHORTEST

    def standing_still(self) -> list[dict[str, Any]]:
        """What the status page shows, and the health page after a while: nothing unless it waits."""
        if self._since is None:
            return []
        seconds = round(self._clock() - self._since, 1)
        return [{"what": "registry", "seconds": seconds, "reason": self._why}]
