"""What a topic must be, and what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TopicSpec:
    """What a topic must be. `config` is what it is created with. Replication comes from the settings."""

    name: str
    partitions: int
    config: Mapping[str, str]


@dataclass(frozen=True)
class TopicState:
    """What a topic is. `begin` and `end` (high watermark) are offsets by partition.

    `config` is empty where we may not read it. `topic_id` changes when a topic is made anew under its name.
    """

    name: str
    topic_id: str
    partitions: int
    begin: Mapping[int, int]
    end: Mapping[int, int]
    config: Mapping[str, str]

    @property
    def records(self) -> int:
        """Offsets from begin to end: records, and the markers of transactions among them."""
        return sum(self.end.values()) - sum(self.begin.values())
