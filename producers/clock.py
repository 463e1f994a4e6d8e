"""The clock for pacing and for live event times. It is passed in, so that tests need not sleep."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What a replay needs of a clock: two readings and a way to wait."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment. Never goes back."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""


class SystemClock:
    """The clock of this machine."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """A clock for tests: time passes only in `sleep`, which returns at once."""

    def __init__(self, *, wall_ms: int = 1_700_000_000_000) -> None:
        self.elapsed = 0.0
        self.slept: list[float] = []
        self._wall = wall_ms

    def monotonic(self) -> float:
        return self.elapsed

    def wall_ms(self) -> int:
        return self._wall + int(self.elapsed * 1000)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.elapsed += seconds
