"""The table of a lookup file: its rows are found by key, a block of tuples at a time (`query.lookup`)."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from evenflow.errors import ConfigError
from evenflow.grammar.arrow_types import arrow_type
from evenflow.grammar.column_types import ColumnType, decimal_scale
from evenflow.limits import LOOKUP_TEXT_BYTES
from evenflow.numeric.arrays import Bools
from evenflow.settings import Query
from evenflow.settings.sections.query.lookup import Lookup
from evenflow.text.json_text import arrays
from evenflow.text.spelling import did_you_mean
from evenflow.twostep.key_index import KeyIndex

CSV_NULLS = ("", "NA", "null", "NULL")
"""What stands for null in a CSV file where no text is needed. Text is never null there."""
_ROWS = 65_536
"""Rows of a Parquet file that are read at once."""
_PAGE = "docs/lookup.md says what a lookup file may hold"


@dataclass(frozen=True)
class Match:
    """What a block of n tuples gets."""

    columns: Mapping[str, pa.Array]
    """The columns of the lookup file by name, each of n rows.
    Null where the file has no row for the tuple."""
    missing: Bools
    """(n,): whether the file has no row for the tuple."""


class LookupTable:
    """The rows of a lookup file in memory.

    Raises ConfigError for a file that is missing, damaged, too large, that lacks a column, holds a value of
    another type, a null key or a key twice. Raises IncompatibleStateError for a file with another SHA-256
    than the settings have.
    """

    def __init__(self, query: Query) -> None:
        lookup = query.lookup
        assert lookup is not None
        self._lookup = lookup
        key_types = [query.column_type(name) for name in lookup.key]
        types = dict(zip(lookup.key_of_file, key_types, strict=True))
        for name, type_ in lookup.columns.items():
            if types.setdefault(name, type_) != type_:
                raise ConfigError(
                    f"column {name!r} of the lookup file is its key, of type {types[name]}, and"
                    f" lookup.columns has it as {type_}",
                    hint="give it one type: query.types says that of the key",
                )
        table = _rows(lookup, types)
        self.rows = table.num_rows
        self.bytes = table.nbytes
        _refuse_unfit(lookup, table)
        keys = _as_key([table.column(name).combine_chunks() for name in lookup.key_of_file])
        self._index = KeyIndex(keys)
        self._refuse_twice(keys)
        self._columns = {name: table.column(name).combine_chunks() for name in lookup.columns}

    def find(self, keys: Sequence[pa.Array]) -> Match:
        """The columns of the file for n tuples.
        keys: the columns of `lookup.key`, each of n rows and of its type.
        """
        key_column = _as_key(keys)
        # A null key has no row. As an empty text it is looked up with the others, and its row is not taken.
        null = key_column.is_null().to_numpy(zero_copy_only=False)
        rows = self._index.find(key_column.fill_null(b"") if null.any() else key_column)
        missing = null | (rows < 0)
        places = pa.array(rows, mask=missing)
        return Match({name: column.take(places) for name, column in self._columns.items()}, missing)

    def _refuse_twice(self, keys: pa.Array) -> None:
        first = self._index.find(keys)
        twice = np.flatnonzero(first != np.arange(len(keys)))
        if twice.size:
            text = keys[int(twice[0])].as_py().decode(errors="replace")[:100]
            raise ConfigError(
                f"the lookup file {self._lookup.file} has {twice.size:,} rows"
                f" whose key another row has, such as {text}",
                hint="a key may have one row: make the file unique by " + ", ".join(self._lookup.key_of_file),
            )


def _as_key(columns: Sequence[pa.Array]) -> pa.Array:
    """One binary column of the keys. A key is null if one of its columns is."""
    return (columns[0].cast(pa.string()) if len(columns) == 1 else arrays(columns)).cast(pa.binary())


def _rows(lookup: Lookup, types: Mapping[str, ColumnType]) -> pa.Table:
    """The columns of these names and types."""
    data = lookup.content()
    try:
        return _parquet(lookup, data, types) if lookup.parquet else _csv(lookup, data, types)
    except (pa.ArrowException, UnicodeDecodeError, csv.Error, OSError) as error:
        raise ConfigError(
            f"the lookup file {lookup.file} cannot be read: {str(error).splitlines()[0]}", hint=_PAGE
        ) from None


def _csv(lookup: Lookup, data: bytes, types: Mapping[str, ColumnType]) -> pa.Table:
    with io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="") as text:
        names = next(csv.reader(text, delimiter=lookup.delimiter), [])
    _refuse_absent(lookup, names, types)
    table = pacsv.read_csv(
        pa.BufferReader(data.removeprefix(b"\xef\xbb\xbf")),
        # With one thread Arrow counts the rows, so that an error names the row.
        read_options=pacsv.ReadOptions(use_threads=False),
        parse_options=pacsv.ParseOptions(delimiter=lookup.delimiter, newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(
            include_columns=list(types),
            column_types={name: arrow_type(type_) for name, type_ in types.items()},
            null_values=list(CSV_NULLS),
            strings_can_be_null=False,
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
        ),
    )
    return _bounded(lookup, [table])


def _parquet(lookup: Lookup, data: bytes, types: Mapping[str, ColumnType]) -> pa.Table:
    file = pq.ParquetFile(pa.BufferReader(data))
    schema = file.schema_arrow
    _refuse_absent(lookup, schema.names, types)
    for name, type_ in types.items():
        column_type = schema.field(name).type
        # pandas writes a column without any value as one of no type.
        if not (pa.types.is_null(column_type) or _takes(type_)(column_type)):
            raise ConfigError(
                f"column {name!r} of the lookup file {lookup.file} is {column_type}, not {type_}",
                hint=(
                    "give it another type in lookup.columns (of the key: in query.types),"
                    " or write the file anew"
                ),
            )
    # A small file can hold very much, so the bound is held against what has been read so far.
    return _bounded(lookup, _batches(file, types))


def _batches(file: pq.ParquetFile, types: Mapping[str, ColumnType]) -> Iterator[pa.Table]:
    schema = pa.schema([(name, arrow_type(type_)) for name, type_ in types.items()])
    yield schema.empty_table()
    for batch in file.iter_batches(_ROWS, columns=list(types)):
        columns = [_cast(batch.column(field.name), field.type) for field in schema]
        yield pa.Table.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, to: pa.DataType) -> pa.Array:
    # Arrow takes a whole number of 64 bits for one of 19 digits, which a decimal of 18 could not hold.
    if pa.types.is_decimal(to) and pa.types.is_integer(column.type):
        column = column.cast(pa.decimal128(38, to.scale))
    return column.cast(to)


def _takes(type_: ColumnType) -> Callable[[pa.DataType], bool]:
    """Whether a column of a Parquet file can be read as this type."""
    if decimal_scale(type_) is not None:
        return lambda column_type: pa.types.is_decimal(column_type) or pa.types.is_integer(column_type)
    if type_ == "float64":
        return lambda column_type: pa.types.is_floating(column_type) or pa.types.is_integer(column_type)
    if type_ == "string":
        return lambda column_type: (
            pa.types.is_string(column_type)
            or pa.types.is_large_string(column_type)
            or (pa.types.is_dictionary(column_type) and pa.types.is_string(column_type.value_type))
        )
    kinds = {"int64": pa.types.is_integer, "bool": pa.types.is_boolean, "date": pa.types.is_date}
    return kinds[type_]


def _bounded(lookup: Lookup, tables: Sequence[pa.Table] | Iterator[pa.Table]) -> pa.Table:
    """These tables as one. ConfigError as soon as they are larger than allowed."""
    parts, size = [], 0
    for table in tables:
        parts.append(table)
        size += table.nbytes
        if size > lookup.max_bytes:
            raise ConfigError(
                f"the key and columns of the lookup file {lookup.file} take more than"
                f" {lookup.max_bytes:,} bytes in memory",
                hint="raise query.lookup.max_bytes, or leave out columns or rows",
            )
    whole = pa.concat_tables(parts).combine_chunks()
    for name, column in zip(whole.column_names, whole.columns, strict=True):
        if column.num_chunks > 1:  # Arrow's text columns have offsets of 32 bits
            raise ConfigError(
                f"column {name!r} of the lookup file {lookup.file} has more than 2 GiB of text",
                hint="leave out rows, or give the texts numbers",
            )
    return whole


def _refuse_absent(lookup: Lookup, names: Sequence[str], needed: Mapping[str, ColumnType]) -> None:
    absent = [name for name in needed if name not in names]
    if absent:
        raise ConfigError(
            f"the lookup file {lookup.file} has no column {', '.join(map(repr, absent))}; it has "
            f"{', '.join(names[:50])[:500]}{did_you_mean(absent[0], names)}",
            hint="lookup.file_key names its key where the record calls it otherwise",
        )
    twice = next((name for name in needed if list(names).count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"the lookup file {lookup.file} has two columns {twice!r}", hint=_PAGE)


def _refuse_unfit(lookup: Lookup, table: pa.Table) -> None:
    """Refuse null keys, and values that no column of a tuple may have."""
    for name in table.column_names:
        column = table.column(name)
        if name in lookup.key_of_file and column.null_count:
            raise ConfigError(
                f"the lookup file {lookup.file} has {column.null_count:,} rows"
                f" without a key: {name!r} is null there",
                hint="leave these rows out of the file: nothing can match them",
            )
        if pa.types.is_string(column.type):
            longest = pc.max(pc.binary_length(column)).as_py() or 0
            if longest > LOOKUP_TEXT_BYTES:
                raise ConfigError(
                    f"column {name!r} of the lookup file {lookup.file} has a text of {longest:,} bytes; "
                    f"{LOOKUP_TEXT_BYTES:,} is the most",
                    hint="cut the texts in the file",
                )
        if pa.types.is_floating(column.type) and pc.any(pc.invert(pc.is_finite(column))).as_py():
            raise ConfigError(
                f"column {name!r} of the lookup file {lookup.file} holds a number that is not finite",
                hint="write null where there is no number",
            )
