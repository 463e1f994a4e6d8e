"""Protobuf records, read by Google's own library, one level of messages at a time.

The library makes an object of every message that it knows of, though a message takes 2 bytes of a record. So
it knows no message within another one: its bytes are all that it sees of it, and only messages that are asked
for are read in turn. The partitioner does not enter other messages either, so what they hold makes no record
unreadable.
"""

from __future__ import annotations

import base64
import importlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from evenflow.grammar.paths import MOST_LEVELS, segments, written
from topics.schemas.registry import RegisteredSchema
from workbench.registered.avro_walk import long
from workbench.registered.cell import LONGEST_NAME, MOST_VALUES, NESTED, RegisteredCell
from workbench.unreadable import Unreadable

_F = FieldDescriptor
_LEVEL_TYPES = {_F.TYPE_STRING: _F.TYPE_BYTES, _F.TYPE_MESSAGE: _F.TYPE_BYTES, _F.TYPE_ENUM: _F.TYPE_INT32}
"""Type of a field -> its type in a level, if it is another one."""
_MOST_LEVEL_TYPES = 1_000
"""How many declared levels are remembered. Records may name any message of a file."""
_STAMP = timestamp_pb2.Timestamp.DESCRIPTOR.full_name


class _Messages:
    """The messages of one file, with all that it refers to. Raises the errors of Google's library if the
    schema is none.
    """

    def __init__(self, schema: RegisteredSchema) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        self._added: set[str] = set()
        for text, name in zip(schema.texts, schema.names, strict=True):
            file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
            file.name = name or "record"
            if _longest_name(len(file.package), file.message_type) > LONGEST_NAME:
                raise ValueError("a name is too long")
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

    def type(self, path: list[int]) -> Any:
        """The message of the last file that a record names so. Raises IndexError and KeyError if there is
        none.
        """
        names, messages = [self._file.package] if self._file.package else [], self._file.message_type
        for index in path:
            if index < 0:  # Python would count from the end
                raise IndexError
            names.append(messages[index].name)
            messages = messages[index].nested_type
        return self._pool.FindMessageTypeByName(".".join(names))


def _longest_name(outer: int, messages: Iterable[descriptor_pb2.DescriptorProto]) -> int:
    """Characters of the longest name in these messages. The library keeps it once for each of their fields.

    outer: characters of the name around them.
    """
    inner = (_longest_name(outer + 1 + len(message.name), message.nested_type) for message in messages)
    return max(inner, default=outer)


class _Levels:
    """Reads one level of a message: its own fields, and the bytes of the messages within it.

    Google's library refuses a message if a text is not UTF-8. Text that nobody reads may be any bytes, so all
    text is declared as bytes. Groups are not declared, so they are passed over, as in the partitioner.
    """

    def __init__(self) -> None:
        self._classes: dict[tuple[str, frozenset[str] | None], Any] = {}

    def decoded(self, type_: Any, parts: Iterable[bytes], names: frozenset[str] | None = None) -> Message:
        """The message that comes in these parts. Each must be a message by itself. Raises DecodeError.

        names: the fields that are declared. None: all.
        """
        message: Message = self._class(type_, names)()
        for part in parts:
            message.MergeFromString(part)
        return message

    def _class(self, type_: Any, names: frozenset[str] | None) -> Any:
        declared = type_.full_name, names
        if declared not in self._classes:
            if len(self._classes) >= _MOST_LEVEL_TYPES:
                self._classes.clear()
            self._classes[declared] = _level(type_, names)
        return self._classes[declared]


