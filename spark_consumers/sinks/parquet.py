"""Parquet files of typed columns in one folder, for any reader that takes `*.parquet`.

`spark_consumers/checkpoints/result_files.py` sees to it that each file appears whole and once. It relies on
one folder being written with one checkpoint only. `admit` refuses any other checkpoint, by the marker in the
folder and by the numbers of micro-batches in the names of the files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ConfigError, DataLossError, IncompatibleStateError, ServiceError
from evenflow.settings import Settings
from evenflow.settings.places import local_folder
from evenflow.twostep import key_schema, with_key_columns
from spark_consumers.checkpoints.folders import Folder
from spark_consumers.checkpoints.result_files import (
    MARKER,
    Owner,
    ResultFiles,
    batch_of,
    marker_lost,
    refuse_ahead,
    visible,
)
from spark_consumers.sinks.base import RESTORE, Position, ResultSink, Shape, Start, StartFacts, gathered
from spark_consumers.stage_output import Write

_SPARKS_LOG = "_spark_metadata"  # the folder in which Spark's own file sink notes which files count
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NEW_FOLDER = "set results.path to a new folder (docs/operations/refusals.md)"


class Parquet(ResultSink):
    """The result table, with times as timestamps.

    A repeated micro-batch replaces its files, so no row is there twice.
    """

    name = "parquet"
    needs = ("path",)
    repeats = False

    def place(self, settings: Settings) -> str:
        path = _path(settings)
        return f"parquet {path if _URI.match(path) else os.path.abspath(path)}"

    def admit(self, settings: Settings, contents: StartFacts) -> None:
        path = _path(settings)
        names = contents.names(path)
        if _SPARKS_LOG in names:
            raise IncompatibleStateError(
                f"results.path {path} was written through Spark's file sink, by another program: "
                f"it has a folder {_SPARKS_LOG}",
                hint=f"read it with Spark, whose log says which files count; for this query {_NEW_FOLDER}",
            )
        marker = contents.text(f"{path}/{MARKER}")
        if marker is None:
            _refuse_unmarked(path, names, contents)
            return
        where = f"results.path {path}"
        Owner.read(marker, path).refuse_other_run(where, settings, contents.run, anew=_NEW_FOLDER)
        newest = max((batch for name in visible(names) if (batch := batch_of(name)) is not None), default=-1)
        refuse_ahead(where, newest, contents.planned, anew=_NEW_FOLDER)

    def loss(self, settings: Settings) -> str | None:
        """Whether the folder has lost its marker. Says nothing of a folder that is not of this machine."""
        folder = local_folder(_path(settings))
        if folder is None or (folder / MARKER).is_file():
            return None
        state = f"has no {MARKER}" if folder.is_dir() else "is not there"
        return (
            f"results.path {folder} {state}, so the results that the query"
            f" has written there are gone: {RESTORE}"
        )

    def loss_error(self, settings: Settings, loss: str) -> DataLossError:
        return marker_lost(_path(settings))

    def schema(self, settings: Settings) -> pa.Schema:
        plan = AggregatePlan.of(settings.query)
        return with_key_columns(plan.result_schema.empty_table(), key_schema(settings.query)).schema

    def shaper(self, settings: Settings) -> Shape:
        return partial(_typed, keys=key_schema(settings.query))

    def writer(self, settings: Settings, start: Start) -> Write:
        owner = Owner(query=settings.query.name, fingerprint=settings.fingerprint, run=start.run)
        files = ResultFiles(Folder(start.spark, _path(settings)), owner, start.epoch)
        files.prepare()
        return files.write

    def position(self, settings: Settings) -> Position:
        return frozenset(visible(os.listdir(_own_folder(settings))))

    def read_back(
        self, settings: Settings, *, after: Position | None = None, until: Position | None = None
    ) -> pa.RecordBatchReader:
        """Every row of every file that a reader of `*.parquet` sees."""
        folder = _own_folder(settings)
        names = self.position(settings) if until is None else until
        assert isinstance(names, frozenset)
        return read_parquet_results(folder, sorted(names.difference(after or ())))


def _own_folder(settings: Settings) -> Path:
    """The folder of these settings' results, which is this query's own and on this machine."""
    path = _path(settings)
    if _URI.match(path) and not path.startswith("file:"):
        raise ConfigError(
            f"results.path {path} is not a folder of this machine, which is all that is read here",
            hint="copy or mount it, and set results.path to that folder",
        )
    folder = Path(path.removeprefix("file:"))
    if not (folder / MARKER).is_file():
        raise ServiceError(f"{folder} has no {MARKER}", hint="has the job written results yet?")
    owner = Owner.read((folder / MARKER).read_bytes(), path)
    owner.refuse_other_settings(str(folder), settings)
    return folder


def read_parquet_results(path: str | Path, names: Sequence[str] | None = None) -> pa.RecordBatchReader:
    """The rows of these files of a local folder, or of all that lie there now,
    in the order of the files' names.

    Without files there are no columns. Raises IncompatibleStateError for a file that is not Parquet or has
    other columns than the first file, DataLossError for a file that is removed meanwhile.
    """
    files = [Path(path) / name for name in (visible(os.listdir(path)) if names is None else names)]
    with _readable(files[0] if files else None):
        schema = pq.read_schema(files[0]).remove_metadata() if files else pa.schema([])
    return pa.RecordBatchReader.from_batches(schema, _batches(files, schema))


def _batches(files: list[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for file in files:
        with _readable(file), pq.ParquetFile(file) as opened:
            if opened.schema_arrow.remove_metadata() != schema:
                raise IncompatibleStateError(
                    f"{file} has other columns than the files before it: {opened.schema_arrow.names}",
                    hint="take files that evenflow has not written out of results.path",
                )
            yield from opened.iter_batches()


@contextmanager
def _readable(file: Path | None) -> Iterator[None]:
    """Raise errors about this file as DataLossError (removed) or IncompatibleStateError (not readable)."""
    try:
        yield
    except FileNotFoundError:
        raise DataLossError(
            f"{file} was removed while the results were read", hint="who deletes results? Verify again"
        ) from None
    except (pa.ArrowException, OSError) as error:
        raise IncompatibleStateError(
            f"{file} cannot be read as Parquet: {str(error).splitlines()[0]}",
            hint=(
                "take files that evenflow has not written out of results.path;"
                " restore damaged ones from a copy"
            ),
        ) from None


def _typed(tables: Iterable[pa.Table], bucket: int, *, keys: pa.Schema) -> Iterator[pa.Table]:
    for table in gathered(tables):
        yield with_key_columns(table, keys)


def _refuse_unmarked(path: str, names: list[str], evidence: StartFacts) -> None:
    """Refuse a folder without marker if results lie in it, or if the checkpoint has begun to write to it."""
    if files := visible(names):
        raise IncompatibleStateError(
            f"results.path {path} holds {len(files)} Parquet files, the first is {files[0]}, but no {MARKER}:"
            " they are not known to be this query's results",
            hint=_NEW_FOLDER,
        )
    if evidence.planned is not None:
        raise DataLossError(
            f"results.path {path} has no {MARKER}, although this query's checkpoint has begun micro-batches"
            f" up to {evidence.planned}: what they wrote is gone",
            hint="restore the folder, or rebuild the query under a new name (docs/operations/data-loss.md)",
        )


def _path(settings: Settings) -> str:
    assert settings.results.path is not None  # `check` refuses settings without a path
    return settings.results.path


SINK = Parquet()
