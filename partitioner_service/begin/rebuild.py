"""`evenflow partition --from-routed`: committed offsets that are gone are found again
in what the query wrote.

How far an input partition was read is told by the query's own topics (`traces`). The rest of its state is a
pure fold over its records, from the offset where the query began: they are read again, parsed and judged as
at the first time, and nothing is routed. The rejected records say what the input does not: the marks that a
partition was given while it was idle, and what the clock showed. Every verdict must be the one that the
rejected topic has, or nothing is committed. The frames must hold as many tuples as these records have, and
the sessions that wrote the frames must be whole: else a routed partition has lost its end, nothing is
committed, and no result can come out without it. The states name the last session of their partition, so
whoever takes over tells its total, as after any other takeover.
A mark that was given, but neither told nor used, is not found again. A step of the partition's time may then
count as a leap that was none (`steady_from`): idle partitions follow it later. Or its first tuple counts as a
step of its own, of at most `max_skew`, over event time along which others had taken it. No verdict depends on
either.

The states are committed under the lock of the claim, in one transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import methodcaller
from typing import Any

import numpy as np
from confluent_kafka import KafkaException, TopicPartition

from evenflow.errors import DataLossError, IncompatibleStateError
from evenflow.numeric.arrays import Int64s
from evenflow.progress import PartitionState
from evenflow.reporting.words import numbers
from evenflow.settings import Settings
from evenflow.settings.beginning import Beginning
from partitioner_service.begin.claim import commit_offsets, lock
from partitioner_service.begin.traces import Rulings, Traces, read_rejected, read_routed
from partitioner_service.block import Slice
from partitioner_service.fetch.fetch_result import FetchResult
from partitioner_service.kafka.committed_state import all_states, data_plane_group
from partitioner_service.kafka.learned_state import new_partitioner
from partitioner_service.kafka.log_ends import LogEnds
from partitioner_service.kafka.slices import Slicer
from partitioner_service.kafka.unfetchable import UnfetchableBatches
from partitioner_service.kafka.watchdog import Watchdog
from partitioner_service.routing.ahead import Ahead
from partitioner_service.routing.router import Router
from topics import clients
from topics.admin import describe
from topics.groups import members
from topics.query.record import read_beginning
from topics.reader import read_range

log = logging.getLogger(__name__)

_OFFSET = methodcaller("offset")
_SEE = "see 'Rebuild after data loss' in docs/operations/data-loss.md"
_BEGIN_ANEW = f"nothing was committed. Begin anew: `evenflow reset`, or a new name; {_SEE}"


def continue_from_routed(settings: Settings) -> dict[int, PartitionState]:
    """Commit the state of every input partition whose committed offset is gone. Returns these states.

    settings: as `prepare` returned them. Raises IncompatibleStateError if the query has not begun, if no
    offset is gone, or if an instance runs. Raises DataLossError if what is needed for exact states is no
    longer there.
    """
    watchdog = Watchdog()
    watchdog.start()
    try:
        producer = lock(settings, watchdog)
        states = _Rebuild(settings).states()
        topic = settings.topic("input")
        offsets = [TopicPartition(topic, p, s.offset, s.encode()) for p, s in sorted(states.items())]
        producer.begin_transaction()
        commit_offsets(settings, watchdog, producer, offsets)
    except KafkaException as error:
        raise clients.service_error(
            error, settings.kafka, "committing the offsets that were found again"
        ) from None
    finally:
        watchdog.stop()
    for partition, state in sorted(states.items()):
        log.info("%s[%d] goes on at offset %d, after %d records", topic, partition, state.offset, state.read)
    return states


class _Rebuild:
    """Finds the states. The lock of the claim is held."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        names = [settings.topic(role) for role in ("input", "routed", "rejected")]
        topics = describe(settings.kafka, names)
        self._input, self._routed, self._rejected = (topics[name] for name in names)

    def states(self) -> dict[int, PartitionState]:
        """The states of the input partitions whose committed offsets are gone."""
        begun = self._begun()
        states = all_states(self._settings, stable=True)
        missing = self._missing(states)
        self._refuse_losses(begun, missing)
        traces = read_routed(self._settings, self._routed)
        folds = {partition: self._fold(partition, begun, traces) for partition in missing}
        traces.refuse_other(sum(fold.tuples for fold in folds.values()) + self._tuples(begun, traces, states))
        return {partition: fold.state for partition, fold in folds.items()}

    def _tuples(self, begun: Beginning, traces: Traces, states: Mapping[int, PartitionState]) -> int:
        """How many tuples the input partitions have whose states are still there."""
        if self._settings.query.explosion is None:
            return sum(state.routed for state in states.values())
        # A record is several tuples here, and the states count records.
        self._refuse_losses(begun, list(states))
        return sum(self._fold(p, begun, traces, following=s.offset).tuples for p, s in sorted(states.items()))

    def _begun(self) -> Beginning:
        begun = read_beginning(self._settings)
        if begun is None:
            raise IncompatibleStateError(
                f"query {self._settings.query.name} has not begun, or nothing is left of it",
                hint="start it without --from-routed: it begins at input.start",
            )
        return begun

    def _missing(self, known: Mapping[int, PartitionState]) -> list[int]:
        """The input partitions without a committed offset. known: the committed states."""
        missing = sorted(set(range(self._settings.input_partitions)) - set(known))
        group = data_plane_group(self._settings)
        if not missing:
            raise IncompatibleStateError(
                f"the committed offsets of group {group} are all there",
                hint="start without --from-routed: the query goes on at these offsets",
            )
        if running := members(self._settings.kafka, group):
            raise IncompatibleStateError(
                f"{len(running)} partitioner instances run, and would commit offsets of their own",
                hint="stop the query's partitioners first",
            )
        return missing

    def _refuse_losses(self, begun: Beginning, missing: Sequence[int]) -> None:
        if begun.input_id != self._input.topic_id:
            raise DataLossError(
                f"{self._input.name} was deleted and created again (topic id {begun.input_id} is now "
                f"{self._input.topic_id})",
                hint="give the query a new name, or remove what it left with `evenflow reset`",
            )
        trimmed = [p for p in missing if self._input.begin[p] > begun.first_offset(p)]
        if trimmed:
            raise DataLossError(
                f"the first records of the query are no longer in the input partitions {trimmed} of"
                f" {self._input.name}: how far event time had come there cannot be computed again",
                hint=_BEGIN_ANEW,
            )
        if any(self._rejected.begin.values()):
            raise DataLossError(
                f"the first records of {self._rejected.name} were deleted: which records of the input were"
                " rejected is no longer known",
                hint=_BEGIN_ANEW,
            )

    def _fold(
        self, partition: int, begun: Beginning, traces: Traces, *, following: int | None = None
    ) -> Fold:
        """All records that were read of this partition. following: the next offset, None to find it."""
        rulings = read_rejected(self._settings, self._rejected, partition)
        begin = begun.first_offset(partition)
        if following is None:
            following = max(begin, traces.reached.get(partition, 0), rulings.behind)
        if following > self._input.end[partition]:
            raise DataLossError(
                f"{self._input.name}[{partition}] ends at offset {self._input.end[partition]}, but the query"
                f" has read up to {following}",
                hint=_SEE,
            )
        log.info("reading %s[%d] again from offset %d to %d", self._input.name, partition, begin, following)
        session, frames = traces.session(partition)
        state = PartitionState(
            fingerprint=self._settings.fingerprint,
            topic_id=self._input.topic_id,
            routed_id=self._routed.topic_id,
            rejected_id=self._rejected.topic_id,
            begin=begin,
            offset=begin,
            idle_mark=traces.idle_mark(partition, begin),
            session=session,
            frames=frames,
        )
        fold = Fold(self._settings, state, rulings, routed=traces.routed.get(partition, 0))
        for first, through in sorted(rulings.skips.items()):
            # A skipped record cannot be fetched, so the input is read around it.
            for records in self._records(partition, begin, first):
                fold.read(records)
            fold.skip(first, through)
            begin = through + 1
        for records in self._records(partition, begin, following):
            fold.read(records)
        fold.finish(following, largest_mark=traces.marks.get(partition))
        return fold

    def _records(self, partition: int, begin: int, end: int) -> Iterator[list[Any]]:
        others = {p: first for p, first in self._input.begin.items() if p != partition}
        return read_range(
            self._settings.kafka, self._input.name, begin={partition: begin}, end={**others, partition: end}
        )


