"""Columns to frames: judge lateness, ask the partitioner, pack one frame per worker.

Pure apart from the partitioner's own state: blocks in, frames and rejections out. The caller owns
Kafka and the committed state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from evenflow import frames
from evenflow.aggregates import AggregatePlan
from evenflow.arrays import Int32s, Int64s, UInt64s
from evenflow.errors import ProtocolError
from evenflow.keys import hash_keys
from evenflow.markers import EndOfStream
from evenflow.partitioners import Partitioner
from evenflow.progress import PartitionState, Verdict, judge
from evenflow.settings import Settings
from evenflow.windows import END_MARK, pane_of, panes_closed_by
from partitioner_service.parse import Parser

REASONS = {Verdict.LATE: "late", Verdict.IDLE: "idle", Verdict.JUMP: "jump"}


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
class Rejection:
    """Record `position` of a slice is rejected; mark (ms) is what it was held against, where one was."""

    partition: int
    position: int
    reason: str
    detail: str
    mark: int | None = None


@dataclass(frozen=True)
class Routed:
    """What a block became: frames by worker, rejections, and each partition's state after it."""

    frames: list[tuple[int, bytes]]
    rejections: list[Rejection]
    states: dict[int, PartitionState]
    tuples: int


@dataclass(frozen=True)
class _Accepted:
    keys: pa.BinaryArray
    times: Int64s
    values: pa.RecordBatch


