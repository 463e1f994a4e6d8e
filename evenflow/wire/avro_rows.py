"""Wire format of result rows as Avro: Confluent's header, then one row in Avro's binary encoding.

    0x00 | number of the schema, 4 bytes, big-endian | window_start window_end key ...

The header names a schema of a registry. Encoding and decoding need no registry: the schema follows from the
columns (`AvroForm`), and so does the row's encoding. Equal rows are equal bytes. Arrow encodes a column at a
time. fastavro decodes.

Whatever cannot be null in a result is no union. All else is a union of null and its type, with null as
default. An array is written as one block. A decimal is written with as many bytes as its precision may need.

Admission rule: encoding and decoding only, no Kafka, no Spark and no registry.
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.errors import ProtocolError

NAMESPACE = "evenflow.results"
_HEADER = struct.Struct(">BI")
_NO_NAME = re.compile(r"[^A-Za-z0-9_]")
_UNION_NULL, _UNION_VALUE, _END = b"\x00", b"\x02", b"\x00"
_LONG_BITS = 7 * np.arange(1, 10, dtype=np.uint64)
_LONGEST = 10
"""Bytes of the longest whole number."""


@dataclass(frozen=True)
class AvroForm:
    """How the rows of a query are written."""

    schema: pa.Schema
    """The rows' `readable_schema`."""
    required: frozenset[str]
    """Names of the columns that are never null (`never_null`)."""
    topic: str
    """The results topic, which gives the record its name."""

    @cached_property
    def text(self) -> str:
        """The Avro schema as JSON. It is the same text for the same columns and topic."""
        return json.dumps(self._record(logical=True), ensure_ascii=False)

    @cached_property
    def parsed(self) -> Any:
        """The schema without logical types, as fastavro reads by it."""
        from fastavro import parse_schema  # of the extra `registry`

        return parse_schema(self._record(logical=False))

    @cached_property
    def names(self) -> list[str]:
        """The field of each column."""
        return field_names(self.schema.names)

    def _record(self, *, logical: bool) -> dict[str, Any]:
        name = _allowed(self.topic)
        fields, record_names = [], {name}
        for column, own in zip(self.schema, self.names, strict=True):
            kind = _type(column.type, f"{name}_{own}", record_names, logical=logical)
            field = {"name": own, "type": kind if column.name in self.required else ["null", kind]}
            field |= {} if column.name in self.required else {"default": None}
            fields.append(field | ({} if own == column.name else {"doc": column.name}))
        return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}


def field_names(columns: Sequence[str]) -> list[str]:
    """The name that each column has in Avro, where a name is of letters, digits and `_`,
    and begins with no digit.

    A name that Avro allows stays. In any other name each character that Avro does not allow becomes `_`, and
    a digit in front gets `_` before it. If a column has that name already, `_2`, `_3` and so on is appended.
    """
    names = {name for name in columns if _allowed(name) == name}
    avro_names = []
    for column in columns:
        name = _allowed(column)
        avro_names.append(name if name == column else _not_in(names, name))
    return avro_names


def _not_in(names: set[str], base: str) -> str:
    """The name, with a number behind it if `names` has it already. It is added to `names`."""
    name, number = base, 1
    while name in names:
        number += 1
        name = f"{base}_{number}"
    names.add(name)
    return name


def header(number: int) -> bytes:
    """The bytes in front of a row whose schema has this number in the registry."""
    return _HEADER.pack(0, number)


def split_header(value: bytes | None) -> tuple[int, bytes] | None:
    """(number of the schema, row) of a record. None for a record that has no such header."""
    if value is None or len(value) < _HEADER.size:
        return None
    magic, number = _HEADER.unpack_from(value)
    return None if magic else (number, value[_HEADER.size :])


def window_end_of(value: bytes) -> int:
    """End of the window (ms) of a record, which is the second number of a row.
    Raises ValueError if there is none.
    """
    parts = split_header(value)
    if parts is None:
        raise ValueError("no Avro row")
    _, at = _long(parts[1], 0)
    return _long(parts[1], at)[0]


def encode_rows(table: pa.Table, form: AvroForm) -> pa.BinaryArray:
    """Each row of a table (`form.schema`) without its header.
    Raises ProtocolError for null in a required column.
    """
    pieces: list[bytes | pa.Array] = []
    for name in form.schema.names:
        column = table[name]
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if name not in form.required:
            pieces += _nullable(column)
        elif column.null_count:
            raise ProtocolError(f"a result row has no {name}")
        else:
            pieces.append(_present(column))
    return _joined(*pieces)


