"""How a query began, from its record in Kafka, for readers that have no Kafka client of evenflow's (`evenflow.spark`).

`topics/query/record.py` writes the record, and says what it holds.
"""

from __future__ import annotations

from evenflow.errors import IncompatibleStateError
from evenflow.settings.identity import begun_limits, begun_lookup
from evenflow.settings.model import Settings
from evenflow.text.strict_json import INT64, read_object

IDENTITY_KEY = b"query/identity"
"""Key of the record in `<query>.snapshots`."""
_VERSIONS = (2, 3, 4)
_KEYS_FIRST, _COUNTS_ANYTHING = 2, 4
"""Versions of the record of a query that rejects records without a key first, and of one that counts values of any kind."""
_MOST_BYTES, _MOST_PARTITIONS, _MOST_COLUMNS = 1_000_000, 10_000, 100_000


def as_recorded(settings: Settings, record: bytes) -> Settings:
    """These settings as those with which the query began: limits, rules, lookup file and number of input partitions.

    record: the newest value under `IDENTITY_KEY`. Raises IncompatibleStateError if it cannot be read.
    """
    try:
        fields = read_object(record, most_bytes=_MOST_BYTES, depth=10)
        version, identity = fields.whole("v", 0, 1_000_000), fields.fields["identity"]
        if version not in _VERSIONS or not isinstance(identity, dict):
            raise ValueError(f"it has version {version}")
        counted = version == _COUNTS_ANYTHING
        names = fields.texts("any_columns", longest=_MOST_BYTES, most=_MOST_COLUMNS) if counted else ()
        keys_first = version == _KEYS_FIRST or not fields.flag("filter_first")
        partitions = len(fields.wholes("begin", 0, INT64[1], most=_MOST_PARTITIONS))
    except (KeyError, ValueError) as error:
        raise IncompatibleStateError(
            f"the record {IDENTITY_KEY.decode()} of query {settings.query.name} cannot be read: {str(error)[:500]}",
            hint="read it with the evenflow that runs the query",
        ) from None
    settings = settings.with_first_limits(begun_limits(identity)).with_any_columns(tuple(names))
    settings = settings.with_keys_first() if keys_first else settings
    lookup, digest = settings.query.lookup, begun_lookup(identity)
    if lookup is not None and lookup.sha256 is None and digest is not None:
        settings = settings.with_lookup_sha256(digest)
    return settings.with_input_partitions(partitions)
