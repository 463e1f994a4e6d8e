"""What the cores tell of their work, for people and telemetry. No result depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import starmap, zip_longest
from typing import Literal, NamedTuple

import numpy as np

from evenflow.numeric.arrays import UInt64s
from evenflow.sketches.hyperloglog import HyperLogLog
from evenflow.twostep.arrival_times import ArrivalCounts, merge_arrivals
from evenflow.windows import NO_MARK

Part = Literal["combine", "reduce"]
PRECISION = 10
"""Precision of the sketches of keys: 1 KiB a task, a standard error of 3.3 %."""
NO_BATCH = -1
"""Stands for the number of the micro-batch.
The cores do not know the number, and the shell puts it in (`in_batch`).
"""
KEPT = 8
"""The work of so many micro-batches is remembered, for each part."""


@dataclass(frozen=True, kw_only=True)
class BucketPosition:
    """Where a bucket stands after a micro-batch."""

    windows: int
    """How many windows with tuples are open."""
    panes: int
    """How many panes there are from the first to the last open pane with a tuple."""
    next_end: int | None
    """End of the first open window, ms. None if no window is open."""
    marks: tuple[int, ...]
    """The least mark of each input partition, ms."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What tasks of one part did in one micro-batch."""

    tasks: int = 0
    """How many tasks there were."""
    busy_ms: float = 0.0
    """Time of all tasks together."""
    longest_ms: float = 0.0
    """Time of the longest task."""
    rows: int = 0
    """Tuples combined, or partial rows reduced."""
    repeated: int = 0
    """Partial rows that had been merged before, and changed nothing."""
    keys: bytes = b""
    """Registers of a HyperLogLog over the rows' keys, empty if there were no rows."""
    key_replicas: int = 0
    """Distinct keys of each routed partition, added up over the partitions."""
    arrivals: ArrivalCounts = field(default_factory=dict)
    """When the rows came into the input topic."""
    emitted: ArrivalCounts = field(default_factory=dict)
    """Result rows of emitted windows, by the time when the newest tuple of their window came."""
    by_worker: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    """By worker: how many of its tuples were combined, and the time (ms) that this took."""

    def __add__(self, other: Work) -> Work:
        return Work(
            tasks=self.tasks + other.tasks,
            busy_ms=self.busy_ms + other.busy_ms,
            longest_ms=max(self.longest_ms, other.longest_ms),
            rows=self.rows + other.rows,
            repeated=self.repeated + other.repeated,
            keys=_union(self.keys, other.keys),
            key_replicas=self.key_replicas + other.key_replicas,
            arrivals=merge_arrivals(self.arrivals, other.arrivals),
            emitted=merge_arrivals(self.emitted, other.emitted),
            by_worker=_summed(self.by_worker, other.by_worker),
        )

    @property
    def distinct(self) -> float:
        """About how many distinct keys the rows have."""
        if not self.keys:
            return 0.0
        return HyperLogLog.from_values(np.frombuffer(self.keys, np.uint8)).estimate()


def _summed(
    first: Mapping[int, tuple[int, float]], second: Mapping[int, tuple[int, float]]
) -> Mapping[int, tuple[int, float]]:
    if not first or not second:
        return first or second
    total = dict(first)
    for worker, (rows, took_ms) in second.items():
        before = total.get(worker, (0, 0.0))
        total[worker] = before[0] + rows, before[1] + took_ms
    return total


def _union(first: bytes, second: bytes) -> bytes:
    if not first or not second:
        return first or second
    return np.maximum(np.frombuffer(first, np.uint8), np.frombuffer(second, np.uint8)).tobytes()


