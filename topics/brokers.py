"""What a broker is configured to do, as far as the user of the settings may read it."""

from __future__ import annotations

from confluent_kafka.admin import ConfigResource, ResourceType

from evenflow.settings import KafkaSettings
from topics.answers import REFUSED, result_of
from topics.clients import admin, seconds


def broker_config(kafka: KafkaSettings) -> dict[str, str]:
    """The configuration of one broker, by Kafka's own names. Empty if it may not be read.

    Raises ServiceError if no broker answers.
    """
    client = admin(kafka)
    doing = "reading the configuration of a broker"
    cluster = result_of(client.describe_cluster(request_timeout=seconds(kafka)), kafka, doing, absent=REFUSED)
    if cluster is None or not cluster.nodes:
        return {}
    resource = ConfigResource(ResourceType.BROKER, str(cluster.nodes[0].id))
    (future,) = client.describe_configs([resource], request_timeout=seconds(kafka)).values()
    entries = result_of(future, kafka, doing, absent=REFUSED)
    return {entry.name: entry.value for entry in (entries or {}).values() if entry.value is not None}
