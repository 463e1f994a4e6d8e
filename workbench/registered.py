"""Avro and Protobuf records, read strictly: Avro by a plain recursive reader, Protobuf by Google's own library.

The partitioner reads both with compiled kernels, so this is a second opinion on every record. If a schema is not in the
registry when this code asks for it, its records are unreadable. So they are in the partitioner. Of a record whose
schema the registry withholds nothing can be said (`WithheldSchema`).
"""

from __future__ import annotations

import base64
import importlib
import json
import math
import struct
import uuid
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from evenflow.grammar.column_types import ANY_VALUE, decimal_scale
from evenflow.grammar.paths import MOST_LEVELS, segments, written
from evenflow.settings import Settings
from topics.schemas.registry import Lookup, RegisteredSchema, Registry, SchemaRefused
from workbench.unreadable import Number, Unreadable, WithheldSchema

_DEEPEST = 250
"""How many levels of an Avro record are read. This keeps `AvroReader._value`, which is recursive, off Python's limit."""
WITHHELD = "the registry refuses schema "
"""What the reason of a record begins with if the registry withholds its schema. The partitioner says the same."""
_TICKS = {"timestamp-millis": 1, "timestamp-micros": 1_000, "timestamp-nanos": 1_000_000}
"""Avro's logical type of a timestamp -> how many of its units are a millisecond."""
_YEAR_1970 = datetime(1970, 1, 1, tzinfo=UTC)


class Held(NamedTuple):
    """One value of a record."""

    holds: str
    """Kind of the value: bool, int, float, text, bytes, enum, stamp (ms since 1970) or nested (a list, map or
    object)."""
    value: Any
    """The value as Python has it. None if the kind is nested."""
    logical: str = ""
    """Avro's logical type. Empty if none fits."""
    scale: int = 0
    """Digits behind the point, if the value is a decimal."""


