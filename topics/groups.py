"""Consumer groups seen from outside: listing and deleting groups, and the members of one.

Nothing here joins a group.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings
from topics.clients import admin, seconds, service_error

_ABSENT = frozenset({KafkaError.GROUP_ID_NOT_FOUND})
_NOT_YET = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
"""Errors that pass: the broker that coordinates the group has just started."""
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Member:
    """One client in a consumer group."""

    client_id: str
    """Name that the client gives itself."""
    host: str
    """Address from which the client is connected to the broker."""
    partitions: tuple[int, ...]
    """Numbers of the partitions that the client owns, in ascending order."""


def group_names(kafka: KafkaSettings) -> list[str]:
    """Names of the groups that the user of these settings may see, sorted. Raises ServiceError."""
    try:
        listed = admin(kafka).list_consumer_groups(request_timeout=seconds(kafka)).result()
    except KafkaException as error:
        raise service_error(error, kafka, "listing the consumer groups") from None
    return sorted(group.group_id for group in listed.valid)


def members(kafka: KafkaSettings, group: str) -> list[Member]:
    """The members of the group now. Empty if there is no such group. Raises ServiceError."""
    deadline = time.monotonic() + seconds(kafka)
    while True:
        try:
            futures = admin(kafka).describe_consumer_groups([group], request_timeout=seconds(kafka))
            return [_member(description) for description in futures[group].result().members]
        except KafkaException as error:
            code = error.args[0].code()
            if code in _ABSENT:
                return []
            if code not in _NOT_YET or time.monotonic() >= deadline:
                raise service_error(error, kafka, f"asking for consumer group {group}") from None
        time.sleep(_LOOK_SECONDS)


def _member(description: Any) -> Member:
    owned = description.assignment.topic_partitions if description.assignment else []
    return Member(
        client_id=description.client_id,
        host=description.host.lstrip("/"),  # the broker writes addresses as Java does: /127.0.0.1
        partitions=tuple(sorted(part.partition for part in owned)),
    )


def delete_groups(kafka: KafkaSettings, groups: Iterable[str]) -> None:
    """Delete these groups. Waits up to `kafka.request_timeout` until their last members have left.

    Raises ServiceError if a member stays, or if the broker refuses.
    """
    left = list(groups)
    deadline = time.monotonic() + seconds(kafka)
    while left:
        left = [group for group in left if not _deleted(kafka, group)]
        if left and time.monotonic() >= deadline:
            raise ServiceError(
                f"consumer groups {', '.join(left)} still have members",
                hint="stop the query's services, and run it again",
            )
        if left:
            time.sleep(_LOOK_SECONDS)


def _deleted(kafka: KafkaSettings, group: str) -> bool:
    """Delete this group. False if it cannot be deleted yet."""
    futures = admin(kafka).delete_consumer_groups([group], request_timeout=seconds(kafka))
    try:
        futures[group].result()
    except KafkaException as error:
        code = error.args[0].code()
        if code == KafkaError.NON_EMPTY_GROUP or code in _NOT_YET:
            return False
        # A group that is gone already is what the caller wants.
        if code not in _ABSENT:
            raise service_error(error, kafka, f"deleting consumer group {group}") from None
    return True
