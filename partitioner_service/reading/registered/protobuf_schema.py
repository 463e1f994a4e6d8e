"""A Protobuf schema, compiled: what the field numbers mean in each message on the way to a needed cell.

The registry hands out descriptors (`format=serialized`), so nothing here reads `.proto` text.
"""

from __future__ import annotations

import base64
import importlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from evenflow.numeric.arrays import Int64s, Rows
from partitioner_service.reading.registered.avro_schema import LONGEST_NAME, Unfit, tree_of
from partitioner_service.reading.registered.leaves import Leaf, Leaves

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Wire types of Protobuf. The types 3 and 4 begin and end a group."""
GROUP = -1
"""Stands for these two: it is the wire type of no value."""
WHOLE, SIGNED_32, UNSIGNED_32, ZIGZAG, ZIGZAG_32, TRUE, DOUBLE = range(7)
SINGLE, SPAN, MESSAGE, SECONDS, NANOS, PASS, REPEATED = range(7, 14)
"""What is done with a field.

WHOLE to SINGLE say how a number is read. SPAN: text or bytes. MESSAGE: a message that is entered. SECONDS,
NANOS: the parts of a Timestamp. PASS: a field that only empties others of its oneof, because it has no fields
of its own. REPEATED: a field that no column can hold. It is needed, or something that is looked for in it.
"""
FIELD = np.dtype(
    [
        ("number", np.int64),
        ("wire", np.int64),
        ("do", np.int64),
        ("leaf", np.int64),
        ("column", np.int64),
        ("into", np.int64),
        ("clears", np.int64),
        ("clears_stop", np.int64),
    ]
)
"""A field of a message.

number, wire: number and wire type by the schema. Values of any other wire type are passed over, except that
repeated numbers may come packed.
do: what is done with the field.
leaf, column: of a needed cell, -1 if the field is none.
into: the message that the field holds, -1 if it holds no message that is entered.
clears, clears_stop: the field empties the columns clears[clears:clears_stop] of `Tables`, which belong to the
other fields of its oneof.
"""
OTHER = np.dtype([("number", np.int64), ("wire", np.int64), ("oneof", np.int64)])
"""A field of a oneof. If nobody needs it, it empties the columns of the others.

