"""How far the partitioners have read the input, by their committed offsets and the ends of the logs."""

from __future__ import annotations

from confluent_kafka import KafkaException, TopicPartition

from evenflow.errors import EvenflowError
from evenflow.settings import Settings
from topics import clients
from topics.offsets import log_ends

_SECONDS = 2.0


def unread(settings: Settings) -> int | None:
    """Records of the input that lie after the partitioners' committed offsets.

    None if the broker does not answer. Transaction markers count as records.
    """
    topic = settings.topic("input")
    hasty = settings.kafka.model_copy(update={"request_timeout": round(1_000 * _SECONDS)})
    try:
        reader = clients.consumer(hasty, group=settings.data_plane_group)
        try:
            # Partitions may have been added since this process began.
            numbers = list(reader.list_topics(topic, timeout=_SECONDS).topics[topic].partitions)
            committed = reader.committed([TopicPartition(topic, p) for p in numbers], timeout=_SECONDS)
        finally:
            reader.close()
        ends = log_ends(settings.kafka, topic, numbers, timeout=_SECONDS)
    except (KafkaException, EvenflowError):
        return None
    # An offset below 0 means that nothing is committed yet. The inner max makes it 0.
    return sum(max(0, ends.get(at.partition, 0) - max(0, at.offset)) for at in committed)
