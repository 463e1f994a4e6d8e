"""Removing what a query has left. Cut off half-way, it is simply done again: what is gone is not missed."""

from __future__ import annotations

from evenflow.settings import Settings
from topics.admin import delete_topics
from topics.groups import delete_groups
from workbench.lifetime.remains import Remains


def remove(settings: Settings, remains: Remains) -> None:
    """Remove all of it. A service that runs on (`--force`) notices that its topics are gone, and leaves its group.

    Raises ServiceError when the broker refuses, a group keeps its members or a folder cannot be removed.
    """
    delete_topics(settings.kafka, [topic.name for topic in remains.topics])
    delete_groups(settings.kafka, remains.groups)
    for folder in remains.folders:
        folder.at.remove()
