"""What a policy has learned, across restarts: one record of `<query>.snapshots`, a matter of quality only."""

from __future__ import annotations

import logging

from evenflow.elasticity import Policy
from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from topics.reader import read_last

log = logging.getLogger(__name__)

MEMORY_KEY = b"controller/policy"
"""No partitioner instance can have this key: instances have no slash."""


def snapshot_record(policy: Policy) -> tuple[bytes, bytes]:
    """Key and value of the record."""
    return MEMORY_KEY, policy.snapshot()


def remember(settings: Settings, policy: Policy) -> bool:
    """Let the policy go on where the last controller's stopped. Whether there was anything that fits it."""
    last = read_last(settings.kafka, settings.topic("snapshots"), MEMORY_KEY)
    learned = None if last is None else last.value()
    if learned is None:
        return False
    try:
        policy.resume(learned)
    except IncompatibleStateError as error:
        log.warning("what an earlier controller learned is not used: %s", error)
        return False
    return True
