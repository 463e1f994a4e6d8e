"""The identity of a query, kept in Kafka from the moment when the query begins.

The identity is one record of `<query>.snapshots`. That topic is compacted, so the record stays for as long as
the query has topics. It is written in the transaction that commits the first offsets. Because of this record
any command can refuse changed settings before it starts anything, and can name the settings that changed. The
record's key holds a slash, so no partitioner instance has the same key: names of instances have no slash.
"""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import Producer

from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from evenflow.strict_json import read_object
from topics.reader import read_last

_ROLE: TopicRole = "snapshots"
IDENTITY_KEY = b"query/identity"
_LARGEST = 1_000_000
"""Bytes of a record that is read."""


def write_identity(producer: Producer, settings: Settings) -> None:
    """Hand the record to a producer. The transaction of this producer must be open."""
    value = json.dumps({"v": 1, "identity": settings.identity()}).encode()
    producer.produce(settings.topic(_ROLE), key=IDENTITY_KEY, value=value)


def read_identity(settings: Settings) -> dict[str, Any] | None:
    """The identity that the query began with.

    None if the query has not begun, or if its snapshots topic is gone.

    Raises IncompatibleStateError if the record cannot be read.
    """
    topic = settings.topic(_ROLE)
    last = read_last(settings.kafka, topic, IDENTITY_KEY)
    if last is None or last.value() is None:
        return None
    try:
        identity = read_object(last.value(), most_bytes=_LARGEST, depth=10).fields["identity"]
    except (KeyError, ValueError) as error:
        raise IncompatibleStateError(
            f"the record {IDENTITY_KEY.decode()} in {topic} cannot be read: {error}",
            hint="something else writes to that topic: give the query a new name",
        ) from None
    return identity if isinstance(identity, dict) else None


def refuse_changed(settings: Settings) -> None:
    """Raise IncompatibleStateError if the query began with other settings. The error names what changed.

    For the settings of a view, those of its query are compared.
    """
    settings = settings.origin
    before = read_identity(settings)
    if before is None:
        return
    changed = settings.changes_since(before)
    if changed:
        raise IncompatibleStateError(
            f"query {settings.query.name} began with other settings; changed since then:\n  "
            + "\n  ".join(changed),
            hint="set it back, give the query a new name, or remove what it left with `evenflow reset`",
        )
