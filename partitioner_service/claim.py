"""The beginning of a query: give every input partition its first committed state, exactly once.

From then on a partition without committed state is an error, never a fresh start (pipeline rule 4).
Several instances may start at once: the transactional id `<query>.claim` lets one of them win, and
the broker accepts offsets from outside the group only while the group has no members.
"""

from __future__ import annotations

import logging

from confluent_kafka import KafkaException, TopicPartition

from evenflow.errors import IncompatibleStateError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service.source import all_states, data_plane_group
from topics import admin as topic_admin
from topics import clients

log = logging.getLogger(__name__)


def claim(settings: Settings) -> None:
    """Commit the initial state of every input partition unless the query has begun already.

    Raises IncompatibleStateError when the offsets are gone although frames were routed already.
    """
    kafka = settings.kafka
    topic, routed = settings.topic("input"), settings.topic("routed")
    refusal: str | None = None
    for _ in range(10):
        # In this order: frames are written only after a claim, so whoever sees one must see all offsets too.
        topics = topic_admin.describe(kafka, [topic, routed])
        known = all_states(settings)
        if len(known) == settings.input.partitions:
            return
        if any(end > 0 for end in topics[routed].end.values()):
            missing = sorted(set(topics[topic].begin) - set(known))
            raise IncompatibleStateError(
                f"{routed} holds frames, but the group {data_plane_group(settings)} has no committed offsets of "
                f"input partitions {missing}",
                hint="the offsets expired or were deleted: see 'Rebuild after data loss' in docs/operations.md",
            )
        first = [
            TopicPartition(
                topic,
                partition,
                begin,
                PartitionState(
                    fingerprint=settings.fingerprint,
                    topic_id=topics[topic].topic_id,
                    routed_id=topics[routed].topic_id,
                    offset=begin,
                ).encode(),
            )
            for partition, begin in topics[topic].begin.items()
            if partition not in known
        ]
        refusal = _commit_outside_the_group(settings, first)
        if refusal is None:
            log.info("query %s begins at %s", settings.query.name, {p.partition: p.offset for p in first})
            return
    raise IncompatibleStateError(
        f"could not commit the first offsets of {topic} for group {data_plane_group(settings)}: {refusal}",
        hint="unless rights are missing, members that know nothing of this query are in that group: stop them",
    )


def _commit_outside_the_group(settings: Settings, offsets: list[TopicPartition]) -> str | None:
    """Kafka's words when it refused, None when the offsets are committed."""
    timeout = settings.kafka.request_timeout / 1000
    producer = clients.producer(settings.kafka, **{"transactional.id": f"{settings.query.name}.claim"})
    consumer = clients.consumer(settings.kafka, group=data_plane_group(settings))
    try:
        producer.init_transactions(timeout)
        producer.begin_transaction()
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), timeout)
        producer.commit_transaction(timeout)
        return None
    except KafkaException as error:
        log.info("another instance begins the query: %s", error.args[0].str())
        return str(error.args[0].str())
    finally:
        consumer.close()
