"""Result tables as readers get them: keys have the type that the query gives them,
and window bounds are timestamps.

Between the stages a key is always bytes. The partitioner writes each whole number in one form, the shortest.
So equal numbers have equal bytes. A key of several columns is the text of a JSON array there, and each of its
parts is a column in results.
"""

from __future__ import annotations

import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ProtocolError
from evenflow.grammar.arrow_types import arrow_type
from evenflow.settings.sections.query import Query
from evenflow.text.json_text import parts

TIME = pa.timestamp("ms", "UTC")
"""Type of a window's start and end."""


_FOREIGN = "has another program than evenflow's partitioner written to the routed topic?"


def key_type(query: Query) -> pa.DataType:
    """Type of the key as one column: binary for '@key', int64 for a column
    of whole numbers, otherwise string.
    """
    return {"raw": pa.binary(), "int64": pa.int64(), "string": pa.string()}[query.key_kind]


def key_schema(query: Query) -> pa.Schema:
    """Columns of the key in results: `key`, or one for each part of a key
    of several columns (`Query.result_keys`).
    """
    if query.result_keys == ("key",):
        return pa.schema([pa.field("key", key_type(query))])
    return pa.schema([(name, arrow_type(query.column_type(name))) for name in query.result_keys])


def readable_schema(query: Query) -> pa.Schema:
    """Columns of results: window_start, window_end, those of `key_schema`, what `emit` adds,
    and the aggregates.

    The aggregates are in the order of the settings. Last come the columns that count tuples
    (`AggregatePlan.tuples_schema`).
    """
    bounds = [pa.field(name, TIME) for name in ("window_start", "window_end")]
    return pa.schema([*bounds, *key_schema(query), *AggregatePlan.of(query).beside_key])


def never_null(query: Query) -> frozenset[str]:
    """Columns of `readable_schema` that have a value in every row: all but the aggregates."""
    return frozenset(readable_schema(query).names) - {*AggregatePlan.of(query).output_schema.names}


def typed_keys(table: pa.Table, kind: pa.DataType) -> pa.Table:
    """The table with its key column read as this type. Raises ProtocolError for bytes that are no such
    key.
    """
    if kind == pa.binary():
        return table
    try:
        keys = table["key"].cast(pa.string()).cast(kind)
    except pa.ArrowInvalid as error:
        raise ProtocolError(
            f"a key is not of the query's type {kind}: {error!s:.200}",
            hint=_FOREIGN,
        ) from None
    return table.set_column(table.schema.get_field_index("key"), "key", keys)


def with_key_columns(table: pa.Table, keys: pa.Schema) -> pa.Table:
    """The table with the columns `keys` (`key_schema`) in the place of its column `key`, which holds bytes.

    Raises ProtocolError for bytes that are no such key.
    """
    if keys.names == ["key"]:
        return typed_keys(table, keys.field("key").type)
    at = table.schema.get_field_index("key")
    try:
        chunks = [parts(chunk.cast(pa.string()), keys.types) for chunk in table["key"].chunks]
    except ValueError as error:  # pa.ArrowInvalid is one
        raise ProtocolError(
            f"a key does not hold the query's key columns {', '.join(keys.names)}: {error!s:.200}",
            hint=_FOREIGN,
        ) from None
    key_columns = [
        pa.chunked_array([chunk[number] for chunk in chunks], field.type) for number, field in enumerate(keys)
    ]
    columns, fields = table.columns, list(table.schema)
    return pa.Table.from_arrays(
        [*columns[:at], *key_columns, *columns[at + 1 :]],
        schema=pa.schema([*fields[:at], *keys, *fields[at + 1 :]]),
    )


def readable(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A result table (plan.result_schema) cast to this `readable_schema`.

    Raises ProtocolError as `with_key_columns` does.
    """
    others = set(table.schema.names) - {"key"}
    keys = pa.schema([field for field in schema if field.name not in others])
    return with_key_columns(table, keys).cast(schema)
