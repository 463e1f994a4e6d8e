"""Columns to frames: judge lateness, ask the partitioner under the plan in force, pack one frame per worker.

A block goes in, frames and rejections come out. Nothing here touches Kafka. What changes is the partitioner's
own state, and the note of what the workers have been told. The caller owns Kafka and the committed state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates import AggregatePlan
from evenflow.arrays import Bools, Int32s, Int64s, Rows, UInt64s, no_rows, records
from evenflow.errors import ProtocolError
from evenflow.homes import Announcements, announced
from evenflow.keys import hash_keys
from evenflow.markers import EndOfStream
from evenflow.partitioners import Partitioner
from evenflow.progress import Judged, PartitionState, Verdict, judge
from evenflow.settings import Settings
from evenflow.windows import NO_MARK, pane_of, panes_closed_by
from evenflow.wire import OFFSETS, TOLD, TOTAL, records_of
from partitioner_service.ahead import Ahead, Clock, LiveClock
from partitioner_service.framing import Framer, Shares
from partitioner_service.in_force import InForce
from partitioner_service.parse import Parsed, Parser, taken_apart
from partitioner_service.session import Session, Stint
from partitioner_service.window_loads import PaneLoads, block_loads

UNREADABLE = "unreadable"
TOO_LARGE = "too-large"
AFTER_END = "after-end"
REASONS = {Verdict.LATE: "late", Verdict.IDLE: "idle", Verdict.JUMP: "jump", Verdict.AHEAD: "ahead"}
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
    Verdict.AHEAD: ("event time ", " is more than max_ahead_of_clock ahead of the clock, which showed "),
}


@dataclass(frozen=True)
class Slice:
    """The records of one input partition in a block, in offset order.

    first, last: offsets of its first and last record. values: one entry per record. keys, timestamps (ms):
    one entry per record, None where the query does not read them. markers: position in the slice ->
    end-of-stream marker. records: the records themselves. Routing does not look into them, but a rejected
    record is forwarded unchanged. came: timestamp (ms) of the first record, None if it has none.
    """

    partition: int
    first: int
    last: int
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None
    timestamps: Sequence[int] | None = None
    markers: dict[int, EndOfStream] = field(default_factory=dict)
    records: Sequence[Any] = ()
    came: int | None = None


@dataclass(frozen=True)
class Rejections:
    """Records of one slice that are rejected for one reason. The arrays have one entry per record.

    positions: in the slice, ascending. details: what is wrong, in UTF-8. words: the last detail for logs,
    without anything that its record holds. It is '' for reasons that never quote a record. marks, times (ms):
    the mark that each record was held against, and its own event time. clocks (ms): the clock that each record
    was held against. These are empty for reasons that have nothing to do with them.
    """

    partition: int
    reason: str
    positions: Int64s
    details: pa.BinaryArray
    marks: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    times: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    clocks: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    words: str = ""


@dataclass(frozen=True, eq=False)
class Sent:
    """The tuples of a block: their keys, the hashes of the keys, and the workers.

    All three have shape (tuples,).

    loads: number of tuples by worker, shape (routed partitions,). by_pane: these loads by pane.
    """

    keys: pa.BinaryArray
    hashes: UInt64s
    workers: Int32s
    loads: Int64s
    by_pane: PaneLoads


@dataclass(frozen=True)
class Routed:
    """What a block became: (worker, frame) pairs, rejections, and the state of each partition afterwards."""

    frames: list[tuple[int, bytes]]
    rejections: list[Rejections]
    states: dict[int, PartitionState]
    sent: Sent
    read: int
    """Number of records. Markers do not count."""
    filtered: int
    """Number of records that were accepted but have no tuple to aggregate."""

    @property
    def tuples(self) -> int:
        """Number of tuples that were routed."""
        return len(self.sent.hashes)


@dataclass(frozen=True)
class _Accepted:
    """Tuples that are in time."""

    keys: pa.BinaryArray
    times: Int64s
    values: pa.RecordBatch

    @classmethod
    def together(cls, parts: Sequence[_Accepted]) -> _Accepted:
        """The tuples of all parts, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        values = parts[0].values
        # A query that only counts has no value columns. There is nothing to concatenate or to filter then.
        if values.num_columns:
            values = pa.Table.from_batches([part.values for part in parts]).combine_chunks().to_batches()[0]
        times = np.concatenate([part.times for part in parts])
        return cls(pa.concat_arrays([part.keys for part in parts]), times, values)

    def only(self, keep: Bools) -> _Accepted:
        """The tuples for which `keep` is true. keep: shape (tuples,)."""
        mask = pa.array(keep)
        values = self.values.filter(mask) if self.values.num_columns else self.values
        return _Accepted(self.keys.filter(mask), self.times[keep], values)


