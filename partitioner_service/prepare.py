"""What an instance checks and makes before it begins. What is refused here has touched no topic and no offset."""

from __future__ import annotations

from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from partitioner_service.learned import new_partitioner
from topics.admin import ensure_topics, pipeline_topics
from topics.settled import admitted

OWN_TOPICS: tuple[TopicRole, ...] = ("routed", "rejected", "telemetry", "plan", "snapshots")
"""Roles of the topics that partitioners write or follow. The input is the user's. The others are the Spark stages'."""


def prepare(settings: Settings) -> Settings:
    """The settings with what the input topic says, once everything fits. The query's own topics are there then.

    Raises ConfigError for a partitioner that cannot be used or an input topic that is missing, IncompatibleStateError
    for a query that began with other settings, ServiceError when the broker refuses or does not answer.
    """
    new_partitioner(settings)
    known = admitted(settings)
    specs = pipeline_topics(known)
    ensure_topics(known.kafka, [specs[role] for role in OWN_TOPICS])
    return known
