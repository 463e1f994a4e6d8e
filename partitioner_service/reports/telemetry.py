"""What an instance reports to the controller: its rate, its distinct keys, its busy share and more.

An instance reports at each commit, and from time to time while nothing is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evenflow.metrics import imbalance
from evenflow.numeric.arrays import Int64s
from evenflow.progress import PartitionState
from evenflow.reporting.words import printable
from evenflow.settings import Settings
from evenflow.sketches.hyperloglog import HyperLogLog
from evenflow.telemetry import (
    BatchesState,
    CostsState,
    ExchangeState,
    HotKey,
    PartitionerRecord,
    Standstill,
    StuckAt,
)
from evenflow.windows import END_MARK, NO_MARK
from partitioner_service.kafka.source import Source
from partitioner_service.reports.hot_keys import HotKeys
from partitioner_service.reports.status import Work
from partitioner_service.routing.pieces import RoutedTuples
from partitioner_service.routing.planned_partitioner import furthest
from partitioner_service.routing.router import Router
from partitioner_service.routing.window_loads import WindowLoads

SILENT_SECONDS = 5.0
"""An instance that is alive reports at least this often."""
_SHORTEST = 1.0
"""Seconds: the shortest time between two reports without a commit."""
_LOOK_SECONDS = 0.1
"""Time between two looks for the hottest keys.
A look takes up to 0.4 ms: every 50 ms, half the cost of all metrics.
"""
_PRECISION = 11
"""Precision of the sketch of distinct keys: 2 KiB, a standard error of 2.3 %, and 1.1 ns a tuple (measured
with 1e3 and 1e5 keys).
"""


def longest_silence(settings: Settings) -> float:
    """Seconds between two records of an instance that has nothing to commit."""
    return min(SILENT_SECONDS, max(_SHORTEST, settings.spark.batch_interval / 1000))


@dataclass(frozen=True, kw_only=True)
class Period:
    """What was done in one period. A block that was in hand at the end of the period belongs to the
    period.
    """

    seconds: float
    """Length in processing time, at least a batch interval."""
    tuples: int
    """How many tuples were routed."""
    keys: float
    """Estimate of the distinct keys."""
    busy_seconds: float
    """Seconds spent routing."""
    imbalance: float | None
    """I(m) of the workers' loads (sums of costs). None if no tuple came or if the number of workers
    changed.
    """
    hottest: list[HotKey]
    """The hottest keys, the hottest first."""


class Periods:
    """Cuts processing time into periods.

    length: the shortest period (s). now: the time (s) by the clock that `note` and `roll` are called with.
    """

    def __init__(self, length: float, *, now: float) -> None:
        self._length = length
        self.last: Period | None = None
        """The last period that has ended. None before that."""
        self._hottest_before = HotKeys()
        self._begin(now)

    def _begin(self, now: float) -> None:
        self._began, self._tuples, self._busy = now, 0, 0.0
        self._keys = HyperLogLog(_PRECISION)
        self._hottest = HotKeys()
        self._looked_at: float | None = None
        self._loads: Int64s | None = None
        self._workers: int | None = None
        self._steady = True

    def note(self, sent: RoutedTuples, seconds: float, *, workers: int, now: float) -> None:
        """Add a block. seconds: time spent on it. workers: number of workers in use at its end."""
        self._tuples += len(sent.hashes)
        self._busy += seconds
        self._keys.add(sent.hashes)
        if self._looked_at is None or now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = now
            self._hottest.note(sent.keys, sent.hashes, sent.workers)
        # Tuples of workers that are not in use any more show that the number fell within this block.
        self._steady &= workers == (self._workers or workers) and not sent.loads[workers:].any()
        self._workers = workers
        self._loads = sent.loads if self._loads is None else self._loads + sent.loads

    def hot_key(self, hashed: int) -> HotKey | None:
        """What the sample of the last period has of the key with this hash,
        or else that of the present period.
        """
        return self._hottest_before.hot_key(hashed) or self._hottest.hot_key(hashed)

    def roll(self, now: float) -> None:
        """End the period if it is long enough, and begin the next one."""
        seconds = now - self._began
        if seconds >= self._length:
            self.last = Period(
                seconds=seconds,
                tuples=self._tuples,
                keys=self._keys.estimate(),
                busy_seconds=self._busy,
                imbalance=self._imbalance(),
                hottest=self._hottest.top(),
            )
            self._hottest_before = self._hottest
            self._begin(now)

    def _imbalance(self) -> float | None:
        if self._loads is None or not self._tuples or not self._steady:
            return None
        return max(0.0, imbalance(self._loads[: self._workers]))


class Reports:
    """The telemetry of one instance. clock: for intervals (s). wall: seconds since 1970."""

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
        self._every = longest_silence(settings)
        self._periods = Periods(interval or _SHORTEST, now=clock())
        self._windows = WindowLoads(settings.query)
        self._said_at = clock() - self._every  # the first record is due at once
        self.pages: str | None = None
        """Where the pages of this instance are, as `host:port`. None if it serves none."""

    @property
    def due(self) -> bool:
        """Whether it is time for a record even without a commit."""
        return self._clock() - self._said_at >= self._every

    def hot_key(self, hashed: int) -> HotKey | None:
        """What a sample of the recent period has of the key with this hash. None if it is not in the
        sample.
        """
        return self._periods.hot_key(hashed)

    def note(self, sent: RoutedTuples, seconds: float, *, workers: int) -> None:
        """Add a block. seconds: time that routing it took. workers: number of workers in use at its end."""
        self._periods.note(sent, seconds, workers=workers, now=self._clock())
        self._windows.note(sent.by_pane, workers=workers)
        self._periods.roll(self._clock())

    def record(
        self,
        source: Source,
        router: Router,
        work: Work,
        *,
        ignored: int,
        released: Mapping[int, PartitionState] | None = None,
        exchange: ExchangeState | None = None,
        batches: BatchesState | None = None,
        standing: Sequence[Standstill] = (),
        warnings: Sequence[str] = (),
    ) -> PartitionerRecord:
        """The telemetry record of this moment.

        ignored: number of records of the plan topic that were no plan. released: states behind all that was
        routed. None: nothing was read that is not routed. exchange: None if this instance is in none.
        batches: None if it cuts none. standing: what stands still. warnings: what a person should look at
        though all moves.
        """
        self._said_at = self._clock()
        self._periods.roll(self._said_at)
        states, period = source.states, self._periods.last
        observed = router.plans.partitioner.observe()
        lags = [source.lag(partition) for partition in states]
        marks = {
            partition: state.mark(self._settings.query)
            for partition, state in (states if released is None else released).items()
            if not (state.ended or state.asleep)
        }
        mark = min(marks.values()) if marks and NO_MARK not in marks.values() else None
        # Once all owned partitions have ended there is no live mark, and every window is closed.
        if mark is not None or (states and all(state.ended for state in states.values())):
            self._windows.pass_to(END_MARK if mark is None else mark)
        window_end, window_imbalance = self._windows.last or (None, None)
        return PartitionerRecord(
            query=self._settings.query.name,
            fingerprint=self._fingerprint,
            time=round(self._wall() * 1000),
            instance=self._settings.partitioner.instance,
            started=self._started,
            owned=len(states),
            inputs=source.partition_count,
            epoch=router.plans.epoch,
            workers=observed.workers,
            tuples=work.tuples,
            rejected=work.rejected.total,
            read=work.read,
            filtered=work.filtered,
            period_ms=round(1000 * period.seconds) if period else 0,
            rate=period.tuples / period.seconds if period else None,
            keys=period.keys if period else None,
            busy=period.busy_seconds / period.seconds if period else None,
            lag=None if None in lags else sum(lag for lag in lags if lag is not None),
            event_time=furthest(states),
            mark=mark,
            loads=observed.loads.tolist(),
            plans_ignored=ignored,
            imbalance=period.imbalance if period else None,
            window_end=window_end,
            window_imbalance=window_imbalance,
            hottest=period.hottest if period else [],
            head_keys=observed.head_keys,
            slowest=min(marks, key=lambda partition: marks[partition]) if marks else None,
            stuck=_stuck(source),
            standing=list(standing),
            warnings=list(warnings),
            pages=self.pages,
            exchange=exchange,
            batches=batches,
            costs=None
            if self._settings.partitioner.cost is None
            else CostsState(below=work.costs_below, above=work.costs_above),
        )


def _stuck(source: Source) -> list[StuckAt]:
    """The first of the partitions whose next record cannot be fetched."""
    batches = sorted(source.unfetchable.at(source.states).values(), key=lambda batch: batch.partition)
    return [
        StuckAt(partition=batch.partition, offset=max(0, batch.offset), why=printable(batch.why)[:300])
        for batch in batches[:64]
    ]
