"""Columns to Avro and Protobuf records in Confluent's wire format. Their schema is made of the columns and registered.

The subject is `<topic>-value`, as other producers name it. Every field may be null. An event time in ms or us is a timestamp
in Avro. Protobuf has no dates and decimals: there they are text.
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
from topics.registry import Registry

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STAMPS = {"ms": "timestamp-millis", "us": "timestamp-micros"}
_FIRST_MESSAGE = b"\0"


class Registers(Protocol):
    """Where the schema goes: `topics.registry.Registry` is one."""

    def register(self, subject: str, text: str) -> int:
        """The id under which this schema of the subject is known from now on."""
        ...


class RegisteredValues:
    """Renders batches. The first one registers the schema."""

    def __init__(self, settings: Settings, *, registry: Registers | None = None) -> None:
        self._settings, self._registry = settings, registry
        self._encode: Callable[[list[dict[str, Any]]], Iterator[bytes]] | None = None

    def values_of(self, columns: pa.Table) -> pa.Array:
        """The record values (large binary) of these columns. Every batch has the columns of the first.

        Raises ConfigError for columns that the format cannot carry, RegistryAway.
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
            told, plain = self._avro(types, written)
            number = registry.register(subject, json.dumps(told))
            return _avro_encoder(plain, b"\0" + number.to_bytes(4, "big"))
        text, message = _protobuf(types)
        number = registry.register(subject, text)
        return _protobuf_encoder(message, b"\0" + number.to_bytes(4, "big") + _FIRST_MESSAGE)

    def _avro(self, types: dict[str, pa.DataType], written: pa.Schema) -> tuple[Any, Any]:
        """The schema as it is registered, and as it is encoded by: without logical types, values being raw."""
        query = self._settings.query
        told, plain = [], []
        for name, type_ in types.items():
            kind: Any = _avro_type(type_)
            plain.append({"name": name, "type": ["null", kind], "default": None})
            logical = _logical(written.field(name).type)
            if name == query.time and kind == "long" and query.time_unit in _STAMPS:
                logical = {"logicalType": _STAMPS[query.time_unit]}
            told.append(plain[-1] | {"type": ["null", {"type": kind} | logical if logical else kind]})
        head = {"type": "record", "name": "Record", "namespace": "evenflow"}
        return head | {"fields": told}, head | {"fields": plain}


def _plain(column: pa.ChunkedArray, name: str, *, avro: bool) -> pa.ChunkedArray:
    """As int64, double, bool, text or bytes."""
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
    units = int(value.scaleb(scale))
    return units.to_bytes(units.bit_length() // 8 + 1, "big", signed=True)


def _avro_type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "boolean"
    return {pa.int64(): "long", pa.float64(): "double", pa.binary(): "bytes"}.get(kind, "string")


def _logical(kind: pa.DataType) -> dict[str, Any]:
    """What a column's type is beyond its plain one. Avro's dates are ints, and ints are written as longs are."""
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
    """The text that is registered, and the class of its message."""
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
