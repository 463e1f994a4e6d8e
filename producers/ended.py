"""Has this input topic ended? A replay into an ended topic is refused: its tuples would never be counted."""

from __future__ import annotations

from typing import Any

from evenflow.errors import IncompatibleStateError
from evenflow.markers import EndOfStream
from evenflow.settings import KafkaSettings
from topics.admin import TopicState
from topics.reader import read_range


def refuse_ended(kafka: KafkaSettings, topic: TopicState, *, producer: str, producers: int) -> None:
    """Raise IncompatibleStateError if `producer` has ended in the topic, or every announced producer has.

    With one producer the last record of a partition tells. With several, a marker may lie anywhere before
    the others' tuples, so everything is read (bounded by the high watermarks as they are now).
    """
    starts = dict(topic.begin)
    if producers == 1:
        starts = {partition: max(starts[partition], end - 1) for partition, end in topic.end.items()}
    markers: dict[int, dict[str, EndOfStream]] = {}
    for batch in read_range(kafka, topic.name, begin=starts, end=dict(topic.end)):
        for message in batch:
            if message.key() is not None or message.value() is not None:
                continue
            headers: Any = message.headers()
            marker = EndOfStream.from_headers(headers)
            if marker is not None:
                markers.setdefault(message.partition() or 0, {})[marker.producer] = marker
    for partition, found in sorted(markers.items()):
        announced = max(marker.producers for marker in found.values())
        names = ", ".join(sorted(found))
        if len(found) >= announced or len(found) >= producers:
            raise _refused(topic.name, partition, f"all {announced} announced producers have ended ({names})")
        if producer in found:
            raise _refused(topic.name, partition, f"producer {producer!r} has ended already")


def _refused(topic: str, partition: int, why: str) -> IncompatibleStateError:
    return IncompatibleStateError(
        f"{topic}[{partition}] has ended: {why}; tuples after that would never be counted",
        hint="replay under another query.name or input.topic, or delete the topic; if several producers make "
        "one stream, announce them beforehand (input.producers) and give each a --producer-id",
    )
