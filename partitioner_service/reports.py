"""What an instance reports to the controller: its rate, distinct keys and busy share, at each commit and while it idles."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from evenflow.arrays import UInt64s
from evenflow.settings import Settings
from evenflow.sketches.hyperloglog import HyperLogLog
from evenflow.telemetry import PartitionerRecord
from evenflow.windows import NO_MARK
from partitioner_service.in_force import furthest
from partitioner_service.route import Router
from partitioner_service.source import Source
from partitioner_service.status import Work

SILENT_SECONDS = 5.0
"""An instance that lives says something at least this often."""
_SHORTEST = 1.0
_PRECISION = 11
"""Of the sketch of distinct keys: a standard error of 2.3 %, 2 KiB, and 1.1 ns a tuple (measured, 1e3 and 1e5 keys)."""


@dataclass(frozen=True, kw_only=True)
class Period:
    """What was done in one period, in tuples and distinct keys.

    seconds: of processing time, at least a batch interval. The block that was in hand at its end belongs to it.
    """

    seconds: float
    tuples: int
    keys: float
    busy_seconds: float


class Periods:
    """Cuts processing time into periods. length: the shortest (s); now: of the clock that `roll` is called with."""

    def __init__(self, length: float, *, now: float) -> None:
        self._length = length
        self.last: Period | None = None
        self._begin(now)

    def _begin(self, now: float) -> None:
        self._began, self._tuples, self._busy = now, 0, 0.0
        self._keys = HyperLogLog(_PRECISION)

    def note(self, hashes: UInt64s, seconds: float) -> None:
        """A block was worked on for so long; hashes: of the keys of its tuples."""
        self._tuples += len(hashes)
        self._busy += seconds
        self._keys.add(hashes)

    def roll(self, now: float) -> None:
        """End the period if it is long enough."""
        seconds = now - self._began
        if seconds >= self._length:
            self.last = Period(
                seconds=seconds, tuples=self._tuples, keys=self._keys.estimate(), busy_seconds=self._busy
            )
            self._begin(now)


class Reports:
    """The telemetry of one instance. clock: for intervals (s); wall: seconds since 1970."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._wall = wall
        self._started = round(wall() * 1000)
        self._fingerprint = settings.fingerprint
        interval = settings.spark.batch_interval / 1000
        self._every = min(SILENT_SECONDS, max(_SHORTEST, interval))
        self._periods = Periods(interval or _SHORTEST, now=clock())
        self._said_at = clock() - self._every

    @property
    def due(self) -> bool:
        """Whether it is time for a record, commit or not."""
        return self._clock() - self._said_at >= self._every

    def note(self, hashes: UInt64s, seconds: float) -> None:
        """A block was routed in so long; hashes: of the keys of its tuples."""
        self._periods.note(hashes, seconds)
        self._periods.roll(self._clock())

    def record(self, source: Source, router: Router, work: Work, *, ignored: int) -> PartitionerRecord:
        """The record of this moment. ignored: records of the plan topic that were none."""
        self._said_at = self._clock()
        self._periods.roll(self._said_at)
        states, period = source.states, self._periods.last
        observed = router.plans.partitioner.observe()
        lags = [source.lag(partition) for partition in states]
        marks = [
            state.mark(self._settings.query) for state in states.values() if not (state.ended or state.asleep)
        ]
        return PartitionerRecord(
            query=self._settings.query.name,
            fingerprint=self._fingerprint,
            time=round(self._wall() * 1000),
            instance=self._settings.partitioner.instance,
            started=self._started,
            owned=len(states),
            epoch=router.plans.epoch,
            workers=observed.workers,
            tuples=work.tuples,
            rejected=work.rejected.total,
            period_ms=round(1000 * period.seconds) if period else 0,
            rate=period and period.tuples / period.seconds,
            keys=period and period.keys,
            busy=period and period.busy_seconds / period.seconds,
            lag=None if None in lags else sum(lags),
            event_time=furthest(states),
            mark=min(marks) if marks and NO_MARK not in marks else None,
            loads=observed.loads.tolist(),
            plans_ignored=ignored,
        )
