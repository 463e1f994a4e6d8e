"""Removes what a query has left. If the removal is cut off half-way, it can simply be run again."""

from __future__ import annotations

from evenflow.settings import Settings
from topics.admin import delete_topics
from topics.groups import delete_groups
from workbench.lifetime.remains import Remains


def remove(settings: Settings, remains: Remains) -> None:
    """Remove all of `remains`. Raises ServiceError if the broker refuses, a group keeps its members or a folder stays.

    A service that still runs (`--force`) notices that its topics are gone, and leaves its group.
    """
    # Topics first: a group can be deleted only when its members have left.
    delete_topics(settings.kafka, [topic.name for topic in remains.topics])
    delete_groups(settings.kafka, remains.groups)
    for folder in remains.folders:
        folder.at.remove()
