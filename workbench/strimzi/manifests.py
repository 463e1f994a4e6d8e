"""Strimzi's KafkaTopics and KafkaUsers of a query, as plain objects."""

from __future__ import annotations

from typing import Any

from evenflow.settings import Settings
from topics.admin import pipeline_topics, topics_of_views
from topics.state import TopicSpec
from workbench.strimzi.rights import PARTS, Right, rights

API = "kafka.strimzi.io/v1"


def manifests(settings: Settings, *, cluster: str) -> list[dict[str, Any]]:
    """The topics as evenflow itself would make them, then a user for each part.
    cluster: name of the Kafka resource.
    """
    replicas = settings.kafka.replication_factor
    specs = [*pipeline_topics(settings).values(), *topics_of_views(settings)]
    topics = [_topic(spec, replicas, cluster) for spec in specs]
    return topics + [_user(settings, part, cluster) for part in PARTS]


def user_of(settings: Settings, part: str) -> str:
    """Name of the user of one of PARTS, and of the Secret that Strimzi makes for it."""
    return _object_name(f"{settings.query.name}-{part}")


def _topic(spec: TopicSpec, replicas: int, cluster: str) -> dict[str, Any]:
    content = {
        "topicName": spec.name,
        "partitions": spec.partitions,
        "replicas": replicas,
        "config": dict(spec.config),
    }
    return _resource("KafkaTopic", _object_name(spec.name), cluster, content)


def _user(settings: Settings, part: str, cluster: str) -> dict[str, Any]:
    acls = [_acl(right) for right in rights(settings, part)]
    content = {
        "authentication": {"type": "tls"},
        "authorization": {"type": "simple", "acls": acls},
    }
    return _resource("KafkaUser", user_of(settings, part), cluster, content)


def _acl(right: Right) -> dict[str, Any]:
    resource = {
        "type": right.kind,
        "name": right.name,
        "patternType": "prefix" if right.prefix else "literal",
    }
    return {"resource": resource, "operations": list(right.operations), "host": "*"}


def _resource(kind: str, name: str, cluster: str, content: dict[str, Any]) -> dict[str, Any]:
    labels = {"strimzi.io/cluster": cluster}
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "labels": labels}, "spec": content}


def _object_name(topic: str) -> str:
    """The name as Kubernetes allows it: fewer characters than in Kafka,
    and none but letters and digits at its ends.
    """
    return topic.lower().replace("_", "-").strip(".-")