class ProtobufReader:
    """Reads records of one file of messages. Raises the errors of Google's library if the schema is none."""

    def __init__(self, schema: RegisteredSchema) -> None:
        self._messages = _Messages(schema)
        self._levels = _Levels()

    def read(self, value: bytes, types: Mapping[str, str]) -> dict[str, RegisteredCell | None]:
        """The needed columns, None for what is null or not there. Raises Unreadable.

        Whether other messages within the record can be read is not asked.
        """
        type_, data = self._named(value)
        cells: dict[str, RegisteredCell | None] = dict.fromkeys(types)
        try:
            self._fill(cells, type_, [data], _tree(tuple(types)))
        except DecodeError:
            raise Unreadable("the record does not decode") from None
        return cells

    def _fill(
        self, cells: dict[str, RegisteredCell | None], type_: Any, parts: Iterable[bytes], tree: _Tree
    ) -> None:
        """Fill the columns in this message. tree: of the needed columns in it."""
        message = self._levels.decoded(type_, parts, frozenset(tree.inner))
        for name, below in tree.inner.items():
            field = type_.fields_by_name.get(name)
            if field is None:
                continue
            cell = None
            if not _is_message(field):
                # Nothing lies within a value: a column there is null, whatever the value is.
                cell = _value(message, field) if below.column is not None else None
            elif inner := _parts(message, field):
                self._fill(cells, field.message_type, inner, below)
                cell = _message_cell(field, inner)
            if below.column is not None:
                cells[below.column] = cell

    def fields(self, value: bytes) -> dict[str, RegisteredCell | None]:
        """Path -> value of each field that is no message itself. The fields of a message that is not set
        are left out, and so are groups and fields with long names. Raises Unreadable, also for a record of
        more than 100,000 values.

        Of messages that repeat nothing is known but that they are there, and whether they can be read is not
        asked.
        """
        type_, data = self._named(value)
        try:
            return self._all(type_, data)
        except DecodeError:
            raise Unreadable("the record does not decode") from None

    def _all(self, type_: Any, data: bytes) -> dict[str, RegisteredCell | None]:
        cells: dict[str, RegisteredCell | None] = {}
        waiting: list[tuple[tuple[str, ...], Any, Sequence[bytes]]] = [((), type_, [data])]
        left = MOST_VALUES
        while waiting:
            outer, type_, parts = waiting.pop()
            # Fields that are not set take no bytes of the record, but a cell.
            left -= len(type_.fields)
            if left < 0:
                raise Unreadable("the record has too many values")
            message = self._levels.decoded(type_, parts)
            room = LONGEST_NAME - sum(map(len, outer))
            for field in type_.fields:
                path = (*outer, field.name)
                if len(field.name) > room or field.type == field.TYPE_GROUP:
                    continue
                if not _is_message(field):
                    cells[written(path)] = _value(message, field)
                    continue
                inner = _parts(message, field)
                cell = _message_cell(field, inner) if inner else None
                if cell is not NESTED:
                    cells[written(path)] = cell
                elif len(path) < MOST_LEVELS:
                    left -= len(inner)
                    if left < 0:
                        raise Unreadable("the record has too many values")
                    # A list of its own, because the library's list keeps all that lies around it.
                    waiting.append((path, field.message_type, list(inner)))
        return cells

    def _named(self, value: bytes) -> tuple[Any, bytes]:
        """The message that the record names, and its bytes. Raises Unreadable.

        After the schema's id, Confluent's format names the message by its place among the file's messages,
        then among the messages within that one, and so on. A count of 0 is short for the first message.
        """
        count, at = long(value, 5)
        path = [0]
        if count:
            if not 0 < count <= 16:
                raise Unreadable("no message is named")
            path = []
            for _ in range(count):
                index, at = long(value, at)
                path.append(index)
        try:
            return self._messages.type(path), value[at:]
        except (IndexError, KeyError):
            raise Unreadable("the file has no such message") from None


class _Tree:
    """The needed columns in a message. column: the column that the message is itself."""

    def __init__(self) -> None:
        self.column: str | None = None
        self.inner: dict[str, _Tree] = {}


@lru_cache(maxsize=16)
def _tree(names: tuple[str, ...]) -> _Tree:
    root = _Tree()
    for name in names:
        tree = root
        for part in segments(name):
            tree = tree.inner.setdefault(part, _Tree())
        tree.column = name
    return root


