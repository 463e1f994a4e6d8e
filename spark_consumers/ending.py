"""When a bounded stream is over: the end of every lane is in Kafka, and Spark has committed past it.

The partitioner sends the mark that ends an input partition to every routed partition, so the newest frames
of each routed partition tell it (for a reducer alone: the newest blobs of each partials partition). Only
topics and commit logs are asked, so it holds after any restart, with no new record to trigger a micro-batch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evenflow.settings import Settings
from evenflow.windows import END_MARK
from evenflow.wire import decode_blob, decode_frame
from topics.admin import TopicState, describe
from topics.reader import read_range

Lane = tuple[int, int]
_FIRST_LOOK = 32


class EndOfTopic:
    """Which lanes have ended in each partition of a topic of frames or blobs; each record is looked at once."""

    def __init__(self, settings: Settings, role: str) -> None:
        self._settings = settings
        self._topic = settings.topic(role)
        self._ended_in = _frame_ends if role == "routed" else _blob_ends
        inputs, routed = settings.input.partitions, settings.routed_partitions
        # In a routed partition a lane is an input partition; in a bucket each pair is one.
        self._lanes = inputs if role == "routed" else inputs * routed
        self._ended: dict[int, set[Lane]] = {}
        self._low: dict[int, int] = {}
        self._high: dict[int, int] = {}

    def reached_by(self, committed: Mapping[int, int]) -> bool:
        """Whether these offsets (partition -> next to read) are the topic's end, and every lane has ended there."""
        state = describe(self._settings.kafka, [self._topic]).get(self._topic)
        if state is None or any(committed.get(number, 0) < end for number, end in state.end.items()):
            return False
        return self._all_ended(state)

    def _all_ended(self, state: TopicState) -> bool:
        """Look at what is new, then further and further back where lanes are still missing; all partitions at once."""
        self._look({number: (self._high.get(number, end), end) for number, end in state.end.items()})
        self._high = dict(state.end)
        low = {number: self._low.get(number, end) for number, end in state.end.items()}
        step = _FIRST_LOOK
        while missing := [number for number in low if not self._complete(number)]:
            further = {
                number: (max(state.begin[number], low[number] - step), low[number]) for number in missing
            }
            if not self._look(further):
                break
            low |= {number: begin for number, (begin, _) in further.items()}
            step *= 4
        self._low = low
        return all(map(self._complete, state.end))

    def _complete(self, number: int) -> bool:
        return len(self._ended.get(number, ())) >= self._lanes

    def _look(self, ranges: Mapping[int, tuple[int, int]]) -> bool:
        """Note the ends among the records begin <= offset < end of each partition; False when there are none."""
        wanted = {number: span for number, span in ranges.items() if span[0] < span[1]}
        if not wanted:
            return False
        nowhere = dict.fromkeys(range(self._partitions()), 0)
        begin = {number: span[0] for number, span in wanted.items()}
        end = nowhere | {number: span[1] for number, span in wanted.items()}
        for messages in read_range(self._settings.kafka, self._topic, begin=begin, end=end):
            for message in messages:
                found = self._ended_in(message.value(), self._settings.fingerprint)
                self._ended.setdefault(message.partition(), set()).update(found)
        return True

    def _partitions(self) -> int:
        return max(self._settings.routed_partitions, self._settings.spark.buckets)


def _frame_ends(value: bytes, fingerprint: str) -> set[Lane]:
    told = decode_frame(value, fingerprint=fingerprint).header.told
    return {(0, partition) for partition in told[told[:, 1] >= END_MARK, 0].tolist()}


def _blob_ends(value: bytes, fingerprint: str) -> set[Lane]:
    header = decode_blob(value, fingerprint=fingerprint).header
    return {
        (segment.routed, partition)
        for segment in header.segments
        for partition in np.flatnonzero(header.marks[segment.marks] >= END_MARK).tolist()
    }
