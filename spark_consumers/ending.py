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
        self._seen: dict[int, tuple[int, int]] = {}

    def reached_by(self, committed: Mapping[int, int]) -> bool:
        """Whether these offsets (partition -> next to read) are the topic's end, and every lane has ended there."""
        state = describe(self._settings.kafka, [self._topic]).get(self._topic)
        if state is None or any(committed.get(number, 0) < end for number, end in state.end.items()):
            return False
        return self._all_ended(state)

    def _all_ended(self, state: TopicState) -> bool:
        for number, end in state.end.items():
            low, high = self._seen.get(number, (end, end))
            if high < end:
                self._look(number, high, end)
            step = _FIRST_LOOK
            while len(self._ended.get(number, ())) < self._lanes and low > state.begin[number]:
                before, low = low, max(state.begin[number], low - step)
                self._look(number, low, before)
                step *= 4
            self._seen[number] = (low, end)
            if len(self._ended.get(number, ())) < self._lanes:
                return False
        return True

    def _look(self, number: int, begin: int, end: int) -> None:
        nowhere = dict.fromkeys(range(self._partitions()), 0)
        ranges = {"begin": {number: begin}, "end": {**nowhere, number: end}}
        for messages in read_range(self._settings.kafka, self._topic, **ranges):
            for message in messages:
                found = self._ended_in(message.value(), self._settings.fingerprint)
                self._ended.setdefault(message.partition(), set()).update(found)

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
