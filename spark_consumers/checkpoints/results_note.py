"""The query's note in Kafka that its results have begun, and where.

The note outlives a lost checkpoint (rule "results without a checkpoint are no start"). The note is one record
of `<query>.reducer` per place of results, with the key `spark/<place>`. The topic is compacted, so the record
stays as long as the query has topics. Epochs in the same topic have the key `spark/epoch/...`, and no place
begins like that. evenflow 0.1.0 wrote both into `<query>.snapshots`.
"""

from __future__ import annotations

import json

from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from topics import clients
from topics.reader import read_last

IF_LOST = "if it is lost, `evenflow rename` computes every result again (docs/operations/data-loss.md)"
"""What to do about a checkpoint that is gone while Kafka has everything, in words."""
_ROLE: TopicRole = "reducer"
ROLE_BEFORE: TopicRole = "snapshots"
"""Role of the topic in which 0.1.0 kept what is now in topics of the parts' own. Nothing is written there."""


def begun_at(settings: Settings, place: str) -> str | None:
    """Checkpoint with which this query last began to write its results to this place.

    None if it never has begun.
    """
    for role in (_ROLE, ROLE_BEFORE):
        last = read_last(settings.kafka, settings.topic(role), _key(place))
        if last is not None:
            return _checkpoint(last.value())
    return None


def is_noted(settings: Settings, place: str) -> bool:
    """Whether the note stands in the topic into which it is written now."""
    return read_last(settings.kafka, settings.topic(_ROLE), _key(place)) is not None


def note_beginning(settings: Settings, place: str, checkpoint: str) -> None:
    """Write the note, before the first micro-batch. Raises ServiceError unless the broker has stored it."""
    producer = clients.producer(settings.kafka)
    producer.produce(
        settings.topic(_ROLE), key=_key(place), value=json.dumps({"checkpoint": checkpoint}).encode()
    )
    clients.flush(producer, settings.kafka)


def _key(place: str) -> bytes:
    return f"spark/{place}".encode()


def _checkpoint(value: bytes | None) -> str:
    """The checkpoint that the record names.

    A record that cannot be read still says that results have begun.
    """
    try:
        return str(json.loads(value or b"")["checkpoint"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return "an unknown place"
