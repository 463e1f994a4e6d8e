"""What a policy has learned, kept across restarts in one record of `<query>.controller`.

evenflow 0.1.0 wrote it into `<query>.snapshots`. Only quality depends on it.
"""

from __future__ import annotations

import logging

from evenflow.elasticity import Policy
from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from topics.reader import read_last

log = logging.getLogger(__name__)

MEMORY_KEY = b"controller/policy"
"""Key of the record."""
_ROLES: tuple[TopicRole, ...] = ("controller", "snapshots")
"""Roles of the topics in which the record may stand: that of today, and that of 0.1.0."""


def snapshot_record(policy: Policy) -> tuple[bytes, bytes]:
    """Key and value of the record that holds what the policy has learned."""
    return MEMORY_KEY, policy.snapshot()


def remember(settings: Settings, policy: Policy) -> bool:
    """Let the policy go on where the policy of the last controller stopped.

    Returns whether there was a record that fits the policy. Raises ServiceError without a broker.
    """
    found = (read_last(settings.kafka, settings.topic(role), MEMORY_KEY) for role in _ROLES)
    learned = next((last.value() for last in found if last is not None), None)
    if learned is None:
        return False
    try:
        policy.resume(learned)
    except IncompatibleStateError as error:
        log.warning("what an earlier controller learned is not used: %s", error)
        return False
    return True
