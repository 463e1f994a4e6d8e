"""The topics of a query: what each must be, creating them, checking them, describing them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from evenflow.errors import ConfigError, IncompatibleStateError, ServiceError
from evenflow.limits import MAX_RECORD_BYTES
from evenflow.settings import KafkaSettings, Settings
from evenflow.settings.sections.input import DEFAULT_PARTITIONS
from evenflow.settings.views import OF_THE_QUERY, TopicRole, queries
from topics.answers import REFUSED, UNKNOWN_TOPIC, result_of
from topics.clients import admin, seconds, service_error
from topics.offsets import offsets
from topics.state import TopicSpec, TopicState

INPUT_RECORD_BYTES = 4_194_304
REJECTED_RECORD_BYTES = 8_388_608
"""Above the limit of the input topic, so that a rejected record fits together with its new headers."""
ROLES: tuple[TopicRole, ...] = get_args(TopicRole)
"""What the topics of a query are for: the words that `Settings.topic` takes."""
_WEEK_MS = 7 * 24 * 3_600_000
_HOUR_MS = 3_600_000
_YEAR_MS = 365 * 24 * 3_600_000
_NEVER_MS = 2**63 - 1
_POLL_SECONDS = 0.05
_SMALLEST_SEGMENT = 1_048_576
# Records are stamped with event times, which may be far from now. So no retention counts from them, and no
# time is refused for its distance from the broker's clock.
_EVENT_TIME = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": str(_NEVER_MS),
    "message.timestamp.before.max.ms": str(_NEVER_MS),
}


def input_topic(settings: Settings) -> TopicSpec:
    """What the input topic is where `evenflow replay`, `demo` or `topics create` makes it."""
    partitions = settings.input.partitions or DEFAULT_PARTITIONS
    config = _EVENT_TIME | {"max.message.bytes": str(INPUT_RECORD_BYTES)}
    return TopicSpec(name=settings.topic("input"), partitions=partitions, config=config)


def pipeline_topics(settings: Settings) -> dict[TopicRole, TopicSpec]:
    """The topics of a query by role. The settings must know the number of input partitions.

    There is a sync topic only if the instances tell each other what they know.

    Topics that hold event time in the record timestamp keep records for ever. The rejected topic is one of
    them, unless the settings ask for a retention. A finite retention would count
    from the event time, and the broker would delete a replay of old data within minutes.
    """
    a_week = {
        "cleanup.policy": "delete",
        "retention.ms": str(_WEEK_MS),
        "message.timestamp.type": "LogAppendTime",
    }
    large = {"max.message.bytes": str(MAX_RECORD_BYTES)}
    keep = settings.input.rejected_retention
    # A finite retention must not count from event times, so then the broker stamps the records.
    rejected = _EVENT_TIME if keep is None else a_week | {"retention.ms": str(keep)}
    # Kafka compacts closed segments only, and every reader reads what is not yet compacted. So segments are
    # closed soon, and compacted when little of them is out of date.
    compacted = {
        "cleanup.policy": "compact",
        "message.timestamp.type": "LogAppendTime",
        "segment.ms": "600000",
        "min.cleanable.dirty.ratio": "0.1",
    }
    snapshots = compacted | {"segment.bytes": str(2 * MAX_RECORD_BYTES)} | large
    # Every plan is written in a transaction, whose marker is a record too. `delete.retention.ms` lets these
    # markers go.
    plan = compacted | {
        "retention.ms": "-1",
        "segment.bytes": str(_SMALLEST_SEGMENT),
        "delete.retention.ms": "600000",
    }
    made_as: dict[TopicRole, tuple[int, dict[str, str]]] = {
        "rejected": (
            settings.input_partitions,
            rejected | {"max.message.bytes": str(REJECTED_RECORD_BYTES)},
        ),
        "routed": (settings.routed_partitions, a_week | large),
        "partials": (settings.bucket_count, a_week | large),
        "results": (settings.bucket_count, a_week | large),
        "telemetry": (1, a_week),
        "plan": (1, plan),
        "snapshots": (1, snapshots),
        "combiner": (1, snapshots),
        "reducer": (1, snapshots),
        "controller": (1, snapshots),
        "audit": (1, a_week | {"retention.ms": str(_YEAR_MS)}),
    }
    if settings.exchanges:
        # Old records help nobody. Segments are closed soon, because only closed ones are deleted.
        made_as["sync"] = (1, a_week | {"retention.ms": str(_HOUR_MS), "segment.ms": "600000"} | large)
    specs: dict[TopicRole, TopicSpec] = {
        # The rejected topic was made with the input partitions that there were then, and any number will do.
        role: TopicSpec(settings.topic(role), partitions, config, may_have_fewer=role == "rejected")
        for role, (partitions, config) in made_as.items()
    }
    return {"input": input_topic(settings), **specs}


def topics_of_views(settings: Settings) -> list[TopicSpec]:
    """The topics that belong to the views of the query alone."""
    return [
        spec
        for view in queries(settings)[1:]
        for role, spec in pipeline_topics(view).items()
        if role not in OF_THE_QUERY
    ]


def ensure_topics(kafka: KafkaSettings, specs: Iterable[TopicSpec]) -> dict[str, TopicState]:
    """Create the topics that are missing, check the others, and wait until all have leaders.

    Returns their states by name.

    Raises IncompatibleStateError for a topic with another number of partitions, ConfigError for a record
    limit that is too small, ServiceError if the broker refuses or does not answer.
    """
    specs_by_name = {spec.name: spec for spec in specs}
    client = admin(kafka)
    missing = [
        spec
        for name, spec in specs_by_name.items()
        if name not in _describe_topics(client, kafka, specs_by_name)
    ]
    if missing:
        _create(client, kafka, missing)
    _wait_for_leaders(client, kafka, specs_by_name)
    states = _states(client, kafka, specs_by_name)
    for name, spec in specs_by_name.items():
        if name not in states:
            raise ServiceError(f"topic {name} was deleted while it was being checked", hint="run it again")
        check_topic(spec, states[name])
    return states


def check_topic(spec: TopicSpec, state: TopicState) -> None:
    """Raise if an existing topic is not what the settings need.

    Raises IncompatibleStateError for another number of partitions, ConfigError for a record limit that is too
    small.
    """
    if state.partitions != spec.partitions and not (
        spec.may_have_fewer and state.partitions < spec.partitions
    ):
        raise IncompatibleStateError(
            f"topic {spec.name} has {state.partitions} partitions, the settings need {spec.partitions}",
            hint="the number is fixed for the life of a query: set it back (partitioner.routed_partitions, "
            "partitioner.max_workers, partitioner.workers or spark.buckets), or give the query another name",
        )
    limit, needed = state.config.get("max.message.bytes"), spec.config.get("max.message.bytes")
    if limit is not None and needed is not None and int(limit) < int(needed):
        raise ConfigError(
            f"topic {spec.name} allows records of {limit} bytes, evenflow writes up to {needed}",
            hint=f"set its max.message.bytes to {needed}, e.g. with the broker's kafka-configs tool",
        )


def describe(kafka: KafkaSettings, names: Iterable[str]) -> dict[str, TopicState]:
    """What these topics are now, by name. A topic that does not exist is absent."""
    client = admin(kafka)
    return _states(client, kafka, names)


def topic_names(kafka: KafkaSettings) -> list[str]:
    """Names of the topics that the user of these settings may see, sorted."""
    try:
        return sorted(admin(kafka).list_topics(timeout=seconds(kafka)).topics)
    except KafkaException as error:
        raise service_error(error, kafka, "listing the topics") from None


def delete_topics(kafka: KafkaSettings, names: Iterable[str]) -> None:
    """Delete those of these topics that exist, and wait until they are gone. ServiceError if one stays."""
    client, listed = admin(kafka), list(names)
    if not listed:
        return
    for name, future in client.delete_topics(listed, request_timeout=seconds(kafka)).items():
        result_of(future, kafka, f"deleting topic {name}", absent=UNKNOWN_TOPIC)
    deadline = time.monotonic() + seconds(kafka)
    while left := _describe_topics(client, kafka, listed):
        if time.monotonic() >= deadline:
            raise ServiceError(f"topics {', '.join(left)} are still there after {seconds(kafka):g} s")
        time.sleep(_POLL_SECONDS)


def may_write(kafka: KafkaSettings, topic: str) -> bool:
    """Whether the user of these settings may write to this topic (True on a broker without ACLs).

    The topic must exist.
    """
    client = admin(kafka)
    futures = client.describe_topics(
        TopicCollection([topic]), include_authorized_operations=True, request_timeout=seconds(kafka)
    )
    description = result_of(futures[topic], kafka, f"describing topic {topic}", absent=REFUSED)
    return description is not None and AclOperation.WRITE in (description.authorized_operations or [])


def refuse_unwritable(kafka: KafkaSettings, topic: str, role: TopicRole) -> None:
    """Raise ServiceError if the user of these settings may not write to this topic, which must exist."""
    if not may_write(kafka, topic):
        raise ServiceError(
            f"{kafka.who} has no right to write topic {topic}",
            hint=f"the broker must grant the ACL WRITE on topic {topic} ({role})",
        )


def _create(client: AdminClient, kafka: KafkaSettings, specs: list[TopicSpec]) -> None:
    topics = [
        NewTopic(
            spec.name,
            num_partitions=spec.partitions,
            replication_factor=kafka.replication_factor,
            config=dict(spec.config),
        )
        for spec in specs
    ]
    timeout = seconds(kafka)
    futures = client.create_topics(topics, request_timeout=timeout, operation_timeout=timeout)
    for name, future in futures.items():
        # Another process may have created the topic since we looked. It is checked like any existing topic.
        result_of(future, kafka, f"creating topic {name}", absent={KafkaError.TOPIC_ALREADY_EXISTS})


def _wait_for_leaders(client: AdminClient, kafka: KafkaSettings, names: Mapping[str, TopicSpec]) -> None:
    deadline = time.monotonic() + seconds(kafka)
    while True:
        descriptions = _describe_topics(client, kafka, names)
        waiting = [
            name
            for name in names
            if name not in descriptions
            or not all(_has_leader(part) for part in descriptions[name].partitions)
        ]
        if not waiting:
            return
        if time.monotonic() >= deadline:
            raise ServiceError(
                f"topics {', '.join(waiting)} have no leader after {seconds(kafka):g} s",
                hint="are all brokers running? see the broker's log",
            )
        time.sleep(_POLL_SECONDS)


def _has_leader(partition: Any) -> bool:
    return partition.leader is not None and partition.leader.id >= 0


def _states(client: AdminClient, kafka: KafkaSettings, names: Iterable[str]) -> dict[str, TopicState]:
    descriptions = _describe_topics(client, kafka, names)
    partitions = [
        TopicPartition(name, part.id) for name, topic in descriptions.items() for part in topic.partitions
    ]
    begin = offsets(client, kafka, partitions, OffsetSpec.earliest())
    end = offsets(client, kafka, partitions, OffsetSpec.latest())
    configs = _configs(client, kafka, list(descriptions))
    return {
        name: TopicState(
            name=name,
            topic_id=url_safe(str(topic.topic_id)),
            partitions=len(topic.partitions),
            begin=begin.get(name, {}),
            end=end.get(name, {}),
            config=configs.get(name, {}),
            replicas=min((len(part.replicas) for part in topic.partitions), default=0),
        )
        for name, topic in descriptions.items()
        # A topic that is deleted between these requests lacks offsets. It counts as one that does not exist.
        if len(begin.get(name, {})) == len(end.get(name, {})) == len(topic.partitions)
    }


def url_safe(topic_id: str) -> str:
    """A topic id as Kafka's own tools print it, in base64 for URLs without padding.
    librdkafka has plain base64.
    """
    return topic_id.replace("+", "-").replace("/", "_").rstrip("=")


def _describe_topics(
    client: AdminClient, kafka: KafkaSettings, names: Iterable[str]
) -> dict[str, TopicDescription]:
    listed = list(dict.fromkeys(names))
    if not listed:
        return {}
    futures = client.describe_topics(TopicCollection(listed), request_timeout=seconds(kafka))
    descriptions = {
        n: result_of(f, kafka, f"describing topic {n}", absent=UNKNOWN_TOPIC) for n, f in futures.items()
    }
    return {name: topic for name, topic in descriptions.items() if topic is not None}


def _configs(client: AdminClient, kafka: KafkaSettings, names: list[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    futures = client.describe_configs(resources, request_timeout=seconds(kafka))
    configs: dict[str, dict[str, str]] = {}
    for resource, future in futures.items():
        doing = f"reading the configuration of topic {resource.name}"
        entries = result_of(future, kafka, doing, absent=UNKNOWN_TOPIC | REFUSED)
        configs[resource.name] = {entry.name: entry.value for entry in (entries or {}).values()}
    return configs
