"""JSON lines: one object on each line, plain, .gz or .zip. Blank lines are skipped.

If every column is sent, a record is the line itself, byte for byte.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.json as pajson

from evenflow.errors import ConfigError
from evenflow.sources.files import head_lines, read_single
from evenflow.sources.source import SourceFormat, SourceOptions, TableSource, arrow_type, bounded
from evenflow.sources.tables import are_objects

_LARGEST_BLOCK = 1 << 30
"""Most bytes in a block: Arrow holds the size of a block in an int32."""


def open_json_lines(path: str, options: SourceOptions) -> TableSource:
    """The file as a bounded source."""
    lines = [line for line in read_single(Path(path)).split(b"\n") if line.strip()]
    if not lines:
        raise ConfigError(f"{path} is empty", hint="name a file with rows")
    table = _read(path, lines, {})
    # Arrow parses text that looks like a time. Such columns are read again as the text that the file has.
    guessed = {item.name: pa.string() for item in table.schema if pa.types.is_temporal(item.type)}
    if guessed:
        table = _read(path, lines, guessed)
    for name, kind in options.types.items():
        # A column that is null in every row has no type yet, so it gets the declared one.
        if name in table.column_names and pa.types.is_null(table.column(name).type):
            table = table.set_column(
                table.column_names.index(name), name, table.column(name).cast(arrow_type(kind))
            )
    return bounded(path, table, options, lines=pa.array(lines, pa.large_binary()))


def _read(path: str, lines: list[bytes], types: dict[str, pa.DataType]) -> pa.Table:
    data = b"\n".join(lines)
    schema = pa.schema(list(types.items())) if types else None
    try:
        table = pajson.read_json(
            pa.BufferReader(data),
            # With one block, a row number in an error counts from the start of the file.
            read_options=pajson.ReadOptions(use_threads=False, block_size=min(len(data) + 1, _LARGEST_BLOCK)),
            parse_options=pajson.ParseOptions(explicit_schema=schema),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        row_match = re.search(r"in row (\d+)", str(error))
        message = re.sub(r"\s*in row \d+", "", str(error).splitlines()[0])
        place = ""
        if row_match is not None and int(row_match[1]) < len(lines):
            line = lines[int(row_match[1])][:80].decode("utf-8", "replace")
            place = f" row {int(row_match[1]) + 1} ({line})"
        raise ConfigError(
            f"{path}:{place} {message}", hint="each line must be one JSON object; correct it"
        ) from None
    if len(table) != len(lines):
        raise ConfigError(
            f"{path} has {len(lines)} lines but {len(table)} objects", hint="put one JSON object on each line"
        )
    return table


def look(path: str, options: SourceOptions) -> tuple[SourceOptions, str]:
    """(the options unchanged, the columns of the first line in words)."""
    lines = head_lines(Path(path), "utf-8")
    columns = f", columns {', '.join(json.loads(lines[0]))}" if are_objects(lines) else ""
    return options, f"JSON lines{columns}"


FORMAT = SourceFormat(
    "json", "JSON lines, also .gz or .zip", open_json_lines, (".jsonl", ".ndjson", ".json"), look=look
)
