"""When a stage says that it lives although it has finished no micro-batch: silence and death look alike otherwise."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

_AT_LEAST = 1.0
_AGAIN = 5.0
_JITTER = 1.5
"""Batch intervals: micro-batches end now earlier, now later within their interval."""


@dataclass(frozen=True)
class Beat:
    """batch: the last finished one, None before the first. running_ms: of the present one, None when idle."""

    batch: int | None
    running_ms: int | None


class Pulse:
    """One stage. Told of finished micro-batches by Spark's listener, asked by the application's own thread."""

    def __init__(self, interval_ms: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first = max(_AT_LEAST, _JITTER * interval_ms / 1000)
        self._again = max(_AGAIN, interval_ms / 1000)
        self._lock = threading.Lock()
        self._batch: int | None = None
        self._finished = clock()
        self._idle_at: float | None = None
        self._idle_since: float | None = None
        self._said: float | None = None

    def finished(self, batch: int) -> None:
        """A micro-batch with rows has ended."""
        with self._lock:
            self._batch, self._finished = batch, self._clock()
            self._idle_at = self._idle_since = self._said = None

    def due(self, running: Callable[[], bool]) -> Beat | None:
        """What is to be said now, None for nothing. running: asks whether a micro-batch is under way."""
        if self._clock() - self._finished < self._first:
            return None
        runs = running()
        with self._lock:
            now = self._clock()
            silent = now - self._finished
            if silent < self._first:
                return None  # it has ended meanwhile
            if not runs:
                self._idle_at = now
                self._idle_since = self._finished if self._idle_since is None else self._idle_since
            else:
                self._idle_since = None
            if self._said is not None and now - self._said < self._again:
                return None
            self._said = now
            begun = self._finished if self._idle_at is None else self._idle_at
            return Beat(self._batch, round(1000 * (now - begun)) if runs else None)

    @property
    def idle_seconds(self) -> float:
        """For how long it has had nothing to do, as far as `due` has seen."""
        with self._lock:
            return 0.0 if self._idle_since is None else self._clock() - self._idle_since
