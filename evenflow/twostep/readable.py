"""Result tables as readers get them: keys have the type that the query gives them, and window bounds are timestamps.

Between the stages a key is always bytes. The partitioner writes each whole number in one form, the shortest.
So equal numbers have equal bytes.
"""

from __future__ import annotations

import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ProtocolError
from evenflow.settings.query import Query

TIME = pa.timestamp("ms", "UTC")
"""Type of a window's start and end."""


def key_type(query: Query) -> pa.DataType:
    """Type of the key: binary for '@key', int64 for a column of whole numbers, otherwise string."""
    return {"raw": pa.binary(), "int64": pa.int64(), "string": pa.string()}[query.key_kind]


def readable_schema(query: Query) -> pa.Schema:
    """Columns of results: window_start, window_end, key, what `emit` adds, the aggregates in the order of the settings.

    Last come the columns that count tuples (`AggregatePlan.tuples_schema`).
    """
    bounds = [pa.field(name, TIME) for name in ("window_start", "window_end")]
    return pa.schema([*bounds, pa.field("key", key_type(query)), *AggregatePlan.of(query).beside_key])


def typed_keys(table: pa.Table, kind: pa.DataType) -> pa.Table:
    """The table with its key column read as this type. Raises ProtocolError for bytes that are no such key."""
    if kind == pa.binary():
        return table
    try:
        keys = table["key"].cast(pa.string()).cast(kind)
    except pa.ArrowInvalid as error:
        raise ProtocolError(
            f"a key is not of the query's type {kind}: {error!s:.200}",
            hint="has another program than evenflow's partitioner written to the routed topic?",
        ) from None
    return table.set_column(table.schema.get_field_index("key"), "key", keys)


def readable(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A result table (plan.result_schema) cast to this `readable_schema`. Raises ProtocolError as `typed_keys` does."""
    return typed_keys(table, schema.field("key").type).cast(schema)