def decode_rows(rows: Sequence[bytes], form: AvroForm) -> tuple[pa.Table, list[int]]:
    """(table of `form.schema`, places of its rows in `rows`), without those that are no row of this form.

    The bytes may be anything. Only bytes that `encode_rows` makes are a row.
    """
    read = [(place, fields) for place, row in enumerate(rows) if (fields := _read(row, form)) is not None]
    if not read:
        return form.schema.empty_table(), []
    try:
        table = _table([fields for _, fields in read], form)
        encoded = encode_rows(table, form).to_pylist()
    # A value that no such column holds is among them: it is found by looking at each row alone.
    except (ProtocolError, pa.ArrowException, ValueError, OverflowError, TypeError):
        if len(read) == 1:
            return form.schema.empty_table(), []
        middle = len(read) // 2
        tables, places = [], []
        for part in (read[:middle], read[middle:]):
            own, found_at = decode_rows([rows[place] for place, _ in part], form)
            tables.append(own)
            places += [part[at][0] for at in found_at]
        return pa.concat_tables(tables), places
    right = [at for at, (place, _) in enumerate(read) if encoded[at] == rows[place]]
    places = [read[at][0] for at in right]
    return (table if len(right) == len(read) else table.take(pa.array(right, pa.int64()))), places


def _read(row: bytes, form: AvroForm) -> dict[str, Any] | None:
    from fastavro import schemaless_reader

    try:
        fields = schemaless_reader(io.BytesIO(row), form.parsed, None)
    except Exception:  # for bad bytes, fastavro raises many kinds of exception
        return None
    return fields if isinstance(fields, dict) else None


def _table(rows: Sequence[dict[str, Any]], form: AvroForm) -> pa.Table:
    columns = [
        _array([row[name] for row in rows], field.type)
        for name, field in zip(form.names, form.schema, strict=True)
    ]
    table = pa.Table.from_arrays(columns, schema=form.schema)
    table.validate(full=True)
    return table


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """The values of a column, as fastavro reads them without logical types."""
    if pa.types.is_decimal(kind):
        return _decimals(values, kind)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).cast(kind)
    missing = pa.array([value is None for value in values], pa.bool_())
    if pa.types.is_list(kind):
        sizes = [0 if value is None else len(value) for value in values]
        entries = _array([entry for value in values if value is not None for entry in value], kind.value_type)
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, entries, type=kind, mask=missing)
    if pa.types.is_struct(kind):
        names = field_names([field.name for field in kind])
        columns = [
            _array([None if value is None else value[name] for value in values], field.type)
            for name, field in zip(names, kind, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=missing)
    return pa.array(values, kind)


def _decimals(values: list[bytes | None], kind: pa.DataType) -> pa.Array:
    size = _decimal_bytes(kind.precision)
    if any(value is not None and len(value) != size for value in values):
        raise ValueError("a decimal of another length")
    zero = bytes(size)
    joined = b"".join(zero if value is None else value for value in values)
    digits = np.frombuffer(joined, np.uint8).reshape(-1, size)
    # Avro has two's complement, the highest byte first. Arrow has 16 bytes, the lowest first: the sign fills
    # the bytes in front, and then the order is reversed.
    whole = np.empty((len(values), 16), np.uint8)
    whole[:, :] = np.where(digits[:, :1] >= 128, 255, 0)
    whole[:, 16 - size :] = digits
    decimals = pa.Array.from_buffers(
        kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(whole[:, ::-1]))]
    )
    return pc.if_else(
        pa.array([value is not None for value in values], pa.bool_()), decimals, pa.scalar(None, kind)
    )


