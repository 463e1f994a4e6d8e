"""Lets the broker delete the oldest records by their size, so that a disk holds a stream of any length."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from topics import clients

SECONDS: Mapping[TopicRole, float] = {"input": 300.0, "routed": 100.0, "results": 600.0}
"""About how many seconds of the stream each topic keeps, at the rate for which it is set."""
CHECK_MS = 5_000
"""How often the broker looks for what it may delete. Its default is five minutes."""
_SEGMENTS = 8
"""The broker deletes whole segments, so a topic keeps up to one in `_SEGMENTS` more."""
_SMALLEST = 2**20


def fullest_partitions(settings: Settings, folder: Path) -> dict[TopicRole, int]:
    """Bytes of the fullest partition of each topic of `SECONDS`.

    folder: the broker's, with a folder for each partition.
    """
    return {
        role: max(
            sum(file.stat().st_size for file in partition.glob("*.log"))
            for partition in folder.glob(f"{settings.topic(role)}-[0-9]*")
        )
        for role in SECONDS
    }


def topic_settings(
    bytes_per_tuple: Mapping[TopicRole, float], rate: int, *, scale: float = 1.0
) -> dict[TopicRole, dict[str, int]]:
    """Settings of each topic that keep about `scale` times `SECONDS` of a stream of this rate (tuples/s).

    bytes_per_tuple: those that the fullest partition of each topic gets for a tuple of the input.
    """
    sizes = {
        role: max(_SMALLEST, round(bytes_per_tuple[role] * rate * seconds * scale))
        for role, seconds in SECONDS.items()
    }
    return {
        role: {"retention.bytes": size, "segment.bytes": max(_SMALLEST, size // _SEGMENTS)}
        for role, size in sizes.items()
    }


def retain(settings: Settings, wanted: Mapping[TopicRole, Mapping[str, int]]) -> None:
    """Set what `topic_settings` says."""
    topics = []
    for role, values in wanted.items():
        entries = [
            ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET)
            for name, value in values.items()
        ]
        topics.append(ConfigResource(ResourceType.TOPIC, settings.topic(role), incremental_configs=entries))
    for answer in clients.admin(settings.kafka).incremental_alter_configs(topics).values():
        answer.result(30)
