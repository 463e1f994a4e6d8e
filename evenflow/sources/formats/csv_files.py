"""CSV files: plain, .gz or .zip, with any one-character delimiter.

The columns have the names in the first row, or are called c0, c1, ... Types are inferred, except that the key
is text, and that dates and truth values keep their text. A blank field of a text column is the empty text,
and a blank number is null. Quoted fields may hold line breaks.
"""

from __future__ import annotations

import csv
import io
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from evenflow.errors import ConfigError
from evenflow.settings.sections.input import parse_delimiter
from evenflow.sources.files import ByteStream, head_lines, opened_single, read_single, unwrapped_name
from evenflow.sources.source import (
    SourceFormat,
    SourceOptions,
    TableSource,
    arrow_type,
    bounded,
    require_columns,
)
from evenflow.sources.tables import DELIMITERS, delimiter_of

_BLOCK = 16 << 20
"""Bytes that are parsed at once. A row must fit in."""
_HEAD_BLOCK = 1 << 20
"""Bytes that are parsed at once where only the first rows are read.
If a row is longer, the whole file is read.
"""

_SHOWN = 12
"""Most column names in a message."""


def open_csv(path: str, options: SourceOptions) -> TableSource:
    """The file as a bounded source.
    If only the first tuples are asked for, the rest is not read where possible.
    """
    table = _first_rows(Path(path), options) if options.keep_order else None
    return bounded(path, read_csv(Path(path), options) if table is None else table, options)


def look(path: str, options: SourceOptions) -> tuple[SourceOptions, str]:
    """(the options with the delimiter that the first rows show, the delimiter, header and columns in
    words).
    """
    delimiter = _delimiter(Path(path), options)
    lines = head_lines(Path(path), options.encoding)
    names = _names(path, "\n".join(lines).encode(options.encoding), delimiter, options)
    header = "names in the first row" if options.header else "no header"
    columns = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return (
        replace(options, delimiter=delimiter),
        f"CSV with delimiter {delimiter!r}, {header}, columns {columns}",
    )


def _delimiter(path: Path, options: SourceOptions) -> str:
    if options.delimiter is not None:
        try:
            return parse_delimiter(options.delimiter)
        except ValueError as error:
            raise ConfigError(
                f"{path}: the delimiter {error}", hint="give --delimiter, or none to let the rows say"
            ) from None
    name = unwrapped_name(path)
    if name.endswith(".tsv"):
        return "\t"
    # A space in a .csv is more likely part of a text than a delimiter.
    candidates = [delimiter for delimiter in DELIMITERS if delimiter != " " or not name.endswith(".csv")]
    return delimiter_of(head_lines(path, options.encoding), candidates) or ","


def read_csv(path: Path, options: SourceOptions) -> pa.Table:
    """The columns that the options name, or all columns if they name none.
    ConfigError if the file cannot be read.
    """
    data = read_single(path)
    delimiter = _delimiter(path, options)
    names = _names(str(path), data, delimiter, options)
    named = (options.key, options.time, *(options.columns or ()))
    require_columns(str(path), names, named)
    columns = names
    if options.columns is not None:
        columns = list(dict.fromkeys(name for name in named if name is not None))
    types = {name: arrow_type(kind) for name, kind in options.types.items() if name in names}
    table = _parse(path, data, delimiter, options, names, columns, types)
    # Arrow has parsed dates and truth values. Their columns are read once more as the text that the file has.
    as_text = [item.name for item in table.schema if _was_guessed(item.type) and item.name not in types]
    if as_text:
        again = _parse(path, data, delimiter, options, names, as_text, dict.fromkeys(as_text, pa.string()))
        for name in as_text:
            table = table.set_column(table.column_names.index(name), name, again.column(name))
    for item in table.schema:
        if pa.types.is_binary(item.type):  # Arrow infers binary for text that is no UTF-8
            raise _not_text(path, f"column {item.name!r}")
    return table


def _first_rows(path: Path, options: SourceOptions) -> pa.Table | None:
    """The first `options.first` rows of the named columns, or all rows if there are fewer.
    The rest is not read.

    None if the whole file has to be read: to infer the types of columns without a declaration, or to find out
    what is wrong with the file. An event time is read as text, because its type must not depend on rows that
    are not read.
    """
    if options.first is None or options.columns is None or path.name.lower().endswith(".zip"):
        return None
    named = dict.fromkeys(name for name in (options.key, options.time, *options.columns) if name is not None)
    types = {name: arrow_type(options.types[name]) for name in named if name in options.types}
    if options.time is not None:
        types.setdefault(options.time, pa.string())
    if types.keys() != named.keys():
        return None
    delimiter = _delimiter(path, options)
    try:
        with opened_single(path) as stream:
            names = _names(str(path), stream.read(_HEAD_BLOCK), delimiter, options)
        with opened_single(path) as stream:
            return _head(
                stream, options.first, **_arrow_options(delimiter, options, names, list(named), types)
            )
    except (pa.ArrowException, ConfigError, OSError, EOFError, LookupError, UnicodeDecodeError, zlib.error):
        return None  # reading the whole file finds the same error, or none, and its message names the row