def _type(kind: pa.DataType, name: str, record_names: set[str], *, logical: bool) -> Any:
    """The Avro type of an Arrow type.

    name: of a record, if there is one in it. record_names: names of records, to which its own is added.
    logical: with logical types.
    """
    if pa.types.is_list(kind):
        return {
            "type": "array",
            "items": ["null", _type(kind.value_type, name, record_names, logical=logical)],
        }
    if pa.types.is_struct(kind):
        name, fields = _not_in(record_names, name), []
        for field, own in zip(kind, field_names([field.name for field in kind]), strict=True):
            inner = _type(field.type, f"{name}_{own}", record_names, logical=logical)
            attributes = {} if own == field.name else {"doc": field.name}
            fields.append({"name": own, "type": ["null", inner], "default": None, **attributes})
        return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-millis"} if logical else "long"
    if pa.types.is_date(kind):
        return {"type": "int", "logicalType": "date"} if logical else "int"
    if pa.types.is_decimal(kind):
        attributes = {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
        return attributes if logical else "bytes"
    return _PLAIN[kind]


_PLAIN = {
    pa.int64(): "long",
    pa.int32(): "int",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "bytes",
}


def _allowed(name: str) -> str:
    avro_name = _NO_NAME.sub("_", name)
    return avro_name if avro_name and not avro_name[0].isdigit() else f"_{avro_name}"


def _nullable(column: pa.Array) -> list[bytes | pa.Array]:
    """The pieces of a union of null and the column's type."""
    if not column.null_count:
        return [_UNION_VALUE, _present(column)]
    return [pc.if_else(column.is_valid(), _joined(_UNION_VALUE, _present(column)), _UNION_NULL)]


def _present(column: pa.Array) -> pa.Array:
    """The encoding of each value. Of a null it may be anything but null."""
    kind = column.type
    if pa.types.is_struct(kind):
        pieces = [piece for number in range(kind.num_fields) for piece in _nullable(column.field(number))]
        return _joined(*pieces)
    if pa.types.is_list(kind):
        return _lists(column)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        bytes_ = column.cast(pa.binary()).fill_null(b"")
        return _joined(_longs(pc.binary_length(bytes_).cast(pa.int64()).to_numpy()), bytes_)
    if pa.types.is_decimal(kind):
        return _decimal_texts(column)
    if pa.types.is_boolean(kind):
        return _fixed(column.fill_null(False).cast(pa.uint8()).to_numpy())
    if pa.types.is_floating(kind):
        return _fixed(column.fill_null(0.0).to_numpy().astype("<f8"))
    if pa.types.is_date(kind):
        column = column.cast(pa.int32())
    whole = column.cast(pa.int64())
    return _longs(whole.fill_null(0).to_numpy())


def _lists(column: pa.ListArray) -> pa.Array:
    """One block with all items, and the end. An empty array has the end alone."""
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    # `flatten` leaves out items before a slice and under nulls.
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    items = pa.ListArray.from_arrays(offsets, _joined(*_nullable(column.flatten())))
    count = pc.if_else(pa.array(sizes > 0), _longs(sizes), b"")
    return _joined(count, pc.binary_join(items, b""), _END)


def _decimal_texts(column: pa.Array) -> pa.Array:
    kind = column.type
    size = _decimal_bytes(kind.precision)
    buffer = column.buffers()[1]
    digits = np.frombuffer(buffer, np.uint8)[column.offset * 16 : (column.offset + len(column)) * 16]
    right = digits.reshape(-1, 16)[:, ::-1][:, 16 - size :]
    length = np.full((len(column), 1), 2 * size, np.uint8)  # a length of at most 16 is one byte
    return _fixed(np.ascontiguousarray(np.hstack([length, right])))


def _decimal_bytes(precision: int) -> int:
    """Bytes of two's complement that hold every number of so many digits."""
    return ((10**precision).bit_length() + 8) // 8


def _fixed(values: np.ndarray[Any, Any]) -> pa.Array:
    """The bytes of values that have the same size."""
    count = len(values)
    size = values.nbytes // count if count else 0
    offsets = pa.py_buffer(np.arange(count + 1, dtype=np.int32) * np.int32(size))
    return pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(values.tobytes())])


def _longs(values: np.ndarray[Any, Any]) -> pa.Array:
    """Whole numbers as Avro has them: zigzag, seven bits a byte, the lowest first."""
    zigzag = (values.astype(np.uint64) << np.uint64(1)) ^ (values >> 63).astype(np.uint64)
    sizes = np.ones(len(values), np.int32)
    for bits in _LONG_BITS:
        sizes += zigzag >= (np.uint64(1) << bits)
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    # One pass for each byte of the longest number, over all numbers that have such a byte.
    for number in range(int(sizes.max(initial=0))):
        has = sizes > number
        part = (zigzag[has] >> np.uint64(7 * number)) & np.uint64(127)
        more = np.where(sizes[has] > number + 1, 128, 0)
        data[offsets[:-1][has] + number] = part.astype(np.uint8) | more.astype(np.uint8)
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _long(data: bytes, at: int) -> tuple[int, int]:
    """(the whole number that begins there, where it ends)."""
    zigzag = 0
    for number in range(_LONGEST):
        if at + number >= len(data):
            break
        byte = data[at + number]
        zigzag |= (byte & 127) << (7 * number)
        if byte < 128:
            # Zigzag: 0, 1, 2, 3 stand for 0, -1, 1, -2.
            return (zigzag >> 1) ^ -(zigzag & 1), at + number + 1
    raise ValueError("no whole number")


def _joined(*pieces: bytes | pa.Array) -> pa.Array:
    parts: list[Any] = []
    for piece in pieces:  # neighbouring constants would be one pass more each
        if isinstance(piece, bytes) and parts and isinstance(parts[-1], bytes):
            parts[-1] += piece
        else:
            parts.append(piece)
    scalars = [pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part for part in parts]
    return pc.binary_join_element_wise(*scalars, pa.scalar(b"", pa.binary()))
