"""Protobuf records, read by Google's own library."""

from __future__ import annotations

import base64
import importlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from evenflow.grammar.paths import MOST_LEVELS, written
from topics.schemas.registry import RegisteredSchema
from workbench.registered.avro_walk import long
from workbench.registered.cell import NESTED, RegisteredCell
from workbench.unreadable import Unreadable

_OPTIONS = "google/protobuf/descriptor.proto"
_REPEATED = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
_GROUP = descriptor_pb2.FieldDescriptorProto.TYPE_GROUP
_LARGEST_TREE = 65_536
"""Bytes of a record of which all fields are read, if its messages lie within messages of their own kind. Of
each 2 bytes such a record may make a message, which takes as much as its kind has fields.
"""


class _Messages:
    """The messages of one file, with all that it refers to.

    Google's library refuses a message if a text is not UTF-8. Text that nobody reads may be any bytes, so all
    text is declared as bytes. shallow: whether a message that repeats is declared as bytes too. Then none is
    made of the 2 bytes that it may take. Raises the errors of Google's library if the schema is none.
    """

    def __init__(self, schema: RegisteredSchema, *, shallow: bool = False) -> None:
        self.pool = descriptor_pool.DescriptorPool()
        self.text: set[str] = set()
        """Full names of the fields that are text."""
        self._shallow = shallow
        self._added: set[str] = set()
        for text, name in zip(schema.texts, schema.names, strict=True):
            file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
            file.name = name or "record"
            for message in file.message_type:
                self._as_bytes(message, file.package)
            self._add(file)
        self.file = file
        """The last file, which has the message of a record."""

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
        if self._shallow and file.name != _OPTIONS:
            for message in file.message_type:
                _make_shallow(message)
            _make_shallow(file)
        self.pool.Add(file)
        self._added.add(file.name)

    def _as_bytes(self, message: descriptor_pb2.DescriptorProto, space: str) -> None:
        own = f"{space}.{message.name}" if space else message.name
        for field in message.field:
            if field.type == field.TYPE_STRING:
                field.type = field.TYPE_BYTES
                self.text.add(f"{own}.{field.name}")
        # The keys of a map cannot be bytes. On the wire a map is entries that repeat.
        message.options.ClearField("map_entry")
        for nested in message.nested_type:
            self._as_bytes(nested, own)

    def type(self, path: list[int]) -> Any:
        """The message that a record names so. Raises IndexError and KeyError if there is none."""
        names, messages = [self.file.package] if self.file.package else [], self.file.message_type
        for index in path:
            if index < 0:  # Python would count from the end
                raise IndexError
            names.append(messages[index].name)
            messages = messages[index].nested_type
        return self.pool.FindMessageTypeByName(".".join(names))


class ProtobufReader:
    """Reads records of one file of messages. Raises the errors of Google's library if the schema is none."""

    def __init__(self, schema: RegisteredSchema) -> None:
        self._schema = schema
        self._whole = _Messages(schema)

    def read(self, value: bytes, types: Mapping[str, str]) -> dict[str, RegisteredCell | None]:
        """The needed columns, None for what is null or not there."""
        message = self._message(self._whole, value)
        return {name: self._below(message, name) for name in types}

    @cached_property
    def _shallow(self) -> _Messages | None:
        """The messages of which all fields are read. None if Google's library refuses them."""
        try:
            return _Messages(self._schema, shallow=True)
        except (TypeError, ValueError, KeyError):
            return None

    def fields(self, value: bytes) -> dict[str, RegisteredCell | None]:
        """Path -> value of each field that is no message itself. The fields of a message that is not set
        are left out. Raises Unreadable, also for a large record of messages that hold their own kind.

        Of messages that repeat nothing is known but that they are there, and whether they can be read is not
        asked.
        """
        if self._shallow is None:
            raise Unreadable("the schema is none of which all fields are read")
        cells: dict[str, RegisteredCell | None] = {}
        waiting: list[tuple[tuple[str, ...], Message]] = [((), self._message(self._shallow, value))]
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

    def _message(self, messages: _Messages, value: bytes) -> Message:
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
            type_ = messages.type(path)
            if messages is not self._whole and len(value) > _LARGEST_TREE and _holds_its_kind(type_):
                raise Unreadable("the record is too large for messages that hold their own kind")
            message: Message = message_factory.GetMessageClass(type_).FromString(value[at:])
        except (IndexError, KeyError, DecodeError):
            raise Unreadable("the record does not decode") from None
        return message

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
            if field.full_name in self._whole.text:
                return RegisteredCell("text", value.decode("utf-8", "surrogateescape"))
            return RegisteredCell("bytes", value)
        if isinstance(value, bool):
            return RegisteredCell("bool", value)
        return RegisteredCell("float" if isinstance(value, float) else "int", value)


def _make_shallow(
    space: descriptor_pb2.DescriptorProto | descriptor_pb2.FileDescriptorProto,
) -> None:
    """Declare each message that repeats in this message, or in this file's extensions, as bytes."""
    fields = [*space.extension]
    if isinstance(space, descriptor_pb2.DescriptorProto):
        fields += space.field
        # Groups have no length, so they cannot be bytes. A field that is not declared is passed over.
        for place in reversed(range(len(space.field))):
            if space.field[place].label == _REPEATED and space.field[place].type == _GROUP:
                del space.field[place]
        for nested in space.nested_type:
            _make_shallow(nested)
    for field in fields:
        if field.label == _REPEATED and field.type == field.TYPE_MESSAGE:
            field.type = field.TYPE_BYTES
            field.ClearField("type_name")


def _holds_its_kind(type_: Any) -> bool:
    """Whether a message of this type can hold, at any depth, one of a type that it lies in itself."""
    done: set[str] = set()
    open_: list[tuple[str, Iterator[Any]]] = [(type_.full_name, iter(type_.fields))]
    within = {type_.full_name}
    while open_:
        name, fields = open_[-1]
        inner = next((field.message_type for field in fields if field.message_type is not None), None)
        if inner is None:
            open_.pop()
            within.discard(name)
            done.add(name)
        elif inner.full_name in within:
            return True
        elif inner.full_name not in done:
            within.add(inner.full_name)
            open_.append((inner.full_name, iter(inner.fields)))
    return False
