"""Protobuf records, read by Google's own library."""

from __future__ import annotations

import base64
import importlib
from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from evenflow.grammar.paths import MOST_LEVELS, written
from topics.schemas.registry import RegisteredSchema
from workbench.registered.avro_walk import long
from workbench.registered.cell import NESTED, RegisteredCell
from workbench.unreadable import Unreadable


class ProtobufReader:
    """Reads records of one file of messages.

    Google's library refuses a message if a text is not UTF-8. Text that nobody reads may be any bytes, so all
    text is declared as bytes.
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
            # Google's own files are not in the registry. To import their module makes them known to the
            # default pool.
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

    def read(self, value: bytes, types: Mapping[str, str]) -> dict[str, RegisteredCell | None]:
        """The needed columns, None for what is null or not there."""
        message = self._message(value)
        return {name: self._below(message, name) for name in types}

    def fields(self, value: bytes) -> dict[str, RegisteredCell | None]:
        """Path -> value of each field that is no message itself. The fields of a message that is not set
        are left out.
        """
        cells: dict[str, RegisteredCell | None] = {}
        waiting: list[tuple[tuple[str, ...], Message]] = [((), self._message(value))]
        while waiting:
            outer, message = waiting.pop()
            for field in message.DESCRIPTOR.fields:
                cell = self._below(message, field.name)
                inner = cell is not None and cell.kind == "nested" and not field.is_repeated
                if not inner:
                    cells[written((*outer, field.name))] = cell
                elif len(outer) < MOST_LEVELS - 1:
                    waiting.append(((*outer, field.name), getattr(message, field.name)))
        return cells

    def _message(self, value: bytes) -> Message:
        try:
            # After the schema's id, Confluent's format names the message by its place among the file's
            # messages, then among the messages within that one, and so on. A count of 0 is short for the
            # first message.
            count, at = long(value, 5)
            path = [0]
            if count:
                if not 0 < count <= 16:
                    raise Unreadable("no message is named")
                path = []
                for _ in range(count):
                    index, at = long(value, at)
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

    def _below(self, message: Message, name: str) -> RegisteredCell | None:
        """The value of the field with this name, such as `outer.inner`. None if it is not set or not
        there.
        """
        first, _, rest = name.partition(".")
        field = message.DESCRIPTOR.fields_by_name.get(first)
        if field is None:
            return None
        if field.is_repeated:
            return NESTED if not rest and len(getattr(message, first)) else None
        if field.has_presence and not message.HasField(first):
            return None
        value = getattr(message, first)
        if isinstance(value, Message):
            if rest:
                return self._below(value, rest)
            if value.DESCRIPTOR.full_name != "google.protobuf.Timestamp":
                return NESTED
            return RegisteredCell("stamp", value.seconds * 1000 + value.nanos // 1_000_000)
        return None if rest else self._cell(field, value)

    def _cell(self, field: Any, value: Any) -> RegisteredCell:
        if field.type == field.TYPE_ENUM:
            known = field.enum_type.values_by_number.get(value)
            if known is None:
                raise Unreadable("an enum has no such symbol")
            # Several symbols may share a number (allow_alias). The first one is the name.
            first = next(symbol for symbol in field.enum_type.values if symbol.number == value)
            return RegisteredCell("enum", first.name)
        if field.type == field.TYPE_BYTES:
            if field.full_name in self._text:
                return RegisteredCell("text", value.decode("utf-8", "surrogateescape"))
            return RegisteredCell("bytes", value)
        if isinstance(value, bool):
            return RegisteredCell("bool", value)
        return RegisteredCell("float" if isinstance(value, float) else "int", value)
