"""When a bounded stream is over: the end of every lane is in Kafka, and Spark has committed past it.

When an input partition ends, the partitioner sends an end mark to every routed partition. So the newest
frames of each routed partition hold the end marks. (The reduce stage of the split wiring looks at the newest
blobs of each partials partition instead.) Only topics and commit logs are asked. So the answer is right after
any restart, even if no new record triggers a micro-batch.

Offsets alone do not show that a log was cut and has grown to where Spark had read it. `check_complete` shows
it, for what this process has read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from evenflow.errors import DataLossError
from evenflow.numeric.arrays import Int64s
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from evenflow.telemetry import Stage
from evenflow.twostep import FrameAt, Tally
from evenflow.twostep.lanes import grown
from evenflow.twostep.sequences import REBUILD
from evenflow.windows import END_MARK, NO_MARK
from evenflow.wire import decode_blob, decode_frame
from topics.admin import describe
from topics.query.record import recorded_partitions
from topics.reader import read_range
from topics.state import TopicState

_FIRST_LOOK = 32  # records per partition: the end marks are nearly always among the newest


class _Span(NamedTuple):
    """A stretch of a partition."""

    begin: int
    """First offset."""
    end: int
    """Offset behind the last."""


class EndOfTopic:
    """The newest mark of each lane in each partition of a topic of frames or blobs.

    Each record is read once.
    """

    def __init__(self, settings: Settings, role: TopicRole) -> None:
        self._settings = settings
        self._topic = settings.topic(role)
        self._note = _note_frame if role == "routed" else _note_blob
        self._fingerprint = (settings.origin if role == "routed" else settings).fingerprint
        # In a routed partition a lane is an input partition; in a bucket it is each (routed, input) pair.
        self._rows = 1 if role == "routed" else settings.routed_partitions
        self._inputs = settings.input_partitions
        self._marks: dict[int, Int64s] = {}
        self._low: dict[int, int] = {}
        self._high: dict[int, int] = {}

    def reached_by(self, committed: Mapping[int, int]) -> bool:
        """Whether these offsets (partition -> next to read) are the topic's end,
        and every lane has ended there.
        """
        state = describe(self._settings.kafka, [self._topic]).get(self._topic)
        if state is None or any(committed.get(number, 0) < end for number, end in state.end.items()):
            return False
        if not self._all_ended(state):
            return False
        # Partitions may have been added to the input since the start. Asked last, because it is read from a
        # topic.
        before, self._inputs = self._inputs, recorded_partitions(self._settings) or self._inputs
        return self._inputs <= before or self._all_ended(state)

    def _all_ended(self, state: TopicState) -> bool:
        """Whether every lane has ended, by the marks in the topic.

        New records are read first, then older and older ones, until each lane has a mark. Marks only grow: if
        the newest mark of a lane is not the end mark, the lane has not ended, and older records need not be
        read.
        """
        self._look({number: _Span(self._high.get(number, end), end) for number, end in state.end.items()})
        self._high = dict(state.end)
        low = {number: self._low.get(number, end) for number, end in state.end.items()}
        step = _FIRST_LOOK
        while not any(map(self._runs, low)) and (missing := [n for n in low if self._unheard(n)]):
            further = {
                number: _Span(max(state.begin[number], low[number] - step), low[number]) for number in missing
            }
            if not self._look(further):
                break
            low |= {number: span.begin for number, span in further.items()}
            step *= 4  # a lane without a mark for long may lie far back: few reads even of a long topic
        self._low = low
        return all((self._marks_of(number) >= END_MARK).all() for number in state.end)

    def _runs(self, number: int) -> bool:
        """Whether some lane of this partition has a mark that is not the end mark."""
        marks = self._marks_of(number)
        return bool(((marks > NO_MARK) & (marks < END_MARK)).any())

    def _unheard(self, number: int) -> bool:
        return bool((self._marks_of(number) == NO_MARK).any())

    def _marks_of(self, number: int) -> Int64s:
        known = self._marks.get(number, np.empty((self._rows, 0), np.int64))
        self._marks[number] = grown(known, self._inputs, NO_MARK)
        return self._marks[number]

    def _look(self, spans: Mapping[int, _Span]) -> bool:
        """Note the marks of the records in these spans of the partitions.

        False if all spans are empty.
        """
        nonempty = {number: span for number, span in spans.items() if span.begin < span.end}
        if not nonempty:
            return False
        # A partition without an end would be read to its log's end, so all others get the end 0.
        nowhere = dict.fromkeys(range(self._partitions()), 0)
        begin = {number: span.begin for number, span in nonempty.items()}
        end = nowhere | {number: span.end for number, span in nonempty.items()}
        for messages in read_range(self._settings.kafka, self._topic, begin=begin, end=end):
            for message in messages:
                number = message.partition()
                self._marks[number] = self._note(
                    self._marks_of(number), message.value() or b"", self._fingerprint
                )
        return True

    def _partitions(self) -> int:
        return max(self._settings.routed_partitions, self._settings.bucket_count)


def reads_on(tally: Tally, committed: Mapping[int, int], *, stage: Stage) -> bool:
    """Whether a micro-batch is under way that has read frames behind these offsets.

    A task says what it has read when it ends, and offsets are committed when the whole micro-batch ends.
    Frames come even after the end of every lane: an instance that takes over a partition repeats its end
    mark.

    tally, committed, stage: as for `check_complete`, which cannot judge such a tally.
    """
    return stage != "reduce" and any(
        frame.offset >= committed[routed] for routed, frame in tally.frames.items() if routed in committed
    )


def check_complete(settings: Settings, tally: Tally, committed: Mapping[int, int], *, stage: Stage) -> None:
    """Raise DataLossError if what was read is not what the topic holds, though its end was read.

    tally: of what this process has read, in all its stages. committed: the next offset to read of each
    partition, because frames may have come since.

    To be called if the stage does not read on (`reads_on`).

    The last frame that was read must be the last one that stands in its routed partition. Every bucket must
    have read the end of each input partition, and no window may be open in it: a bucket that waits for the
    last frames of a session closes none.
    """
    if stage != "reduce":
        newest = _newest_frames(settings, tally.frames, committed)
        for routed, frame in sorted(tally.frames.items()):
            if newest[routed] != frame:
                raise DataLossError(
                    f"routed partition {routed} was read up to {_named(frame)}, but the last frame that"
                    f" stands there now is {_named(newest[routed])}: the log was cut, and has grown again to"
                    " where it had been read",
                    hint=REBUILD,
                )
    if stage == "combine":
        return  # the buckets of this process may not have read yet what it has combined
    for bucket, stand in sorted(tally.bucket_stands.items()):
        behind = [number for number, mark in enumerate(stand.marks) if mark < END_MARK]
        if behind:
            topic = settings.topic("partials" if stage == "reduce" else "routed")
            raise DataLossError(
                f"{topic} was read up to its end, and every lane ends there, but bucket {bucket} has not read"
                f" the end of input partition {behind[0]}: records that it lacks are gone, and the log has"
                " grown again to where it had been read",
                hint=REBUILD,
            )
        if stand.windows:
            raise DataLossError(
                f"every lane has ended, and bucket {bucket} still has {stand.windows} open windows: it waits"
                " for frames that are not in the routed topic any more",
                hint=REBUILD,
            )


def _newest_frames(
    settings: Settings, read: Mapping[int, FrameAt], committed: Mapping[int, int]
) -> dict[int, FrameAt | None]:
    """The last frame of each of these routed partitions before the committed offset.

    It is the one in `read`, if retention has deleted that one.
    """
    topic, fingerprint = settings.topic("routed"), settings.origin.fingerprint
    state = describe(settings.kafka, [topic])[topic]
    frames: dict[int, FrameAt | None] = {
        number: frame if frame.offset < state.begin[number] else None for number, frame in read.items()
    }
    high = {number: min(end, committed.get(number, end)) for number, end in state.end.items()}
    step = _FIRST_LOOK
    while spans := {
        number: _Span(max(state.begin[number], high[number] - step), high[number])
        for number, frame in frames.items()
        if frame is None and high[number] > state.begin[number]
    }:
        begin = {number: span.begin for number, span in spans.items()}
        end = dict.fromkeys(range(settings.routed_partitions), 0)
        end |= {number: span.end for number, span in spans.items()}
        for messages in read_range(settings.kafka, topic, begin=begin, end=end):
            for message in messages:
                frame = decode_frame(message.value() or b"", fingerprint=fingerprint)
                at = FrameAt(message.offset(), frame.header.session, frame.sequence)
                frames[message.partition()] = at
        high |= begin
        step *= 4
    return frames


def _named(frame: FrameAt | None) -> str:
    return (
        "none"
        if frame is None
        else f"frame {frame.number} of session {frame.session} at offset {frame.offset}"
    )


def _note_frame(marks: Int64s, value: bytes, fingerprint: str) -> Int64s:
    header = decode_frame(value, fingerprint=fingerprint).header
    entries, marks = header.marks, grown(marks, header.input_partitions, NO_MARK)
    # A frame names a partition once, so no mark is lost in the assignment.
    marks[0, entries["partition"]] = np.maximum(marks[0, entries["partition"]], entries["mark"])
    return marks


def _note_blob(marks: Int64s, value: bytes, fingerprint: str) -> Int64s:
    """Note the marks of a blob. As in the reducer, the marks of a segment count only with its last row."""
    header = decode_blob(value, fingerprint=fingerprint).header
    marks = grown(marks, header.input_partitions, NO_MARK)
    for segment in header.segments:
        if segment.begin + segment.rows == segment.total:
            lanes = marks[segment.routed, : header.input_partitions]
            np.maximum(lanes, header.marks[segment.marks], out=lanes)
    return marks
