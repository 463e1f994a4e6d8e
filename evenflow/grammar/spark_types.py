"""The Spark type of each Arrow type that frames and results have."""

from __future__ import annotations

import pyarrow as pa

_SPARK_TYPES = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.binary(): "binary",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.date32(): "date",
}


def spark_types(schema: pa.Schema) -> str:
    """The schema in Spark's notation: "`key` binary, `value` string"."""
    return ", ".join(f"`{field.name.replace('`', '``')}` {_spark_type(field.type)}" for field in schema)


def _spark_type(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamp"
    if pa.types.is_list(type_):
        return f"array<{_spark_type(type_.value_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{','.join(f'`{field.name}`:{_spark_type(field.type)}' for field in type_)}>"
    return _SPARK_TYPES[type_]