class Router:
    """Routes blocks with one partitioner; `epoch` is the plan in force."""

    def __init__(self, settings: Settings, partitioner: Partitioner, *, epoch: int = 0) -> None:
        self.partitioner = partitioner
        self.epoch = epoch
        self._settings = settings
        self._query = settings.query
        self._parser = Parser(settings)
        self._fingerprint = settings.fingerprint
        self._routed = settings.routed_partitions
        self._frame_schema = AggregatePlan.of(settings.query).frame_schema

    @property
    def parser(self) -> Parser:
        """The parser of this query's records."""
        return self._parser

    def route(self, slices: Sequence[Slice], states: dict[int, PartitionState]) -> Routed:
        """Frames and rejections of a block, in the order of its slices; `states` is left unchanged."""
        accepted: list[_Accepted] = []
        rejections: list[Rejection] = []
        after: dict[int, PartitionState] = {}
        for piece in slices:
            state, good = self._judge_slice(piece, states[piece.partition], rejections)
            after[piece.partition] = state
            accepted.extend(good)
        progress = {
            piece.partition: frames.Progress(
                first=piece.first, last=piece.last, mark=after[piece.partition].mark(self._query)
            )
            for piece in slices
        }
        before = {partition: states[partition].mark(self._query) for partition in after}
        packed = self._pack(accepted, progress, before)
        return Routed(packed, rejections, after, sum(len(part.times) for part in accepted))

    def punctuate(
        self, before: dict[int, PartitionState], after: dict[int, PartitionState]
    ) -> list[tuple[int, bytes]]:
        """Frames that only carry new marks (idle partitions), for every routed partition; none if none crossed."""
        progress = {p: frames.Progress(first=-1, last=-1, mark=s.mark(self._query)) for p, s in after.items()}
        return self._pack([], progress, {p: s.mark(self._query) for p, s in before.items()})

    def _judge_slice(
        self, piece: Slice, state: PartitionState, rejections: list[Rejection]
    ) -> tuple[PartitionState, list[_Accepted]]:
        parsed = self._parser.parse(piece.values, keys=piece.keys, timestamps=piece.timestamps)
        good: list[_Accepted] = []
        rejected_before = len(rejections)
        ended_at = 0 if state.ended else len(piece.values)
        for position in sorted(piece.markers):
            if not state.ended:
                state = state.with_marker(piece.markers[position])
                ended_at = position if state.ended else ended_at
        for row, why in sorted(parsed.bad.items()):
            if row not in piece.markers and row < ended_at:
                rejections.append(Rejection(piece.partition, row, "unreadable", why))
        for row in range(ended_at, len(piece.values)):
            if row not in piece.markers:
                why = "every announced producer of this partition had ended"
                rejections.append(Rejection(piece.partition, row, "after-end", why))
        in_time = parsed.rows < ended_at
        times = parsed.times if in_time.all() else parsed.times[in_time]
        judged = judge(self._query, state, times)
        state = judged.state
        refused = np.flatnonzero(judged.verdicts)
        for index in refused:
            verdict = Verdict(int(judged.verdicts[index]))
            rejections.append(
                Rejection(
                    piece.partition,
                    int(parsed.rows[index]),
                    REASONS[verdict],
                    _why(verdict, int(times[index]), int(judged.marks[index])),
                    int(judged.marks[index]),
                )
            )
        keys, values = parsed.keys, parsed.values
        if len(refused) or len(times) < len(parsed.rows):
            keep = np.zeros(len(parsed.rows), dtype=bool)
            keep[: len(times)] = judged.verdicts == Verdict.ACCEPTED
            mask = pa.array(keep)
            times = times[judged.verdicts == Verdict.ACCEPTED]
            keys = keys.filter(mask)
            values = values.filter(mask) if values.num_columns else values
        if len(times):
            good.append(_Accepted(keys, times, values))
        read = len(piece.values) - len(piece.markers)
        refused_count = len(rejections) - rejected_before
        state = replace(
            state,
            offset=piece.last + 1,
            asleep=False,
            read=state.read + read,
            routed=state.routed + len(times),
            rejected=state.rejected + refused_count,
        )
        if read != len(times) + refused_count:
            raise ProtocolError(
                f"{read} tuples were read but {len(times)} routed and {refused_count} rejected"
            )
        return state, good

    def _pack(
        self, accepted: list[_Accepted], progress: dict[int, frames.Progress], before: dict[int, int]
    ) -> list[tuple[int, bytes]]:
        header = self._header(progress)
        slide = self._query.slide_ms
        crossed = any(
            entry.mark >= END_MARK > before[p]
            or panes_closed_by(entry.mark, slide) > panes_closed_by(before[p], slide)
            for p, entry in progress.items()
        )
        batch, bounds = self._by_worker(accepted)
        packed: list[tuple[int, bytes]] = []
        early: frames.FrameHeader | None = None
        for worker in range(self._routed):
            start, stop = int(bounds[worker]), int(bounds[worker + 1])
            if start == stop and not crossed:
                continue
            parts = list(frames.cut(batch.slice(start, stop - start), self._settings.partitioner.frame_bytes))
            if len(parts) > 1 and early is None:
                early = self._header({p: replace(entry, mark=before[p]) for p, entry in progress.items()})
            for part in parts[:-1]:
                assert early is not None
                packed.append((worker, frames.encode(part, early)))
            packed.append((worker, frames.encode(parts[-1], header)))
        return packed

    def _header(self, progress: dict[int, frames.Progress]) -> frames.FrameHeader:
        return frames.FrameHeader(
            fingerprint=self._fingerprint,
            epoch=self.epoch,
            input_partitions=self._settings.input.partitions,
            routed_partitions=self._routed,
            progress=progress,
        )

    def _by_worker(self, accepted: list[_Accepted]) -> tuple[pa.RecordBatch, Int64s]:
        if not accepted:
            return self._batch(
                _Accepted(pa.array([], pa.binary()), np.empty(0, np.int64), self._no_values())
            ), np.zeros(self._routed + 1, dtype=np.int64)
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

    def _no_values(self) -> pa.RecordBatch:
        parsed = self._parser.parse([], keys=[], timestamps=[])
        return parsed.values


def _why(verdict: Verdict, time: int, mark: int) -> str:
    if verdict is Verdict.JUMP:
        return f"event time {time} is further ahead than max_jump and not confirmed by the tuples around it"
    whose = (
        "its partition's mark" if verdict is Verdict.LATE else "the mark its partition was given while idle"
    )
    return f"the pane of event time {time} ended at or before {whose} {mark}"
