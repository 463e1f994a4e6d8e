"""Where results go: JSON rows in a Kafka topic, or Parquet through Spark's file sink.

Kafka rows are idempotent, not transactional: a repeated micro-batch appends equal rows once more, and
(window, key) determines the value. Parquet files count only if Spark's commit log (`_spark_metadata`) lists
them: `read_parquet_results` reads through it, a plain glob would see files of batches that never committed.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from evenflow.aggregates import AggregatePlan
from evenflow.errors import DataLossError, ServiceError
from evenflow.twostep import json_rows

JSON_ROWS = "key binary, value string"
_SQL_TYPES = {pa.int64(): "bigint", pa.float64(): "double", pa.binary(): "binary"}


def json_shape(table: pa.Table) -> pa.Table:
    """Rows of the results topic: the raw key, and one JSON object."""
    return pa.table({"key": table["key"], "value": json_rows(table)})


def parquet_shape(table: pa.Table) -> pa.Table:
    """Rows of the Parquet files: the result table as it is."""
    return table


def parquet_schema(plan: AggregatePlan) -> str:
    """Spark's words for the plan's result schema."""
    return ", ".join(
        f"`{field.name.replace('`', '``')}` {_SQL_TYPES[field.type]}" for field in plan.result_schema
    )


def read_parquet_results(path: str | Path) -> pa.Table:
    """All committed results below `path`, in the order of the commit log."""
    files = committed_files(Path(path))
    tables = [pq.ParquetFile(file).read() for file in files]
    tables = [table for table in tables if table.num_rows]
    return pa.concat_tables(tables) if tables else _empty(files)


def committed_files(path: Path) -> list[Path]:
    """Files of the committed batches, by Spark's log: the newest `N.compact`, then every batch after it."""
    log = path / "_spark_metadata"
    if not log.is_dir():
        raise ServiceError(
            f"{path} has no commit log (_spark_metadata)", hint="has the job written results yet?"
        )
    batches = {entry.name: entry for entry in log.iterdir() if not entry.name.startswith(".")}
    compacted = [int(name.removesuffix(".compact")) for name in batches if name.endswith(".compact")]
    start = max(compacted, default=-1)
    plain = sorted(int(name) for name in batches if name.isdigit() and int(name) > start)
    names = ([f"{start}.compact"] if compacted else []) + [str(number) for number in plain]
    found: dict[Path, None] = {}
    for name in names:
        for line in batches[name].read_text(encoding="utf-8").splitlines()[1:]:
            entry = json.loads(line)
            file = Path(unquote(urlparse(entry["path"]).path))
            if entry.get("action", "add") == "delete":
                found.pop(file, None)
            else:
                found[file] = None
    missing = [file for file in found if not file.exists()]
    if missing:
        raise DataLossError(
            f"{len(missing)} committed result files are gone, the first is {missing[0]}",
            hint="restore the folder, or rebuild the query (docs/operations.md)",
        )
    return list(found)


def _empty(files: list[Path]) -> pa.Table:
    return pq.read_schema(files[0]).empty_table() if files else pa.table({})