def _head(stream: ByteStream, rows: int, **options: Any) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    left = rows
    with pacsv.open_csv(stream, **options) as reader:
        for batch in reader:
            batches.append(batch.slice(0, left))
            left -= len(batches[-1])
            if left == 0:
                break
        return pa.Table.from_batches(batches, reader.schema)


def _names(name: str, data: bytes, delimiter: str, options: SourceOptions) -> list[str]:
    if not data.strip():
        raise ConfigError(f"{name} is empty", hint="name a file with rows")
    try:
        # newline="": the csv module has to see line ends itself, because a quoted field may hold some.
        reader = io.TextIOWrapper(io.BytesIO(data), encoding=options.encoding, newline="")
        first = next(row for row in csv.reader(reader, delimiter=delimiter) if row)
    except (UnicodeDecodeError, LookupError) as error:
        raise _not_text(Path(name), str(error)) from None
    except (csv.Error, StopIteration) as error:
        raise ConfigError(f"{name}: the first row cannot be read: {error}") from None
    if not options.header:
        return _given_names(name, options.names, len(first))
    first[0] = first[0].removeprefix("\ufeff")  # a byte order mark, as spreadsheets write it
    doubled = sorted({column for column in first if first.count(column) > 1})
    if doubled:
        raise ConfigError(
            f"{name}: column names occur twice: {', '.join(map(repr, doubled))}",
            hint="rename them, or give --no-header if the first row is data",
        )
    return first


def _given_names(name: str, names: tuple[str, ...] | None, width: int) -> list[str]:
    if names is None:
        return [f"c{number}" for number in range(width)]
    if len(names) != width:
        raise ConfigError(
            f"{name}: the first row has {width} columns, not the {len(names)} of this data set",
            hint=f"its columns are {', '.join(names)}, parted by commas, without a header",
        )
    return list(names)


def _parse(
    path: Path,
    data: bytes,
    delimiter: str,
    options: SourceOptions,
    names: list[str],
    columns: list[str],
    types: dict[str, pa.DataType],
) -> pa.Table:
    def read(*, threads: bool) -> pa.Table:
        return pacsv.read_csv(
            pa.BufferReader(data),
            **_arrow_options(delimiter, options, names, columns, types, threads=threads),
        )

    try:
        return read(threads=True)
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError, LookupError):
        try:
            # With one thread Arrow counts the rows, so its message names the row.
            return read(threads=False)
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            if "UTF8" in str(error):
                raise _not_text(path, str(error)) from None
            raise ConfigError(
                f"{path}: {_first_line(error)}",
                hint="correct that row, or give the right --delimiter, --no-header or query.types",
            ) from None
        except (UnicodeDecodeError, LookupError) as error:
            raise _not_text(path, str(error)) from None


def _arrow_options(
    delimiter: str,
    options: SourceOptions,
    names: list[str],
    columns: list[str],
    types: dict[str, pa.DataType],
    *,
    threads: bool | None = None,
) -> dict[str, Any]:
    """The options of Arrow's CSV readers.
    threads: None for the reader of the first rows, which has smaller blocks.
    """
    return {
        "read_options": pacsv.ReadOptions(
            use_threads=bool(threads),
            column_names=names,
            skip_rows_after_names=1 if options.header else 0,
            encoding=options.encoding,
            block_size=_BLOCK if threads is not None else _HEAD_BLOCK,
        ),
        "parse_options": pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": pacsv.ConvertOptions(include_columns=columns, column_types=types),
    }


def _was_guessed(kind: pa.DataType) -> bool:
    """Whether Arrow has parsed text into a type that may be rendered differently: dates,
    times and truth values.
    """
    return pa.types.is_temporal(kind) or pa.types.is_boolean(kind)


def _not_text(path: Path, reason: str) -> ConfigError:
    return ConfigError(f"{path} is not in the encoding given: {reason}", hint="give --encoding, e.g. latin-1")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


FORMAT = SourceFormat(
    "csv",
    "CSV file, also .gz or .zip",
    open_csv,
    (".csv", ".tsv"),
    look=look,
    takes=frozenset({"--delimiter", "--no-header", "--encoding"}),
)
