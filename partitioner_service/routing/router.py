"""Records to frames: parse, judge lateness, ask the partitioner under the plan in force,
pack one frame per routed partition.

A block goes in, frames and rejections come out. Nothing here touches Kafka. What changes is the partitioner's
own state, and the note of what the workers have been told. The caller owns Kafka and the committed state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ProtocolError
from evenflow.keys import hash_keys
from evenflow.numeric.arrays import Int32s, Int64s, Rows, UInt64s, no_rows, records
from evenflow.partitioners import Partitioner
from evenflow.partitioners.costs import weighed
from evenflow.progress import BlockVerdicts, PartitionState, Verdict, judge
from evenflow.settings import Settings
from evenflow.windows import NO_MARK, pane_of, panes_closed_by
from evenflow.wire import MARKS, OFFSETS, TOTAL, records_of
from partitioner_service.block import AFTER_END, REASONS, Rejections, Slice
from partitioner_service.reading.cells.payloads import together
from partitioner_service.reading.cells.reasons import OF_RECORDS
from partitioner_service.reading.parse import ParsedBlock, Parser, taken_apart
from partitioner_service.routing.ahead import Ahead, Clock, LiveClock
from partitioner_service.routing.framing import Framer, Shares, Stretch
from partitioner_service.routing.pieces import (
    AcceptedTuples,
    Destinations,
    EventTimeAdvance,
    Piece,
    RoutedBlock,
    RoutedTuples,
)
from partitioner_service.routing.planned_partitioner import PlannedPartitioner
from partitioner_service.routing.session import Session
from partitioner_service.routing.sharing import Sharing
from partitioner_service.routing.window_loads import block_loads, sums

_ACCEPTED = int(Verdict.ACCEPTED)
"""Python looks a name of an enum up anew each time."""
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


class Router:
    """Routes blocks with one partitioner under the plan in force.

    The router remembers, for each input partition, up to which pane the workers have been told that it is
    closed. A mark closes no pane before the slowest partition of the instance has passed that pane as well.
    So the workers are told when the slowest partition passes a pane.

    session: None: a session of its own. clock: says which tuples are ahead. None: that of tuples
    that are read now.
    """

    def __init__(
        self,
        settings: Settings,
        partitioner: Partitioner,
        *,
        epoch: int = 0,
        session: Session | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.plans = PlannedPartitioner(settings, partitioner, epoch=epoch)
        """The partitioner under the plan in force."""
        self._query = settings.query
        self._max_skew = settings.max_skew
        self._clock = LiveClock(settings) if clock is None else clock
        self._parser = Parser(settings)
        self._sharing = Sharing.of(settings)
        self.session = Session(self._sharing.partitions) if session is None else session
        """Numbers the frames."""
        self._framer = Framer(settings, self.session)
        plan = AggregatePlan.of(settings.query)
        self._timed, self._frame_schema = plan.timed, plan.frame_schema
        self._announced_panes: dict[int, int] = {}
        nobody = np.zeros(self._sharing.workers, np.int64)
        self._nothing = RoutedTuples(
            keys=pa.array([], pa.binary()),
            hashes=np.empty(0, np.uint64),
            workers=np.empty(0, np.int32),
            counts=nobody,
            loads=nobody,
            by_pane=block_loads(nobody[:0], nobody[:0], nobody),
        )

    @property
    def parser(self) -> Parser:
        """The parser of this query's records."""
        return self._parser

    def forget_what_was_told(self) -> None:
        """Tell the workers everything once more, after a rebalance or an aborted transaction."""
        self._announced_panes.clear()

    def route(self, slices: Sequence[Slice], states: Mapping[int, PartitionState]) -> RoutedBlock:
        """Frames and rejections of a block, in the order of its slices.

        states: the state of every partition that the instance owns. Raises RegistryAway before anything has
        changed, and ProtocolError if records of a slice were lost or counted twice.
        """
        pieces = self.pieces(slices, states)
        tuples = [piece.tuples for piece in pieces if piece.tuples is not None]
        if not tuples:
            return self.framed(pieces, states, None)
        together = AcceptedTuples.together(tuples)
        hashes = hash_keys(together.keys)
        return self.framed(pieces, states, self.assigned(together, hashes))

    def pieces(self, slices: Sequence[Slice], states: Mapping[int, PartitionState]) -> list[Piece]:
        """These slices judged, a piece each. states, raises: as in `route`."""
        return [
            self._judge_slice(some, part, states[some.partition])[0]
            for some, part in zip(slices, self._parse(slices), strict=True)
        ]

    def pieces_by(
        self, interval: int, slices: Sequence[Slice], states: Mapping[int, PartitionState]
    ) -> Iterator[Piece]:
        """As `pieces`, but a slice is cut wherever its partition reaches another interval of event time.

        interval: length of the intervals, ms.
        """
        for some, part in zip(slices, self._parse(slices), strict=True):
            state = states[some.partition]
            whole, reached = self._judge_slice(some, part, state)
            begins, cuts = _intervals(interval, state, reached)
            if not cuts:
                yield replace(whole, interval=begins)
                continue
            # Judged again, because the state behind each piece is needed. Judging does not depend on where it
            # is cut.
            sizes = np.diff([0, *cuts, len(some.values)]).tolist()
            for mine, its in zip(some.apart(cuts), taken_apart(part, sizes), strict=True):
                piece, reached = self._judge_slice(mine, its, state)
                yield replace(piece, interval=_intervals(interval, state, reached)[0])
                state = piece.after

    def framed(
        self, pieces: Sequence[Piece], states: Mapping[int, PartitionState], routing: Destinations | None
    ) -> RoutedBlock:
        """The frames of these pieces as one block. Pieces of a partition follow each other in offset order.

        states: of every partition that the instance owns, before the block. Those behind the block are told,
        if they close a pane. routing: of the tuples of all pieces, None if there is no tuple.
        """
        after = {piece.partition: piece.after for piece in pieces}
        blocks: dict[int, tuple[int, int, int]] = {}
        for piece in pieces:
            partition, first, last = piece.offsets
            blocks[partition] = partition, blocks.get(partition, (partition, first))[1], last
        arrival_times = (piece.slice.arrival_time for piece in pieces)
        arrival_time = min((time for time in arrival_times if time is not None), default=None)
        sent, shares = self._shares(routing)
        marks = self._to_tell({**states, **after})
        packed = self._framer.pack(
            shares, records_of(list(blocks.values()), OFFSETS), marks, arrival_time=arrival_time
        )
        return RoutedBlock(packed, pieces, after, sent)

    def judge(
        self, slices: Sequence[Slice], states: Mapping[int, PartitionState]
    ) -> tuple[dict[int, PartitionState], list[Rejections], int]:
        """The state after each of these slices, what was rejected, and how many tuples would be routed.

        Nothing is routed. As `route`.
        """
        pieces = self.pieces(slices, states)
        return (
            {piece.partition: piece.after for piece in pieces},
            [group for piece in pieces for group in piece.rejections],
            sum(len(piece.tuples.times) for piece in pieces if piece.tuples is not None),
        )

    def punctuate(self, states: Mapping[int, PartitionState]) -> list[tuple[int, bytes]]:
        """Frames without tuples, which tell every routed partition the marks.

        An empty list if there is nothing to tell.

        states: the state of every partition that the instance owns.
        """
        marks = self._to_tell(states)
        if not len(marks):
            return []
        return self._framer.pack(self._no_shares(), records(0, OFFSETS), marks)

    def begin_stint(
        self, states: Mapping[int, PartitionState], totals: Mapping[int, int], *, inputs: int
    ) -> list[tuple[int, bytes]]:
        """The first frames of a stint, one for every routed partition, even if no mark has moved.

        They tell where the stint begins and how many frames each session has written.

        states: the state of every partition that the instance owns. totals: frames by session, as committed
        when these partitions were assigned. inputs: how many input partitions the query has taken in by then.
        """
        self._framer.inputs = inputs
        marks = self._tell(states, self._marks(states))
        # The total of this session counts these frames as well: a partition that lacks its own must notice.
        known = {**totals, self.session.number: self.session.total + self._sharing.partitions}
        frames = self._framer.pack(
            self._no_shares(), records(0, OFFSETS), marks, totals=records_of(sorted(known.items()), TOTAL)
        )
        self.session.stint_written()
        return frames

    def take_in(self, states: Mapping[int, PartitionState], *, inputs: int) -> list[tuple[int, bytes]]:
        """Frames without tuples for every partition, which tell that there are more input partitions
        from now on.

        Only these frames say so before the next stint: if their transaction is aborted, nothing is taken in.

        states: of the partitions that the instance owns, and the first states of the new ones. inputs: how
        many input partitions there are now.
        """
        before, self._framer.inputs = self._framer.inputs, inputs
        marks = self._tell(states, self._marks(states))
        frames = self._framer.pack(self._no_shares(), records(0, OFFSETS), marks)
        self._framer.inputs = before
        return frames

    def _to_tell(self, states: Mapping[int, PartitionState]) -> Rows:
        """A record `MARKS` for every partition if the slowest has passed a pane, else none."""
        nothing = records(0, MARKS)
        if not states:
            return nothing
        marks = self._marks(states)
        # A partition that the workers have not heard of counts as one without a mark.
        unknown = int(panes_closed_by(NO_MARK, self._query.slide_ms))
        closed = int(panes_closed_by(min(marks.values()), self._query.slide_ms))
        if closed <= min(self._announced_panes.get(p, unknown) for p in states):
            return nothing
        return self._tell(states, marks)

    def _tell(self, states: Mapping[int, PartitionState], marks: Mapping[int, int]) -> Rows:
        """A record `MARKS` for every partition. marks: the mark of each."""
        slide = self._query.slide_ms
        self._announced_panes = {p: int(panes_closed_by(mark, slide)) for p, mark in marks.items()}
        return records_of([(p, marks[p], state.offset) for p, state in sorted(states.items())], MARKS)

    def _marks(self, states: Mapping[int, PartitionState]) -> dict[int, int]:
        """The mark of each partition. All panes before it are closed."""
        return {p: state.mark(self._query) for p, state in states.items()}

    def _parse(self, slices: Sequence[Slice]) -> list[ParsedBlock]:
        """What was parsed of each slice.

        All are parsed at once, so many small slices cost no more than a few large.
        """
        first = slices[0]
        if len(slices) == 1:
            return [self._parser.parse(first.values, keys=first.keys, timestamps=first.timestamps)]
        keys = [piece.keys for piece in slices if piece.keys is not None]
        timestamps = [piece.timestamps for piece in slices if piece.timestamps is not None]
        whole = self._parser.parse(
            together([piece.values for piece in slices]),
            keys=together(keys) if keys else None,
            timestamps=np.concatenate(timestamps) if timestamps else None,
        )
        return taken_apart(whole, [len(piece.values) for piece in slices])

    def _judge_slice(
        self, piece: Slice, parsed: ParsedBlock, before: PartitionState
    ) -> tuple[Piece, EventTimeAdvance]:
        """A slice, judged, and how its accepted records move event time on."""
        state, ended_at = _after_markers(piece, before)
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
        in_order = judged.verdicts == _ACCEPTED
        refused = [
            *_bad(piece, parsed, ended_at),
            *_after_end(piece, ended_at),
            *_refused(piece.partition, rows, times, judged),
            *_ahead(piece.partition, rows, times, ahead),
        ]
        good = AcceptedTuples(parsed.keys, parsed.tuple_times, parsed.values, parsed.costs)
        # Rows are ascending, so the records before the end of the partition come first. The others stay
        # rejected.
        keep = np.zeros(len(parsed.rows), dtype=bool)
        keep[: len(times)] = in_order
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
        state = judged.state.but(
            offset=piece.last + 1,
            asleep=False,
            read=state.read + read,
            routed=state.routed + routed,
            rejected=state.rejected + rejected,
            filtered=state.filtered + accepted - routed,
        )
        reached = EventTimeAdvance(rows[in_order], times[in_order])
        return Piece(piece, before, state, good if routed else None, refused), reached

    def _no_shares(self) -> Shares:
        """No tuple for any worker."""
        partitions, places = self._sharing.partitions, self._sharing.places
        return Shares(
            rows=no_rows(self._frame_schema),
            stretches=(Stretch(epoch=self.plans.epoch),),
            bounds=np.zeros(partitions * places + 1, np.int64),
            places=places,
        )

    def _shares(self, routing: Destinations | None) -> tuple[RoutedTuples, Shares]:
        """The tuples in the order in which they came, and the same tuples by partition, stretch and
        worker.
        """
        if routing is None:
            return self._nothing, self._no_shares()
        tuples, cells, stretches = routing.tuples, routing.cells, routing.stretches
        sharing, count = self._sharing, len(stretches)
        # A rank fits 16 bits: there are at most 1,024 workers, and a schedule holds few plans. numpy sorts 16
        # bits by radix, in linear time. The sort is stable, so a worker gets its tuples in the order in which
        # they came.
        ranks = sharing.ranks(count)
        order = np.argsort(cells.astype(np.uint16) if sharing.places == 1 else ranks[cells], kind="stable")
        by_cell = np.bincount(cells, minlength=len(ranks))
        bounds = np.zeros(sharing.partitions * count * sharing.places + 1, np.int64)
        bounds[ranks + np.int64(1)] = by_cell
        np.cumsum(bounds, out=bounds)
        workers = routing.workers
        panes = pane_of(tuples.times, self._query.slide_ms)
        rows = self._batch(tuples, panes).take(pa.array(order))
        shares = Shares(rows=rows, stretches=stretches, bounds=bounds, places=sharing.places)
        counts = loads = by_cell.reshape(sharing.workers, count).sum(axis=1)
        costs = None if routing.costs is None else routing.costs.costs
        if costs is not None:
            loads = sums(costs, workers, size=sharing.workers)
        by_pane = block_loads(workers, panes, loads, costs)
        sent = RoutedTuples(tuples.keys, routing.hashes, workers, counts, loads, by_pane, routing.costs)
        return sent, shares

    def assigned(self, tuples: AcceptedTuples, hashes: UInt64s) -> Destinations:
        """What the partitioner decides for these tuples, one by one. hashes: of their keys."""
        costs = None if tuples.costs is None else weighed(tuples.costs)
        cells, stretches = self._assigned(hashes, tuples.times, None if costs is None else costs.costs)
        return Destinations(tuples, hashes, cells, stretches, costs)

    def _assigned(
        self, hashes: UInt64s, times: Int64s, costs: Int64s | None
    ) -> tuple[Int32s, tuple[Stretch, ...]]:
        """The cell of each tuple, and a stretch for each plan.

        Tuples are assigned by event time. A block holds stretches of several input partitions, and the event
        times of these stretches overlap. A plan takes over at an event time, so the tuples of a plan must be
        assigned together. Windowed partitioners also count a tuple that is older than the current slide in
        the current slide. If the partitions were assigned one after the other, the loads of a window would be
        off by as much event time as a block spans.
        """
        if not bool((times[1:] < times[:-1]).any()):
            return self._in_order(hashes, times, costs)
        order = np.argsort(times, kind="stable")
        cells = np.empty(len(times), np.int32)
        in_order = None if costs is None else costs[order]
        cells[order], stretches = self._in_order(hashes[order], times[order], in_order)
        return cells, stretches

    def _in_order(
        self, hashes: UInt64s, times: Int64s, costs: Int64s | None
    ) -> tuple[Int32s, tuple[Stretch, ...]]:
        """As `_assigned`, for tuples in order of event time."""
        workers, stretches = [], []
        for stretch in self.plans.stretches(times):
            # Assigned before the next stretch is asked for, because the partitioner is rescaled then.
            tuples = stretch.tuples
            of_stretch = None if costs is None else costs[tuples]
            workers.append(stretch.partitioner.assign(hashes[tuples], times[tuples], of_stretch))
            stretches.append(Stretch(epoch=stretch.epoch))
        cells = [mine * len(stretches) + number for number, mine in enumerate(workers)]
        return (np.concatenate(cells) if len(cells) > 1 else workers[0]), tuple(stretches)

    def _batch(self, part: AcceptedTuples, panes: Int64s) -> pa.RecordBatch:
        times = [pa.array(part.times)] if self._timed else []
        columns = [pa.array(panes), part.keys, *times, *part.values.columns]
        return pa.RecordBatch.from_arrays(columns, schema=self._frame_schema)


