"""What a policy has learned, across restarts: one record of `<query>.snapshots`, a matter of quality only."""

from __future__ import annotations

import logging

from evenflow.elasticity import Policy
from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from topics.admin import describe
from topics.reader import read_range

log = logging.getLogger(__name__)

MEMORY_KEY = b"controller/policy"
"""No partitioner instance can have this key: instances have no slash."""


def snapshot_record(policy: Policy) -> tuple[bytes, bytes]:
    """Key and value of the record."""
    return MEMORY_KEY, policy.snapshot()


def remember(settings: Settings, policy: Policy) -> bool:
    """Let the policy go on where the last controller's stopped; whether there was anything that fits it."""
    topic = settings.topic("snapshots")
    if topic not in describe(settings.kafka, [topic]):
        return False
    last = None
    for messages in read_range(settings.kafka, topic):
        for message in messages:
            if message.key() == MEMORY_KEY:
                last = message.value()
    if last is None:
        return False
    try:
        policy.resume(last)
    except IncompatibleStateError as error:
        log.warning("what an earlier controller learned is not used: %s", error)
        return False
    return True
