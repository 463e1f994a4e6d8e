"""The combiner's core: the frames of one task -> one blob per reduce bucket, or per reduce task.

Whenever a task read a frame, every bucket gets a blob, even an empty one. The blob carries the marks, and it
moves the bucket's merged offsets on.

How the frames of a routed partition are folded into partials depends on these frames and their offsets alone.
Time, memory, Arrow's batches and the task's other routed partitions have no influence. So a repeated
micro-batch makes the same rows in the same order, and the same float sums.

With reduce tasks (`Layout.reduce_tasks`) a blob is for a task, and `reduce_task` makes the blobs of the
buckets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.aggregate import ROWS
from evenflow.errors import ProtocolError
from evenflow.keys import hash_keys
from evenflow.numeric.arrays import Int32s, Int64s, Rows, UInt64s, no_rows, records
from evenflow.partitioners.prompt.reduce_buckets import allocate
from evenflow.twostep.arrival_times import ArrivalCounts, count_arrivals, merge_arrivals
from evenflow.twostep.distinct import distinct
from evenflow.twostep.lanes import RoutedLanes, grown
from evenflow.twostep.layout import Layout
from evenflow.twostep.sequences import RangeSequences
from evenflow.twostep.split_keys import SplitKeyTables
from evenflow.twostep.tally import NO_BATCH, FrameAt, Tally, Work, sketch
from evenflow.windows import NO_MARK
from evenflow.wire import LANE, BlobHeader, Segment, cut, decode_frame, encode_blob

FOLD_ROWS = 500_000
"""After so many rows, the rows held are folded into partials.
With `FOLD_BYTES`, this bounds the memory of a task.
"""
FOLD_BYTES = 64_000_000
"""After so many bytes, the rows held are folded, too.

Rows and bytes are counted frame by frame. Both numbers are part of the format: another number gives other
float sums.
"""

Frames = Iterable[tuple[int, bytes | pa.Buffer]]
"""(offset, frame) of one routed partition, by ascending offset."""


class BlobPart(NamedTuple):
    """One encoded blob, or one part of a blob that was cut."""

    bucket: int
    """The reduce bucket, or the reduce task, that gets it."""
    data: bytes
    """The bytes of this part."""
    part: int
    """Which of the `parts` this is, from 0."""
    parts: int
    """Into how many parts the blob was cut, 1 if it was not."""


class _Range(NamedTuple):
    """The combined frames of one routed partition."""

    routed: int
    """The routed partition, by its number."""
    first: int
    """Offset of the first frame."""
    last: FrameAt
    """The last frame, with its place in its session."""
    lanes: RoutedLanes
    """What the frames say of how far each input partition was read."""
    sequences: Rows
    """Which frames of which session these are: records `wire.SEQUENCE`."""
    partials: pa.Table
    """The frames' tuples, combined: a row for each pane and key."""
    tuples: dict[int, int]
    """How many tuples the frames had of each worker that had any."""
    arrivals: ArrivalCounts
    """When these tuples came into the input topic."""
    split: SplitKeyTables
    """What the frames say of split keys."""


class _Stopwatch:
    """Measures the work on frames, without the waiting for the next frame.
    clock: in s, None to measure nothing.
    """

    def __init__(self, clock: Callable[[], float] | None) -> None:
        self._clock = clock
        self._seconds = 0.0
        self._began = 0.0 if clock is None else clock()

    def timed(self, frames: Frames) -> Frames:
        """The frames. Whoever takes the next one has ended the work on the one before."""
        clock = self._clock
        if clock is None:
            yield from frames
            return
        self._seconds += clock() - self._began
        for frame in frames:
            self._began = clock()
            yield frame
            self._seconds += clock() - self._began
        self._began = clock()

    @property
    def ms(self) -> float:
        """The work so far, ms."""
        return 0.0 if self._clock is None else 1000 * (self._seconds + self._clock() - self._began)


