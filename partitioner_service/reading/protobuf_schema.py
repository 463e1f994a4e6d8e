"""A Protobuf schema, compiled: per message on the way to a needed cell, what its field numbers mean.

The registry gives descriptors (`format=serialized`), so nothing here reads `.proto` text.
"""

from __future__ import annotations

import base64
import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from evenflow.arrays import Int64s
from partitioner_service.reading.avro_schema import Unfit, tree_of
from partitioner_service.reading.leaves import Leaf

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Wire types; 3 and 4 begin and end a group."""
WHOLE, SIGNED_32, UNSIGNED_32, ZIGZAG, TRUE, DOUBLE, SINGLE, SPAN, MESSAGE, SECONDS, NANOS, PASS, REPEATED = (
    range(13)
)
"""What is done with a field."""
NUMBER, WIRE, DO, LEAF, COLUMN, INTO, CLEARS, CLEARS_END = range(8)
"""What a row of `fields` holds."""

_F = FieldDescriptor
_SCALARS = {
    _F.TYPE_INT64: (VARINT, WHOLE, "int"),
    _F.TYPE_UINT64: (VARINT, WHOLE, "uint"),
    _F.TYPE_INT32: (VARINT, SIGNED_32, "int"),
    _F.TYPE_UINT32: (VARINT, UNSIGNED_32, "int"),
    _F.TYPE_SINT32: (VARINT, ZIGZAG, "int"),
    _F.TYPE_SINT64: (VARINT, ZIGZAG, "int"),
    _F.TYPE_BOOL: (VARINT, TRUE, "bool"),
    _F.TYPE_ENUM: (VARINT, SIGNED_32, "enum"),
    _F.TYPE_FIXED64: (FIXED64, WHOLE, "uint"),
    _F.TYPE_SFIXED64: (FIXED64, WHOLE, "int"),
    _F.TYPE_DOUBLE: (FIXED64, DOUBLE, "float"),
    _F.TYPE_FIXED32: (FIXED32, UNSIGNED_32, "int"),
    _F.TYPE_SFIXED32: (FIXED32, SIGNED_32, "int"),
    _F.TYPE_FLOAT: (FIXED32, SINGLE, "float"),
    _F.TYPE_STRING: (LENGTH, SPAN, "text"),
    _F.TYPE_BYTES: (LENGTH, SPAN, "bytes"),
}
_WELL_KNOWN = re.compile(r"google/protobuf/[a-z_]+\.proto")
_STAMP = timestamp_pb2.Timestamp.DESCRIPTOR.full_name


@dataclass(frozen=True)
class ProtobufProgram:
    """fields: shape (n, 8), those of message m are rows bounds[m] to bounds[m + 1]; message 0 is the record.

    defaults: shape (n, 2), bounded alike: leaf and column of each cell that a message fills though its field is not there.
    clears: columns that a field of a oneof empties.
    """

    fields: Int64s
    bounds: Int64s
    defaults: Int64s
    default_bounds: Int64s
    clears: Int64s
    leaves: tuple[Leaf, ...]


def pool_of(texts: Sequence[str], names: Sequence[str]) -> tuple[descriptor_pool.DescriptorPool, str]:
    """The descriptors of these schemas (base64, each behind those it refers to), and the name of the last one's file.

    Raises Unfit.
    """
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()
    try:
        for text, name in zip(texts, names, strict=True):
            file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
            file.name = name or "evenflow-record.proto"
            for wanted in file.dependency:
                _add_well_known(pool, wanted, added)
            pool.Add(file)
            added.add(file.name)
            last = file.name
        pool.FindFileByName(last)
    except (ValueError, TypeError, KeyError, DecodeError) as error:
        raise Unfit(f"it is no Protobuf descriptor: {type(error).__name__}") from None
    return pool, last


def _add_well_known(pool: descriptor_pool.DescriptorPool, name: str, added: set[str]) -> None:
    """Files that come with Protobuf itself are in no registry."""
    if name in added or not _WELL_KNOWN.fullmatch(name):
        return
    importlib.import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
    found = descriptor_pool.Default().FindFileByName(name)
    for wanted in found.dependencies:
        _add_well_known(pool, wanted.name, added)
    pool.AddSerializedFile(found.serialized_pb)
    added.add(name)


def message_at(pool: descriptor_pool.DescriptorPool, file: str, path: Sequence[int]) -> Descriptor:
    """The message at these indexes of the file; raises Unfit."""
    found = pool.FindFileByName(file)
    proto = descriptor_pb2.FileDescriptorProto()
    found.CopyToProto(proto)
    messages: Any = proto.message_type
    name = [proto.package] if proto.package else []
    for index in path:
        if not 0 <= index < len(messages):
            raise Unfit("it has no such message")
        name.append(messages[index].name)
        messages = messages[index].nested_type
    return pool.FindMessageTypeByName(".".join(name))


def compiled(
    texts: Sequence[str], schema_names: Sequence[str], path: Sequence[int], names: Sequence[str]
) -> ProtobufProgram:
    """How records of this message are read; raises Unfit."""
    try:
        pool, file = pool_of(texts, schema_names)
        return _Compiler().program(message_at(pool, file, path), tree_of(names))
    except (KeyError, TypeError, ImportError) as error:
        raise Unfit(f"it is no Protobuf descriptor: {type(error).__name__}") from None


@dataclass
class _Message:
    fields: list[list[int]] = field(default_factory=list)
    defaults: list[list[int]] = field(default_factory=list)


class _Compiler:
    def __init__(self) -> None:
        self._messages: list[_Message] = []
        self._clears: list[int] = []
        self._leaves: dict[Leaf, int] = {}

    def program(self, root: Descriptor, wanted: dict[str, Any]) -> ProtobufProgram:
        self._message(root, wanted)
        fields = [one for message in self._messages for one in sorted(message.fields)]
        defaults = [one for message in self._messages for one in message.defaults]
        return ProtobufProgram(
            np.array(fields, np.int64).reshape(-1, 8),
            np.cumsum([0, *(len(message.fields) for message in self._messages)]),
            np.array(defaults, np.int64).reshape(-1, 2),
            np.cumsum([0, *(len(message.defaults) for message in self._messages)]),
            np.array(self._clears or [0], np.int64),
            tuple(self._leaves),
        )

    def _leaf(self, leaf: Leaf) -> int:
        return self._leaves.setdefault(leaf, len(self._leaves))

    def _message(self, type_: Descriptor, wanted: dict[str, Any]) -> int:
        number = len(self._messages)
        message = _Message()
        self._messages.append(message)
        for name in wanted:
            if name and name in type_.fields_by_name:
                self._field(message, type_.fields_by_name[name], wanted[name])
        for group in type_.oneofs:
            if any(one.name in wanted for one in group.fields) and len(group.fields) > 1:
                self._one_of(message, group.fields, wanted)
        return number

    def _one_of(self, message: _Message, fields: Sequence[FieldDescriptor], wanted: dict[str, Any]) -> None:
        """The field that comes last is the one there is."""
        for own in fields:
            row = next((one for one in message.fields if one[NUMBER] == own.number), None)
            if row is None:
                row = [own.number, -1, PASS, -1, -1, -1, 0, 0]
                message.fields.append(row)
            row[CLEARS] = len(self._clears)
            for other in fields:
                if other.number != own.number and other.name in wanted:
                    self._clears.extend(_columns_in(wanted[other.name]))
            row[CLEARS_END] = len(self._clears)

    def _field(self, message: _Message, own: FieldDescriptor, wanted: dict[str, Any]) -> None:
        column = wanted.get("", -1)
        row = [own.number, -1, PASS, -1, column, -1, 0, 0]
        message.fields.append(row)
        if own.is_repeated:
            if column >= 0:
                row[DO], row[LEAF] = REPEATED, self._leaf(Leaf("nested"))
            return
        if own.type == _F.TYPE_MESSAGE:
            row[WIRE], row[DO] = LENGTH, MESSAGE
            row[INTO] = self._message(own.message_type, wanted)
            if column >= 0:
                into = self._messages[row[INTO]]
                stamp = own.message_type.full_name == _STAMP
                row[LEAF] = self._leaf(Leaf("stamp" if stamp else "nested"))
                into.defaults.append([row[LEAF], column])
                if stamp:
                    into.fields.append([1, VARINT, SECONDS, row[LEAF], column, -1, 0, 0])
                    into.fields.append([2, VARINT, NANOS, row[LEAF], column, -1, 0, 0])
            return
        if own.type not in _SCALARS or column < 0:
            return
        row[WIRE], row[DO], holds = _SCALARS[own.type]
        symbols: tuple[tuple[int, str], ...] = ()
        if own.type == _F.TYPE_ENUM:
            names: dict[int, str] = {}
            for value in own.enum_type.values:
                names.setdefault(value.number, value.name)
            symbols = tuple(names.items())
        row[LEAF] = self._leaf(Leaf(holds, symbols=symbols))
        if not own.has_presence:
            message.defaults.append([row[LEAF], column])


def _columns_in(wanted: dict[str, Any]) -> list[int]:
    """Every needed column at or below a field."""
    found = [wanted[""]] if "" in wanted else []
    return found + [place for name, below in wanted.items() if name for place in _columns_in(below)]