def _level(type_: Any, names: frozenset[str] | None) -> Any:
    """The class of a level of this message. names: as of `_Levels.decoded`.

    A message comes as the bytes of its parts, as a message that sets it twice means all fields of both. In a
    oneof nothing repeats, so there it is a message without fields of its own, which keeps all bytes as
    unknown ones.
    """
    file = descriptor_pb2.FileDescriptorProto(name="level", syntax="proto2")
    level = file.message_type.add(name="Level")
    level.nested_type.add(name="Parts")
    declared = [field for field in _declarable(type_.fields) if names is None or field.name in names]
    for field in declared:
        if not _is_chosen(field):
            _declare(level, field)
    # Of a oneof all fields are declared, because each of them empties the others.
    for name in dict.fromkeys(field.containing_oneof.name for field in declared if _is_chosen(field)):
        for field in _declarable(type_.oneofs_by_name[name].fields):
            own = _declare(level, field)
            own.oneof_index = len(level.oneof_decl)
            if field.type == field.TYPE_MESSAGE and (names is None or field.name in names):
                own.type, own.type_name = field.TYPE_MESSAGE, ".Level.Parts"
        level.oneof_decl.add(name=f"o{len(level.oneof_decl)}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Level"))


def _declarable(fields: Iterable[Any]) -> list[Any]:
    return [field for field in fields if field.type != field.TYPE_GROUP]


def _declare(level: descriptor_pb2.DescriptorProto, field: Any) -> descriptor_pb2.FieldDescriptorProto:
    """Declare a field that is no group. Its name is made of its number."""
    own = level.field.add(name=_name(field), number=field.number)
    own.type = _LEVEL_TYPES.get(field.type, field.type)
    parts = _is_message(field) and not _is_chosen(field)
    own.label = own.LABEL_REPEATED if field.is_repeated or parts else own.LABEL_OPTIONAL
    return own


def _name(field: Any) -> str:
    return f"f{field.number}"


def _is_message(field: Any) -> bool:
    """Whether the field is one message. A group is none."""
    return bool(field.type == field.TYPE_MESSAGE and not field.is_repeated)


def _is_chosen(field: Any) -> bool:
    """Whether setting another field empties this one."""
    return field.containing_oneof is not None and len(field.containing_oneof.fields) > 1


def _parts(message: Message, field: Any) -> Sequence[bytes]:
    """The parts in which a message within this level comes. Empty if it is not set."""
    value = getattr(message, _name(field))
    if not isinstance(value, Message):
        return value
    return [value.SerializeToString()] if message.HasField(_name(field)) else []


def _message_cell(field: Any, parts: Iterable[bytes]) -> RegisteredCell:
    """A message as a value. Raises DecodeError."""
    if field.message_type.full_name != _STAMP:
        return NESTED
    stamp = timestamp_pb2.Timestamp()
    for part in parts:
        stamp.MergeFromString(part)
    return RegisteredCell("stamp", stamp.seconds * 1000 + stamp.nanos // 1_000_000)


def _value(message: Message, field: Any) -> RegisteredCell | None:
    """The value of a field that is not one message. None if it is not set, or a group."""
    if field.type == field.TYPE_GROUP:
        return None
    value = getattr(message, _name(field))
    if field.is_repeated:
        return NESTED if len(value) else None
    if field.has_presence and not message.HasField(_name(field)):
        return None
    if field.type == field.TYPE_ENUM:
        if value not in field.enum_type.values_by_number:
            raise Unreadable("an enum has no such symbol")
        # Several symbols may share a number (allow_alias). The first one is the name.
        first = next(symbol for symbol in field.enum_type.values if symbol.number == value)
        return RegisteredCell("enum", first.name)
    if field.type == field.TYPE_STRING:
        return RegisteredCell("text", value.decode("utf-8", "surrogateescape"))
    if field.type == field.TYPE_BYTES:
        return RegisteredCell("bytes", value)
    if isinstance(value, bool):
        return RegisteredCell("bool", value)
    return RegisteredCell("float" if isinstance(value, float) else "int", value)
