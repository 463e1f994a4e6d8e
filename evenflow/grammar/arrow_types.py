"""The Arrow type of each column type."""

from __future__ import annotations

import pyarrow as pa

from evenflow.grammar.column_types import ANY_VALUE, ColumnType, decimal_scale

ARROW_TYPES: dict[str, pa.DataType] = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
}
"""Of the types that have no scale."""


def arrow_type(declared: ColumnType) -> pa.DataType:
    """Arrow type of a value column in frames, for a type of `[query.types]` or `ANY_VALUE`."""
    if declared == ANY_VALUE:
        return pa.string()
    scale = decimal_scale(declared)
    return ARROW_TYPES[declared] if scale is None else pa.decimal128(18, scale)
