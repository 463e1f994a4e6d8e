"""Whether a broker answers at all.
`evenflow status` asks before it imports what reads topics, which takes seconds.
"""

from __future__ import annotations

from typing import Any

from evenflow.errors import EvenflowError
from evenflow.settings import KafkaSettings, Settings
from topics.clients import admin

_BROKER_MS = 4_000
"""How long the first request waits."""


def hasty(kafka: KafkaSettings) -> KafkaSettings:
    """These settings with a request timeout of at most 4 s."""
    return kafka.model_copy(update={"request_timeout": min(_BROKER_MS, kafka.request_timeout)})


def demand_answer(settings: Settings) -> None:
    """Raise ServiceError if no broker answers within 4 s, or one refuses us.

    The client of an answer serves the reads that follow.
    """
    admin(hasty(settings.kafka))


def unread(settings: Settings, error: EvenflowError) -> dict[str, Any]:
    """What is left of `screen.as_json` if nothing could be read: the query is wrong, and the one finding
    is the error.
    """
    return {
        "state": "wrong",
        "findings": [{"level": "wrong", "text": error.message}],
        "query": settings.query.name,
        "input": settings.topic("input"),
        "wrong": [error.message],
    }
