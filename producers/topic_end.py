"""Whether an input topic has ended.

A replay into an ended topic is refused, as its tuples would never be counted. A marker may stand anywhere in
a partition: tuples of other producers, foreign records or transaction markers may follow it. For the part of
the topic that the query's partitioners have read, their committed state names the markers. So only later
records are read here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from evenflow.errors import IncompatibleStateError, ProtocolError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.wire.markers import EndOfStream
from topics.clients import consumer
from topics.reader import read_range
from topics.state import TopicState

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 5.0


def refuse_ended(settings: Settings, topic: TopicState, *, producer: str) -> None:
    """Raise IncompatibleStateError if `producer` has ended in the topic, or if every announced producer has.

    Each record that no partitioner has read is read once. The last record of each partition comes first,
    because a topic that has ended nearly always ends with a marker. Records that are written from now on are
    not read.
    """
    ended = _EndedProducers(topic.name, producer, settings.input.producers)
    states = _committed(settings, topic)
    for partition, state in states.items():
        ended.add(partition, dict.fromkeys(state.ended_producers, state.announced or 1))
    starts = {p: max(begin, states[p].offset if p in states else 0) for p, begin in topic.begin.items()}
    last = {p: max(starts[p], end - 1) for p, end in topic.end.items()}
    for begin, end in ((last, topic.end), (starts, last)):
        for partition, marker in _markers(settings, topic.name, begin, end):
            ended.add(partition, {marker.producer: marker.producers})


class _EndedProducers:
    """Which producers have ended in each partition so far.

    `add` raises as soon as that is enough to refuse.
    """

    def __init__(self, topic: str, producer: str, producers: int) -> None:
        self._topic = topic
        self._producer = producer
        self._producers = producers
        self._announced: dict[int, dict[str, int]] = {}

    def add(self, partition: int, announced: Mapping[str, int]) -> None:
        """Note that producers have ended. announced: producer -> how many producers its marker announced.

        Raises IncompatibleStateError if the topic counts as ended now.
        """
        markers = self._announced.setdefault(partition, {})
        markers.update(announced)
        if not markers:
            return
        most = max(markers.values())
        if len(markers) >= most or len(markers) >= self._producers:
            names = ", ".join(sorted(markers))
            raise self._refused(partition, f"all {most} announced producers have ended ({names})")
        if self._producer in markers:
            raise self._refused(partition, f"producer {self._producer!r} has ended already")

    def _refused(self, partition: int, why: str) -> IncompatibleStateError:
        return IncompatibleStateError(
            f"{self._topic}[{partition}] has ended: {why}; tuples after that would never be counted",
            hint=(
                "replay under another query.name or input.topic, or delete the topic; if several producers"
                " make one stream, announce them beforehand (input.producers) and give each a --producer-id"
            ),
        )


def _committed(settings: Settings, topic: TopicState) -> dict[int, PartitionState]:
    """What the query's partitioners have committed for this topic, by partition.

    A partition without committed state is left out, and so is a state that belongs to an earlier topic of
    this name. Empty if the broker does not answer.
    """
    reader = consumer(settings.kafka, group=settings.data_plane_group)
    try:
        partitions = [TopicPartition(topic.name, partition) for partition in topic.begin]
        answer = reader.committed(partitions, timeout=_LOOK_SECONDS)
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
        return None  # not committed by a partitioner of this version: all records are read instead


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
