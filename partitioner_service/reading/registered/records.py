"""Blocks of Avro and Protobuf records in Confluent's wire format.

Each record is decoded by the schema whose id it names. A block is divided by schema, and all records of one
schema are read in one compiled pass. So a block costs little more if its records are of several versions of a
schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evenflow.numeric.arrays import Bools, Int64s, UInt8s
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
from partitioner_service.reading.registered.leaves import Column, Filler, Raw
from partitioner_service.reading.registered.protobuf_schema import ProtobufProgram
from partitioner_service.reading.registered.schemas import Answer, Schemas, Withheld
from topics.schemas.registry import RegisteredSchema

_PREFIX = 5
"""Bytes before a record: a zero byte, and the id of the schema, the highest byte first."""
_MOST_INDEXES = 16
"""Longest path to a message within the messages of a file."""
_MOST_PROGRAMS = 10_000
_FIRST_MESSAGE = (0,)

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
        self._programs: dict[tuple[int, tuple[int, ...]], Program | None] = {}

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
        for (number, path), group in self._groups(block, ids, rows, starts):
            program = self._program(answers[number], number, path)
            if program is None:
                _note(block.faults, group, UNFIT_SCHEMA, ids)
                continue
            failed = self._scan(block, group, starts, program, raw)
            if failed.any():
                _note(block.faults, group[failed], NOT_DECODED, ids)
                group = group[~failed]
            for column in self._columns:
                leaves = raw.leaves[column.place, group]
                for leaf in np.unique(leaves[leaves >= 0]).tolist():
                    filler.fill(column, program.leaves[leaf], group[leaves == leaf], ids)
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
        self, block: Block, ids: Int64s, rows: Int64s, starts: Int64s
    ) -> Sequence[tuple[tuple[int, tuple[int, ...]], Int64s]]:
        """Rows by schema and, for Protobuf, by message. `starts` moves behind the path of the message.

        A Protobuf record begins with the path of its message: a count, then an index per level. The path of
        the first message of a file, which is the usual one, is written as a single zero byte.
        """
        groups: list[tuple[tuple[int, tuple[int, ...]], Int64s]] = []
        for number in np.unique(ids[rows]).tolist():
            of_schema = rows[ids[rows] == number]
            if self._form == "avro":
                groups.append(((number, ()), of_schema))
                continue
            first = (block.data[starts[of_schema]] == 0) & (
                starts[of_schema] < block.begins[of_schema + 1] - 1
            )
            starts[of_schema[first]] += 1
            groups.append(((number, _FIRST_MESSAGE), of_schema[first]))
            others: dict[tuple[int, ...], list[int]] = {}
            for row in of_schema[~first].tolist():
                path, behind = _message_path(block.data, int(starts[row]), int(block.begins[row + 1]) - 1)
                starts[row] = behind
                others.setdefault(path, []).append(row)
            for path, indices in others.items():
                some = np.array(indices, np.int64)
                if path:
                    groups.append(((number, path), some))
                else:
                    _note(block.faults, some, NOT_DECODED, ids)
        return groups

    def _program(self, schema: Answer, number: int, path: tuple[int, ...]) -> Program | None:
        """The compiled schema. None if records of this schema cannot be read."""
        assert isinstance(schema, RegisteredSchema)  # records of ids without a schema are faults already
        if (number, path) not in self._programs:
            if len(self._programs) >= _MOST_PROGRAMS:
                self._programs.clear()
            self._programs[number, path] = self._compiled(schema, path)
        return self._programs[number, path]

    def _compiled(self, schema: RegisteredSchema, path: tuple[int, ...]) -> Program | None:
        if schema.form != self._form:
            return None
        try:
            if self._form == "avro":
                return avro_schema.compiled(schema.texts, self._names)
            return protobuf_schema.compiled(schema.texts, schema.names, path, self._names)
        except Unfit:
            return None

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


def _note(faults: Faults, rows: Int64s, code: int, ids: Int64s) -> None:
    """Note a fault of these rows, whose reason tells the schema id."""
    wrong = np.zeros(len(faults.codes), np.bool_)
    wrong[rows] = True
    faults.note(wrong, code, at=ids)


def _message_path(data: UInt8s, at: int, stop: int) -> tuple[tuple[int, ...], int]:
    """The path of the message, and where it ends. The path is empty if the bytes hold no path."""
    numbers: list[int] = []
    left = 1
    while left:
        value = shift = 0
        while True:
            if at >= stop or shift > 28:
                return (), at
            byte = int(data[at])
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 128:
                break
        value = value >> 1 ^ -(value & 1)  # zigzag: Confluent writes these numbers as signed ones
        if value < 0:
            return (), at
        if not numbers:  # the first number says how many indexes follow
            if value > _MOST_INDEXES:
                return (), at
            if value == 0:
                return _FIRST_MESSAGE, at
            left = value
        else:
            left -= 1
        numbers.append(value)
    return tuple(numbers[1:]), at
