"""Blocks of Avro and Protobuf records in Confluent's wire format.

Each record is decoded by the schema whose id it names. A block is divided by schema, and all records of one
schema are read in one compiled pass. So a block costs little more if its records are of several versions of a
schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from evenflow.numeric.arrays import Bools, Int64s
from evenflow.settings import Settings
from partitioner_service.reading.cells.cells import ANY, TEXT, Block, Cells
from partitioner_service.reading.cells.faults import Faults
from partitioner_service.reading.cells.reasons import (
    NO_MAGIC,
    NO_SCHEMA,
    NOT_DECODED,
    UNFIT_SCHEMA,
    WITHHELD,
)
from partitioner_service.reading.cells.strings import PLAIN
from partitioner_service.reading.registered import avro_scan, avro_schema, protobuf_scan, protobuf_schema
from partitioner_service.reading.registered.avro_schema import AvroProgram, Unfit
from partitioner_service.reading.registered.binary import Walk
from partitioner_service.reading.registered.leaves import NOTHING, Column, Filler, Raw
from partitioner_service.reading.registered.newest import Newest
from partitioner_service.reading.registered.protobuf_scan import NO_MESSAGE, NO_PATH
from partitioner_service.reading.registered.protobuf_schema import ProtobufFile, ProtobufProgram
from partitioner_service.reading.registered.schemas import Answer, Schemas, Withheld
from topics.schemas.registry import RegisteredSchema

_PREFIX = 5
"""Bytes before a record: a zero byte, and the id of the schema, the highest byte first."""
_MOST_PROGRAM_BYTES = 64_000_000
"""Bound of the programs that are remembered."""
_PROGRAM_BYTES, _SYMBOL_BYTES = 2_000, 200
"""What a program takes beside its steps or tables, and what a symbol of an enum takes at most."""
_MOST_FILE_CHARACTERS = 4_000_000
"""Bound of the texts of the Protobuf files that are remembered. A file takes 50 times its text. A block needs
one file after the other.
"""
_MOST_INNER_BYTES = 64_000_000
"""Bound of what is remembered of the messages that files have. An entry takes _INNER_BYTES at least."""
_INNER_BYTES = 500
_NO_MESSAGES: Int64s = np.ones(2, np.int64)
"""`ProtobufFile.inner` of a file without messages."""

Program = AvroProgram | ProtobufProgram


class RegisteredReader:
    """Finds the cells of columns. types: their declared types, by name. kinds: what each column needs.

    withheld: the schema ids of the newest block that the registry refuses, with what it said.
    """

    written = PLAIN

    def __init__(self, settings: Settings, types: Mapping[str, str], kinds: Int64s, schemas: Schemas) -> None:
        query = settings.query
        self._names = list(types)
        self._columns = [
            Column(place, int(kind), type_, query.time_unit if name == query.time else None)
            for place, (kind, (name, type_)) in enumerate(zip(kinds, types.items(), strict=True))
        ]
        self._kinds = kinds
        self._form = settings.input.format
        self._schemas = schemas
        self.withheld: dict[int, str] = {}
        self._programs: Newest[tuple[int, int], Program | None] = Newest(_MOST_PROGRAM_BYTES)
        self._files: Newest[int, ProtobufFile] = Newest(_MOST_FILE_CHARACTERS)
        self._inner: Newest[int, Int64s] = Newest(_MOST_INNER_BYTES)

    def read(self, block: Block) -> Cells:
        """Cells of the records without a fault. Notes what is wrong with a record in `block.faults`.

        Raises what `Schemas.of` raises, before any cell was read.
        """
        cells, raw = (
            Cells.of(self._kinds, block.rows),
            Raw.of(len(self._columns), block.rows),
        )
        # `Cells.of` leaves these empty, and numbers set no text. A reason that shows a cell must not read
        # random memory.
        cells.begins[:], cells.lengths[:] = 0, 0
        ids = self._ids(block)
        rows = np.flatnonzero(block.faults.codes == 0)
        answers = self._schemas.of(np.unique(ids[rows]).tolist())
        self.withheld = {
            n: f"{n}: {answer.why}" for n, answer in answers.items() if isinstance(answer, Withheld)
        }
        if _note_absent(block.faults, ids, answers):
            rows = np.flatnonzero(block.faults.codes == 0)
        starts = block.begins[:-1] + _PREFIX
        filler = Filler(block, raw, cells)
        for number, message, group in self._groups(block, ids, rows, starts, answers):
            program = self._program(answers[number], number, message)
            if program is None:
                block.faults.note_rows(group, UNFIT_SCHEMA, at=ids)
                continue
            failed = self._scan(block, group, starts, program, raw)
            if failed.any():
                block.faults.note_rows(group[failed], NOT_DECODED, at=ids)
                group = group[~failed]
            for column in self._columns:
                leaves = raw.leaves[column.place, group]
                for leaf, places in _divided(leaves):
                    if leaf != NOTHING:
                        filler.fill(column, program.leaves[leaf], group[places], ids)
        filler.finish()
        for column in self._columns:
            if column.kind in (TEXT, ANY):
                filler.check_text(column)
        return cells

    def _ids(self, block: Block) -> Int64s:
        """The schema id of each record. A record without one is a fault."""
        begins, lengths = block.begins[:-1], np.diff(block.begins) - 1
        # Padded, so that the ids of short records at the end can be read before these records are refused.
        data = np.concatenate([block.data, np.zeros(_PREFIX, np.uint8)])
        ids = np.zeros(block.rows, np.int64)
        for place in range(1, _PREFIX):
            ids = ids << 8 | data[begins + place]
        block.faults.note((lengths < _PREFIX) | (data[begins] != 0), NO_MAGIC)
        return ids

    def _groups(
        self, block: Block, ids: Int64s, rows: Int64s, starts: Int64s, answers: Mapping[int, Answer]
    ) -> Iterator[tuple[int, int, Int64s]]:
        """Rows by schema and, for Protobuf, by message: (schema id, number of the message, rows).

        `starts` moves behind the path of the message. All paths that lead to no message are one group.
        """
        for number, places in _divided(ids[rows]):
            of_schema = rows[places]
            if self._form == "avro":
                yield number, 0, of_schema
                continue
            begins, messages = starts[of_schema], np.zeros(len(of_schema), np.int64)
            stops = block.begins[of_schema + 1] - 1
            protobuf_scan.find_messages(
                block.data, begins, stops, self._inner_of(answers[number], number), messages
            )
            starts[of_schema] = begins
            for message, places in _divided(messages):
                group = of_schema[places]
                if message == NO_PATH:
                    block.faults.note_rows(group, NOT_DECODED, at=ids)
                else:
                    yield number, message, group

    def _program(self, schema: Answer, number: int, message: int) -> Program | None:
        """The compiled schema. None if records of this schema and message cannot be read."""
        assert isinstance(schema, RegisteredSchema)  # records of ids without a schema are faults already
        if message == NO_MESSAGE:
            return None
        if (number, message) in self._programs:
            return self._programs[number, message]
        program = self._compiled(schema, number, message)
        return self._programs.put((number, message), program, _size_of(program))

    def _compiled(self, schema: RegisteredSchema, number: int, message: int) -> Program | None:
        if schema.form != self._form:
            return None
        try:
            if self._form == "avro":
                return avro_schema.compiled(schema.texts, self._names)
            return protobuf_schema.compiled(self._file(schema, number), message, self._names)
        except Unfit:
            return None

    def _inner_of(self, schema: Answer, number: int) -> Int64s:
        """Which messages the file of this schema has, as of `ProtobufFile`. None if it cannot be read."""
        assert isinstance(schema, RegisteredSchema)
        if number in self._inner:
            return self._inner[number]
        try:
            inner = self._file(schema, number).inner if schema.form == self._form else _NO_MESSAGES
        except Unfit:
            inner = _NO_MESSAGES
        return self._inner.put(number, inner, _INNER_BYTES + inner.nbytes)

    def _file(self, schema: RegisteredSchema, number: int) -> ProtobufFile:
        """The messages of a schema. To take them out of its text costs much more than to compile one.
        Raises Unfit.
        """
        if number in self._files:
            return self._files[number]
        file = protobuf_schema.file_of(schema.texts, schema.names)
        return self._files.put(number, file, sum(map(len, schema.texts)))

    def _scan(self, block: Block, rows: Int64s, starts: Int64s, program: Program, raw: Raw) -> Bools:
        """Put the needed values of these rows into `raw`. Returns which of the rows could not be decoded."""
        failed = np.zeros(len(rows), np.bool_)
        is_avro = isinstance(program, AvroProgram)
        walk = Walk(
            data=block.data,
            starts=starts[rows],
            stops=block.begins[rows + 1] - 1,
            rows=rows,
            raw=raw,
            stack=np.zeros(avro_scan.STACK if is_avro else protobuf_scan.STACK, np.int64),
            word=np.zeros(1, np.int64),
        )
        if isinstance(program, AvroProgram):
            avro_scan.scan(walk, program.steps, failed)
        else:
            protobuf_scan.scan(walk, program.tables, failed)
        return failed


def _note_absent(faults: Faults, ids: Int64s, answers: Mapping[int, Answer]) -> bool:
    """Note a fault of each record whose schema is not there or is withheld. Returns whether there is any."""
    absent = [number for number, schema in answers.items() if schema is None]
    withheld = [number for number, schema in answers.items() if isinstance(schema, Withheld)]
    if absent:
        faults.note(np.isin(ids, absent), NO_SCHEMA, at=ids)
    if withheld:
        faults.note(np.isin(ids, withheld), WITHHELD, at=ids)
    return bool(absent or withheld)


def _divided(keys: npt.NDArray[np.integer[Any]]) -> list[tuple[int, Int64s]]:
    """Each key with its places, the lowest first."""
    if not len(keys):
        return []
    if (keys == keys[0]).all():
        return [(int(keys[0]), np.arange(len(keys)))]
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return list(zip(ordered[np.append(0, begins)].tolist(), np.split(order, begins), strict=True))


def _size_of(program: Program | None) -> int:
    """Bytes of a program, about."""
    if program is None:
        return _PROGRAM_BYTES
    arrays = program.steps if isinstance(program, AvroProgram) else program.tables
    symbols = sum(len(leaf.symbols) for leaf in program.leaves)
    return _PROGRAM_BYTES + sum(array.nbytes for array in arrays) + _SYMBOL_BYTES * symbols