number, wire: as of FIELD.
oneof: the place of its oneof among those of its message that have needed fields.
"""
ONEOF = np.dtype([("clears", np.int64), ("clears_stop", np.int64)])
"""The columns that a field of a oneof empties if nobody needs the field. Both as of FIELD."""
DEFAULT = np.dtype([("leaf", np.int64), ("column", np.int64)])
"""A cell that a message fills with a default value. Writers leave out fields that have the default."""

_F = FieldDescriptor
_SCALARS = {
    _F.TYPE_INT64: (VARINT, WHOLE, "int"),
    _F.TYPE_UINT64: (VARINT, WHOLE, "uint"),
    _F.TYPE_INT32: (VARINT, SIGNED_32, "int"),
    _F.TYPE_UINT32: (VARINT, UNSIGNED_32, "int"),
    _F.TYPE_SINT32: (VARINT, ZIGZAG_32, "int"),
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
"""The only names that are ever imported as a module. Names come from the registry, so none is trusted."""
_NO_OTHERS = cast(Rows, np.empty(0, OTHER))
_STAMP = timestamp_pb2.Timestamp.DESCRIPTOR.full_name


class Tables(NamedTuple):
    """What the field numbers mean. Message 0 is the record."""

    fields: Rows
    """Array of FIELD. The fields of message m are rows bounds[m] to bounds[m + 1], in the order of their
    numbers."""
    bounds: Int64s
    """Where the fields of each message begin in `fields`, and where those of the last one end."""
    others: Rows
    """Array of OTHER. Those of message m are rows other_bounds[m] to other_bounds[m + 1], in the order of
    their numbers."""
    other_bounds: Int64s
    """As `bounds`, for `others`."""
    oneofs: Rows
    """Array of ONEOF. Those of message m begin at oneof_bounds[m]."""
    oneof_bounds: Int64s
    """As `bounds`, for `oneofs`."""
    defaults: Rows
    """Array of DEFAULT. Those of message m are rows default_bounds[m] to default_bounds[m + 1]."""
    default_bounds: Int64s
    """Where the defaults of each message begin in `defaults`, and where those of the last one end."""
    clears: Int64s
    """Columns that fields of a oneof empty (FIELD says which)."""


@dataclass(frozen=True)
class ProtobufProgram:
    """How records of one Protobuf schema are read."""

    tables: Tables
    """What the field numbers of each message mean."""
    leaves: tuple[Leaf, ...]
    """Leaf number n is leaves[n]."""


@dataclass(frozen=True)
class ProtobufFile:
    """The messages of a file. Each has a number, and the file itself has the number 0."""

    pool: descriptor_pool.DescriptorPool
    """The descriptors of the file, and of all files that it refers to."""
    names: tuple[str, ...]
    """The full name of each message. That of the file is its package."""
    inner: Int64s
    """Those within message m, in the order of the file, have the numbers inner[m] to inner[m + 1] - 1."""
    others: dict[tuple[str, tuple[int, ...]], Rows] = field(default_factory=dict)
    """The fields of oneofs that programs have needed: array of OTHER, in the order of their numbers. By the
    full name of the message and the places of its oneofs. A message may lie in many others."""
    enums: dict[str, Leaf] = field(default_factory=dict)
    """The leaf of each enum that a program has needed, by its full name."""

    def message(self, number: int) -> Descriptor:
        """The message with this number, which is above 0. Raises KeyError."""
        return self.pool.FindMessageTypeByName(self.names[number])


def file_of(texts: Sequence[str], names: Sequence[str]) -> ProtobufFile:
    """The file of the last of these schemas.

    texts: each in base64, behind the schemas that it refers to. names: file name of each schema, '' for the
    last. Raises Unfit.
    """
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()
    try:
        for text, name in zip(texts, names, strict=True):
            file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
            # The schemas import each other by the names that the registry has for their references.
            file.name = name or "evenflow-record.proto"
            _check_names(file)
            for dependency in file.dependency:
                _add_well_known(pool, dependency, added)
            pool.Add(file)
            added.add(file.name)
            last = file.name
        descriptor = pool.FindFileByName(last)
    except (ValueError, TypeError, KeyError, DecodeError, ImportError) as error:
        raise Unfit(f"it is no Protobuf descriptor: {type(error).__name__}") from None
    proto = descriptor_pb2.FileDescriptorProto()
    descriptor.CopyToProto(proto)
    return ProtobufFile(pool, *_numbered(proto))


def _numbered(file: descriptor_pb2.FileDescriptorProto) -> tuple[tuple[str, ...], Int64s]:
    """`names` and `inner` of a `ProtobufFile`."""
    waiting: list[Any] = [file.message_type]  # the messages within each, by its number
    names, inner = [file.package], [1]
    for number, messages in enumerate(waiting):  # the list grows on the way
        outer = names[number]
        names.extend(f"{outer}.{message.name}" if outer else message.name for message in messages)
        waiting.extend(message.nested_type for message in messages)
        inner.append(len(waiting))
    return tuple(names), np.array(inner, np.int64)


def _check_names(file: descriptor_pb2.FileDescriptorProto) -> None:
    """Raise Unfit if a message has a long name. The library keeps it once for each field of the message."""
    waiting: list[tuple[int, Any]] = [(len(file.package), file.message_type)]
    while waiting:
        outer, messages = waiting.pop()
        if outer > LONGEST_NAME:
            raise Unfit("a name is too long")
        waiting.extend((outer + 1 + len(message.name), message.nested_type) for message in messages)


def _add_well_known(pool: descriptor_pool.DescriptorPool, name: str, added: set[str]) -> None:
    """Add a file that comes with Protobuf itself, and the files that it imports.

    Such files are in no registry.
    """
    if name in added or not _WELL_KNOWN.fullmatch(name):
        return
    # Importing the module puts its file into the default pool.
    importlib.import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
    file = descriptor_pool.Default().FindFileByName(name)
    for dependency in file.dependencies:
        _add_well_known(pool, dependency.name, added)
    pool.AddSerializedFile(file.serialized_pb)
    added.add(name)


def compiled(file: ProtobufFile, message: int, names: Sequence[str]) -> ProtobufProgram:
    """How records of this message are read.

    message: its number in the file. names: of the needed columns. Raises Unfit.
    """
    try:
        return _ProtobufCompiler(file).program(file.message(message), tree_of(names))
    except (KeyError, TypeError) as error:
        raise Unfit(f"it is no Protobuf descriptor: {type(error).__name__}") from None


@dataclass
class _Field:
    """A row of FIELD in the making, which says more of each."""

    number: int
    """Field number by the schema."""
    wire: int = -1
    """Wire type by the schema."""
    do: int = PASS
    """What the scan does with the field: PASS, or another of these codes."""
    leaf: int = -1
    """Leaf of a needed cell, -1 if the field is none."""
    column: int = -1
    """Column of a needed cell, -1 if the field is none."""
    into: int = -1
    """The message that the field holds, -1 if none is entered."""
    clears: int = 0
    """The first column in `Tables.clears` that the field empties."""
    clears_stop: int = 0
    """The one behind the last."""


@dataclass
class _Message:
    fields: list[_Field] = field(default_factory=list)
    """The needed fields."""
    others: Rows | None = None
    """Array of OTHER. None if it has no oneof with a needed field."""
    oneofs: list[tuple[int, int]] = field(default_factory=list)
    """Rows of ONEOF: (clears, clears_stop)."""
    defaults: list[tuple[int, int]] = field(default_factory=list)
    """Rows of DEFAULT: (leaf, column)."""


class _ProtobufCompiler:
    """Compiles one message and the messages in it.

    column_tree: the needed columns by path, as `tree_of` makes it.
    """

    def __init__(self, file: ProtobufFile) -> None:
        self._file = file
        self._messages: list[_Message] = []
        self._clears: list[int] = []
        self._leaves = Leaves()

    def program(self, root: Descriptor, column_tree: dict[str, Any]) -> ProtobufProgram:
        self._message(root, column_tree)
        fields = [row for message in self._messages for row in sorted(map(astuple, message.fields))]
        others = [message.others for message in self._messages if message.others is not None]
        oneofs = [oneof for message in self._messages for oneof in message.oneofs]
        defaults = [default for message in self._messages for default in message.defaults]
        tables = Tables(
            fields=cast(Rows, np.array(fields, FIELD)),
            bounds=np.cumsum([0, *(len(message.fields) for message in self._messages)]),
            # Most programs have one such array at most, which other programs have as well.
            others=others[0] if len(others) == 1 else cast(Rows, np.concatenate([_NO_OTHERS, *others])),
            other_bounds=np.cumsum([0, *(len(_rows(message.others)) for message in self._messages)]),
            oneofs=cast(Rows, np.array(oneofs, ONEOF)),
            oneof_bounds=np.cumsum([0, *(len(message.oneofs) for message in self._messages)]),
            defaults=cast(Rows, np.array(defaults, DEFAULT)),
            default_bounds=np.cumsum([0, *(len(message.defaults) for message in self._messages)]),
            clears=np.array(self._clears or [0], np.int64),  # never empty, so that it keeps its type
        )
        return ProtobufProgram(tables, self._leaves.all())

    def _message(self, type_: Descriptor, column_tree: dict[str, Any]) -> int:
        """Add a message, with the fields that are needed or that empty needed ones. Returns its number."""
        # The number is taken before the fields are added, because they add messages of their own.
        number = len(self._messages)
        message = _Message()
        self._messages.append(message)
        oneofs: dict[int, list[FieldDescriptor]] = {}
        for name in column_tree:
            if name and name in type_.fields_by_name:
                own = type_.fields_by_name[name]
                self._field(message, own, column_tree[name])
                oneof = own.containing_oneof
                if oneof is not None and len(oneof.fields) > 1:
                    oneofs.setdefault(oneof.index, []).append(own)
        for _, needed in sorted(oneofs.items()):
            self._one_of(message, {own.number: column_tree[own.name] for own in needed})
        if oneofs:
            message.others = self._others(type_, tuple(sorted(oneofs)))
        return number

    def _one_of(self, message: _Message, needed: dict[int, dict[str, Any]]) -> None:
        """Let each field of a oneof empty the columns of the others: on the wire the last of them counts.

        needed: the needed columns in each of its fields, by number.
        """
        rows = {row.number: row for row in message.fields}
        columns = {number: _columns_in(below) for number, below in needed.items()}
        for own in columns:
            others = [one for number, one in columns.items() if number != own]
            rows[own].clears, rows[own].clears_stop = self._cleared(others)
        message.oneofs.append(self._cleared(columns.values()))

    def _others(self, type_: Descriptor, places: tuple[int, ...]) -> Rows:
        """The fields of these oneofs of a message, as of `ProtobufFile.others`."""
        key = type_.full_name, places
        if key not in self._file.others:
            rows = [
                (own.number, _wire(own), oneof)
                for oneof, place in enumerate(places)
                for own in type_.oneofs[place].fields
            ]
            self._file.others[key] = cast(Rows, np.array(sorted(rows), OTHER))
        return self._file.others[key]

    def _cleared(self, columns: Iterable[list[int]]) -> tuple[int, int]:
        """Note columns that a field empties. Returns where in `Tables.clears` they begin and end."""
        begin = len(self._clears)
        self._clears.extend(chain.from_iterable(columns))
        return begin, len(self._clears)

    def _field(self, message: _Message, own: FieldDescriptor, column_tree: dict[str, Any]) -> None:
        """Add a field that is needed, or that leads to needed ones."""
        column = column_tree.get("", -1)
        row = _Field(own.number, _wire(own), column=column)
        message.fields.append(row)
        if own.is_repeated:
            if row.wire != GROUP:
                # Without a column, packed numbers are checked all the same.
                row.do = REPEATED
                if column >= 0:
                    row.leaf = self._leaves.number(Leaf("nested"))
            return
        if own.type == _F.TYPE_MESSAGE:
            row.do = MESSAGE
            row.into = self._message(own.message_type, column_tree)
            if column >= 0:
                # A message that is there has a value even if it is empty, so the cell is a default of that
                # message.
                into = self._messages[row.into]
                stamp = own.message_type.full_name == _STAMP
                row.leaf = self._leaves.number(Leaf("stamp" if stamp else "nested"))
                into.defaults.append((row.leaf, column))
                if stamp:
                    into.fields.append(_Field(1, VARINT, SECONDS, row.leaf, column))
                    into.fields.append(_Field(2, VARINT, NANOS, row.leaf, column))
            return
        if own.type not in _SCALARS or column < 0:
            return
        _, row.do, holds = _SCALARS[own.type]
        if own.type == _F.TYPE_ENUM:
            row.leaf = self._leaves.number(self._enum(own.enum_type), own.enum_type.full_name)
        else:
            row.leaf = self._leaves.number(Leaf(holds))
        if not own.has_presence:  # if such a field is not on the wire, it has its default value
            message.defaults.append((row.leaf, column))

    def _enum(self, type_: EnumDescriptor) -> Leaf:
        """The leaf of an enum, as of `ProtobufFile.enums`."""
        name = type_.full_name
        if name not in self._file.enums:
            names: dict[int, str] = {}
            for value in type_.values:
                names.setdefault(value.number, value.name)  # of several names of a number, the first
            self._file.enums[name] = Leaf("enum", symbols=tuple(names.items()))
        return self._file.enums[name]


def _wire(own: FieldDescriptor) -> int:
    """The wire type of a field by the schema. GROUP is passed over."""
    if own.type == _F.TYPE_MESSAGE:
        return LENGTH
    return _SCALARS[own.type][0] if own.type in _SCALARS else GROUP


def _rows(others: Rows | None) -> Rows:
    return _NO_OTHERS if others is None else others


def _columns_in(column_tree: dict[str, Any]) -> list[int]:
    """Every needed column that is this field or lies within it."""
    own = [column_tree[""]] if "" in column_tree else []
    return own + [place for name, below in column_tree.items() if name for place in _columns_in(below)]
