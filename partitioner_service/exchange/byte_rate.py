"""Bytes per second over the last minute, of events that come one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

LATELY = 60
"""So many seconds are looked back at. The oldest one of them leaves as a whole."""


class ByteRate:
    """Sums bytes by whole seconds since it was made. It is to be used from one thread at a time. clock: in
    s.
    """

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = clock()
        # Pairs (number of the second, bytes in it), the oldest first.
        self._seconds: deque[list[int]] = deque()

    def add(self, size: int) -> None:
        """Count so many bytes now."""
        second = int(self._clock() - self._began)
        if self._seconds and self._seconds[-1][0] >= second:
            self._seconds[-1][1] += size
        else:
            self._seconds.append([second, size])
        self._forget(second)

    def per_second(self) -> float | None:
        """Bytes/s of the last `LATELY` seconds, or of all if there were not so many. None in the first
        second.
        """
        passed = self._clock() - self._began
        if passed < 1:
            return None
        self._forget(int(passed))
        begin = max(0, int(passed) - LATELY + 1)
        return sum(size for _, size in self._seconds) / (passed - begin)

    def _forget(self, second: int) -> None:
        """Leave out what was counted before the seconds that end with this one."""
        while self._seconds and self._seconds[0][0] <= second - LATELY:
            self._seconds.popleft()
