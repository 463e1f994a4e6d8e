"""When a stage that finishes no micro-batch says that it lives. Otherwise silence would look like death."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

_AT_LEAST = 1.0  # s of silence before the first beat
_AGAIN = 5.0  # s between two beats
_JITTER = 1.5
"""Batch intervals of silence before the first beat. One would be too few: micro-batches end irregularly."""


@dataclass(frozen=True)
class Beat:
    """What a stage says of itself."""

    batch: int | None
    """The last finished micro-batch. None before the first."""
    running_ms: int | None
    """Milliseconds that the present micro-batch has been running. None if the stage is idle."""


class Run(NamedTuple):
    """How far a stage has come since its driver began."""

    finished: int
    """Micro-batches with rows."""
    warm_ms: int | None
    """Milliseconds since the first of them ended. None before."""


class Pulse:
    """The pulse of one stage.

    Spark's listener reports finished micro-batches. The application's own thread asks whether a beat is due.
    So a lock guards the state. interval_ms: the batch interval. clock: s.
    """

    def __init__(self, interval_ms: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first = max(_AT_LEAST, _JITTER * interval_ms / 1000)
        self._again = max(_AGAIN, interval_ms / 1000)
        self._lock = threading.Lock()
        self._batch: int | None = None
        self._count = 0
        self._first_ended: float | None = None
        self._finished = clock()
        self._idle_at: float | None = None
        self._idle_since: float | None = None
        self._last_beat: float | None = None

    @property
    def last(self) -> int | None:
        """The last finished micro-batch, None before the first."""
        return self._batch

    def finished(self, batch: int) -> None:
        """Note that a micro-batch with rows has ended."""
        with self._lock:
            self._batch, self._finished = batch, self._clock()
            self._count += 1
            if self._first_ended is None:
                self._first_ended = self._finished
            self._idle_at = self._idle_since = self._last_beat = None

    def due(self, running: Callable[[], bool]) -> Beat | None:
        """The beat that is due now, None if none is. running: says whether a micro-batch is under way."""
        # Asking Spark costs a call to the JVM. It is made without the lock, and only after some silence.
        if self._clock() - self._finished < self._first:
            return None
        runs = running()
        with self._lock:
            now = self._clock()
            silent = now - self._finished
            if silent < self._first:
                return None  # a micro-batch has ended while Spark was asked
            if not runs:
                self._idle_at = now
                self._idle_since = self._finished if self._idle_since is None else self._idle_since
            else:
                self._idle_since = None
            if self._last_beat is not None and now - self._last_beat < self._again:
                return None
            self._last_beat = now
            # Spark does not say when a micro-batch began: at the earliest, when the stage was last seen idle.
            begun = self._finished if self._idle_at is None else self._idle_at
            return Beat(self._batch, round(1000 * (now - begun)) if runs else None)

    @property
    def run(self) -> Run:
        """How far the stage has come."""
        with self._lock:
            first = self._first_ended
            return Run(self._count, None if first is None else round(1000 * (self._clock() - first)))

    @property
    def idle_seconds(self) -> float:
        """For how long (s) the stage has had nothing to do, as far as `due` has seen."""
        with self._lock:
            return 0.0 if self._idle_since is None else self._clock() - self._idle_since
