"""The form of a sweep's tables, and how they are written and read: Parquet or CSV, by the ending of the
file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from evenflow.errors import ConfigError
from evenflow.simulation.provenance import Provenance
from evenflow.simulation.results import Figures
from evenflow.sweep.grid import IDENTITY, Key

FORMATS = (".parquet", ".csv")
_TYPES = {"int": pa.int64(), "float": pa.float64(), "str": pa.string(), "bool": pa.bool_()}


def _schema(*records: type) -> pa.Schema:
    """The columns of dataclasses. Their annotations are strings such as `int | None`."""
    return pa.schema(
        [
            (field.name, _TYPES[str(field.type).removesuffix(" | None")])
            for record in records
            for field in fields(record)
        ]
    )


ROWS = _schema(Figures, Provenance)
"""A row for each cell: the figures as `simulate --json` gives them, then the provenance."""
OF_COSTS = ("total_cost", "weighs", "cost")
"""Columns that a table lacks if the tuples of no cell have costs."""
FIGURES = tuple(
    field.name for field in fields(Figures) if str(field.type).removesuffix(" | None") not in ("str", "bool")
)
"""Columns that are numbers of a result."""
SERIES = pa.schema(
    [*(ROWS.field(name) for name in IDENTITY), ("at", pa.float64()), ("imbalance", pa.float64())]
)
"""A row for each point of each cell's series.

at: seconds of event time since the first slide (windowed), or tuples so far. imbalance: of the window that
ends there, or of the stream so far.
"""


def key_of(row: Mapping[str, Any]) -> Key:
    """The key of the row's cell."""
    return tuple(row[name] for name in IDENTITY)


def check_target(path: Path) -> None:
    """ConfigError if no table can be written to this path. It is called before anything is computed."""
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(
            f"{path} ends with none of {', '.join(FORMATS)}", hint="the ending tells the format"
        )
    if not path.parent.is_dir():
        raise ConfigError(f"there is no folder {path.parent}", hint="make it first")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise ConfigError(f"{path} cannot be written", hint="name another file")


def write_table(path: Path, table: pa.Table) -> None:
    """Write the table. The file appears whole, or is as before."""
    scratch = path.with_name(f".{path.name}.new")
    try:
        if path.suffix.lower() == ".csv":
            pc.write_csv(table, scratch)
        else:
            pq.write_table(table, scratch)
        scratch.replace(path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise ConfigError(f"{path} cannot be written: {error}", hint="name another file") from None


def read_table(path: Path, schema: pa.Schema = ROWS) -> pa.Table:
    """The table of a sweep. ConfigError for a file that is none, that was cut, or that cannot be read."""
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(
            f"{path} ends with none of {', '.join(FORMATS)}", hint="the ending tells the format"
        )
    if not path.is_file():
        raise ConfigError(f"there is no file {path}", hint="`evenflow sweep --output FILE` writes one")
    try:
        table = _read_csv(path, schema) if path.suffix.lower() == ".csv" else pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(
            f"{path} is no table of a sweep, or was cut: {str(error).splitlines()[0]}",
            hint="remove the file and run the sweep again",
        ) from None
    for name in OF_COSTS:
        if name in schema.names and name not in table.column_names:
            table = table.append_column(name, pa.nulls(len(table), schema.field(name).type))
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise ConfigError(
            f"{path} is no table of a sweep: it has no column {missing[0]!r}",
            hint="was it written by another version of evenflow? Name another file",
        )
    try:
        return table.select(schema.names).cast(schema)
    except pa.ArrowException as error:
        raise ConfigError(f"{path} is no table of a sweep: {error}", hint="name another file") from None


def _read_csv(path: Path, schema: pa.Schema) -> pa.Table:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        # Arrow reads a last row that was cut within a value without complaint.
        file.seek(max(0, size - 1))
        if file.read(1) != b"\n":
            raise ConfigError(f"{path} was cut: its last line has no end", hint="run the sweep again")
    return pc.read_csv(
        path,
        convert_options=pc.ConvertOptions(
            column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
        ),
    )


def rows_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The table of these rows. Without costs it lacks the columns `OF_COSTS`."""
    table = pa.table(
        {field.name: pa.array([row[field.name] for row in rows], field.type) for field in ROWS},
        schema=ROWS,
    )
    unused = [name for name in OF_COSTS if table.column(name).null_count == len(rows)]
    return table.drop_columns(unused)
