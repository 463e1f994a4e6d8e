"""Avro and Protobuf records as the strict readers of JSON would have them,
with the reasons why a record is unreadable.

The partitioner reads both with compiled kernels, so this is a second opinion on every record. If a schema is
not in the registry when this code asks for it, its records are unreadable. So they are in the partitioner. Of
a record whose schema the registry withholds nothing can be said (`WithheldSchema`).
"""

from __future__ import annotations

import math
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from fastavro.schema import SchemaParseException
from google.protobuf.message import DecodeError

from evenflow.grammar.column_types import ANY_VALUE, decimal_scale
from evenflow.settings import Settings
from topics.schemas.registry import Lookup, RegisteredSchema, Registry, SchemaRefused, schema_id
from workbench.registered.avro import AvroReader
from workbench.registered.cell import TICKS, RegisteredCell
from workbench.registered.protobuf import ProtobufReader
from workbench.unreadable import Number, Unreadable, WithheldSchema

WITHHELD = "the registry refuses schema "
"""What the reason of a record begins with if the registry withholds its schema.
The partitioner says the same.
"""
_MOST_CHARACTERS = 1_000_000
"""Characters of a schema that is read, with those that it refers to, as in the partitioner."""
_YEAR_1970 = datetime(1970, 1, 1, tzinfo=UTC)
_WIDEST_DECIMAL = 16
"""Bytes of a decimal that is read, as in the partitioner: a 128-bit decimal has room for so many.
The time that a number takes is quadratic in its bytes.
"""


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
        """The needed columns, with values as a JSON record would hold them.
        Nulls are left out. Raises Unreadable.
        """
        cells = self._reader_of(value).read(value, self._types)
        return {name: self._as_json(name, cell) for name, cell in cells.items() if cell is not None}

    def row(self, value: bytes) -> dict[str, Any]:
        """Path -> value of each field, as Python holds it, in little time and memory. Raises Unreadable, also
        for a record of very many values.

        Times are in the query's unit. None stands for null. A decimal that is too wide to be read is shown as
        other bytes are.
        """
        cells = self._reader_of(value).fields(value)
        return {name: self._shown(cell) for name, cell in cells.items()}

    def _reader_of(self, value: bytes) -> Any:
        """The reader of the schema that the record names. Raises Unreadable."""
        number = schema_id(value)
        if number is None:
            raise Unreadable("the record is not in Confluent's wire format")
        return self._reader(number)

    def _shown(self, cell: RegisteredCell | None) -> Any:
        if cell is None:
            return None
        if cell.kind == "stamp" or cell.logical in TICKS:
            time = _time(cell, self._query.time_unit)
            return time if isinstance(time, str) and not isinstance(time, Number) else _plain(str(time))
        if cell.logical == "date":
            return _day(cell)
        if cell.logical == "decimal" and len(cell.value) <= _WIDEST_DECIMAL:
            return float(Decimal(int.from_bytes(cell.value, "big", signed=True)).scaleb(-cell.scale))
        if cell.logical == "uuid" and cell.kind == "bytes":
            return cell.value.hex()
        return [] if cell.kind in ("nested", "bytes") else cell.value

    def _reader(self, number: int) -> Any:
        if number not in self._schemas:
            try:
                schema = self._registry.schema(number)
                self._schemas[number] = None if schema is None else self._reader_for(schema)
            except SchemaRefused as error:
                self._schemas[number] = WithheldSchema(f"{WITHHELD}{number}: {error.why}")
            # Anybody may register a schema. One that cannot be understood counts as none, and so does its
            # absence.
            except (
                ValueError,
                TypeError,
                KeyError,
                AttributeError,
                RecursionError,
                DecodeError,
                ImportError,
                SchemaParseException,
            ):
                self._schemas[number] = None
        if isinstance(self._schemas[number], WithheldSchema):
            raise self._schemas[number]
        if self._schemas[number] is None:
            raise Unreadable(f"schema {number} is not there, or none that is read")
        return self._schemas[number]

    def _reader_for(self, schema: RegisteredSchema) -> Any:
        if schema.form != self._form or sum(map(len, schema.texts)) > _MOST_CHARACTERS:
            return None
        return AvroReader(schema) if self._form == "avro" else ProtobufReader(schema)

    def _as_json(self, name: str, cell: RegisteredCell) -> Any:
        type_ = self._types[name]
        unit = self._query.time_unit if name == self._query.time else None
        if unit is not None and (cell.kind == "stamp" or cell.logical in TICKS):
            return _time(cell, unit)
        if type_ == "bool" and cell.kind == "bool":
            return cell.value
        if type_ == "date":
            return _day(cell)
        if type_ == ANY_VALUE and cell.kind == "bool":
            return cell.value
        if type_ == ANY_VALUE and cell.logical == "date" and cell.kind == "int":
            return _day(cell)
        if type_ in ("string", ANY_VALUE):
            if cell.kind in ("text", "enum"):
                return cell.value
            if cell.logical == "uuid" and cell.kind == "bytes" and len(cell.value) == 16:
                return str(uuid.UUID(bytes=cell.value))
        if type_ not in ("string", "bool"):
            if cell.kind == "text" and decimal_scale(type_) is not None:
                return Number(cell.value.strip(" \t"))
            # A Number holds text. The column's strict reader accepts these forms, and no exponent for a
            # decimal.
            if cell.kind == "int" and cell.logical != "date":
                return Number(float(cell.value) if type_ == "float64" else cell.value)
            if cell.kind == "float" and type_ != "int64":
                exact = math.isfinite(cell.value) and type_ != "float64"
                return Number(f"{Decimal(repr(cell.value)):f}" if exact else repr(cell.value))
            if cell.logical == "decimal" and type_ != "int64" and len(cell.value) <= _WIDEST_DECIMAL:
                units = int.from_bytes(cell.value, "big", signed=True)
                return Number(f"{Decimal(units).scaleb(-cell.scale):f}")
        raise Unreadable(f"column {name!r} holds {cell.kind} {cell.logical}, which is no {type_}")


def _plain(number: str) -> int | float:
    """The number that this text stands for, whole if it has no point."""
    return int(number) if number.lstrip("-").isdigit() else float(number)


def _day(cell: RegisteredCell) -> str:
    if cell.kind == "text":
        return str(cell.value)
    if cell.logical == "date":
        try:
            return (date(1970, 1, 1) + timedelta(days=cell.value)).isoformat()
        except OverflowError:
            pass
    raise Unreadable("no date")


def _time(cell: RegisteredCell, unit: str) -> Any:
    """A timestamp in the query's unit: a Number, or text for `iso`. Raises Unreadable if it is out of
    range.
    """
    ms = cell.value if cell.kind == "stamp" else cell.value // TICKS[cell.logical]
    if unit != "iso":
        return Number(repr(ms / 1000) if unit == "s" else ms * (1000 if unit == "us" else 1))
    try:
        return (_YEAR_1970 + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds")
    except OverflowError:
        raise Unreadable("the event time is out of range") from None
