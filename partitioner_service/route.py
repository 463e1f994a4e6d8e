"""Columns to frames: judge lateness, ask the partitioner, pack one frame per worker.

Pure apart from the partitioner's own state: blocks in, frames and rejections out. The caller owns
Kafka and the committed state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow import wire
from evenflow.aggregates import AggregatePlan
from evenflow.arrays import Bools, Int32s, Int64s, UInt64s, no_rows
from evenflow.errors import ProtocolError
from evenflow.keys import hash_keys
from evenflow.markers import EndOfStream
from evenflow.partitioners import Partitioner
from evenflow.progress import Judged, PartitionState, Verdict, judge
from evenflow.settings import Settings
from evenflow.windows import NO_MARK, pane_of, panes_closed_by
from partitioner_service.parse import Parsed, Parser, taken_apart

UNREADABLE = "unreadable"
REASONS = {Verdict.LATE: "late", Verdict.IDLE: "idle", Verdict.JUMP: "jump"}
_WORDS = {
    Verdict.LATE: ("the pane of event time ", " ended at or before its partition's mark "),
    Verdict.IDLE: (
        "the pane of event time ",
        " ended at or before the mark its partition was given while idle ",
    ),
    Verdict.JUMP: (
        "event time ",
        " is further ahead than max_jump and not confirmed by the tuples around it",
    ),
}


@dataclass(frozen=True)
class Slice:
    """The records of one input partition in a block, in offset order.

    first, last: its first and last offset; values: one entry a record; keys, timestamps: only where the
    query reads them; markers: position in the slice -> end-of-stream marker; records: the records
    themselves, opaque here, for whoever must forward a rejected one unchanged.
    """

    partition: int
    first: int
    last: int
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None
    timestamps: Sequence[int] | None = None
    markers: dict[int, EndOfStream] = field(default_factory=dict)
    records: Sequence[Any] = ()


@dataclass(frozen=True)
class Rejections:
    """Records of one slice that are rejected for one reason, an entry each.

    positions: in the slice, ascending; details: what is wrong, UTF-8; marks and times (ms): what each was held against,
    and its own event time, both empty where it was not judged by time.
    """

    partition: int
    reason: str
    positions: Int64s
    details: pa.BinaryArray
    marks: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    times: Int64s = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True)
class Routed:
    """What a block became: frames by worker, rejections, and each partition's state after it."""

    frames: list[tuple[int, bytes]]
    rejections: list[Rejections]
    states: dict[int, PartitionState]
    tuples: int


@dataclass(frozen=True)
class _Accepted:
    keys: pa.BinaryArray
    times: Int64s
    values: pa.RecordBatch

    def only(self, keep: Bools) -> _Accepted:
        """Those of these tuples."""
        mask = pa.array(keep)
        values = self.values.filter(mask) if self.values.num_columns else self.values
        return _Accepted(self.keys.filter(mask), self.times[keep], values)