class RegisteredRecords:
    """Reads records of the settings' format, Avro or Protobuf.

    registry: where schemas are looked up. None: the registry of the settings.
    """

    def __init__(self, settings: Settings, *, registry: Lookup | None = None) -> None:
        self._query, self._form = settings.query, settings.input.format
        self._types = settings.query.resolved.read
        self._registry: Lookup = registry or Registry(settings.input)
        self._schemas: dict[int, Any] = {}

    def cells(self, value: bytes) -> dict[str, Any]:
        """The needed columns, with values as a JSON record would hold them. Nulls are left out. Raises Unreadable."""
        # Confluent's wire format: a zero byte, then the id of the schema in 4 bytes.
        if len(value) < 5 or value[0]:
            raise Unreadable("the record is not in Confluent's wire format")
        reader = self._reader(int.from_bytes(value[1:5], "big"))
        cells = reader.read(value, self._types)
        return {name: self._as_json(name, cell) for name, cell in cells.items() if cell is not None}

    def row(self, value: bytes) -> dict[str, Any]:
        """Path -> value of each field, as Python holds it. Raises Unreadable.

        Times are in the query's unit. None stands for null.
        """
        if len(value) < 5 or value[0]:
            raise Unreadable("the record is not in Confluent's wire format")
        cells = self._reader(int.from_bytes(value[1:5], "big")).fields(value)
        return {name: self._shown(cell) for name, cell in cells.items()}

    def _shown(self, cell: Held | None) -> Any:
        if cell is None:
            return None
        if cell.holds == "stamp" or cell.logical in _TICKS:
            time = _time(cell, self._query.time_unit)
            return time if isinstance(time, str) and not isinstance(time, Number) else _plain(str(time))
        if cell.logical == "date":
            return _day(cell)
        if cell.logical == "decimal":
            return float(Decimal(int.from_bytes(cell.value, "big", signed=True)).scaleb(-cell.scale))
        if cell.logical == "uuid" and cell.holds == "bytes":
            return cell.value.hex()
        return [] if cell.holds in ("nested", "bytes") else cell.value

    def _reader(self, number: int) -> Any:
        if number not in self._schemas:
            try:
                schema = self._registry.schema(number)
                self._schemas[number] = None if schema is None else self._reader_for(schema)
            except SchemaRefused as error:
                self._schemas[number] = WithheldSchema(f"{WITHHELD}{number}: {error.why}")
            # Anybody may register a schema. One that cannot be understood counts as none, and so does its absence.
            except (
                ValueError,
                TypeError,
                KeyError,
                AttributeError,
                RecursionError,
                DecodeError,
                ImportError,
            ):
                self._schemas[number] = None
        if isinstance(self._schemas[number], WithheldSchema):
            raise self._schemas[number]
        if self._schemas[number] is None:
            raise Unreadable(f"schema {number} is not there, or none that is read")
        return self._schemas[number]

    def _reader_for(self, schema: RegisteredSchema) -> Any:
        if schema.form != self._form:
            return None
        return AvroReader(schema) if self._form == "avro" else ProtobufReader(schema)

    def _as_json(self, name: str, cell: Held) -> Any:
        type_ = self._types[name]
        unit = self._query.time_unit if name == self._query.time else None
        if unit is not None and (cell.holds == "stamp" or cell.logical in _TICKS):
            return _time(cell, unit)
        if type_ == "bool" and cell.holds == "bool":
            return cell.value
        if type_ == "date":
            return _day(cell)
        if type_ == ANY_VALUE and cell.holds == "bool":
            return cell.value
        if type_ == ANY_VALUE and cell.logical == "date" and cell.holds == "int":
            return _day(cell)
        if type_ in ("string", ANY_VALUE):
            if cell.holds in ("text", "enum"):
                return cell.value
            if cell.logical == "uuid" and cell.holds == "bytes" and len(cell.value) == 16:
                return str(uuid.UUID(bytes=cell.value))
        if type_ not in ("string", "bool"):
            if cell.holds == "text" and decimal_scale(type_) is not None:
                return Number(cell.value.strip(" \t"))
            # A Number holds text. The column's strict reader accepts these forms, and no exponent for a decimal.
            if cell.holds == "int" and cell.logical != "date":
                return Number(float(cell.value) if type_ == "float64" else cell.value)
            if cell.holds == "float" and type_ != "int64":
                exact = math.isfinite(cell.value) and type_ != "float64"
                return Number(f"{Decimal(repr(cell.value)):f}" if exact else repr(cell.value))
            # 16 bytes are what a 128-bit decimal has room for.
            if cell.logical == "decimal" and type_ != "int64" and len(cell.value) <= 16:
                units = int.from_bytes(cell.value, "big", signed=True)
                return Number(f"{Decimal(units).scaleb(-cell.scale):f}")
        raise Unreadable(f"column {name!r} holds {cell.holds} {cell.logical}, which is no {type_}")


def _plain(number: str) -> int | float:
    """The number that this text stands for, whole if it has no point."""
    return int(number) if number.lstrip("-").isdigit() else float(number)


def _day(cell: Held) -> str:
    if cell.holds == "text":
        return str(cell.value)
    if cell.logical == "date":
        try:
            return (date(1970, 1, 1) + timedelta(days=cell.value)).isoformat()
        except OverflowError:
            pass
    raise Unreadable("no date")


