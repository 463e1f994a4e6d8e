"""The beginning of a query, kept in Kafka from the moment when the query begins: what it is, and where it
began to read.

This is one record of `<query>.snapshots`. That topic is compacted, so the record stays for as long as the
query has topics. It is written in the transaction that commits the first offsets, and again in that which
takes in partitions that were added to the input. Because of this record any command can refuse changed
settings before it starts anything, and can name the settings that changed. It also says that the query has
begun where nothing else does: committed offsets can expire before anything was routed. The record's key holds
a slash, so no partitioner instance has the same key: names of instances have no slash.
"""

from __future__ import annotations

from confluent_kafka import Producer

from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from evenflow.settings.beginning import IDENTITY_KEY, Beginning, encode_beginning, parse_beginning
from evenflow.settings.identity import begun_lookup
from evenflow.settings.key_columns import refuse_taken_names
from evenflow.settings.views import TopicRole, queries
from topics.reader import read_last

_ROLE: TopicRole = "snapshots"


def write_beginning(producer: Producer, settings: Settings, beginning: Beginning) -> None:
    """Hand the record to a producer. The transaction of this producer must be open."""
    producer.produce(settings.topic(_ROLE), key=IDENTITY_KEY, value=encode_beginning(beginning))


def read_beginning(settings: Settings) -> Beginning | None:
    """How the query began.

    None if the query has not begun, or if its snapshots topic is gone.

    Raises IncompatibleStateError if the record cannot be read.
    """
    topic = settings.topic(_ROLE)
    last = read_last(settings.kafka, topic, IDENTITY_KEY)
    if last is None or last.value() is None:
        return None
    return parse_beginning(last.value(), where=topic)


def with_lookup_content(settings: Settings, beginning: Beginning | None) -> Settings:
    """These settings with the SHA-256 of the lookup file, or of that with which the query began where there
    is no file.

    Unchanged without a lookup, with a SHA-256 in the settings, and where nothing tells one.
    """
    lookup = settings.query.lookup
    if lookup is None or lookup.sha256 is not None:
        return settings
    digest = lookup.digest()
    if digest is None and beginning is not None:
        digest = begun_lookup(beginning.identity)
    return settings if digest is None else settings.with_lookup_sha256(digest)


def recorded_partitions(settings: Settings) -> int | None:
    """How many input partitions the query has taken so far.
    None if the query has not begun, or no record says it.
    """
    beginning = read_beginning(settings.origin)
    return None if beginning is None else len(beginning.begin)


def refuse_taken_key_columns(settings: Settings) -> None:
    """Raise ConfigError if a part of the key needs a column of results whose name another one has,
    in any view.
    """
    for view in queries(settings):
        refuse_taken_names(view.query)


def refuse_changed(settings: Settings, *, beginning: Beginning | None = None) -> None:
    """Raise IncompatibleStateError if the query began with other settings. The error names what changed.

    For the settings of a view, those of its query are compared. beginning: how the query began, None to read
    it.
    """
    settings = settings.origin
    beginning = beginning or read_beginning(settings)
    if beginning is None:
        return
    settings = with_lookup_content(settings, beginning)
    changed = settings.changes_since(beginning.identity)
    changed += [
        f"column {name}: values of any kind, which count_distinct counts -> "
        f"{settings.query.with_any_columns(beginning.any_columns).column_type(name)}"
        for name in settings.query.with_any_columns(beginning.any_columns).changed_any_columns
    ]
    if changed:
        raise IncompatibleStateError(
            f"query {settings.query.name} began with other settings; changed since then:\n  "
            + "\n  ".join(changed),
            hint="set it back, give the query a new name, or remove what it left with `evenflow reset`",
        )
