"""Records to columns: keep what the query needs, give every bad record a reason of its own.

A block is read as a whole, by compiled code that judges each record by itself (`reading`). What follows works on columns:
keys, event times, and numbers that must be finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.arrays import Int64s
from evenflow.settings import Settings
from partitioner_service.reading.cells import KINDS, Block, Cells
from partitioner_service.reading.csv_records import CsvReader
from partitioner_service.reading.json_records import JsonReader
from partitioner_service.reading.reasons import (
    FAR_TIME,
    FAR_TIMESTAMP,
    NO_KEY,
    NO_KEY_COLUMN,
    NO_TIME,
    NO_TIME_COLUMN,
    NO_TIMESTAMP,
    NO_VALUE,
    NOT_FINITE,
    Bad,
    Explainer,
    Faults,
)
from partitioner_service.reading.strings import texts
from partitioner_service.reading.text_records import TextReader
from partitioner_service.reading.times import MAX_TIME, far, from_iso, from_seconds

_ARROW_TYPES = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string()}


@dataclass(frozen=True)
class Parsed:
    """The readable tuples of a block.

    rows: their positions in the block, ascending, shape (m,); keys: binary (m,); times: event time in ms
    (m,); values: the aggregated columns, m rows; bad: reason of every other row.
    """

    rows: Int64s
    keys: pa.BinaryArray
    times: Int64s
    values: pa.RecordBatch
    bad: Bad


def taken_apart(parsed: Parsed, sizes: Sequence[int]) -> list[Parsed]:
    """What was parsed of consecutive stretches of a block; sizes: records in each. Rows count from its own first."""
    bounds = np.cumsum([0, *sizes])
    cuts = np.searchsorted(parsed.rows, bounds).tolist()
    pieces = []
    for (first, last), (begin, stop) in zip(pairwise(bounds.tolist()), pairwise(cuts), strict=True):
        values = parsed.values.slice(begin, stop - begin) if parsed.values.num_columns else parsed.values
        keys, times = parsed.keys.slice(begin, stop - begin), parsed.times[begin:stop]
        rows = parsed.rows[begin:stop] - first
        pieces.append(Parsed(rows, keys, times, values, parsed.bad.between(first, last)))
    return pieces


class Parser:
    """Parses blocks of records as `settings.input` and `settings.query` say."""

    def __init__(self, settings: Settings) -> None:
        self._query = settings.query
        types = {name: _ARROW_TYPES[kind] for name, kind in settings.query.read_as.items()}
        self._names = list(types)
        self._kinds = np.array([KINDS[kind] for kind in types.values()], np.int64)
        self._value_schema = pa.schema(
            [(name, _ARROW_TYPES[kind]) for name, kind in settings.query.value_columns.items()]
        )
        self._reader = _reader(settings, pa.schema(list(types.items())))
        self._explainer = Explainer(self._names, self._kinds, fields=len(settings.input.columns))

    @property
    def needs_key(self) -> bool:
        """Whether the raw record key is read."""
        return self._query.key == "@key"

    @property
    def needs_timestamp(self) -> bool:
        """Whether the record timestamp is read."""
        return self._query.time == "@timestamp"

    def parse(
        self,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[bytes | None] | None = None,
        timestamps: Sequence[int] | None = None,
    ) -> Parsed:
        """Columns of n records; `keys` and `timestamps` (ms) have n entries where the query needs them.

        Values, and keys, are below 2 GiB together (see `blocks`).
        """
        faults = Faults.none(len(values))
        block = Block.of(values if self._names else [])
        if block.missing is not None:
            faults.note(block.missing, NO_VALUE)
        cells = self._reader.read(block, faults) if self._names else Cells.of(self._kinds, 0)
        key = self._keys_of(block, cells, keys, faults)
        time = self._times_of(block, cells, timestamps, faults)
        self._note_infinite(cells, faults)
        columns = [self._values_of(cells, field) for field in self._value_schema]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._value_schema)
        bad = self._explainer.explain(faults, block, cells)
        if not len(bad):
            return Parsed(np.arange(len(values)), key, time, batch, bad)
        good = faults.codes == 0
        keep = pa.array(good)
        chosen = batch.filter(keep) if columns else batch
        return Parsed(np.flatnonzero(good), key.filter(keep), time[good], chosen, bad)

    def _keys_of(
        self, block: Block, cells: Cells, keys: Sequence[bytes | None] | None, faults: Faults
    ) -> pa.BinaryArray:
        if self.needs_key:
            assert keys is not None
            array = pa.array(keys, pa.binary())
            if array.null_count:
                faults.note(array.is_null().to_numpy(zero_copy_only=False), NO_KEY)
            return array
        column = self._names.index(self._query.key)
        faults.note(~cells.there(column), NO_KEY_COLUMN, column=column)
        if self._kinds[column] == KINDS[pa.string()]:
            return texts(block.data, cells, column, self._reader.written).cast(pa.binary())
        return pa.array(cells.ints[column]).cast(pa.string()).cast(pa.binary())

    def _times_of(
        self, block: Block, cells: Cells, timestamps: Sequence[int] | None, faults: Faults
    ) -> Int64s:
        if self.needs_timestamp:
            assert timestamps is not None
            stamps = np.asarray(timestamps, dtype=np.int64)
            faults.note(stamps < 0, NO_TIMESTAMP)
            faults.note(stamps > MAX_TIME, FAR_TIMESTAMP, at=stamps)
            return stamps
        column = self._names.index(self._query.time)
        faults.note(~cells.there(column), NO_TIME_COLUMN, column=column)
        unit = self._query.time_unit
        if unit == "iso":
            times, wrong = from_iso(texts(block.data, cells, column, self._reader.written))
            faults.note(wrong, NO_TIME, column=column)
        elif unit == "s":
            times, wrong = from_seconds(cells.floats[column])
            faults.note(wrong, FAR_TIME, column=column)
        else:
            whole = cells.ints[column]
            times = np.floor_divide(whole, 1000) if unit == "us" else whole
            faults.note(far(times), FAR_TIME, column=column)
        return times

    def _note_infinite(self, cells: Cells, faults: Faults) -> None:
        for name, kind in zip(self._value_schema.names, self._value_schema.types, strict=True):
            column = self._names.index(name)
            if pa.types.is_floating(kind) and self._kinds[column] == KINDS[kind]:
                finite = np.isfinite(cells.floats[column])
                if not finite.all():
                    faults.note(~finite, NOT_FINITE, column=column)

    def _values_of(self, cells: Cells, field: pa.Field) -> pa.Array:
        column = self._names.index(field.name)
        numbers = (cells.ints if self._kinds[column] == KINDS[pa.int64()] else cells.floats)[column]
        there = cells.there(column)
        array = pa.array(numbers) if there.all() else pa.array(numbers, mask=~there)
        return array if array.type == field.type else pc.cast(array, field.type, safe=False)


def _reader(settings: Settings, schema: pa.Schema) -> JsonReader | CsvReader | TextReader:
    if settings.input.format == "json":
        return JsonReader(schema)
    if settings.input.format == "csv":
        return CsvReader(schema, settings.input.columns, settings.input.delimiter)
    return TextReader()
