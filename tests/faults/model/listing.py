"""The answer to a request for metadata."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.faults.model.broker import Broker


def listed(broker: Broker) -> Any:
    """All topics with their partitions, as `list_topics` gives them."""
    topics = {
        name: SimpleNamespace(topic=name, partitions={log.number: None for log in topic.logs}, error=None)
        for name, topic in broker.topics.items()
    }
    return SimpleNamespace(topics=topics, brokers={1: None})
