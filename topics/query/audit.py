"""Who changed a query, when and why: one record of `<query>.audit` for each plan, reset, skip and rename.

The topic is the query's, and outlives it: `evenflow reset` removes all other topics and leaves this one, with
a record of the reset. A record is written before what it tells of is done, so a refused or broken command may
have one as well. The broker sets the records' timestamps.
"""

from __future__ import annotations

import getpass
import json
import socket
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from evenflow.text.strict_json import NotStrict, read_object
from topics import clients
from topics.admin import describe, ensure_topics, pipeline_topics
from topics.offsets import stable_ends
from topics.reader import read_range

ROLE: TopicRole = "audit"
Action = Literal["plan", "reset", "skip", "rename"]
_ACTIONS: dict[str, Action] = {word: word for word in get_args(Action)}
LONGEST_WORDS = 1_000
"""Characters of each field."""
_VERSION = 1
_MOST_BYTES = 20_000


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """What was done to a query."""

    action: Action
    """The command that did it."""
    what: str
    """What was done, as a sentence."""
    who: str
    """User and host."""
    because: str = ""
    """The reason. Empty if none was given."""

    def encode(self) -> bytes:
        """Value of the entry's record."""
        fields = {name: printable_words(value) for name, value in asdict(self).items()}
        return json.dumps({"v": _VERSION, **fields}).encode()

    @classmethod
    def decode(cls, value: bytes | None) -> AuditEntry:
        """The entry in this value. Raises NotStrict."""
        fields = read_object(value, most_bytes=_MOST_BYTES, depth=1)
        fields.whole("v", _VERSION, _VERSION)
        word = fields.text("action", most=LONGEST_WORDS)
        action = _ACTIONS.get(word)
        if action is None:
            raise NotStrict(f"no action is called {word!r}")
        what, who, because = (fields.text(name, most=LONGEST_WORDS) for name in ("what", "who", "because"))
        return cls(action=action, what=what, who=who, because=because)


@dataclass(frozen=True)
class AuditRecord:
    """An entry as it stands in the topic."""

    at: int
    """When the broker took the entry, in ms since 1970."""
    offset: int
    """The entry's place in the topic."""
    entry: AuditEntry
    """What was done."""

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return {"at": self.at, "offset": self.offset, **asdict(self.entry)}


def who() -> str:
    """The user and the host of this process, in at most `LONGEST_WORDS` printable characters."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a process in a container may have no name
        user = "somebody"
    return printable_words(f"{user} on {socket.gethostname()}")


def printable_words(text: str) -> str:
    """The text without what cannot be printed, and at most `LONGEST_WORDS` characters of it."""
    return "".join(char for char in text if char.isprintable())[:LONGEST_WORDS]


def write_entry(settings: Settings, action: Action, change: str, *, because: str = "") -> None:
    """Write an entry of ours, and wait until the broker has it. Makes the topic if it is missing.

    Raises ServiceError if the broker refuses or does not answer. Then nothing should be done that would need
    the entry.
    """
    settings = settings.origin
    spec = pipeline_topics(settings.with_input_partitions(1))[ROLE]
    ensure_topics(settings.kafka, [spec])
    entry = AuditEntry(action=action, what=change, who=who(), because=because)
    producer = clients.producer(settings.kafka)
    errors: list[Any] = []
    producer.produce(
        spec.name,
        value=entry.encode(),
        on_delivery=lambda error, _: errors.append(error) if error is not None else None,
    )
    clients.flush(producer, settings.kafka)
    if errors:
        raise clients.service_error(errors[0], settings.kafka, f"writing to {spec.name}")


def read_entries(settings: Settings) -> tuple[list[AuditRecord], int]:
    """(the entries, oldest first, how many records of the topic are no entry). Empty if there is no topic.

    Raises ServiceError if the broker refuses or does not answer.
    """
    topic = settings.topic(ROLE)
    state = describe(settings.kafka, [topic]).get(topic)
    if state is None:
        return [], 0
    entries: list[AuditRecord] = []
    others = 0
    for batch in read_range(settings.kafka, topic, end=stable_ends(settings.kafka, state)):
        for record in batch:
            try:
                entry = AuditEntry.decode(record.value())
            except NotStrict:
                others += 1
                continue
            entries.append(AuditRecord(record.timestamp()[1], record.offset(), entry))
    return entries, others
