"""Avro records, read by fastavro after a walk has found nothing in them that fastavro would take
for something else.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import fastavro
from fastavro.read import LOGICAL_READERS

from evenflow.grammar.paths import MOST_LEVELS, segments, written
from topics.schemas.registry import RegisteredSchema
from workbench.registered.avro_schema import LOGICAL_TYPE, AvroSchema
from workbench.registered.avro_walk import AvroWalk
from workbench.registered.cell import LONGEST_NAME, MOST_VALUES, NESTED, RegisteredCell
from workbench.unreadable import Unreadable

_BEGIN = 5
"""Where a record begins: after the zero byte and the 4 bytes of the schema's id."""


def _cell_of(value: Any, schema: Any, _: Any = None) -> RegisteredCell:
    """What fastavro has read, as a cell. schema: of the value, by `AvroSchema`."""
    kind, logical, scale = schema["cell"]
    if kind == "nested":
        return NESTED
    return RegisteredCell(kind, schema["names"][value] if kind == "enum" else value, logical, scale)


# fastavro looks up the reader of a logical type in this table, which is the whole process's. It is how
# fastavro says of which type a value is: an int of a date and a long of a timestamp are both an int without
# it.
for _type in (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "string",
    "enum",
    "fixed",
    "array",
    "map",
):
    LOGICAL_READERS[f"{_type}-{LOGICAL_TYPE}"] = _cell_of


class AvroReader:
    """Reads Avro records of one schema.
    Raises the errors of `AvroSchema`, or fastavro's, if the schema is none.
    """

    def __init__(self, schema: RegisteredSchema) -> None:
        self._schema = AvroSchema(schema.texts)
        self._parsed = fastavro.parse_schema(self._schema.root)

    def read(self, value: bytes, types: Mapping[str, str]) -> dict[str, RegisteredCell | None]:
        """The needed columns, None for what is null or not there."""
        record = self._record(value)
        return {name: _below(record, name) for name in types}

    def fields(self, value: bytes) -> dict[str, RegisteredCell | None]:
        """Path -> value of each field that is no record itself.
        The fields of a record that is null are left out, and so are fields with long names. Raises
        Unreadable, also for a record of more than 100,000 values.
        """
        cells: dict[str, RegisteredCell | None] = {}
        waiting: list[tuple[tuple[str, ...], dict[str, Any]]] = [((), self._record(value, most=MOST_VALUES))]
        while waiting:
            outer, record = waiting.pop()
            room = LONGEST_NAME - sum(map(len, outer))
            for name, inner in record.items():
                if len(name) > room:
                    continue
                if not isinstance(inner, dict):
                    cells[written((*outer, name))] = inner
                elif len(outer) < MOST_LEVELS - 1:
                    waiting.append(((*outer, name), inner))
        return cells

    def _record(self, value: bytes, *, most: int | None = None) -> dict[str, Any]:
        """Field -> a cell, a dict of the same form for a record, or None for null. Raises Unreadable.

        most: as of `AvroWalk`.
        """
        walk = AvroWalk(self._schema.types, value, most=most)
        try:
            end = walk.end(self._schema.root, _BEGIN)
        except RecursionError:
            raise Unreadable("the record is nested too deeply") from None
        if end != len(value):
            raise Unreadable("bytes are left over")
        # A column holds no array and no map, so only that they are there matters.
        emptied = walk.emptied()
        data = io.BytesIO(emptied)
        data.seek(_BEGIN)
        # Invalid UTF-8 becomes lone surrogates. In a column that nobody reads it does no harm.
        try:
            record = fastavro.schemaless_reader(
                data, self._parsed, None, handle_unicode_errors="surrogateescape"
            )
        except Exception as error:  # for bad bytes, fastavro raises many kinds of exception
            raise Unreadable(f"fastavro does not read the record: {type(error).__name__}") from None
        if data.tell() != len(emptied) or not isinstance(record, dict):
            raise Unreadable("fastavro does not read the record")
        return record


def _below(value: Any, name: str) -> RegisteredCell | None:
    """The value of the column with this name in nested dicts. None if it is null or not there."""
    for part in segments(name):
        value = value.get(part) if isinstance(value, dict) else None
    return NESTED if isinstance(value, dict) else value