class Fold:
    """The state of one input partition, record by record, held against its rejections.

    rulings: its rejections. routed: the offset behind the last record that a frame holds. No later record can
    have been routed. tuples: how many tuples of these records were routed.
    """

    def __init__(self, settings: Settings, state: PartitionState, rulings: Rulings, *, routed: int) -> None:
        self.state = state
        self.tuples = 0
        self._query = settings.query
        self._rulings = rulings
        self._routed = routed
        settings = settings.without_cost()  # nothing is routed
        self._router = Router(settings, new_partitioner(settings), clock=_StatedClock(settings, rulings))
        parser = self._router.parser
        self._slicer = Slicer(
            settings,
            needs_key=parser.needs_key,
            needs_timestamp=parser.needs_timestamp,
            ends=LogEnds(lambda partitions: {}),
            unfetchable=UnfetchableBatches(settings.topic("input")),
        )
        self._partition = -1

    def read(self, records: list[Any]) -> None:
        """Take the next records. Raises DataLossError if a verdict differs from that of the rejected
        topic.
        """
        self._partition = records[0].partition()
        for slices in self._slicer.blocks(FetchResult.of_messages(records), {self._partition: self.state}):
            for whole in slices:
                for piece in self._pieces(whole):
                    self._judge(piece)

    def skip(self, first: int, through: int) -> None:
        """Go past these offsets, as an operator's order did."""
        count = through + 1 - first
        self.state = replace(
            self.state,
            offset=through + 1,
            read=self.state.read + count,
            rejected=self.state.rejected + count,
        )

    def finish(self, following: int, *, largest_mark: int | None) -> PartitionState:
        """The state behind the last record, which is that of this fold from then on.

        largest_mark: the largest mark (ms) that workers were told, None if none was."""
        state = self.state
        # The partition's own mark never falls. So a mark above it was given while it was idle.
        if largest_mark is not None and largest_mark > state.mark(self._query):
            state = replace(state, idle_mark=largest_mark)
        self.state = replace(state, offset=following)
        return self.state

    def _pieces(self, whole: Slice) -> Iterator[Slice]:
        """The slice, cut where the partition had been given another mark, and where the routed records
        end.
        """
        offsets = np.fromiter(map(_OFFSET, whole.records), np.int64, len(whole.records))
        inner = np.unique(np.searchsorted(offsets, [self._routed, *self._new_marks(whole)])).tolist()
        for start, stop in pairwise([0, *(cut for cut in inner if 0 < cut < len(offsets)), len(offsets)]):
            yield _part(whole, offsets, start, stop)

    def _new_marks(self, whole: Slice) -> Iterator[int]:
        """The offsets in this slice at which a rejection first names a mark that the partition was given."""
        mark = self.state.idle_mark
        for offset, ruling in self._rulings.between(whole.first, whole.last + 1):
            if ruling.reason == "idle" and ruling.mark != mark:
                mark = ruling.mark
                yield offset

    def _judge(self, piece: Slice) -> None:
        ruling = self._rulings.get(piece.first)
        if ruling is not None and ruling.reason == "idle" and ruling.mark is not None:
            mark = max(ruling.mark, self.state.idle_mark or ruling.mark)
            self.state = replace(self.state, idle_mark=mark)
        before = self.state
        states, rejections, tuples = self._router.judge([piece], {self._partition: before})
        self.tuples += tuples
        self.state = states[self._partition]
        reasons = {
            _OFFSET(piece.records[position]): group.reason
            for group in rejections
            for position in group.positions.tolist()
        }
        expected = {
            offset: ruling.reason for offset, ruling in self._rulings.between(piece.first, piece.last + 1)
        }
        differing = sorted(o for o in {*reasons, *expected} if reasons.get(o) != expected.get(o))
        if differing:
            self._refuse(
                f"offset {differing[0]} is now {reasons.get(differing[0]) or 'accepted'}, and was "
                f"{expected.get(differing[0]) or 'accepted'}"
            )
        if piece.first >= self._routed and self.state.routed > before.routed:
            self._refuse(f"the records from offset {piece.first} on have a tuple, which no frame holds")

    def _refuse(self, why: str) -> None:
        raise DataLossError(
            f"the state of input partition {numbers([self._partition])} cannot be computed again: {why}",
            hint=(
                "the input, the routed or the rejected topic has lost or changed something, or (avro,"
                " protobuf) the registry has a schema now that it had not then, or query.max_jump or"
                " query.out_of_orderness was changed while the query ran, which"
                f" --from-routed knows nothing of; {_SEE}"
            ),
        )


