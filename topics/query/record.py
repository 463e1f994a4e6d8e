"""The beginning of a query, kept in Kafka from the moment when the query begins: what it is, and where it began to read.

This is one record of `<query>.snapshots`. That topic is compacted, so the record stays for as long as the query has
topics. It is written in the transaction that commits the first offsets, and again in that which takes in partitions that
were added to the input. Because of this record any command can refuse changed settings before it starts anything, and can
name the settings that changed. It also says that the query has begun where nothing else does: committed offsets can expire
before anything was routed. The record's key holds a slash, so no partitioner instance has the same key: names of instances
have no slash.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer

from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from evenflow.settings.identity import begun_limits, begun_lookup
from evenflow.settings.key_columns import refuse_taken_names
from evenflow.settings.views import TopicRole, queries
from evenflow.text.strict_json import INT64, StrictObject, read_object
from topics.reader import read_last

_SHOWN = 500
"""Characters of an error about a record."""
_ROLE: TopicRole = "snapshots"
IDENTITY_KEY = b"query/identity"
_VERSION = 4
"""Version of the record of a query that counts values of any kind (`Query.any_columns`)."""
_NUMBERS = 3
"""Version of the record of a query that counts no such values."""
_KEYS_FIRST = 2
"""Version of the record of a query that rejects records without a key before it filters (`Query.filter_first`)."""
_MOST_PARTITIONS = 10_000
_MOST_COLUMNS = 100_000
_LARGEST = 1_000_000
"""Bytes of a record that is read."""


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """How a query began.

    identity: what is fixed for its life. input_id: Kafka's id of the input topic. begin: input partition -> offset of
    the first record of the query. began_at: when it began, in ms since 1970 by the clock of the instance that began it.
    key_columns: whether results have a column for each part of a key of several columns. A query that began before there
    were such columns has none, and keeps its one column `key`.
    filter_first: by which rule it rejects records without a key (`Query.filter_first`).
    any_columns: the columns of which it counts values of any kind (`Query.any_columns`), sorted.
    """

    identity: dict[str, Any]
    input_id: str
    begin: dict[int, int]
    began_at: int
    key_columns: bool = False
    filter_first: bool = True
    any_columns: tuple[str, ...] = ()

    def first_offset(self, partition: int) -> int:
        """Where reading began. A partition that the query did not begin with is read from its first record on."""
        return self.begin.get(partition, 0)


def write_beginning(producer: Producer, settings: Settings, beginning: Beginning) -> None:
    """Hand the record to a producer. The transaction of this producer must be open."""
    producer.produce(settings.topic(_ROLE), key=IDENTITY_KEY, value=encode_beginning(beginning))


def encode_beginning(beginning: Beginning) -> bytes:
    """The record's value."""
    begin = [beginning.begin[partition] for partition in range(len(beginning.begin))]
    # An older evenflow reads the record of a query that began by rules that it knows, and refuses any other.
    rule: dict[str, Any] = (
        {"v": _NUMBERS, "filter_first": True} if beginning.filter_first else {"v": _KEYS_FIRST}
    )
    if beginning.any_columns:
        rule = {
            "v": _VERSION,
            "filter_first": beginning.filter_first,
            "any_columns": list(beginning.any_columns),
        }
    fields = {
        **rule,
        "identity": beginning.identity,
        "input_id": beginning.input_id,
        "begin": begin,
        "began_at": beginning.began_at,
    }
    # Left out where it says nothing: a key of one column.
    fields |= {"key_columns": True} if beginning.key_columns else {}
    return json.dumps(fields).encode()


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


def parse_beginning(value: bytes | None, *, where: str) -> Beginning:
    """The beginning that a record tells. where: its topic, for the error.

    Raises IncompatibleStateError if the record cannot be read.
    """
    try:
        return _decoded(read_object(value, most_bytes=_LARGEST, depth=10))
    except (KeyError, ValueError) as error:
        raise IncompatibleStateError(
            f"the record {IDENTITY_KEY.decode()} in {where} cannot be read: {str(error)[:_SHOWN]}",
            hint="something else writes to that topic: give the query a new name",
        ) from None


def _decoded(fields: StrictObject) -> Beginning:
    """Raises ValueError or KeyError for a record that is not ours, IncompatibleStateError for another version."""
    version, identity = fields.whole("v", 0, 1_000_000), fields.fields["identity"]
    if not isinstance(identity, dict):
        raise ValueError("its identity is no object")
    if version not in (_KEYS_FIRST, _NUMBERS, _VERSION):
        raise IncompatibleStateError(
            f"the record of how the query began has version {version}, this evenflow reads {_VERSION}",
            hint="finish the query with the evenflow that began it, or give it a new name",
        )
    begin = fields.wholes("begin", 0, INT64[1], most=_MOST_PARTITIONS)
    return Beginning(
        identity=identity,
        input_id=fields.text("input_id", most=64),
        begin=dict(enumerate(begin)),
        began_at=fields.whole("began_at", *INT64),
        key_columns=fields.fields.get("key_columns") is True,
        filter_first=version != _KEYS_FIRST and fields.flag("filter_first"),
        any_columns=_any_columns(fields) if version == _VERSION else (),
    )


def _any_columns(fields: StrictObject) -> tuple[str, ...]:
    return tuple(fields.texts("any_columns", longest=_LARGEST, most=_MOST_COLUMNS))


def as_begun(settings: Settings, beginning: Beginning | None) -> Settings:
    """These settings with the rules by which the query began. beginning: None if it has not begun."""
    if beginning is None:
        return settings
    settings = settings.with_first_limits(begun_limits(beginning.identity))
    settings = settings.with_any_columns(beginning.any_columns)
    settings = settings if beginning.filter_first else settings.with_keys_first()
    return settings if beginning.key_columns else settings.with_one_key_column()


def with_lookup_content(settings: Settings, beginning: Beginning | None) -> Settings:
    """These settings with the SHA-256 of the lookup file, or of that with which the query began where there is no file.

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
    """How many input partitions the query has taken so far. None if the query has not begun, or no record says it."""
    beginning = read_beginning(settings.origin)
    return None if beginning is None else len(beginning.begin)


def refuse_taken_key_columns(settings: Settings) -> None:
    """Raise ConfigError if a part of the key needs a column of results whose name another one has, in any view."""
    for view in queries(settings):
        refuse_taken_names(view.query)


def refuse_changed(settings: Settings, *, beginning: Beginning | None = None) -> None:
    """Raise IncompatibleStateError if the query began with other settings. The error names what changed.

    For the settings of a view, those of its query are compared. beginning: how the query began, None to read it.
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