def _intervals(length: int, state: PartitionState, reached: EventTimeAdvance) -> tuple[int | None, list[int]]:
    """Number of the interval in which accepted records begin, None without one,
    and where later intervals begin.

    length: of the intervals, ms. state: before these records. The second are positions of records, ascending.
    """
    if not len(reached.times):
        return None, []
    first = int(reached.times[0]) if state.max_time is None else max(state.max_time, int(reached.times[0]))
    times = reached.times.copy()
    times[0] = first
    intervals = np.maximum.accumulate(times) // length
    return int(intervals[0]), reached.rows[1:][intervals[1:] > intervals[:-1]].tolist()


def _after_markers(piece: Slice, state: PartitionState) -> tuple[PartitionState, int]:
    """The state after the markers of a slice, and the position from which on the partition had ended."""
    ended_at = 0 if state.ended else len(piece.values)
    for position in sorted(piece.markers):
        if not state.ended:
            state = state.with_marker(piece.markers[position])
            ended_at = position if state.ended else ended_at
    return state, ended_at


def _bad(piece: Slice, parsed: ParsedBlock, ended_at: int) -> Iterator[Rejections]:
    if not len(parsed.bad):  # a block may have a hundred slices, and most have none
        return
    bad = parsed.bad.between(0, ended_at)
    # The parser takes a marker for a record without a value.
    keep = ~np.isin(bad.rows, list(piece.markers)) if piece.markers else np.ones(len(bad), np.bool_)
    for reason in OF_RECORDS:
        which = keep & bad.of_reason(reason)
        if which.any():
            kinds, details = bad.kinds[which], bad.details.filter(pa.array(which))
            yield Rejections(piece.partition, reason, bad.rows[which], details, words=bad.words[kinds[-1]])


def _after_end(piece: Slice, ended_at: int) -> Iterator[Rejections]:
    if ended_at >= len(piece.values):
        return
    rows = np.arange(ended_at, len(piece.values))
    rows = rows[~np.isin(rows, list(piece.markers))]
    if len(rows):
        why = pa.scalar(b"every announced producer of this partition had ended", pa.binary())
        yield Rejections(piece.partition, AFTER_END, rows, pa.repeat(why, len(rows)))


def _refused(partition: int, rows: Int64s, times: Int64s, judged: BlockVerdicts) -> Iterator[Rejections]:
    if not (judged.verdicts != _ACCEPTED).any():
        return
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
    limits = pa.array(against).cast(pa.string()) if verdict is not Verdict.JUMP else ""
    parts = (before, pa.array(times).cast(pa.string()), after, limits)
    return pc.binary_join_element_wise(*parts, "").cast(pa.binary())