def combine_task(
    plan: AggregatePlan,
    layout: Layout,
    stretches: Iterable[tuple[int, Frames]],
    *,
    on_tally: Callable[[Tally], object] | None = None,
    clock: Callable[[], float] | None = None,
) -> list[BlobPart]:
    """The blobs of one task, in the order of their receivers. The list is empty if there is no frame.

    stretches: pairs (routed partition, its frames), each routed partition once. on_tally: called once at the
    end with what was combined, if there were frames. clock: in s, to measure how long each routed partition
    takes. None: that is not told.

    Raises IncompatibleStateError for a frame of another query or layout, and DataLossError if a frame is
    gone. Raises ProtocolError for bytes that are no frame, and for a frame that has other columns, comes out
    of order or holds input that was routed twice.
    """
    ranges: dict[int, _Range] = {}
    took: dict[int, float] = {}
    for routed, frames in stretches:
        if routed in ranges:
            raise ProtocolError(f"routed partition {routed} was handed over in two stretches")
        work = _Stopwatch(clock)
        combined = _combine(plan, layout, routed, work.timed(frames))
        if combined is not None:
            ranges[routed] = combined
            if clock is not None:
                took[routed] = work.ms
    if not ranges:
        return []
    # Spark gives the stretches in any order. Blobs hold their segments by routed partition, so a repeat is
    # the same.
    ordered = [ranges[routed] for routed in sorted(ranges)]
    whole = pa.concat_tables([entry.partials for entry in ordered])
    hashes = hash_keys(whole["key"])
    blobs = list(_blobs(layout, ordered, whole, hashes))
    if on_tally is not None:
        on_tally(_tally(ordered, hashes, took))
    return blobs


def _tally(ranges: list[_Range], hashes: UInt64s, took: Mapping[int, float]) -> Tally:
    """took: how long each routed partition took, ms."""
    tuples = sum(sum(entry.tuples.values()) for entry in ranges)
    ends = np.cumsum([entry.partials.num_rows for entry in ranges])
    # Keys are counted for each range by itself: workers that share a routed partition share its partials.
    key_replicas = sum(map(distinct, np.split(hashes, ends[:-1])))
    arrivals = merge_arrivals(*(entry.arrivals for entry in ranges))
    marks = np.max(_marks(ranges), axis=0)
    work = Work(
        rows=tuples,
        keys=sketch(hashes),
        key_replicas=key_replicas,
        arrivals=arrivals,
        by_worker=_by_worker(ranges, took),
    )
    return Tally(
        tuples=tuples,
        input_marks=tuple(marks.tolist()),
        frames={entry.routed: entry.last for entry in ranges},
        work={("combine", NO_BATCH): work},
    )


def _by_worker(ranges: list[_Range], took: Mapping[int, float]) -> dict[int, tuple[int, float]]:
    """By worker, its tuples and their time, ms.

    Workers that share a routed partition are combined together, so each has its share of that time. The time
    of a partition without tuples is that of its first worker.
    """
    times: dict[int, tuple[int, float]] = {}
    for entry in ranges:
        if entry.routed in took:
            ms, total = took[entry.routed], sum(entry.tuples.values())
            times |= {worker: (many, ms * many / total) for worker, many in entry.tuples.items()}
            if not total:
                times[entry.routed] = 0, ms
    return times


