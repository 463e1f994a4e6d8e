"""How a query began, as its record in Kafka says it. `topics/query/record.py` reads and writes the record.

What the record means stands here, so that a reader without a Kafka client of evenflow's knows it too
(`evenflow.spark`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from evenflow.errors import IncompatibleStateError
from evenflow.settings.identity import begun_limits, begun_lookup
from evenflow.settings.model import Settings
from evenflow.text.strict_json import INT64, read_object

IDENTITY_KEY = b"query/identity"
"""Key of the record in `<query>.snapshots`."""
_SHOWN = 500
"""Characters of an error about a record."""
_VERSION = 5
"""Version of the record. Records of versions 1 to 4 were written before release 0.1.0. Some of them began by
other rules, so none is read.
"""
_MOST_PARTITIONS = 10_000
_MOST_COLUMNS = 100_000
_LARGEST = 1_000_000
"""Bytes of a record that is read."""


class _OtherVersion(ValueError):
    """The record has a version that this evenflow does not know."""

    def __init__(self, version: int) -> None:
        super().__init__(f"it has version {version}")
        self.version = version


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """How a query began."""

    identity: dict[str, Any]
    """What is fixed for the query's life: the settings that its results depend on (`settings.identity`)."""
    input_id: str
    """Kafka's id of the input topic."""
    begin: dict[int, int]
    """Input partition -> offset of the first record of the query."""
    began_at: int
    """When the query began, ms since 1970 by the clock of the instance that began it."""
    any_columns: tuple[str, ...] = ()
    """The columns of which the query counts values of any kind (`Query.any_columns`), sorted."""

    def first_offset(self, partition: int) -> int:
        """Where reading began. A partition that the query did not begin with is read
        from its first record on.
        """
        return self.begin.get(partition, 0)


def encode_beginning(beginning: Beginning) -> bytes:
    """The record's value."""
    begin = [beginning.begin[partition] for partition in range(len(beginning.begin))]
    fields = {
        "v": _VERSION,
        "any_columns": list(beginning.any_columns),
        "identity": beginning.identity,
        "input_id": beginning.input_id,
        "begin": begin,
        "began_at": beginning.began_at,
    }
    return json.dumps(fields).encode()


def parse_beginning(value: bytes | None, *, where: str) -> Beginning:
    """The beginning that a record tells. where: its topic, for the error.

    Raises IncompatibleStateError if the record cannot be read.
    """
    try:
        return _decoded(value)
    except _OtherVersion as error:
        raise IncompatibleStateError(
            f"the record of how the query began has version {error.version}, this evenflow reads {_VERSION}",
            hint="finish the query with the evenflow that began it, or give it a new name",
        ) from None
    except (KeyError, ValueError) as error:
        raise IncompatibleStateError(
            f"the record {IDENTITY_KEY.decode()} in {where} cannot be read: {str(error)[:_SHOWN]}",
            hint="something else writes to that topic: give the query a new name",
        ) from None


def _decoded(value: bytes | None) -> Beginning:
    """Raises ValueError or KeyError for a record that is not ours, `_OtherVersion` among them."""
    fields = read_object(value, most_bytes=_LARGEST, depth=10)
    version, identity = fields.whole("v", 0, 1_000_000), fields.fields["identity"]
    if not isinstance(identity, dict):
        raise ValueError("its identity is no object")
    if version != _VERSION:
        raise _OtherVersion(version)
    begin = fields.wholes("begin", 0, INT64[1], most=_MOST_PARTITIONS)
    return Beginning(
        identity=identity,
        input_id=fields.text("input_id", most=64),
        begin=dict(enumerate(begin)),
        began_at=fields.whole("began_at", *INT64),
        any_columns=tuple(fields.texts("any_columns", longest=_LARGEST, most=_MOST_COLUMNS)),
    )


def as_begun(settings: Settings, beginning: Beginning | None) -> Settings:
    """These settings with the limits and the columns of any value with which the query began.

    beginning: None if it has not begun.
    """
    if beginning is None:
        return settings
    settings = settings.with_first_limits(begun_limits(beginning.identity))
    return settings.with_any_columns(beginning.any_columns)


def as_recorded(settings: Settings, record: bytes) -> Settings:
    """These settings as those with which the query began.

    These are limits, columns of any value, lookup file and number of input partitions.

    record: the newest value under `IDENTITY_KEY`. Raises IncompatibleStateError if it cannot be read.
    """
    try:
        beginning = _decoded(record)
    except (KeyError, ValueError) as error:
        raise IncompatibleStateError(
            f"the record {IDENTITY_KEY.decode()} of query {settings.query.name}"
            f" cannot be read: {str(error)[:_SHOWN]}",
            hint="read it with the evenflow that runs the query",
        ) from None
    settings = as_begun(settings, beginning)
    lookup, digest = settings.query.lookup, begun_lookup(beginning.identity)
    if lookup is not None and lookup.sha256 is None and digest is not None:
        settings = settings.with_lookup_sha256(digest)
    return settings.with_input_partitions(len(beginning.begin))
