"""What a topic must be, and what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TopicSpec:
    """What a topic must be. The replication factor comes from the settings."""

    name: str
    """Full name of the topic, with the prefix of the query if it has one."""
    partitions: int
    """How many the topic is created with, and must have."""
    config: Mapping[str, str]
    """What the topic is created with."""
    may_have_fewer: bool = False
    """Whether a topic that exists may have fewer partitions."""


@dataclass(frozen=True)
class TopicState:
    """What a topic is."""

    name: str
    """Full name of the topic."""
    topic_id: str
    """Kafka's id, which changes when a topic is made anew under its old name."""
    partitions: int
    """How many the topic has."""
    begin: Mapping[int, int]
    """Partition -> offset of the first record that is left."""
    end: Mapping[int, int]
    """Partition -> high watermark, the offset behind the last record."""
    config: Mapping[str, str]
    """Empty if the user of the settings may not read it."""
    replicas: int = 0
    """How many each partition has, at least. 0 if that is unknown."""

    @property
    def records(self) -> int:
        """Number of offsets from begin to end. The markers of transactions are among them."""
        return sum(self.end.values()) - sum(self.begin.values())