class FrameAt(NamedTuple):
    """A frame of a routed partition."""

    offset: int
    """The frame's offset there."""
    session: int
    """Id of the session in which an instance wrote it."""
    number: int
    """The frame's number in the session."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts that add up, and the newest stand of each bucket."""

    tuples: int = 0
    """How many tuples were combined."""
    rows: int = 0
    """How many result rows were emitted."""
    unfit: int = 0
    """Result values that are null because they do not fit their type."""
    closed: Mapping[int, int] = field(default_factory=dict)
    """By bucket, windows that were emitted. With few keys, a bucket may have no row of a window."""
    emitted: Mapping[int, int] = field(default_factory=dict)
    """By bucket, the end of the last emitted window, ms."""
    bucket_stands: Mapping[int, BucketPosition] = field(default_factory=dict)
    """By bucket, where it stands."""
    input_marks: tuple[int, ...] = ()
    """Newest mark of each input partition that combiners read, ms. Empty if they read none."""
    frames: Mapping[int, FrameAt] = field(default_factory=dict)
    """By routed partition, the newest frame that combiners read."""
    work: Mapping[tuple[Part, int], Work] = field(default_factory=dict)
    """By part and number of the micro-batch, what its tasks did.
    Of the newest `KEPT` micro-batches of each part."""

    def __add__(self, later: Tally) -> Tally:
        buckets = {*self.closed, *later.closed}
        return Tally(
            tuples=self.tuples + later.tuples,
            rows=self.rows + later.rows,
            unfit=self.unfit + later.unfit,
            closed={b: self.closed.get(b, 0) + later.closed.get(b, 0) for b in buckets},
            emitted={**self.emitted, **later.emitted},
            bucket_stands={**self.bucket_stands, **later.bucket_stands},
            input_marks=_newest(self.input_marks, later.input_marks),
            frames={**self.frames, **later.frames},
            work=_added(self.work, later.work) if later.work else self.work,
        )

    @property
    def windows(self) -> int:
        """Number of windows that were emitted, as counted by the bucket that emitted most."""
        return max(self.closed.values(), default=0)

    def slowed(self, more_ms: Mapping[int, float]) -> Tally:
        """This tally as if the work of each worker had taken so much longer."""
        work = {
            at: replace(
                done, by_worker={w: (n, took + more_ms[w]) for w, (n, took) in done.by_worker.items()}
            )
            for at, done in self.work.items()
        }
        return replace(self, work=work)

    def in_batch(self, batch: int, took_ms: float) -> Tally:
        """This tally as told by one task of micro-batch `batch` that took `took_ms`."""
        work = {
            (part, batch): replace(done, tasks=1, busy_ms=took_ms, longest_ms=took_ms)
            for (part, _), done in self.work.items()
        }
        return replace(self, work=work)

    @property
    def mark(self) -> int | None:
        """Least mark (ms) that was merged, or that was combined if no reducer tells.
        None before the first micro-batch.
        """
        stand = self.stand
        marks = self.input_marks if stand is None else stand.marks
        return min(marks, default=None)

    @property
    def stand(self) -> BucketPosition | None:
        """Where all buckets together stand. None before the first micro-batch."""
        if not self.bucket_stands:
            return None
        each = list(self.bucket_stands.values())
        nexts = [stand.next_end for stand in each if stand.next_end is not None]
        return BucketPosition(
            windows=max(stand.windows for stand in each),
            panes=max(stand.panes for stand in each),
            next_end=min(nexts, default=None),
            marks=tuple(
                min(column) for column in zip_longest(*(stand.marks for stand in each), fillvalue=NO_MARK)
            ),
        )


def _newest(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    if not first or not second:
        return first or second
    return tuple(starmap(max, zip_longest(first, second, fillvalue=NO_MARK)))


def _added(
    first: Mapping[tuple[Part, int], Work], second: Mapping[tuple[Part, int], Work]
) -> dict[tuple[Part, int], Work]:
    together = dict(first)
    for at, work in second.items():
        together[at] = together[at] + work if at in together else work
    for part in {part for part, _ in second}:
        for old in sorted(batch for mine, batch in together if mine == part)[:-KEPT]:
            del together[part, old]
    return together


def sketch(hashes: UInt64s) -> bytes:
    """Registers of a HyperLogLog of the keys with these hashes (`keys.hash_keys`)."""
    keys = HyperLogLog(PRECISION)
    keys.add(hashes)
    return keys.values.tobytes()
