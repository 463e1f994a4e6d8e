"""Removes what a query has left. If the removal is cut off half-way, it can simply be run again."""

from __future__ import annotations

from evenflow.settings import Settings
from topics.admin import delete_topics
from topics.groups import delete_groups
from topics.query.audit import write_entry
from workbench.lifetime.remains import Remains


def remove(settings: Settings, remains: Remains, *, because: str = "") -> None:
    """Write into the audit log what goes, and remove all of `remains`. because: the reason, for the log.

    Raises ServiceError if the broker refuses, a group keeps its members or a folder stays.

    A service that still runs (`--force`) notices that its topics are gone, and leaves its group.
    """
    inventory = "; ".join(" ".join(line.split()) for line in remains.lines())
    write_entry(settings, "reset", f"removed {inventory}", because=because)
    # Topics first: a group can be deleted only when its members have left.
    delete_topics(settings.kafka, [topic.name for topic in remains.topics])
    delete_groups(settings.kafka, remains.groups)
    for folder in remains.folders:
        folder.at.remove()