class Router:
    """Routes blocks with one partitioner under the plan in force.

    The router remembers, for each input partition, up to which pane the workers have been told that it is
    closed. A mark closes no pane before the slowest partition of the instance has passed that pane as well.
    So the workers are told when the slowest partition passes a pane.

    session: numbers the frames. None: a session of its own. clock: says which tuples are ahead. None: that of tuples
    that are read now. forwarding: whether keys may be finished at their homes. Then the router announces what it sends
    elsewhere (`evenflow/homes.py`), and tells every worker when it has routed by another plan than it told last.
    """

    def __init__(
        self,
        settings: Settings,
        partitioner: Partitioner,
        *,
        epoch: int = 0,
        session: Session | None = None,
        clock: Clock | None = None,
        forwarding: bool = False,
    ) -> None:
        self.plans = InForce(settings, partitioner, epoch=epoch)
        self._query = settings.query
        self._max_skew = settings.max_skew
        self._clock = LiveClock(settings) if clock is None else clock
        self._parser = Parser(settings)
        self._routed = settings.routed_partitions
        self.session = Session(self._routed) if session is None else session
        self._forwarding = forwarding
        self._seed = settings.partitioner.seed
        self._framer = Framer(settings, self.session)
        plan = AggregatePlan.of(settings.query)
        self._timed, self._frame_schema = plan.timed, plan.frame_schema
        self._told: dict[int, int] = {}
        self._epoch_told: int | None = None
        nobody = np.zeros(self._routed, np.int64)
        self._nothing = Sent(
            keys=pa.array([], pa.binary()),
            hashes=np.empty(0, np.uint64),
            workers=np.empty(0, np.int32),
            loads=nobody,
            by_pane=block_loads(nobody[:0], nobody[:0], nobody),
        )

    @property
    def parser(self) -> Parser:
        """The parser of this query's records."""
        return self._parser

    def forget_what_was_told(self) -> None:
        """Tell the workers everything once more, after a rebalance or an aborted transaction."""
        self._told.clear()
        self._epoch_told = None

    def route(self, slices: Sequence[Slice], states: dict[int, PartitionState]) -> Routed:
        """Frames and rejections of a block, in the order of its slices.

        states: the state of every partition that the instance owns. This dict is not changed. Raises
        RegistryAway before anything has changed, and ProtocolError if records of a slice were lost or counted
        twice.
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
        offsets = records_of([(piece.partition, piece.first, piece.last) for piece in slices], OFFSETS)
        sent, shares = self._shares(accepted)
        came = min((piece.came for piece in slices if piece.came is not None), default=None)
        told = self._to_tell({**states, **after})
        packed = self._framer.pack(shares, offsets, told, came=came)
        read = sum(state.read - states[partition].read for partition, state in after.items())
        filtered = sum(state.filtered - states[partition].filtered for partition, state in after.items())
        return Routed(packed, rejections, after, sent, read, filtered)

    def judge(
        self, slices: Sequence[Slice], states: dict[int, PartitionState]
    ) -> tuple[dict[int, PartitionState], list[Rejections], int]:
        """The state after each of these slices, what was rejected, and how many tuples would be routed.

        Nothing is routed. As `route`.
        """
        after: dict[int, PartitionState] = {}
        rejections: list[Rejections] = []
        tuples = 0
        for piece, part in zip(slices, self._parse(slices), strict=True):
            after[piece.partition], good, refused = self._judge_slice(piece, part, states[piece.partition])
            rejections.extend(refused)
            tuples += sum(len(some.times) for some in good)
        return after, rejections, tuples

    def punctuate(self, states: dict[int, PartitionState]) -> list[tuple[int, bytes]]:
        """Frames without tuples, which tell every worker the marks.

        An empty list if there is nothing to tell.

        states: the state of every partition that the instance owns.
        """
        told = self._to_tell(states)
        if not len(told):
            return []
        return self._framer.pack(self._no_shares(), records(0, OFFSETS), told)

    def begin_stint(
        self, states: dict[int, PartitionState], totals: Mapping[int, int], *, inputs: int
    ) -> list[tuple[int, bytes]]:
        """The first frames of a stint, one for every worker, even if no mark has moved.

        They tell where the stint begins and how many frames each session has written.

        states: the state of every partition that the instance owns. totals: frames by session, as committed when
        these partitions were assigned. inputs: how many input partitions the query has taken in by then.
        """
        self._framer.inputs = inputs
        told = self._tell(states)
        # The total of this session counts these frames as well: a worker that lacks its own must notice.
        known = {**totals, self.session.number: self.session.total + self._routed}
        frames = self._framer.pack(
            self._no_shares(), records(0, OFFSETS), told, totals=records_of(sorted(known.items()), TOTAL)
        )
        self.session.stint = Stint.WRITTEN
        return frames

    def take_in(self, states: dict[int, PartitionState], *, inputs: int) -> list[tuple[int, bytes]]:
        """Frames without tuples for every worker, which tell that there are more input partitions from now on.

        Only these frames say so before the next stint: if their transaction is aborted, nothing is taken in.

        states: of the partitions that the instance owns, and the first states of the new ones. inputs: how many input
        partitions there are now.
        """
        before, self._framer.inputs = self._framer.inputs, inputs
        frames = self._framer.pack(self._no_shares(), records(0, OFFSETS), self._tell(states))
        self._framer.inputs = before
        return frames

    def _to_tell(self, states: dict[int, PartitionState]) -> Rows:
        """A record `TOLD` for every partition if the slowest has passed a pane, else none.

        With forwarding also if the plan is another one than was told last.
        """
        nothing = records(0, TOLD)
        if not states:
            return nothing
        closed = self._closed(states)
        # A partition that the workers have not heard of counts as one without a mark.
        unknown = int(panes_closed_by(NO_MARK, self._query.slide_ms))
        another = self._forwarding and self._epoch_told != self.plans.epoch
        if not another and min(closed.values()) <= min(self._told.get(p, unknown) for p in states):
            return nothing
        return self._tell(states)

    def _tell(self, states: dict[int, PartitionState]) -> Rows:
        """A record `TOLD` for every partition."""
        self._told = self._closed(states)
        self._epoch_told = self.plans.epoch
        return records_of(
            [(p, state.mark(self._query), state.offset) for p, state in sorted(states.items())], TOLD
        )

    def _closed(self, states: dict[int, PartitionState]) -> dict[int, int]:
        """By partition, the pane before which its mark has closed all panes."""
        slide = self._query.slide_ms
        return {p: int(panes_closed_by(state.mark(self._query), slide)) for p, state in states.items()}

    def _parse(self, slices: Sequence[Slice]) -> list[Parsed]:
        """What was parsed of each slice.

        All are parsed at once, so many small slices cost no more than a few large.
        """
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
        """The state after a slice, its tuples that are in time, and its rejected records."""
        state, ended_at = _after_markers(piece, state)
        in_time = parsed.rows < ended_at
        times = parsed.times if in_time.all() else parsed.times[in_time]
        rows = parsed.rows[: len(times)]
        ahead = self._clock.ahead(piece.records, rows, times)
        judged = judge(
            self._query,
            state,
            times,
            ahead=None if ahead is None else ahead.which,
            max_skew=self._max_skew,
        )
        refused = [
            *_bad(piece, parsed, ended_at),
            *_after_end(piece, ended_at),
            *_refused(piece.partition, rows, times, judged),
            *_ahead(piece.partition, rows, times, ahead),
        ]
        good = _Accepted(parsed.keys, parsed.tuple_times, parsed.values)
        # Rows are ascending, so the records before the end of the partition come first. The others stay
        # rejected.
        keep = np.zeros(len(parsed.rows), dtype=bool)
        keep[: len(times)] = judged.verdicts == Verdict.ACCEPTED
        accepted = routed = int(np.count_nonzero(keep))
        if parsed.counts is not None:
            routed = int(np.count_nonzero(keep & (parsed.counts > 0)))
            keep = np.repeat(keep, parsed.counts)
        if not keep.all():
            good = good.only(keep)
        read = len(piece.values) - len(piece.markers)
        rejected = sum(len(group.positions) for group in refused)
        # The law of the service: no record is lost, none counts twice. It is better to stop than to break it.
        if read != accepted + rejected:
            raise ProtocolError(f"{read} tuples were read but {accepted} accepted and {rejected} rejected")
        state = replace(
            judged.state,
            offset=piece.last + 1,
            asleep=False,
            read=state.read + read,
            routed=state.routed + routed,
            rejected=state.rejected + rejected,
            filtered=state.filtered + accepted - routed,
        )
        return state, [good] if routed else [], refused

    def _no_shares(self) -> Shares:
        """No tuple for any worker."""
        nobody = np.zeros(self._routed + 1, np.int64)
        return Shares(
            rows=no_rows(self._frame_schema),
            epochs=(self.plans.epoch,),
            bounds=nobody,
            workers=self._workers(),
        )

    def _shares(self, accepted: list[_Accepted]) -> tuple[Sent, Shares]:
        """The tuples in the order in which they came, and the same tuples by worker and plan."""
        if not accepted:
            return self._nothing, self._no_shares()
        tuples = _Accepted.together(accepted)
        hashes = hash_keys(tuples.keys)
        cells, plans = self._assigned(hashes, tuples.times)
        epochs = tuple(plans)
        # A cell fits 16 bits: there are at most 1,024 workers, and a schedule holds few plans. numpy sorts 16
        # bits by radix, in linear time. The sort is stable, so a worker gets its tuples in the order in which
        # they came.
        order = np.argsort(cells.astype(np.uint16), kind="stable")
        bounds = np.zeros(self._routed * len(epochs) + 1, np.int64)
        np.cumsum(np.bincount(cells, minlength=self._routed * len(epochs)), out=bounds[1:])
        workers = cells if len(epochs) == 1 else cells // np.int32(len(epochs))
        panes = pane_of(tuples.times, self._query.slide_ms)
        shares = Shares(
            rows=self._batch(tuples, panes).take(pa.array(order)),
            epochs=epochs,
            bounds=bounds,
            workers=tuple(plans.values()) if self._forwarding else (),
            announced=self._announced(hashes, panes, cells, plans) if self._forwarding else (),
        )
        loads = np.diff(bounds).reshape(self._routed, len(epochs)).sum(axis=1)
        return Sent(tuples.keys, hashes, workers, loads, block_loads(workers, panes, loads)), shares

    def _workers(self) -> tuple[int, ...]:
        return (self.plans.partitioner.workers,) if self._forwarding else ()

    def _announced(
        self, hashes: UInt64s, panes: Int64s, cells: Int32s, plans: Mapping[int, int]
    ) -> tuple[Announcements, ...]:
        """What the homes of keys must hear of these tuples, by plan."""
        found = []
        workers, numbers = np.divmod(cells, np.int32(len(plans)))
        for number, among in enumerate(plans.values()):
            mine = numbers == number
            found.append(announced(hashes[mine], panes[mine], workers[mine], workers=among, seed=self._seed))
        return tuple(found)

    def _assigned(self, hashes: UInt64s, times: Int64s) -> tuple[Int32s, dict[int, int]]:
        """The cell of each tuple, worker * plans + plan, and how many workers each plan has, by epoch.

        Tuples are assigned by event time. A block holds stretches of several input partitions, and the event
        times of these stretches overlap. A plan takes over at an event time, so the tuples of a plan must be
        assigned together. Windowed partitioners also count a tuple that is older than the current slide in
        the current slide. If the partitions were assigned one after the other, the loads of a window would be
        off by as much event time as a block spans.
        """
        if not bool((times[1:] < times[:-1]).any()):
            return self._in_order(hashes, times)
        order = np.argsort(times, kind="stable")
        cells = np.empty(len(times), np.int32)
        cells[order], plans = self._in_order(hashes[order], times[order])
        return cells, plans

    def _in_order(self, hashes: UInt64s, times: Int64s) -> tuple[Int32s, dict[int, int]]:
        """As `_assigned`, for tuples in order of event time."""
        workers: list[Int32s] = []
        plans: dict[int, int] = {}
        for stretch in self.plans.stretches(times):
            workers.append(self.plans.partitioner.assign(hashes[stretch], times[stretch]))
            plans[self.plans.epoch] = self.plans.partitioner.workers
        cells = [mine * len(plans) + number for number, mine in enumerate(workers)]
        return (np.concatenate(cells) if len(cells) > 1 else workers[0]), plans

    def _batch(self, part: _Accepted, panes: Int64s) -> pa.RecordBatch:
        times = [pa.array(part.times)] if self._timed else []
        columns = [pa.array(panes), part.keys, *times, *part.values.columns]
        return pa.RecordBatch.from_arrays(columns, schema=self._frame_schema)


def _after_markers(piece: Slice, state: PartitionState) -> tuple[PartitionState, int]:
    """The state after the markers of a slice, and the position from which on the partition had ended."""
    ended_at = 0 if state.ended else len(piece.values)
    for position in sorted(piece.markers):
        if not state.ended:
            state = state.with_marker(piece.markers[position])
            ended_at = position if state.ended else ended_at
    return state, ended_at


def _bad(piece: Slice, parsed: Parsed, ended_at: int) -> Iterator[Rejections]:
    bad = parsed.bad.between(0, ended_at)
    # The parser takes a marker for a record without a value.
    keep = ~np.isin(bad.rows, list(piece.markers)) if piece.markers else np.ones(len(bad), np.bool_)
    for reason, which in ((UNREADABLE, keep & ~bad.too_large), (TOO_LARGE, keep & bad.too_large)):
        if which.any():
            kinds, details = bad.kinds[which], bad.details.filter(pa.array(which))
            yield Rejections(piece.partition, reason, bad.rows[which], details, words=bad.words[kinds[-1]])


def _after_end(piece: Slice, ended_at: int) -> Iterator[Rejections]:
    rows = np.arange(ended_at, len(piece.values))
    rows = rows[~np.isin(rows, list(piece.markers))]
    if len(rows):
        why = pa.scalar(b"every announced producer of this partition had ended", pa.binary())
        yield Rejections(piece.partition, AFTER_END, rows, pa.repeat(why, len(rows)))


def _refused(partition: int, rows: Int64s, times: Int64s, judged: Judged) -> Iterator[Rejections]:
    for verdict in (Verdict.LATE, Verdict.IDLE, Verdict.JUMP):
        which = np.flatnonzero(judged.verdicts == verdict)
        if len(which):
            marks, own = judged.marks[which], times[which]
            yield Rejections(partition, REASONS[verdict], rows[which], _why(verdict, own, marks), marks, own)


def _ahead(partition: int, rows: Int64s, times: Int64s, ahead: Ahead | None) -> Iterator[Rejections]:
    if ahead is None:
        return
    which = np.flatnonzero(ahead.which)
    clocks, own = ahead.clocks[which], times[which]
    yield Rejections(
        partition,
        REASONS[Verdict.AHEAD],
        rows[which],
        _why(Verdict.AHEAD, own, clocks),
        times=own,
        clocks=clocks,
    )


def _why(verdict: Verdict, times: Int64s, against: Int64s) -> pa.BinaryArray:
    before, after = _WORDS[verdict]
    held = pa.array(against).cast(pa.string()) if verdict is not Verdict.JUMP else ""
    parts = (before, pa.array(times).cast(pa.string()), after, held)
    return pc.binary_join_element_wise(*parts, "").cast(pa.binary())