def _combine(plan: AggregatePlan, layout: Layout, routed: int, frames: Frames) -> _Range | None:
    fold, lanes, sequences = _Fold(plan), RoutedLanes(layout, routed), RangeSequences(routed)
    split = SplitKeyTables()
    first, last = -1, FrameAt(-1, -1, -1)
    arrivals: list[tuple[int | None, int]] = []
    tuples: Counter[int] = Counter()
    for offset, data in frames:
        if offset <= last.offset:
            raise ProtocolError(f"routed partition {routed}: offset {offset} was read after {last.offset}")
        try:
            frame = decode_frame(data, fingerprint=layout.in_frames)
        except ProtocolError as error:
            raise ProtocolError(
                f"routed partition {routed}, offset {offset}: {error.message}",
                hint=(
                    "something else than the partitioners wrote to the routed topic, or a record was damaged:"
                    " rebuild the query under a new name (docs/operations/data-loss.md)"
                ),
            ) from None
        lanes.add(frame, offset)
        sequences.add(frame, offset)
        split.add(frame)
        fold.add(frame.batch, f"routed partition {routed}, offset {offset}")
        tuples.update(frame.workers(routed))
        arrivals.append((frame.header.arrival_time, frame.batch.num_rows))
        first = offset if first < 0 else first
        last = FrameAt(offset, frame.header.session, frame.sequence)
    if first < 0:
        return None
    return _Range(
        routed,
        first,
        last,
        lanes,
        sequences.rows(),
        fold.result(),
        dict(sorted(tuples.items())),
        count_arrivals(arrivals),
        split,
    )


def _receivers(layout: Layout, ranges: list[_Range], partials: pa.Table, hashes: UInt64s) -> Int32s:
    """Who gets each partial: its bucket, or one of the reduce tasks
    by Prompt's Algorithm 3. Shape (partials,).

    A routed partition is a data block. Its clusters are allocated by themselves, so the choice depends on its
    frames alone, as their fold does.
    """
    tasks = layout.reduce_tasks
    if tasks is None:
        return layout.bucket_of(hashes)
    sizes = partials[ROWS].to_numpy()
    out = np.empty(len(hashes), np.int32)
    begin = 0
    for entry in ranges:
        mine = slice(begin, begin + entry.partials.num_rows)
        keys = hashes[mine]
        out[mine] = allocate(keys, sizes[mine], entry.split.have(keys), tasks, first=entry.routed % tasks)
        begin = mine.stop
    return out


def _blobs(layout: Layout, ranges: list[_Range], partials: pa.Table, hashes: UInt64s) -> Iterator[BlobPart]:
    """One blob for each receiver. partials: of all ranges, in the order of `ranges`.
    hashes: those of the partials' keys.
    """
    receiver_ids = _receivers(layout, ranges, partials, hashes)
    table, totals = _by_receiver(
        partials, receiver_ids, [entry.partials.num_rows for entry in ranges], layout.receivers
    )
    # Many ranges were told the same marks. Each different line of marks is written once, and segments name
    # its number.
    marks, lines = np.unique(_marks(ranges), axis=0, return_inverse=True)
    lanes = [entry.lanes.rows() for entry in ranges]
    ends = np.cumsum(totals.sum(axis=1))
    sequences = cast(Rows, np.concatenate([entry.sequences for entry in ranges]))
    oldest = min((time for entry in ranges for time in entry.arrivals), default=None)
    for receiver in range(layout.receivers):
        count = int(totals[receiver].sum())
        rows = table.slice(int(ends[receiver]) - count, count)
        watched = [
            mine
            for entry, mine in zip(ranges, lanes, strict=True)
            if layout.lanes_go_to(entry.routed) == receiver
        ]
        header = BlobHeader(
            fingerprint=layout.fingerprint,
            topic_id=layout.topic_id,
            bucket=receiver,
            buckets=layout.receivers,
            input_partitions=marks.shape[1],
            routed_partitions=layout.routed_partitions,
            # A segment of no rows is named, too: it moves the bucket's merged offset on.
            segments=tuple(
                Segment(entry.routed, entry.first, entry.last.offset, total, 0, total, line)
                for entry, total, line in zip(
                    ranges, totals[receiver].tolist(), lines.reshape(-1).tolist(), strict=True
                )
            ),
            marks=marks,
            lanes=cast(Rows, np.concatenate([records(0, LANE), *watched])),
            arrival_time=oldest,
            sequences=sequences,
            for_task=layout.reduce_tasks is not None,
        )
        yield from blob_parts(rows, header, layout.max_bytes)


