"""What a topic must be, and what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TopicSpec:
    """What a topic must be. config: what the topic is created with.

    The replication factor comes from the settings. may_have_fewer: whether a topic that exists may have fewer
    partitions.
    """

    name: str
    partitions: int
    config: Mapping[str, str]
    may_have_fewer: bool = False


@dataclass(frozen=True)
class TopicState:
    """What a topic is.

    topic_id: Kafka's id, which changes when a topic is made anew under its old name. begin, end: offsets by
    partition. The end is the high watermark. config: empty if the user of the settings may not read it.
    replicas: how many each partition has, at least. 0 if that is unknown.
    """

    name: str
    topic_id: str
    partitions: int
    begin: Mapping[int, int]
    end: Mapping[int, int]
    config: Mapping[str, str]
    replicas: int = 0

    @property
    def records(self) -> int:
        """Number of offsets from begin to end. The markers of transactions are among them."""
        return sum(self.end.values()) - sum(self.begin.values())
