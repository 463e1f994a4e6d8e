"""Turns columns into Avro and Protobuf records in Confluent's wire format.

The schema is made from the columns. The schema is registered under the subject `<topic>-value`, the name that
other producers use. Every field may be null. In Avro, an event time in ms or us is a timestamp. Protobuf has
no dates and no decimals, so they are text there.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from topics.schemas.registry import Registry

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STAMPS = {"ms": "timestamp-millis", "us": "timestamp-micros"}
_FIRST_MESSAGE = b"\0"
"""Confluent's index of a message in its Protobuf schema: one byte 0 stands for the first message."""


class Registers(Protocol):
    """A schema registry, such as `topics.schemas.registry.Registry`."""

    def register(self, subject: str, text: str) -> int:
        """Register the schema under the subject. Returns the schema's id."""
        ...


class RegisteredValues:
    """Turns batches into record values. The first batch registers the schema."""

    def __init__(self, settings: Settings, *, registry: Registers | None = None) -> None:
        self._settings, self._registry = settings, registry
        self._encode: Callable[[list[dict[str, Any]]], Iterator[bytes]] | None = None

    def values_of(self, columns: pa.Table) -> pa.Array:
        """The record values (large binary) of these columns. Every batch must have the columns of the first.

        Raises ConfigError for columns that the format cannot carry, RegistryAway if the registry does not
        answer.
        """
        avro = self._settings.input.format == "avro"
        plain = {name: _plain(columns.column(name), name, avro=avro) for name in columns.column_names}
        if self._encode is None:
            self._encode = self._registered(
                {name: column.type for name, column in plain.items()}, columns.schema
            )
        return pa.array(self._encode(pa.table(plain).to_pylist()), pa.large_binary())

    def _registered(
        self, types: dict[str, pa.DataType], written: pa.Schema
    ) -> Callable[[list[dict[str, Any]]], Iterator[bytes]]:
        wrong = [name for name in types if not _NAME.fullmatch(name)]
        if wrong:
            raise ConfigError(
                f"no field of {self._settings.input.format} can be named {', '.join(map(repr, wrong))}",
                hint="a name is letters of ASCII, digits and _; leave the column out with --columns",
            )
        registry = self._registry or Registry(self._settings.input)
        subject = f"{self._settings.topic('input')}-value"
        if self._settings.input.format == "avro":
            # Confluent's wire format: a byte 0, then the schema's
            # id as four bytes, big-endian, then the record.
            schema, plain_schema = self._avro(types, written)
            number = registry.register(subject, json.dumps(schema))
            return _avro_encoder(plain_schema, b"\0" + number.to_bytes(4, "big"))
        text, message = _protobuf(types)
        number = registry.register(subject, text)
        return _protobuf_encoder(message, b"\0" + number.to_bytes(4, "big") + _FIRST_MESSAGE)

    def _avro(self, types: dict[str, pa.DataType], written: pa.Schema) -> tuple[Any, Any]:
        """(the schema to register, the schema to encode with).

        The schema to encode with has no logical types, because the values are raw numbers and bytes already.
        """
        query = self._settings.query
        fields, plain_fields = [], []
        for name, type_ in types.items():
            kind: Any = _avro_type(type_)
            plain_fields.append({"name": name, "type": ["null", kind], "default": None})
            logical = _logical(written.field(name).type)
            if name == query.time and kind == "long" and query.time_unit in _STAMPS:
                logical = {"logicalType": _STAMPS[query.time_unit]}
            fields.append(
                plain_fields[-1] | {"type": ["null", {"type": kind} | logical if logical else kind]}
            )
        head = {"type": "record", "name": "Record", "namespace": "evenflow"}
        return head | {"fields": fields}, head | {"fields": plain_fields}


def _plain(column: pa.ChunkedArray, name: str, *, avro: bool) -> pa.ChunkedArray:
    """The column as int64, double, bool, text or bytes.

    NaN becomes null. Raises ConfigError for any other type.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column).cast(pa.float64())
    if pa.types.is_boolean(kind):
        return column
    if avro and pa.types.is_date(kind):
        # Days since 1970. Arrow has no cast from dates to int64.
        return column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    if avro and pa.types.is_decimal(kind):
        return pa.chunked_array([[_units(value, kind.scale) for value in column.to_pylist()]], pa.binary())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_temporal(kind):
        return column.cast(pa.string())
    if pa.types.is_decimal(kind):
        return column.cast(pa.string())
    raise ConfigError(
        f"column {name!r} holds {kind}, which cannot be rendered", hint="leave it out with --columns"
    )


def _units(value: Any, scale: int) -> bytes | None:
    if value is None:
        return None
    # Avro's decimal: the unscaled number in two's complement. The added byte has room for the sign bit.
    units = int(value.scaleb(scale))
    return units.to_bytes(units.bit_length() // 8 + 1, "big", signed=True)


def _avro_type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "boolean"
    return {pa.int64(): "long", pa.float64(): "double", pa.binary(): "bytes"}.get(kind, "string")


def _logical(kind: pa.DataType) -> dict[str, Any]:
    """The logical type of a column, {} if it has none.

    Avro's dates are ints. They are encoded with a schema of longs, which gives the same bytes.
    """
    if pa.types.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_decimal(kind):
        return {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    return {}


def _avro_encoder(schema: Any, prefix: bytes) -> Callable[[list[dict[str, Any]]], Iterator[bytes]]:
    parsed, write = fastavro.parse_schema(schema), fastavro.schemaless_writer

    def encode(rows: list[dict[str, Any]]) -> Iterator[bytes]:
        for row in rows:
            out = io.BytesIO()
            out.write(prefix)
            write(out, parsed, row)
            yield out.getvalue()

    return encode


def _protobuf(types: dict[str, pa.DataType]) -> tuple[str, Any]:
    """(the schema's text to register, the class of its message).

    Both are made from the same columns, in order.
    """
    file = descriptor_pb2.FileDescriptorProto(name="record.proto", package="evenflow", syntax="proto3")
    message = file.message_type.add(name="Record")
    lines = ['syntax = "proto3";', "package evenflow;", "", "message Record {"]
    for number, (name, type_) in enumerate(types.items(), start=1):
        word = {pa.int64(): "int64", pa.float64(): "double", pa.bool_(): "bool"}.get(type_, "string")
        lines.append(f"  optional {word} {name} = {number};")
        field = message.field.add(
            name=name, number=number, label=1, proto3_optional=True, oneof_index=number - 1
        )
        field.type = field.Type.Value(f"TYPE_{word.upper()}")
    # In proto3, an optional field is the only member of a oneof of its own, whose number `oneof_index` names.
    for name in types:
        message.oneof_decl.add(name=f"_{name}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return "\n".join([*lines, "}", ""]), message_factory.GetMessageClass(
        pool.FindMessageTypeByName("evenflow.Record")
    )


def _protobuf_encoder(message: Any, prefix: bytes) -> Callable[[list[dict[str, Any]]], Iterator[bytes]]:
    def encode(rows: list[dict[str, Any]]) -> Iterator[bytes]:
        for row in rows:
            yield prefix + message(**row).SerializeToString()

    return encode