def _marks(ranges: list[_Range]) -> Int64s:
    """The marks of each range, shape (ranges, input partitions).
    Some ranges may know of fewer input partitions.
    """
    inputs = max(len(entry.lanes.marks) for entry in ranges)
    return np.stack([grown(entry.lanes.marks, inputs, NO_MARK) for entry in ranges])


def blob_parts(rows: pa.Table, header: BlobHeader, max_bytes: int) -> Iterator[BlobPart]:
    """The blob of these rows, cut into parts near `max_bytes`. Each part names the rows of the segments
    that it holds.
    """
    parts = list(cut(one_batch(rows), max_bytes))
    if len(parts) == 1:
        yield BlobPart(header.bucket, encode_blob(parts[0], header), 0, 1)
        return
    begin = 0
    for number, batch in enumerate(parts):
        end = begin + batch.num_rows
        segments = tuple(_within(header.segments, begin, end, first=number == 0))
        # Lanes and numbers of frames travel with a segment's first rows only, because the reducer checks them
        # when a segment begins.
        begun = [segment.routed for segment in segments if segment.begin == 0]
        lanes, sequences = (rows[np.isin(rows["routed"], begun)] for rows in (header.lanes, header.sequences))
        mine = replace(header, segments=segments, lanes=lanes, sequences=sequences)
        data = encode_blob(batch, mine, part=number, parts=len(parts))
        yield BlobPart(header.bucket, data, number, len(parts))
        begin = end


def _within(segments: tuple[Segment, ...], begin: int, end: int, *, first: bool) -> Iterator[Segment]:
    """The segments, or pieces of them, that lie in rows begin..end.
    Segments without rows are named in the first part.
    """
    start = 0
    for segment in segments:
        low, high = max(begin, start), min(end, start + segment.total)
        if low < high or (first and not segment.total):
            yield segment._replace(begin=max(0, low - start), rows=max(0, high - low))
        start += segment.total


def _by_receiver(
    partials: pa.Table, receiver_ids: Int32s, rows: list[int], receivers: int
) -> tuple[pa.Table, Int64s]:
    """The partials sorted by receiver, and how many of them each range has for each,
    shape (receivers, ranges).

    For a receiver the partials keep their order. receiver_ids: the receiver of each partial. rows: number of
    partials of each range.
    """
    source = np.repeat(np.arange(len(rows)), rows)
    # One number for each pair (receiver, range), so that one pass counts all pairs.
    counts = np.bincount(receiver_ids * np.int64(len(rows)) + source, minlength=receivers * len(rows))
    if receivers > 1 and partials.num_rows:
        partials = partials.take(pa.array(np.argsort(receiver_ids, kind="stable")))
    return partials, counts.reshape(receivers, len(rows))


class _Fold:
    """Gathers rows, and folds them into partials whenever `FOLD_ROWS` or `FOLD_BYTES` is reached."""

    def __init__(self, plan: AggregatePlan) -> None:
        self._plan = plan
        self._schema = plan.frame_schema
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._partials: list[pa.Table] = []

    def add(self, batch: pa.RecordBatch, where: str) -> None:
        if not batch.schema.equals(self._schema):
            raise ProtocolError(f"{where}: a frame has the columns {batch.schema}, not {self._schema}")
        if batch.column(0).null_count or batch.column(1).null_count:
            raise ProtocolError(f"{where}: a frame has a null pane or key")
        if batch.num_rows == 0:
            return
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= FOLD_ROWS or self._bytes >= FOLD_BYTES:
            self._fold()

    def result(self) -> pa.Table:
        if self._waiting:
            self._fold()
        return self._partials[0] if self._partials else self._plan.partial_schema.empty_table()

    def _fold(self) -> None:
        folded = self._plan.combine(pa.Table.from_batches(self._waiting, self._schema))
        self._partials = [self._plan.merge([*self._partials, folded]) if self._partials else folded]
        self._waiting, self._rows, self._bytes = [], 0, 0


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """The rows of a table as one record batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else no_rows(table.schema)