class Router:
    """Routes blocks with one partitioner; `epoch` is the plan in force.

    It remembers up to which pane every worker has been told that each partition is closed. A mark closes nothing
    before the slowest partition of the instance has passed the pane as well, so that is when the workers are told.
    """

    def __init__(self, settings: Settings, partitioner: Partitioner, *, epoch: int = 0) -> None:
        self.partitioner = partitioner
        self.epoch = epoch
        self._settings = settings
        self._query = settings.query
        self._parser = Parser(settings)
        self._fingerprint = settings.fingerprint
        self._routed = settings.routed_partitions
        self._frame_schema = AggregatePlan.of(settings.query).frame_schema
        self._no_tuples = no_rows(self._frame_schema)
        self._told: dict[int, int] = {}

    @property
    def parser(self) -> Parser:
        """The parser of this query's records."""
        return self._parser

    def forget_what_was_told(self) -> None:
        """After a rebalance or an aborted transaction: the workers are told everything once more."""
        self._told.clear()

    def route(self, slices: Sequence[Slice], states: dict[int, PartitionState]) -> Routed:
        """Frames and rejections of a block, in the order of its slices.

        states: of every partition that the instance owns; left unchanged.
        """
        parsed = self._parse(slices)
        accepted: list[_Accepted] = []
        rejections: list[Rejections] = []
        after: dict[int, PartitionState] = {}
        for piece, part in zip(slices, parsed, strict=True):
            state, good, refused = self._judge_slice(piece, part, states[piece.partition])
            after[piece.partition] = state
            accepted.extend(good)
            rejections.extend(refused)
        offsets = np.array([(piece.partition, piece.first, piece.last) for piece in slices], np.int64)
        batch, bounds = self._by_worker(accepted)
        packed = self._pack(batch, bounds, offsets.reshape(-1, 3), self._to_tell({**states, **after}))
        return Routed(packed, rejections, after, sum(len(part.times) for part in accepted))

    def punctuate(self, states: dict[int, PartitionState]) -> list[tuple[int, bytes]]:
        """Frames without tuples that tell the marks of these partitions (all that are owned); none unless due."""
        told = self._to_tell(states)
        if not len(told):
            return []
        nobody = np.zeros(self._routed + 1, np.int64)
        return self._pack(self._no_tuples, nobody, np.empty((0, 3), np.int64), told)

    def _to_tell(self, states: dict[int, PartitionState]) -> Int64s:
        """(partition, mark, next offset) of every partition once the slowest has passed a pane; shape (n, 3)."""
        nothing = np.empty((0, 3), np.int64)
        if not states:
            return nothing
        marks = {p: state.mark(self._query) for p, state in states.items()}
        closed = {p: int(panes_closed_by(mark, self._query.slide_ms)) for p, mark in marks.items()}
        unknown = int(panes_closed_by(NO_MARK, self._query.slide_ms))
        if min(closed.values()) <= min(self._told.get(p, unknown) for p in states):
            return nothing
        self._told = closed
        return np.array([(p, marks[p], states[p].offset) for p in sorted(states)], np.int64)

    def _parse(self, slices: Sequence[Slice]) -> list[Parsed]:
        """The block parsed as one, then taken apart: many small partitions cost no more than a few large ones."""
        first = slices[0]
        if len(slices) == 1:
            return [self._parser.parse(first.values, keys=first.keys, timestamps=first.timestamps)]
        whole = self._parser.parse(
            list(chain.from_iterable(piece.values for piece in slices)),
            keys=first.keys and list(chain.from_iterable(piece.keys or () for piece in slices)),
            timestamps=first.timestamps
            and list(chain.from_iterable(piece.timestamps or () for piece in slices)),
        )
        return taken_apart(whole, [len(piece.values) for piece in slices])

    def _judge_slice(
        self, piece: Slice, parsed: Parsed, state: PartitionState
    ) -> tuple[PartitionState, list[_Accepted], list[Rejections]]:
        state, ended_at = _after_markers(piece, state)
        in_time = parsed.rows < ended_at
        times = parsed.times if in_time.all() else parsed.times[in_time]
        judged = judge(self._query, state, times)
        refused = [
            *_unreadable(piece, parsed, ended_at),
            *_after_end(piece, ended_at),
            *_refused(piece.partition, parsed.rows, times, judged),
        ]
        good = _Accepted(parsed.keys, parsed.times, parsed.values)
        keep = np.zeros(len(parsed.rows), dtype=bool)
        keep[: len(times)] = judged.verdicts == Verdict.ACCEPTED
        if not keep.all():
            good = good.only(keep)
        read = len(piece.values) - len(piece.markers)
        routed, rejected = len(good.times), sum(len(group.positions) for group in refused)
        if read != routed + rejected:
            raise ProtocolError(f"{read} tuples were read but {routed} routed and {rejected} rejected")
        state = replace(
            judged.state,
            offset=piece.last + 1,
            asleep=False,
            read=state.read + read,
            routed=state.routed + routed,
            rejected=state.rejected + rejected,
        )
        return state, [good] if routed else [], refused

    def _pack(
        self, batch: pa.RecordBatch, bounds: Int64s, offsets: Int64s, told: Int64s
    ) -> list[tuple[int, bytes]]:
        """One frame for every worker that has tuples, and for every worker if there is something to tell."""
        tells = wire.FramePacker(self._header(offsets, told), self._frame_schema)
        empty = tells.pack(self._no_tuples) if len(told) else b""
        packed: list[tuple[int, bytes]] = []
        starts = bounds.tolist()
        small = self._small(batch, bounds)
        silent = tells
        if len(told) and not all(small):  # only a frame that is cut has parts that do not tell
            silent = wire.FramePacker(self._header(offsets, told[:0]), self._frame_schema)
        for worker in range(self._routed):
            start, stop = starts[worker], starts[worker + 1]
            if start == stop:
                if empty:
                    packed.append((worker, empty))
                continue
            if small[worker]:
                packed.append((worker, tells.pack(batch.slice(start, stop - start))))
                continue
            parts = list(wire.cut(batch.slice(start, stop - start), self._settings.partitioner.frame_bytes))
            last = len(parts) - 1
            for number, part in enumerate(parts):
                packer = tells if number == last else silent
                packed.append((worker, packer.pack(part, part=number, parts=len(parts))))
        return packed

    def _small(self, batch: pa.RecordBatch, bounds: Int64s) -> list[bool]:
        """Of each worker: whether its rows need no cutting."""
        filled = np.concatenate([[0], np.cumsum(wire.weights(batch))])
        fits: list[bool] = (np.diff(filled[bounds]) <= self._settings.partitioner.frame_bytes).tolist()
        return fits

    def _header(self, offsets: Int64s, told: Int64s) -> wire.FrameHeader:
        return wire.FrameHeader(
            fingerprint=self._fingerprint,
            epoch=self.epoch,
            input_partitions=self._settings.input_partitions,
            routed_partitions=self._routed,
            offsets=offsets,
            told=told,
        )

    def _by_worker(self, accepted: list[_Accepted]) -> tuple[pa.RecordBatch, Int64s]:
        if not accepted:
            return self._no_tuples, np.zeros(self._routed + 1, dtype=np.int64)
        keys = pa.concat_arrays([part.keys for part in accepted]) if len(accepted) > 1 else accepted[0].keys
        times = np.concatenate([part.times for part in accepted]) if len(accepted) > 1 else accepted[0].times
        values = accepted[0].values
        if len(accepted) > 1 and values.num_columns:
            values = (
                pa.Table.from_batches([part.values for part in accepted]).combine_chunks().to_batches()[0]
            )
        workers = self._assigned(hash_keys(keys), times)
        order = np.argsort(workers.astype(np.uint16), kind="stable")
        counts = np.bincount(workers, minlength=self._routed)
        bounds = np.zeros(self._routed + 1, dtype=np.int64)
        np.cumsum(counts, out=bounds[1:])
        return self._batch(_Accepted(keys, times, values)).take(pa.array(order)), bounds

    def _assigned(self, hashes: UInt64s, times: Int64s) -> Int32s:
        """In order of event time: a block holds stretches of several input partitions, whose times overlap.

        Windowed loads count a tuple that is older than the current slide in the current one: partition after
        partition, the levels of a window would be off by as much as a block spans.
        """
        if not bool((times[1:] < times[:-1]).any()):
            return self.partitioner.assign(hashes, times)
        order = np.argsort(times, kind="stable")
        workers = np.empty(len(times), np.int32)
        workers[order] = self.partitioner.assign(hashes[order], times[order])
        return workers

    def _batch(self, part: _Accepted) -> pa.RecordBatch:
        panes = pa.array(pane_of(part.times, self._query.slide_ms))
        return pa.RecordBatch.from_arrays([panes, part.keys, *part.values.columns], schema=self._frame_schema)


