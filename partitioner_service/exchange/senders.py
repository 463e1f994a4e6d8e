"""Which run of each source speaks now."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

_REMEMBERED = 8
"""So many sessions of a source are remembered as over."""
TAKEN_OVER = 3.0
"""Seconds of silence after which another session may speak for a source. No process is replaced faster."""
COMES_BACK = 60.0
"""Likewise for a session that was taken over before: a process that stood still, whose replacement is
gone.
"""


class Senders:
    """The present session of each source.

    One session speaks for a source at a time. Another one may take over once that is silent. So a replay of
    an earlier run, or a second process with the same number, is passed over, and can silence nobody for good.
    sources: how many there are. clock: in s.
    """

    def __init__(self, sources: int, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._present: dict[int, tuple[int, float]] = {}
        self._over: dict[int, deque[int]] = {source: deque(maxlen=_REMEMBERED) for source in range(sources)}

    def speaks(self, source: int, session: int) -> bool:
        """Whether a record of this session of this source counts. source: 0 to sources - 1."""
        now, over = self._clock(), self._over[source]
        if source in self._present:
            present, heard_at = self._present[source]
            if present != session:
                # A session that was there before may come back sooner than a new one may take over.
                if now - heard_at < (COMES_BACK if session in over else TAKEN_OVER):
                    return False
                over.append(present)
        self._present[source] = session, now
        return True
