"""Tuples further ahead of the clock than the query allows (`query.max_ahead_of_clock`).

The clock is the broker's where the topic stamps records as they are appended (`LogAppendTime`). Otherwise it
is this machine's at the moment when the tuples are judged. A rejected record names the clock, because nothing
else tells later what it showed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from evenflow.numeric.arrays import Bools, Int64s
from evenflow.settings import Settings
from partitioner_service.fetch.messages import append_times_of, first_append_time_of


class Ahead(NamedTuple):
    """Tuples that are too far ahead of the clock."""

    which: Bools
    """Which tuples these are, shape (tuples,)."""
    clocks: Int64s
    """What the clock showed for each tuple (ms), shape (tuples,)."""


class Clock(Protocol):
    """Says which tuples of a slice are ahead.

    records: of the slice, empty if it holds none. rows: the position of each tuple's record. times: event
    times (ms). rows and times have shape (tuples,). None: no tuple is ahead.
    """

    def ahead(self, records: Sequence[Any], rows: Int64s, times: Int64s) -> Ahead | None: ...


class LiveClock:
    """The clock of tuples that are read now. wall: seconds since 1970."""

    def __init__(self, settings: Settings, *, wall: Callable[[], float] = time.time) -> None:
        self._most = settings.query.max_ahead_of_clock
        self._wall = wall

    def ahead(self, records: Sequence[Any], rows: Int64s, times: Int64s) -> Ahead | None:
        """As `Clock` says."""
        if self._most is None or not times.size:
            return None
        now = int(self._wall() * 1000)
        stamp = first_append_time_of(records) if records else None
        # Event times are rarely ahead of their own append, so the other stamps are rarely looked at. A
        # broker's clock may go back a little within a slice, by less than the setting allows.
        if int(times.max()) <= (now + self._most if stamp is None else stamp):
            return None
        clocks = np.full(times.size, now, np.int64)
        if records:
            stamps = append_times_of(records, rows)
            clocks = np.where(stamps < 0, now, stamps)
        which = times > clocks + self._most
        return Ahead(which, clocks) if which.any() else None