def _after_markers(piece: Slice, state: PartitionState) -> tuple[PartitionState, int]:
    """The state with the markers of a slice, and from which of its records on the partition had ended."""
    ended_at = 0 if state.ended else len(piece.values)
    for position in sorted(piece.markers):
        if not state.ended:
            state = state.with_marker(piece.markers[position])
            ended_at = position if state.ended else ended_at
    return state, ended_at


def _unreadable(piece: Slice, parsed: Parsed, ended_at: int) -> Iterator[Rejections]:
    bad = parsed.bad.between(0, ended_at)
    rows, details = bad.rows, bad.details
    if piece.markers:  # a marker has no value either
        keep = ~np.isin(rows, list(piece.markers))
        rows, details = rows[keep], details.filter(pa.array(keep))
    if len(rows):
        yield Rejections(piece.partition, UNREADABLE, rows, details)


def _after_end(piece: Slice, ended_at: int) -> Iterator[Rejections]:
    rows = np.arange(ended_at, len(piece.values))
    rows = rows[~np.isin(rows, list(piece.markers))]
    if len(rows):
        why = pa.scalar(b"every announced producer of this partition had ended", pa.binary())
        yield Rejections(piece.partition, "after-end", rows, pa.repeat(why, len(rows)))


def _refused(partition: int, rows: Int64s, times: Int64s, judged: Judged) -> Iterator[Rejections]:
    for verdict, reason in REASONS.items():
        which = np.flatnonzero(judged.verdicts == verdict)
        if len(which):
            marks, own = judged.marks[which], times[which]
            yield Rejections(partition, reason, rows[which], _why(verdict, own, marks), marks, own)


def _why(verdict: Verdict, times: Int64s, marks: Int64s) -> pa.BinaryArray:
    before, after = _WORDS[verdict]
    held = pa.array(marks).cast(pa.string()) if verdict is not Verdict.JUMP else ""
    parts = (before, pa.array(times).cast(pa.string()), after, held)
    return pc.binary_join_element_wise(*parts, "").cast(pa.binary())
