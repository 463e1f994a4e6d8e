"""CSV: plain, .gz or .zip; any one-character delimiter; with names in the first row, or c0, c1, ...

Types are inferred, except that the key is text and dates stay the text they are. A blank text field
is the empty text, a blank number is null. Quoted fields may hold line breaks.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from evenflow.errors import ConfigError
from producers.files import read_single, unwrapped_name
from producers.source import ARROW_TYPES, SourceFormat, SourceOptions, TableSource, bounded, require_columns


def open_csv(path: str, options: SourceOptions) -> TableSource:
    """The file as a bounded source."""
    return bounded(path, read_csv(Path(path), options), options)


def read_csv(path: Path, options: SourceOptions) -> pa.Table:
    """The columns that the options need, all columns if they name none."""
    data = read_single(path)
    delimiter = options.delimiter or ("\t" if unwrapped_name(path).endswith(".tsv") else ",")
    names = _names(str(path), data, delimiter, options)
    wanted = names
    if options.columns is not None:
        named = (options.key, options.time, *options.columns)
        wanted = list(dict.fromkeys(name for name in named if name is not None))
        require_columns(str(path), names, tuple(wanted))
    types = {name: ARROW_TYPES[kind] for name, kind in options.types.items() if name in names}
    table = _parse(path, data, delimiter, options, names, wanted, types)
    as_text = [item.name for item in table.schema if _was_guessed(item.type) and item.name not in types]
    if as_text:
        again = _parse(path, data, delimiter, options, names, as_text, dict.fromkeys(as_text, pa.string()))
        for name in as_text:
            table = table.set_column(table.column_names.index(name), name, again.column(name))
    for item in table.schema:
        if pa.types.is_binary(item.type):
            raise _not_text(path, f"column {item.name!r}")
    return table


def _names(name: str, data: bytes, delimiter: str, options: SourceOptions) -> list[str]:
    if not data.strip():
        raise ConfigError(f"{name} is empty", hint="name a file with rows")
    try:
        reader = io.TextIOWrapper(io.BytesIO(data), encoding=options.encoding, newline="")
        first = next(row for row in csv.reader(reader, delimiter=delimiter) if row)
    except (UnicodeDecodeError, LookupError) as error:
        raise _not_text(Path(name), str(error)) from None
    except (csv.Error, StopIteration) as error:
        raise ConfigError(f"{name}: the first row cannot be read: {error}") from None
    if not options.header:
        return [f"c{number}" for number in range(len(first))]
    first[0] = first[0].removeprefix("\ufeff")
    doubled = sorted({column for column in first if first.count(column) > 1})
    if doubled:
        raise ConfigError(
            f"{name}: column names occur twice: {', '.join(map(repr, doubled))}",
            hint="rename them, or give --no-header if the first row is data",
        )
    return first


def _parse(
    path: Path,
    data: bytes,
    delimiter: str,
    options: SourceOptions,
    names: list[str],
    wanted: list[str],
    types: dict[str, pa.DataType],
) -> pa.Table:
    def read(*, threads: bool) -> pa.Table:
        return pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(
                use_threads=threads,
                column_names=names,
                skip_rows_after_names=1 if options.header else 0,
                encoding=options.encoding,
                block_size=16 << 20,
            ),
            parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(include_columns=wanted, column_types=types),
        )

    try:
        return read(threads=True)
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError, LookupError):
        try:
            # One thread counts rows, so its message names the row.
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


def _was_guessed(kind: pa.DataType) -> bool:
    """Whether the text would be rewritten when it is rendered again: dates, times, truth values."""
    return pa.types.is_temporal(kind) or pa.types.is_boolean(kind)


def _not_text(path: Path, what: str) -> ConfigError:
    return ConfigError(f"{path} is not in the encoding given: {what}", hint="give --encoding, e.g. latin-1")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


FORMAT = SourceFormat("csv", "CSV file, also .gz or .zip", open_csv, (".csv", ".tsv"))
