"""What a query's own topics tell of how far its input was read: frames,
the marks that they tell, rejected records.

All of a block becomes visible in one transaction with its offsets. So whatever is visible here was committed,
and nothing before it is missing.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import methodcaller
from typing import NamedTuple

import numpy as np

from evenflow.errors import DataLossError
from evenflow.numeric.arrays import LAST_TIME, NEVER, Int32s, Int64s
from evenflow.settings import Settings
from evenflow.twostep.sequences import RangeSequences, Sessions
from evenflow.windows import END_MARK, NO_MARK
from evenflow.wire import FrameHeader, decode_frame
from partitioner_service.kafka.sink import CLOCK, MARK, REASON, SKIPPED, SOURCE, THROUGH
from topics.reader import read_range
from topics.records import Record
from topics.state import TopicState

_VALUE = methodcaller("value")
_ANEW = (
    "nothing was committed. No result can be made exact from what is left: rebuild the query under a new name"
    " (see 'Frames that are gone' in docs/operations/data-loss.md), and look for the cause in Kafka"
)
_EXPIRED = (
    "nothing was committed. Begin anew: `evenflow reset`, or a new name (see 'Rebuild after data loss' in "
    "docs/operations/data-loss.md). Frames live as long as retention.ms of their topic says: raise it, and "
    "offsets.retention.minutes of the brokers, before the next long stop"
)


class Ruling(NamedTuple):
    """Why an input record was rejected."""

    reason: str
    """One of the reasons of the rejected topic."""
    mark: int | None
    """The mark (ms) that the record was held against. None if the rejection names none."""
    clock: int | None
    """The processing time (ms) that the record was held against. None if the rejection names none."""
    through: int | None = None
    """The last offset that was skipped by an order that began here. None for any other reason."""


class Rulings:
    """The rejections of an input partition by offset. Of several of one offset the last counts.

    Memory: 28 bytes for each. skips: by the offset at which an order to skip began, the last offset that it
    skipped. These are no rulings otherwise. behind: the offset behind the last one that was judged or
    skipped, 0 if there is none.
    """

    def __init__(self, rulings: Iterable[tuple[int, Ruling]]) -> None:
        self.skips: dict[int, int] = {}
        numbers: dict[str, int] = {}
        offsets, marks, clocks, reasons = array("q"), array("q"), array("q"), array("i")
        for offset, ruling in rulings:
            if ruling.through is not None:
                self.skips[offset] = ruling.through
                continue
            offsets.append(offset)
            marks.append(NEVER if ruling.mark is None else ruling.mark)
            clocks.append(NEVER if ruling.clock is None else ruling.clock)
            reasons.append(numbers.setdefault(ruling.reason, len(numbers)))
        self._texts = tuple(numbers)
        order = _order(np.array(offsets, np.int64))
        self._offsets: Int64s = np.array(offsets, np.int64)[order]
        self._marks: Int64s = np.array(marks, np.int64)[order]
        self._clocks: Int64s = np.array(clocks, np.int64)[order]
        self._reasons: Int32s = np.array(reasons, np.int32)[order]
        judged = self._offsets[-1:].tolist()
        self.behind = 1 + max([*judged, *self.skips.values()], default=-1)

    def get(self, offset: int) -> Ruling | None:
        """The ruling at this offset. None: the record was accepted, or skipped."""
        return next((ruling for _, ruling in self.between(offset, offset + 1)), None)

    def between(self, first: int, behind: int) -> Iterator[tuple[int, Ruling]]:
        """The rulings of the offsets from `first` to the one before `behind`, with their offsets."""
        begin, end = np.searchsorted(self._offsets, [first, behind]).tolist()
        for place in range(begin, end):
            mark, clock = int(self._marks[place]), int(self._clocks[place])
            yield (
                int(self._offsets[place]),
                Ruling(
                    self._texts[self._reasons[place]],
                    None if mark == NEVER else mark,
                    None if clock == NEVER else clock,
                ),
            )

    def clocks(self, reason: str) -> tuple[Int64s, Int64s]:
        """The offsets that were rejected for this reason, and the processing time (ms) of each. Those that
        name no time are left out.
        """
        if reason not in self._texts:
            return self._offsets[:0], self._clocks[:0]
        which = (self._reasons == self._texts.index(reason)) & (self._clocks != NEVER)
        return self._offsets[which], self._clocks[which]


def _order(offsets: Int64s) -> Int64s | slice:
    """The places of these offsets in ascending order, of equal ones the last."""
    if (offsets[1:] > offsets[:-1]).all():
        return slice(None)
    order = np.argsort(offsets, kind="stable")
    ascending = offsets[order]
    return order[np.append(ascending[1:] != ascending[:-1], True)]


class Traces:
    """What all routed frames of a query tell.

    By input partition, routed: the offset behind the last record that a frame holds. reached: the offset up
    to which everything was read. first: the least offset up to which frames say that everything was read, and
    the largest mark (ms) that they told there. marks: the largest mark (ms) that was told, without those that
    say that the partition has ended. tuples: how many tuples the frames hold, all together.
    """

    def __init__(self, settings: Settings) -> None:
        self.routed: dict[int, int] = {}
        self.reached: dict[int, int] = {}
        self.first: dict[int, tuple[int, int]] = {}
        self.marks: dict[int, int] = {}
        self.tuples = 0
        self._topic = settings.topic("routed")
        self._fingerprint = settings.fingerprint
        # Nothing is saved, so no session is ever forgotten.
        self._sessions = Sessions(None, routed=settings.routed_partitions, most=1, partial=False)
        self._last: dict[int, int] = {}

    def add(self, block: Sequence[Record]) -> None:
        """Take the next records, in offset order within each routed partition.

        Raises ProtocolError or IncompatibleStateError for a frame that is not ours, DataLossError if frames
        are missing before one of these.
        """
        ranges: dict[int, RangeSequences] = {}
        for record in block:
            routed = record.partition()
            frame = decode_frame(_VALUE(record) or b"", fingerprint=self._fingerprint)
            ranges.setdefault(routed, RangeSequences(routed)).add(frame, record.offset())
            self.tuples += frame.batch.num_rows
            self._note(routed, frame.header)
        for sequences in ranges.values():
            self._sessions.add(sequences.rows().tolist(), f"the frames of {self._topic}")

    def _note(self, routed: int, header: FrameHeader) -> None:
        for partition, _, last in header.offsets.tolist():
            self._reach(partition, last + 1)
            self.routed[partition] = max(self.routed.get(partition, 0), last + 1)
        for partition, mark, reached in header.marks.tolist():
            self._reach(partition, reached)
            if mark < END_MARK:
                before, first_mark = self.first.get(partition, (reached, mark))
                if reached <= before:
                    self.first[partition] = reached, max(mark, first_mark) if reached == before else mark
                self.marks[partition] = max(self.marks.get(partition, mark), mark)
            # A stint begins with a frame that tells to every routed partition, so each of them knows every
            # owner.
            if routed == 0:
                self._last[partition] = header.session

    def _reach(self, partition: int, offset: int) -> None:
        self.reached[partition] = max(self.reached.get(partition, 0), offset)

    def idle_mark(self, partition: int, begin: int) -> int | None:
        """The mark (ms) that a partition was given before its first record was read.
        None: none that is known.
        """
        reached, mark = self.first.get(partition, (begin, NO_MARK))
        return mark if reached == begin and mark != NO_MARK else None

    def session(self, partition: int) -> tuple[int, int]:
        """The last session that owned this input partition, and how many frames it has written.
        (0, 0): none has.
        """
        session = self._last.get(partition, 0)
        return session, self._sessions.frames_read(session)

    def refuse_gone(self) -> None:
        """Raise DataLossError if the last frames of a session are gone,
        as far as later sessions told its total.
        """
        if not self._sessions.settled():
            raise DataLossError(
                f"some partitions of {self._topic} were told how many frames a session had written, and"
                " others were not: the last frames of those are gone",
                hint=_ANEW,
            )

    def refuse_other(self, tuples: int) -> None:
        """Raise DataLossError unless the frames hold so many tuples.

        tuples: how many the records of the input have that were read and not rejected.
        """
        if self.tuples != tuples:
            raise DataLossError(
                f"the records that the query has read have {tuples:,} tuples that were routed, but the frames"
                f" of {self._topic} hold {self.tuples:,}: "
                + (
                    "the last frames of a routed partition are gone"
                    if self.tuples < tuples
                    else "something was routed twice"
                ),
                hint=_ANEW,
            )


def read_routed(settings: Settings, topic: TopicState) -> Traces:
    """Read all routed frames.

    topic: the routed topic. Raises DataLossError if any frame is gone, as far as the frames alone show it.
    `Traces.refuse_other` shows the rest.
    """
    trimmed = sorted(worker for worker, first in topic.begin.items() if first > 0)
    if trimmed:
        raise DataLossError(
            f"the first frames of the routed partitions {trimmed} of {topic.name} were deleted, by retention"
            " or by hand: whether all tuples that were read are in the frames is no longer known",
            hint=_EXPIRED,
        )
    traces = Traces(settings)
    for block in read_range(settings.kafka, topic.name):
        traces.add(block)
    traces.refuse_gone()
    return traces


def read_rejected(settings: Settings, rejected: TopicState, partition: int) -> Rulings:
    """The rejections of an input partition. Records that name no record of this partition are not ours."""
    where = partition % rejected.partitions
    others = {other: first for other, first in rejected.begin.items() if other != where}
    ours = f"{settings.topic('input')}:{partition}:"
    blocks = read_range(settings.kafka, rejected.name, end=others)
    return Rulings(chain.from_iterable(_rulings(block, ours) for block in blocks))


def _rulings(block: list[Record], ours: str) -> Iterator[tuple[int, Ruling]]:
    for record in block:
        # An input record may have been rejected elsewhere before. Of several headers ours are the last.
        headers = {name: _text(value) for name, value in record.headers() or ()}
        source = headers.get(SOURCE, "")
        offset = _whole(source.removeprefix(ours)) if source.startswith(ours) else None
        if offset is not None and offset >= 0:
            reason = headers.get(REASON, "")
            through = max(offset, _whole(headers.get(THROUGH)) or offset) if reason == SKIPPED else None
            yield offset, Ruling(reason, _whole(headers.get(MARK)), _whole(headers.get(CLOCK)), through)


def _text(value: bytes | str | None) -> str:
    return value if isinstance(value, str) else (value or b"").decode("utf-8", "replace")


def _whole(text: str | None) -> int | None:
    """The number in this header. None if it is missing, or no number of 64 bits above the least."""
    digits = (text or "").removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return None
    number = int(text or "")
    return number if NEVER < number <= LAST_TIME else None
