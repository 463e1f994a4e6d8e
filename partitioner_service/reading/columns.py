"""Columns of a block by name, read from the cells that a reader of the input's format finds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.grammar.column_types import ANY_VALUE, decimal_scale
from evenflow.grammar.paths import segments
from evenflow.numeric.arrays import Bools, Int64s
from evenflow.settings import Settings
from partitioner_service.reading.cells.any_values import any_values
from partitioner_service.reading.cells.cells import Block, Cells
from partitioner_service.reading.cells.faults import Faults
from partitioner_service.reading.cells.lists import sizes_of_lists
from partitioner_service.reading.cells.reasons import (
    LONG_EXPONENT,
    NO_DATE,
    NO_DECIMAL,
    NO_TRUTH,
    NOT_FINITE,
)
from partitioner_service.reading.cells.strings import texts
from partitioner_service.reading.cells.typed_columns import CSV_NULLS, dates, decimals, truths
from partitioner_service.reading.csv_records import CsvReader
from partitioner_service.reading.json.records import JsonReader
from partitioner_service.reading.registered.records import RegisteredReader
from partitioner_service.reading.registered.schemas import Schemas
from partitioner_service.reading.text_records import TextReader

_NULLS = pa.array(CSV_NULLS)


class CellColumns(dict[str, pa.Array]):
    """Columns of a block by name, with their declared types. They are read lazily.

    A column is null where its record has nothing. A value that is not of the declared type is a fault. A
    column of the type `list` holds the numbers of elements.
    """

    def __init__(
        self, types: Mapping[str, str], block: Block, cells: Cells, *, written: int, csv: bool
    ) -> None:
        super().__init__()
        self._types, self._names = types, list(types)
        self._block, self._cells = block, cells
        self._written, self._csv = written, csv

    @property
    def faults(self) -> Faults:
        """The faults of the block. Reading a column notes those of its cells."""
        return self._block.faults

    def __missing__(self, name: str) -> pa.Array:
        column, type_ = self._names.index(name), self._types[name]
        scale = decimal_scale(type_)
        if type_ == "string":
            array = self._texts(column)
        elif type_ == "list":
            array = sizes_of_lists(self._block.data, self._cells, column)
        elif type_ in ("int64", "float64"):
            array = self._numbers(column, type_)
        elif type_ == "bool" and not self._csv:
            present = self._cells.present(column)
            array = pa.array(self._cells.ints[column].astype(np.bool_), mask=~present)
        elif type_ == "bool":
            array = self._noted(column, NO_TRUTH, *truths(self._words(column)))
        elif type_ == "date":
            array = self._noted(column, NO_DATE, *dates(self._words(column)))
        elif type_ == ANY_VALUE:
            array = self._noted(
                column, LONG_EXPONENT, *any_values(self._words(column), self._cells.ints[column])
            )
        else:
            assert scale is not None
            array = self._noted(column, NO_DECIMAL, *decimals(self._words(column), scale))
        self[name] = array
        return array

    def _texts(self, column: int) -> pa.StringArray:
        return texts(self._block.data, self._cells, column, self._written)

    def _words(self, column: int) -> pa.StringArray:
        """The texts of a column, null where csv means null."""
        texts = self._texts(column)
        return pc.if_else(pc.is_in(texts, _NULLS), None, texts) if self._csv else texts

    def _numbers(self, column: int, type_: str) -> pa.Array:
        present = self._cells.present(column)
        numbers = (self._cells.ints if type_ == "int64" else self._cells.floats)[column]
        if type_ == "float64":
            finite = np.isfinite(numbers)
            if not finite.all():
                self.faults.note(~finite, NOT_FINITE, column=column)
        return pa.array(numbers) if present.all() else pa.array(numbers, mask=~present)

    def _noted(self, column: int, code: int, array: pa.Array, wrong: Bools) -> pa.Array:
        if wrong.any():
            self.faults.note(wrong, code, column=column)
        return array


def reader_of(
    settings: Settings, types: Mapping[str, str], kinds: Int64s, schemas: Schemas | None
) -> JsonReader | CsvReader | TextReader | RegisteredReader:
    """What finds the cells of these columns in records of the input's format.

    types: their declared types, by name. kinds: what each needs. schemas: of Avro and Protobuf records, None
    for others.
    """
    names = list(types)
    if settings.input.format == "json":
        return JsonReader([segments(name) for name in names], kinds)
    if settings.input.format == "csv":
        return CsvReader(names, kinds, settings.input.columns, settings.input.delimiter)
    if settings.input.registered:
        assert schemas is not None
        return RegisteredReader(settings, types, kinds, schemas)
    return TextReader()
