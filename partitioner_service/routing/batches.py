"""Micro-batches: tuples are held until the interval of their batch is over, and then routed as a whole.

A batch has an interval of processing time or of event time:

* processing time (001's heartbeat): a batch is what was read from one beat to the next. It is cut a little
  before the beat (*early release*), by as much as the last batches took to be planned and framed. What comes
  after the cut belongs to the next batch, and waits in Kafka's client meanwhile.
* event time: a batch is what the partitions of this instance have up to the end of an interval. The interval
  is over once each of them that is awake has passed its end. Slices are cut where their partition passes into
  another interval. So the pieces of later intervals wait for their own batch, also where a block spans many
  intervals.

Lateness is judged when a record is read, record by record and in offset order, so no result depends on where
a batch is cut. Statistics of an open batch are kept while tuples arrive (`Partitioner.add_to_batch`). A
transaction is opened when the batch is planned, so a batch may last longer than a transaction. What is held
is bounded: a batch is cut short when it takes too much memory, and where waiting longer would stop others.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenflow.keys import hash_keys
from evenflow.metrics.clusters import BatchSummary, summary
from evenflow.numeric.arrays import Int64s, UInt64s
from evenflow.partitioners.registry import describe
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.telemetry import BatchesState, BatchState
from evenflow.wire import MOST_SPLIT
from partitioner_service.block import Slice
from partitioner_service.routing.framing import Stretch
from partitioner_service.routing.gate import Gate, Owner, States, Straight, Why
from partitioner_service.routing.pieces import AcceptedTuples, Destinations, Piece, RoutedBlock
from partitioner_service.routing.planned_partitioner import furthest
from partitioner_service.routing.router import Router

_LAST = 8
"""Early release is as long as the slowest of so many batches took."""
_LEAST_RECORDS = 1_000
"""A read takes at least so many, however soon the batch is cut."""
_MOST_RELEASE = 0.5
"""Share of the interval that early release takes at most."""
_PIECE_BYTES = 400
"""Bytes that a piece takes besides its tuples and its rejected records."""


@dataclass(frozen=True, kw_only=True)
class Batching:
    """How a service cuts batches."""

    interval: int
    """Length of a batch (ms)."""
    clock: Literal["event", "processing"]
    """In which time the length is."""
    release_early: bool
    """Whether a batch is cut a little before the beat."""
    most_bytes: int
    """Bytes that may be held."""


def batching(settings: Settings) -> Batching | None:
    """How the service of these settings cuts batches. None if it routes tuple by tuple.

    ConfigError for an unknown partitioner.
    """
    options = settings.partitioner
    if options.batch_interval is None and not describe(options.name).micro_batch:
        return None
    return Batching(
        interval=settings.query.slide_ms if options.batch_interval is None else options.batch_interval,
        clock=options.batch_clock,
        release_early=options.batch_release == "early",
        most_bytes=options.batch_bytes,
    )


def gate(settings: Settings, router: Router, *, clock: Callable[[], float] = time.monotonic) -> Gate:
    """What these settings ask for between reading and routing. clock: seconds."""
    how = batching(settings)
    return Straight(router) if how is None else Batches(settings, how, router, clock=clock)


class CutClock:
    """When a batch of processing time is cut: the heartbeat of Prompt. interval: seconds. clock: seconds."""

    def __init__(self, interval: float, *, release_early: bool, clock: Callable[[], float]) -> None:
        self._interval = interval
        self._early = release_early
        self._clock = clock
        self._took: deque[float] = deque(maxlen=_LAST)
        self._began = clock()
        self.beat = self._began + interval
        """When the present interval is over."""

    @property
    def release(self) -> float:
        """Seconds before the beat at which the batch is cut."""
        if not self._early:
            return 0.0
        return min(max(self._took, default=0.0), _MOST_RELEASE * self._interval)

    @property
    def due_in(self) -> float:
        """Seconds until the present batch is cut, at least 0."""
        return max(0.0, self.beat - self.release - self._clock())

    def arrival(self) -> int:
        """Milliseconds of the present interval that are over, at most all but one."""
        passed = round(1000 * (self._clock() - self._began))
        return max(0, min(passed, round(1000 * self._interval) - 1))

    def cut(self) -> float:
        """Begin the next interval. Returns when the one before was or will be over. Beats that were missed
        are left out.
        """
        over, now = self.beat, self._clock()
        self._began = now
        self.beat = over + self._interval * (1 + max(0.0, now - over) // self._interval)
        return over

    def took(self, seconds: float) -> None:
        """Note how long a batch took from its cut until its last frame was handed over."""
        self._took.append(seconds)


class Batches:
    """Holds what was read until its batch is whole. See `Gate` and the module's docstring."""

    def __init__(
        self, settings: Settings, how: Batching, router: Router, *, clock: Callable[[], float]
    ) -> None:
        self._how = how
        self._router = router
        self._clock = clock
        self._buckets = settings.buckets
        self._cut_clock = CutClock(how.interval / 1000, release_early=how.release_early, clock=clock)
        self._by_event = how.clock == "event"
        self._open: list[Piece] = []
        self._hashes: list[UInt64s] = []
        self._interval: int | None = None
        self._later: dict[int, deque[Piece]] = {}
        self._before: dict[int, PartitionState] = {}
        self._bytes = 0
        self._cut_short: Counter[str] = Counter()
        self._count = 0
        self._last: BatchState | None = None
        self._cut_at: float | None = None
        self._beat: float | None = None
        self._asked_at: float | None = None
        self._paces: deque[float] = deque(maxlen=_LAST)

    # ---- the contract

    def take(self, slices: Sequence[Slice], owner: Owner) -> Iterator[RoutedBlock]:
        """As `Gate.take`."""
        if self._by_event:
            pieces = list(self._router.pieces_by(self._how.interval, slices, owner.states))
        else:
            pieces = self._router.pieces(slices, owner.states)
        owner.move({piece.partition: piece.after for piece in pieces})
        for piece in pieces:
            self._hold(piece.lighter())
        if self._asked_at is not None:
            records = sum(len(some.values) for some in slices)
            self._paces.append((self._clock() - self._asked_at) / max(1, records))
            self._asked_at = None
        yield from self.due(owner.states)
        while self._bytes > self._how.most_bytes and self.holds:
            yield self._release(owner.states, why="memory")

    def due(self, states: States) -> Iterator[RoutedBlock]:
        """As `Gate.due`."""
        if not self._by_event:
            if self._cut_clock.due_in == 0.0:
                beat = self._cut_clock.cut()
                if self.holds:
                    self._beat = beat
                    yield self._release(states)
            return
        self._open_next()
        while self._over(states):
            yield self._release(states)

    def empty(self, states: States, *, why: Why) -> Iterator[RoutedBlock]:
        """As `Gate.empty`."""
        while self.holds:
            yield self._release(states, why=why)

    def released(self, states: States) -> dict[int, PartitionState]:
        """As `Gate.released`."""
        return {partition: self._before.get(partition, state) for partition, state in states.items()}

    def committed(self, states: States) -> dict[int, PartitionState]:
        """As `Gate.committed`."""
        self._before |= {p: state for p, state in states.items() if p in self._before}
        return {p: state for p, state in states.items() if p not in self._before}

    def drop(self) -> None:
        """As `Gate.drop`."""
        self._router.plans.partitioner.drop_batch()
        self._open, self._hashes, self._later, self._before = [], [], {}, {}
        self._interval, self._bytes = None, 0

    @property
    def holds(self) -> bool:
        """As `Gate.holds`."""
        return bool(self._before)

    def reading(self, most: int, linger: float) -> tuple[int, float]:
        """As `Gate.reading`. A block that takes longer than until the cut would make its batch late."""
        if self._by_event:
            return most, linger
        self._asked_at = self._clock()
        due_in = self._cut_clock.due_in
        slowest = max(self._paces, default=0.0)
        if slowest > 0:
            most = min(most, max(_LEAST_RECORDS, int(due_in / slowest)))
        return most, min(linger, due_in)

    def written(self) -> None:
        """As `Gate.written`."""
        if self._cut_at is None or self._last is None:
            return
        now = self._clock()
        took, self._cut_at = now - self._cut_at, None
        late = None
        if self._beat is not None:
            late = max(0.0, now - self._beat) / (self._how.interval / 1000)
            self._cut_clock.took(took)
        self._beat = None
        self._last = self._last.model_copy(update={"took_ms": 1000 * took, "late": late})

    def state(self) -> BatchesState | None:
        """As `Gate.state`."""
        all_pieces = [*self._open, *(piece for pieces in self._later.values() for piece in pieces)]
        return BatchesState(
            interval_ms=self._how.interval,
            clock=self._how.clock,
            count=self._count,
            cut_short=dict(self._cut_short),
            held=sum(len(piece.tuples.times) for piece in all_pieces if piece.tuples is not None),
            held_bytes=self._bytes,
            release_ms=None if self._by_event else 1000 * self._cut_clock.release,
            by_fallback=self._router.plans.partitioner.by_fallback,
            last=self._last,
        )

    # ---- holding

    def _hold(self, piece: Piece) -> None:
        self._before.setdefault(piece.partition, piece.before)
        self._bytes += _weight(piece)
        if not self._by_event:
            self._add(piece)
            return
        self._later.setdefault(piece.partition, deque()).append(piece)
        if self._interval is not None:
            self._move(piece.partition)

    def _open_next(self) -> None:
        """Open the earliest interval that something waits for, unless one is open."""
        if self._interval is not None or not self._later:
            return
        begins = [_begins(pieces) for pieces in self._later.values()]
        known = [number for number in begins if number is not None]
        # Pieces without an accepted tuple belong to no interval. They go with the next batch.
        if known:
            self._interval = min(known)
            for partition in list(self._later):
                self._move(partition)

    def _move(self, partition: int) -> None:
        """Put the pieces of this partition that belong to the open interval into the open batch."""
        waiting = self._later[partition]
        while waiting and (waiting[0].interval is None or waiting[0].interval <= (self._interval or 0)):
            self._add(waiting.popleft())
        if not waiting:
            del self._later[partition]

    def _add(self, piece: Piece) -> None:
        """Put a piece into the open batch, and count its tuples."""
        self._open.append(piece)
        if piece.tuples is None:
            return
        hashes = hash_keys(piece.tuples.keys)
        self._hashes.append(hashes)
        partitioner = self._router.plans.partitioner
        if not partitioner.micro_batch:
            return
        times, ends = piece.tuples.times, None
        if partitioner.batch_clock == "arrival":
            times, ends = self._arrivals(times)
        partitioner.add_to_batch(hashes, times, ends=ends)

    def _arrivals(self, times: Int64s) -> tuple[Int64s, int]:
        """Times of arrival (ms) within the interval of the open batch, and its end.

        By event time, the interval stands where it is on the time axis. By processing time, it begins at 0.
        """
        length = self._how.interval
        if not self._by_event:
            return np.full(len(times), self._cut_clock.arrival(), np.int64), length
        begins = (self._interval or 0) * length
        return np.clip(times, begins, begins + length - 1), begins + length

    def _over(self, states: Mapping[int, PartitionState]) -> bool:
        """Whether every partition has passed the open interval, ended, or sleeps."""
        if self._interval is None:
            # What is held has no accepted tuple. Nothing is planned, and no mark has moved.
            return self.holds
        return all(self._passed(state, self._interval) for state in states.values())

    def _passed(self, state: PartitionState, interval: int) -> bool:
        if state.ended or state.asleep:
            return True
        return state.max_time is not None and state.max_time // self._how.interval > interval

    # ---- releasing

    def _release(self, states: States, *, why: Why | None = None) -> RoutedBlock:
        """Route the open batch. why: it is not whole, and is cut for this reason."""
        self._cut_at = self._clock()
        if not self._open:
            self._open_next()
        if not self._open:  # only pieces without an accepted tuple
            for waiting in self._later.values():
                self._open.extend(waiting)
            self._later.clear()
        pieces, hashes, before = self._open, self._hashes, self.released(states)
        begins = furthest(before) if self._interval is None else self._interval * self._how.interval
        self._open, self._hashes, self._interval = [], [], None
        self._bytes -= sum(map(_weight, pieces))
        self._before = {partition: waiting[0].before for partition, waiting in self._later.items()}
        tuples = [piece.tuples for piece in pieces if piece.tuples is not None]
        routing = None
        if tuples:
            routing = self._routing(AcceptedTuples.together(tuples), np.concatenate(hashes), begins)
            if why is not None:
                self._cut_short[why] += 1
        routed = self._router.framed(pieces, self.released(states), routing)
        if self._by_event:
            self._open_next()
        return routed

    def _routing(self, tuples: AcceptedTuples, hashes: UInt64s, begins: int | None) -> Destinations:
        """Where the tuples of the batch go. begins: event time (ms) at which the batch begins, None if it
        is the first.
        """
        plans, number = self._router.plans, self._count
        self._count += 1
        if not plans.partitioner.micro_batch:
            routing = self._router.assigned(tuples, hashes)
        else:
            plans.pass_to(int(tuples.times.min()) if begins is None else begins)
            workers = plans.partitioner.finish_batch()
            routing = Destinations(tuples, hashes, workers, (Stretch(epoch=plans.epoch),))
        figures = summary(hashes, routing.workers, workers=plans.partitioner.workers, buckets=self._buckets)
        self._last = _batch_state(figures)
        split = figures.split if len(figures.split) <= MOST_SPLIT else None
        stretches = tuple(replace(stretch, batch=number, split=split) for stretch in routing.stretches)
        return replace(routing, stretches=stretches)


def _begins(waiting: deque[Piece]) -> int | None:
    """The interval of the first of these pieces that has one."""
    return next((piece.interval for piece in waiting if piece.interval is not None), None)


def _weight(piece: Piece) -> int:
    """Bytes that a piece takes while it is held."""
    # The hash of each tuple, and 4 bytes that a partitioner keeps of it.
    tuples = 0 if piece.tuples is None else piece.tuples.nbytes + 12 * len(piece.tuples.times)
    rejected = sum(
        len(record.value() or b"") + len(record.key() or b"") + _PIECE_BYTES for record in piece.slice.records
    )
    return _PIECE_BYTES + tuples + rejected


def _batch_state(figures: BatchSummary) -> BatchState:
    return BatchState(
        tuples=figures.tuples,
        keys=figures.keys,
        split=len(figures.split),
        bsi=figures.data_blocks.bsi,
        bci=figures.data_blocks.bci,
        ksr=figures.data_blocks.ksr,
        mpi=figures.data_blocks.mpi,
        reduce_bsi=figures.buckets.bsi,
        reduce_bci=figures.buckets.bci,
        reduce_ksr=figures.buckets.ksr,
        reduce_mpi=figures.buckets.mpi,
    )
