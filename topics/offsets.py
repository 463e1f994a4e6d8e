"""Where logs begin and end, and where a query begins to read."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings
from evenflow.settings.sections.input import start_time
from topics.answers import NOT_YET, UNKNOWN_TOPIC, code_of, result_of
from topics.clients import admin, seconds, service_error
from topics.state import TopicState

_POLL_SECONDS = 0.05


def log_ends(
    kafka: KafkaSettings, topic: str, partitions: Iterable[int], *, timeout: float
) -> dict[int, int]:
    """High watermarks of these partitions, as their leaders say now.

    A partition is absent if its leader does not answer within about `timeout` seconds.
    """
    parts = [TopicPartition(topic, partition) for partition in partitions]
    futures = admin(kafka).list_offsets(dict.fromkeys(parts, OffsetSpec.latest()), request_timeout=timeout)
    ends = {}
    for part, future in futures.items():
        with suppress(KafkaException, TimeoutError):
            # A second more than the request may take: the client is to say first that its time is over.
            ends[part.partition] = future.result(timeout + 1).offset
    return ends


def stable_ends(kafka: KafkaSettings, topic: TopicState) -> dict[int, int]:
    """Offset by partition up to which no transaction is open.

    Records below it can be read without waiting.
    """
    parts = [TopicPartition(topic.name, partition) for partition in topic.begin]
    committed = IsolationLevel.READ_COMMITTED
    ends = offsets(admin(kafka), kafka, parts, OffsetSpec.latest(), isolation=committed).get(topic.name, {})
    return {partition: ends.get(partition, begin) for partition, begin in topic.begin.items()}


def first_offsets(kafka: KafkaSettings, topic: TopicState, start: str) -> dict[int, int]:
    """Offset by partition at which reading begins. start: as `input.start`: earliest, latest or a time.

    For a time, reading begins at the first record whose record timestamp is not before that time. If there is
    no such record, it begins at the end of the log.
    """
    if start == "earliest":
        return dict(topic.begin)
    if start == "latest":
        return dict(topic.end)
    time_ms = start_time(start)
    assert time_ms is not None
    partitions = [TopicPartition(topic.name, partition) for partition in topic.begin]
    first = offsets(admin(kafka), kafka, partitions, OffsetSpec.for_timestamp(time_ms)).get(topic.name, {})
    return {
        partition: offset if (offset := first.get(partition, -1)) >= 0 else topic.end[partition]
        for partition in topic.begin
    }


def offsets(
    client: AdminClient,
    kafka: KafkaSettings,
    partitions: list[TopicPartition],
    spec: OffsetSpec,
    *,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    passing: frozenset[int] = NOT_YET,
) -> dict[str, dict[int, int]]:
    """Offsets by topic and partition. A partition that has just been deleted is absent.

    passing: error codes after which a partition is asked for again, until `kafka.request_timeout` is over.

    Raises ServiceError if a broker refuses or does not answer, or does not know a leader within
    `kafka.request_timeout`.
    """
    offsets_by_topic: dict[str, dict[int, int]] = {}
    deadline = time.monotonic() + seconds(kafka)
    while partitions:
        futures = client.list_offsets(
            dict.fromkeys(partitions, spec), isolation_level=isolation, request_timeout=seconds(kafka)
        )
        partitions = []
        for part, future in futures.items():
            last_try = time.monotonic() >= deadline
            # The last try passes over nothing, so that an error which has not passed is raised.
            again = frozenset() if last_try else passing
            doing = f"reading the offsets of topic {part.topic}"
            info = result_of(future, kafka, doing, absent=UNKNOWN_TOPIC | again)
            if info is not None:
                offsets_by_topic.setdefault(part.topic, {})[part.partition] = info.offset
            elif code_of(future) in again:
                partitions.append(TopicPartition(part.topic, part.partition))
        if partitions:
            time.sleep(_POLL_SECONDS)
            _refresh_metadata(client, kafka)
    return offsets_by_topic


def _refresh_metadata(client: AdminClient, kafka: KafkaSettings) -> None:
    """The client asks no broker about a partition that its copy of the metadata lacks,
    however often it is asked.
    """
    try:
        client.list_topics(timeout=seconds(kafka))
    except KafkaException as error:
        raise service_error(error, kafka, "reading the cluster's metadata") from None


def known_offsets(
    kafka: KafkaSettings, topic: str, partitions: Iterable[int], spec: OffsetSpec
) -> dict[int, int]:
    """Offsets of partitions that exist, by partition.

    A broker that has just started, or that has not heard yet of a partition that was added, says that there
    is none. So it is asked again. Raises ServiceError as `offsets` does, and if it still says so after
    `kafka.request_timeout`.
    """
    parts = [TopicPartition(topic, partition) for partition in partitions]
    # The client says the last one itself, while it knows others but not a partition that was added a moment
    # ago.
    passing = NOT_YET | UNKNOWN_TOPIC | {KafkaError._UNKNOWN_PARTITION}
    offset_by_partition = offsets(admin(kafka), kafka, parts, spec, passing=passing).get(topic, {})
    missing = sorted(part.partition for part in parts if part.partition not in offset_by_partition)
    if missing:
        raise ServiceError(
            f"the broker does not know {topic}[{missing[0]}] after {seconds(kafka):g} s",
            hint=(
                "was the topic deleted, or does a broker still start? A"
                " restart goes on from what is committed"
            ),
        )
    return offset_by_partition
