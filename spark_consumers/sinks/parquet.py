"""Parquet files of typed columns, through Spark's file sink.

A file counts only if Spark's commit log (`<path>/_spark_metadata`, one entry a micro-batch) lists it:
`read_parquet_results` reads through that log, a plain glob would see files of batches that never committed.

The file sink drops every micro-batch whose number is not above the log's last, without a word. That makes a
repeated one harmless, and a log that another checkpoint wrote deadly: `admit` refuses it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from evenflow.aggregates import AggregatePlan
from evenflow.errors import DataLossError, IncompatibleStateError, ServiceError
from evenflow.settings import Settings
from spark_consumers.sinks.base import Found, ResultSink, Shape, gathered

_LOG = "_spark_metadata"
_COMPACT = ".compact"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Parquet(ResultSink):
    """The result table as it is."""

    name = "parquet"
    needs = ("path",)

    def place(self, settings: Settings) -> str:
        path = _path(settings)
        return f"parquet {path if _URI.match(path) else os.path.abspath(path)}"

    def admit(self, settings: Settings, found: Found) -> None:
        """Refuse a folder whose commit log is ahead of the checkpoint: the first results would be dropped."""
        path = _path(settings)
        newest = max((number for number, _ in _batches(found.names(f"{path}/{_LOG}"))), default=-1)
        begun = -1 if found.planned is None else found.planned
        if newest > begun:
            known = "has begun none yet" if found.planned is None else f"has begun only those up to {begun}"
            raise IncompatibleStateError(
                f"results.path {path} already holds the results of micro-batches up to {newest}, but this query's "
                f"checkpoint {known}: Spark would drop the results of micro-batches {begun + 1} to {newest}",
                hint="restore the checkpoint that wrote them, or set results.path to a folder that is new "
                "(docs/operations.md)",
            )

    def schema(self, plan: AggregatePlan) -> pa.Schema:
        return plan.result_schema

    def shaper(self, settings: Settings) -> Shape:
        return _as_they_are

    def writer(self, settings: Settings) -> tuple[str, dict[str, str]]:
        return "parquet", {"path": _path(settings)}

    def read_back(self, settings: Settings) -> pa.Table:
        return read_parquet_results(_path(settings))


def read_parquet_results(path: str | Path) -> pa.Table:
    """All committed results below `path`, in the order of the commit log."""
    files = committed_files(Path(path))
    tables = [pq.ParquetFile(file).read() for file in files]
    tables = [table for table in tables if table.num_rows]
    return pa.concat_tables(tables) if tables else _empty(files)


def committed_files(path: Path) -> list[Path]:
    """Files of the committed batches, by Spark's log: the newest `N.compact`, then every batch after it."""
    log = path / _LOG
    if not log.is_dir():
        raise ServiceError(f"{path} has no commit log ({_LOG})", hint="has the job written results yet?")
    entries = sorted(_batches(entry.name for entry in log.iterdir()))
    start = max((number for number, name in entries if name.endswith(_COMPACT)), default=-1)
    counting = [
        name for number, name in entries if number > start or (number == start and name.endswith(_COMPACT))
    ]
    found: dict[Path, None] = {}
    for name in counting:
        for line in (log / name).read_text(encoding="utf-8").splitlines()[1:]:
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


def _batches(names: Iterable[str]) -> list[tuple[int, str]]:
    """(number of the micro-batch, name) of the log's entries among these names."""
    return [
        (int(name.removesuffix(_COMPACT)), name) for name in names if name.removesuffix(_COMPACT).isdigit()
    ]


def _as_they_are(tables: Iterable[pa.Table], bucket: int) -> Iterator[pa.Table]:
    return gathered(tables)


def _path(settings: Settings) -> str:
    assert settings.results.path is not None  # `check` refuses that
    return settings.results.path


def _empty(files: list[Path]) -> pa.Table:
    return pq.read_schema(files[0]).empty_table() if files else pa.table({})


SINK = Parquet()
