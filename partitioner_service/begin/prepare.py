"""What an instance checks and makes before it begins.

A partitioner, an input topic or settings that do not fit are refused before any topic is created. No offset
is touched here.
"""

from __future__ import annotations

from evenflow.lookup_table import LookupTable
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from partitioner_service.begin.trial import refuse_mostly_rejected
from partitioner_service.kafka.learned_state import check_partitioner
from topics.admin import ensure_topics, pipeline_topics
from topics.query.input_topic import admitted

OWN_TOPICS: tuple[TopicRole, ...] = ("routed", "rejected", "telemetry", "plan", "snapshots", "sync")
"""Roles of the topics that partitioners write or follow, as far as the settings ask for them.

The input topic belongs to the user, and the other topics belong to the Spark stages.
"""


def prepare(settings: Settings, *, trial: bool = False) -> Settings:
    """The settings with the number of partitions of the input topic.

    Creates the partitioners' topics that are missing. trial: whether a query that has not begun is refused if
    most of its first records would be rejected (`trial.py`).

    Raises ConfigError for that, for a partitioner or lookup file that cannot be used or an input topic that
    is missing, IncompatibleStateError for a query that began with other settings, ServiceError when the
    broker refuses or does not answer.
    """
    check_partitioner(settings)  # before a broker is asked
    query_settings = admitted(settings)
    if query_settings.query.lookup is not None:
        LookupTable(query_settings.query)  # only for its errors, before any topic is made
    if trial:
        refuse_mostly_rejected(query_settings)
    specs = pipeline_topics(query_settings)
    ensure_topics(query_settings.kafka, [specs[role] for role in OWN_TOPICS if role in specs])
    return query_settings
