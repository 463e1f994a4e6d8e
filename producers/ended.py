"""Has this input topic ended? A replay into an ended topic is refused: its tuples would never be counted.

A marker may stand anywhere: tuples of other producers, records of strangers or marks of transactions may follow.
What the query's partitioners have read says so in their committed state. Only the records behind that are read here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from evenflow.errors import IncompatibleStateError, ProtocolError
from evenflow.markers import EndOfStream
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from topics.clients import consumer
from topics.reader import read_range
from topics.state import TopicState

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 5.0


def refuse_ended(settings: Settings, topic: TopicState, *, producer: str) -> None:
    """Raise IncompatibleStateError if `producer` has ended in the topic, or every announced producer has.

    Each record that no partitioner has read is read once, those at the end first: a topic that has ended is
    nearly always refused by its last records. Bounded by the high watermarks as they are now.
    """
    ended = _Ended(topic.name, producer, settings.input.producers)
    states = _committed(settings, topic)
    for partition, state in states.items():
        ended.add(partition, dict.fromkeys(state.ended_producers, state.announced or 1))
    starts = {p: max(begin, states[p].offset if p in states else 0) for p, begin in topic.begin.items()}
    last = {p: max(starts[p], end - 1) for p, end in topic.end.items()}
    for begin, end in ((last, topic.end), (starts, last)):
        for partition, marker in _markers(settings, topic.name, begin, end):
            ended.add(partition, {marker.producer: marker.producers})


class _Ended:
    """Who has ended in each partition so far. `add` raises once that is enough to refuse."""

    def __init__(self, topic: str, producer: str, producers: int) -> None:
        self._topic = topic
        self._producer = producer
        self._producers = producers
        self._announced: dict[int, dict[str, int]] = {}

    def add(self, partition: int, announced: Mapping[str, int]) -> None:
        """These producers have ended, having announced so many."""
        found = self._announced.setdefault(partition, {})
        found.update(announced)
        if not found:
            return
        most = max(found.values())
        if len(found) >= most or len(found) >= self._producers:
            names = ", ".join(sorted(found))
            raise self._refused(partition, f"all {most} announced producers have ended ({names})")
        if self._producer in found:
            raise self._refused(partition, f"producer {self._producer!r} has ended already")

    def _refused(self, partition: int, why: str) -> IncompatibleStateError:
        return IncompatibleStateError(
            f"{self._topic}[{partition}] has ended: {why}; tuples after that would never be counted",
            hint="replay under another query.name or input.topic, or delete the topic; if several producers make "
            "one stream, announce them beforehand (input.producers) and give each a --producer-id",
        )


def _committed(settings: Settings, topic: TopicState) -> dict[int, PartitionState]:
    """What the query's partitioners have committed for this very topic; {} if nobody has or knows."""
    reader = consumer(settings.kafka, group=settings.data_plane_group)
    try:
        wanted = [TopicPartition(topic.name, partition) for partition in topic.begin]
        answer = reader.committed(wanted, timeout=_LOOK_SECONDS)
    except KafkaException as error:
        _LOG.info("committed offsets are not known, so all records are read: %s", error)
        return {}
    finally:
        reader.close()
    states = {}
    for entry in answer:
        state = None if entry.error is not None or entry.offset < 0 else _state(entry)
        if state is not None and state.topic_id == topic.topic_id:
            states[entry.partition] = state
    return states


def _state(entry: TopicPartition) -> PartitionState | None:
    try:
        return PartitionState.decode(entry.metadata, offset=entry.offset)
    except IncompatibleStateError:
        return None  # no partitioner of ours: it says nothing


def _markers(
    settings: Settings, topic: str, begin: Mapping[int, int], end: Mapping[int, int]
) -> Iterator[tuple[int, EndOfStream]]:
    for batch in read_range(settings.kafka, topic, begin=begin, end=end):
        for message in batch:
            if message.key() is not None or message.value() is not None:
                continue
            headers: Any = message.headers()
            try:
                marker = EndOfStream.from_headers(headers)
            except ProtocolError:
                continue  # a damaged marker marks nothing: it is a record like any other
            if marker is not None:
                yield message.partition() or 0, marker