class _StatedClock:
    """The clock as rejected records name it. Every other tuple was in time."""

    def __init__(self, settings: Settings, rulings: Rulings) -> None:
        self._most = settings.query.max_ahead_of_clock
        self._offsets, self._clocks = rulings.clocks("ahead")

    def ahead(self, records: Sequence[Any], rows: Int64s, times: Int64s) -> Ahead | None:
        """As `partitioner_service.routing.ahead.Clock` says."""
        if self._most is None or not len(self._offsets) or not len(rows):
            return None
        offsets = np.fromiter((_OFFSET(records[row]) for row in rows.tolist()), np.int64, len(rows))
        places = np.searchsorted(self._offsets, offsets).clip(max=len(self._offsets) - 1)
        never = 2**62
        clocks = np.where(self._offsets[places] == offsets, self._clocks[places], never)
        which = times > clocks + self._most
        return Ahead(which, clocks) if which.any() else None


def _part(whole: Slice, offsets: Int64s, start: int, stop: int) -> Slice:
    """Records start .. stop-1 of a slice. offsets: of all its records."""
    return Slice(
        partition=whole.partition,
        first=int(offsets[start]),
        last=int(offsets[stop - 1]),
        values=whole.values[start:stop],
        keys=None if whole.keys is None else whole.keys[start:stop],
        timestamps=None if whole.timestamps is None else whole.timestamps[start:stop],
        markers={at - start: marker for at, marker in whole.markers.items() if start <= at < stop},
        records=whole.records[start:stop],
    )