def _time(cell: Held, unit: str) -> Any:
    """A timestamp in the query's unit: a Number, or text for `iso`. Raises Unreadable if it is out of range."""
    ms = cell.value if cell.holds == "stamp" else cell.value // _TICKS[cell.logical]
    if unit != "iso":
        return Number(repr(ms / 1000) if unit == "s" else ms * (1000 if unit == "us" else 1))
    try:
        return (_YEAR_1970 + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds")
    except OverflowError:
        raise Unreadable("the event time is out of range") from None


class AvroReader:
    """Reads Avro records of one schema, by the binary encoding of the Avro specification."""

    def __init__(self, schema: RegisteredSchema) -> None:
        self._named: dict[str, Any] = {}
        # The schemas that others refer to come first. The last one is the record's own.
        for text in schema.texts:
            root = self._known(json.loads(text), "")
        self._root = root

    def _known(self, schema: Any, space: str) -> Any:
        """The schema with every name in full. space: the namespace around it. Definitions are noted in `_named`.

        A reference to a named type becomes a tuple, which `_value` looks up.
        """
        if isinstance(schema, str):
            simple = schema in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
            return schema if simple else ("name", _full(schema, space), schema)
        if isinstance(schema, list):
            return [self._known(branch, space) for branch in schema]
        kind = schema["type"]
        if kind in ("record", "error", "enum", "fixed"):
            name = _full(schema["name"], schema.get("namespace", space))
            within = name.rpartition(".")[0]
            own = dict(schema)
            self._named[name] = own  # before its fields, which may refer to it
            if kind in ("record", "error"):
                own["fields"] = [
                    (field["name"], self._known(field["type"], within)) for field in schema["fields"]
                ]
            return own
        if kind == "array":
            return {"type": "array", "items": self._known(schema["items"], space)}
        if kind == "map":
            return {"type": "map", "items": self._known(schema["values"], space)}
        return schema if isinstance(kind, str) else self._known(kind, space)

    def read(self, value: bytes, types: Mapping[str, str]) -> dict[str, Held | None]:
        """The needed columns, None for what is null or not there."""
        record = self._record(value)
        return {name: _below(record, name) for name in types}

    def fields(self, value: bytes) -> dict[str, Held | None]:
        """Path -> value of each field that is no record itself. The fields of a record that is null are left out."""
        cells: dict[str, Held | None] = {}
        waiting: list[tuple[tuple[str, ...], dict[str, Any]]] = [((), self._record(value))]
        while waiting:
            outer, record = waiting.pop()
            for name, inner in record.items():
                if not isinstance(inner, dict):
                    cells[written((*outer, name))] = inner
                elif len(outer) < MOST_LEVELS - 1:
                    waiting.append(((*outer, name), inner))
        return cells

    def _record(self, value: bytes) -> dict[str, Any]:
        try:
            record, at = self._value(self._root, value, 5, 0)  # 5: after the schema's id
        except (IndexError, struct.error, RecursionError):
            raise Unreadable("the record does not decode") from None
        if at != len(value) or not isinstance(record, dict):
            raise Unreadable("the record does not decode")
        return record

    def _value(self, schema: Any, data: bytes, at: int, depth: int) -> tuple[Any, int]:
        """The value at this place, and the place after it. A record is a dict, any other value a Held or None."""
        if depth > _DEEPEST:
            raise Unreadable("the record is nested too deeply")
        if isinstance(schema, tuple):
            # A name without dots belongs to the namespace around it, or to none.
            schema = self._named.get(schema[1]) or self._named[schema[2]]
        if isinstance(schema, list):
            which, at = _long(data, at)
            if not 0 <= which < len(schema):
                raise Unreadable("a union has no such branch")
            return self._value(schema[which], data, at, depth)
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind in ("record", "error"):
            fields = {}
            for name, type_ in schema["fields"]:
                fields[name], at = self._value(type_, data, at, depth + 1)
            return fields, at
        if kind in ("array", "map"):
            return Held("nested", None), self._items(schema, data, at, depth)
        return _scalar(schema if isinstance(schema, dict) else {}, kind, data, at)

    def _items(self, schema: Any, data: bytes, at: int, depth: int) -> int:
        """The place after an array or map. Its items come in blocks, and a block of 0 items is the last."""
        while True:
            count, at = _long(data, at)
            if count < 0:  # then the size of the block in bytes follows
                _, at = _long(data, at)
            # Items may take no bytes (null), so a damaged count could keep this loop busy for years.
            if abs(count) > len(data) - at:
                raise Unreadable("more items than bytes")
            if not count:
                return at
            for _ in range(abs(count)):
                if schema["type"] == "map":
                    _, at = _span(data, at)
                _, at = self._value(schema["items"], data, at, depth + 1)


def _below(value: Any, name: str) -> Held | None:
    """The value of the column with this name in nested dicts. None if it is null or not there."""
    for part in segments(name):
        value = value.get(part) if isinstance(value, dict) else None
    return Held("nested", None) if isinstance(value, dict) else value


def _scalar(schema: Mapping[str, Any], kind: str, data: bytes, at: int) -> tuple[Held | None, int]:
    """The value of a type that holds no others, and the place after it. None for null."""
    logical = schema.get("logicalType", "")
    scale = schema.get("scale", 0) if logical == "decimal" else 0
    if kind == "null":
        return None, at
    if kind == "boolean":
        if data[at] > 1:
            raise Unreadable("neither true nor false")
        return Held("bool", data[at] == 1), at + 1
    if kind in ("int", "long"):
        value, at = _long(data, at)
        fits = logical == "date" if kind == "int" else logical in _TICKS
        return Held("int", value, logical if fits else ""), at
    if kind in ("float", "double"):
        size, form = (4, "<f") if kind == "float" else (8, "<d")
        return Held("float", struct.unpack_from(form, data, at)[0]), at + size
    if kind == "enum":
        which, at = _long(data, at)
        if not 0 <= which < len(schema["symbols"]):
            raise Unreadable("an enum has no such symbol")
        return Held("enum", schema["symbols"][which]), at
    if kind == "fixed":
        begin, at = at, at + schema["size"]
        if at > len(data):
            raise Unreadable("the record ends too early")
        return Held("bytes", data[begin:at], logical, scale), at
    payload, at = _span(data, at)
    if kind == "string":
        return Held("text", payload.decode("utf-8", "surrogateescape")), at
    return Held("bytes", payload, logical if logical == "decimal" else "", scale), at


def _long(data: bytes, at: int) -> tuple[int, int]:
    """The whole number at this place, and the place after it: 7 bits a byte, the lowest first, zigzag-coded."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 128:
            break
        if shift > 63:
            raise Unreadable("a number is too long")
    if value >= 2**64:
        raise Unreadable("a number is too long")
    return value >> 1 ^ -(value & 1), at  # zigzag: 0, 1, 2, 3 stand for 0, -1, 1, -2


def _span(data: bytes, at: int) -> tuple[bytes, int]:
    """The bytes at this place, after their length, and the place after them."""
    length, at = _long(data, at)
    if not 0 <= length <= len(data) - at:
        raise Unreadable("a length reaches beyond the record")
    return data[at : at + length], at + length


def _full(name: str, space: str) -> str:
    """A name of Avro with its namespace."""
    return name if "." in name or not space else f"{space}.{name}"


class ProtobufReader:
    """Reads records of one file of messages.

    Google's library refuses a message if a text is not UTF-8. Text that nobody reads may be any bytes, so all text is
    declared as bytes.
    """

    def __init__(self, schema: RegisteredSchema) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        self._added: set[str] = set()
        self._text: set[str] = set()
        for text, name in zip(schema.texts, schema.names, strict=True):
            file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
            file.name = name or "record"
            for message in file.message_type:
                self._as_bytes(message, file.package)
            self._add(file)
        self._file = file

    def _add(self, file: descriptor_pb2.FileDescriptorProto) -> None:
        if file.name in self._added:
            return
        for name in file.dependency:
            # Google's own files are not in the registry. To import their module makes them known to the default pool.
            if name not in self._added and name.startswith("google/protobuf/"):
                importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
                known = descriptor_pb2.FileDescriptorProto()
                descriptor_pool.Default().FindFileByName(name).CopyToProto(known)
                self._add(known)
        self._pool.Add(file)
        self._added.add(file.name)

    def _as_bytes(self, message: descriptor_pb2.DescriptorProto, space: str) -> None:
        own = f"{space}.{message.name}" if space else message.name
        for field in message.field:
            if field.type == field.TYPE_STRING:
                field.type = field.TYPE_BYTES
                self._text.add(f"{own}.{field.name}")
        for nested in message.nested_type:
            self._as_bytes(nested, own)

    def read(self, value: bytes, types: Mapping[str, str]) -> dict[str, Held | None]:
        """The needed columns, None for what is null or not there."""
        message = self._message(value)
        return {name: self._below(message, name) for name in types}

    def fields(self, value: bytes) -> dict[str, Held | None]:
        """Path -> value of each field that is no message itself. The fields of a message that is not set are left out."""
        cells: dict[str, Held | None] = {}
        waiting: list[tuple[tuple[str, ...], Message]] = [((), self._message(value))]
        while waiting:
            outer, message = waiting.pop()
            for field in message.DESCRIPTOR.fields:
                cell = self._below(message, field.name)
                inner = cell is not None and cell.holds == "nested" and not field.is_repeated
                if not inner:
                    cells[written((*outer, field.name))] = cell
                elif len(outer) < MOST_LEVELS - 1:
                    waiting.append(((*outer, field.name), getattr(message, field.name)))
        return cells

    def _message(self, value: bytes) -> Message:
        try:
            # After the schema's id, Confluent's format names the message by its place among the file's messages, then
            # among the messages within that one, and so on. A count of 0 is short for the first message.
            count, at = _long(value, 5)
            path = [0]
            if count:
                if not 0 < count <= 16:
                    raise Unreadable("no message is named")
                path = []
                for _ in range(count):
                    index, at = _long(value, at)
                    path.append(index)
            message: Message = message_factory.GetMessageClass(self._type(path)).FromString(value[at:])
        except (IndexError, KeyError, DecodeError):
            raise Unreadable("the record does not decode") from None
        return message

    def _type(self, path: list[int]) -> Any:
        names, messages = [self._file.package] if self._file.package else [], self._file.message_type
        for index in path:
            if index < 0:  # Python would count from the end
                raise IndexError
            names.append(messages[index].name)
            messages = messages[index].nested_type
        return self._pool.FindMessageTypeByName(".".join(names))

    def _below(self, message: Message, name: str) -> Held | None:
        """The value of the field with this name, such as `outer.inner`. None if it is not set or not there."""
        first, _, rest = name.partition(".")
        field = message.DESCRIPTOR.fields_by_name.get(first)
        if field is None:
            return None
        if field.is_repeated:
            return Held("nested", None) if not rest and len(getattr(message, first)) else None
        if field.has_presence and not message.HasField(first):
            return None
        value = getattr(message, first)
        if isinstance(value, Message):
            if rest:
                return self._below(value, rest)
            if value.DESCRIPTOR.full_name != "google.protobuf.Timestamp":
                return Held("nested", None)
            return Held("stamp", value.seconds * 1000 + value.nanos // 1_000_000)
        return None if rest else self._cell(field, value)

    def _cell(self, field: Any, value: Any) -> Held:
        if field.type == field.TYPE_ENUM:
            known = field.enum_type.values_by_number.get(value)
            if known is None:
                raise Unreadable("an enum has no such symbol")
            # Several symbols may share a number (allow_alias). The first one is the name.
            first = next(symbol for symbol in field.enum_type.values if symbol.number == value)
            return Held("enum", first.name)
        if field.type == field.TYPE_BYTES:
            if field.full_name in self._text:
                return Held("text", value.decode("utf-8", "surrogateescape"))
            return Held("bytes", value)
        if isinstance(value, bool):
            return Held("bool", value)
        return Held("float" if isinstance(value, float) else "int", value)
