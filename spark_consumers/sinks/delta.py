"""A Delta table (https://github.com/delta-io/delta): each micro-batch is one commit, which is there once.

The driver writes the rows of a micro-batch through the library `deltalake` (delta-rs), and the commit holds a
transaction identifier of Delta: a random word of the checkpoint, with the number of the micro-batch as its
version. A repeated micro-batch finds its own number there and writes nothing. Commits are not retried by the
library: whoever was overtaken looks at the table anew, so two drivers that commit the same micro-batch cannot
both do it.

The table's description says whose results it holds, as the marker of the sink `parquet` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evenflow.errors import ConfigError, DataLossError, EvenflowError, IncompatibleStateError, ServiceError
from evenflow.settings import Settings
from evenflow.settings.delta_place import DeltaPlace, delta_place
from evenflow.twostep import readable_schema
from spark_consumers.checkpoints.result_files import Owner, refuse_ahead
from spark_consumers.sinks.base import RESTORE, Position, Start, StartFacts
from spark_consumers.sinks.typed_rows import TypedSink, collected
from spark_consumers.stage_output import Publish, Write

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame

_TIME = pa.timestamp("us", "UTC")
_FORBIDDEN = frozenset(" ,;{}()\n\t=")
_ATTEMPTS = 20
_NOT_THERE = "it is not there any more"
_NEW_TABLE = "set results.path to a new folder (docs/operations/refusals.md)"


class Delta(TypedSink):
    """The result table, with times as timestamps. A repeated micro-batch changes nothing."""

    name = "delta"
    needs = ("path",)
    repeats = False

    def check(self, settings: Settings) -> None:
        """Raise ConfigError without the library, or for a column name that a Delta table cannot have."""
        super().check(settings)
        _library()
        delta_place(settings)
        for name in self.schema(settings).names:
            if _FORBIDDEN & set(name):
                raise ConfigError(
                    f"a Delta table cannot have the column {name!r}: none of ' ,;{{}}()=',"
                    " no tab and no line break",
                    hint="give the aggregate another name, under a new query name",
                )

    def place(self, settings: Settings) -> str:
        return f"delta {delta_place(settings).uri}"

    def admit(self, settings: Settings, contents: StartFacts) -> None:
        place = delta_place(settings)
        uri, table = place.uri, _table(place)
        if table is None:
            if contents.planned is not None:
                raise DataLossError(
                    f"there is no Delta table in {uri}, although this query's checkpoint has begun"
                    f" micro-batches up to {contents.planned}: what they wrote is gone",
                    hint=(
                        "restore the folder, or rebuild the query under a new name"
                        " (docs/operations/data-loss.md)"
                    ),
                )
            return
        owner, where = _owner(table, uri), f"the Delta table {uri}"
        owner.refuse_other_run(where, settings, contents.run, anew=_NEW_TABLE)
        refuse_ahead(where, _newest(table, owner.run), contents.planned, anew=_NEW_TABLE)

    def loss(self, settings: Settings) -> str | None:
        """Whether the table is gone. Says nothing of a table in an object store, which not everybody may
        ask.
        """
        place = delta_place(settings)
        if place.options or _is_there(place):
            return None
        return f"there is no Delta table in {place.uri}, so the results that were in it are gone: {RESTORE}"

    def loss_error(self, settings: Settings, loss: str) -> DataLossError:
        return _removal_error(delta_place(settings).uri, _NOT_THERE)

    def writer(self, settings: Settings, start: Start) -> Write:
        place, schema = delta_place(settings), delta_schema(settings)
        owner = Owner(query=settings.query.name, fingerprint=settings.fingerprint, run=start.run)
        _create(place, schema, owner)
        return partial(_write, place, owner.run, schema)

    def position(self, settings: Settings) -> Position:
        return {0: int(_own_table(settings).version())}

    def read_back(
        self, settings: Settings, *, after: Position | None = None, until: Position | None = None
    ) -> pa.RecordBatchReader:
        """The rows of the table's version at `until`, without those of the files that it had at `after`.

        A file that an OPTIMIZE has made of others since `after` counts as new.
        """
        place = delta_place(settings)
        table = _own_table(settings)
        if until is not None:
            table = _at_version(place, until)
        passed = set() if after is None else set(_at_version(place, after).file_uris())
        schema = readable_schema(settings.query)
        return pa.RecordBatchReader.from_batches(schema, _batches(table, place.uri, passed, schema))


def delta_files(settings: Settings) -> list[str]:
    """Paths or URIs of the Parquet files that the table of these settings has now."""
    return sorted(_own_table(settings).file_uris())


def _library() -> Any:
    try:
        import deltalake
    except ImportError:
        raise ConfigError(
            "results.sink = 'delta' needs the library deltalake, which is not installed",
            hint="pip install 'evenflow[delta]'",
        ) from None
    return deltalake


def delta_schema(settings: Settings) -> pa.Schema:
    """The columns of the table. Delta knows no times but those in microseconds."""
    fields = [
        field.with_type(_TIME) if pa.types.is_timestamp(field.type) else field
        for field in readable_schema(settings.query)
    ]
    return pa.schema(fields)


def _is_there(place: DeltaPlace) -> bool:
    """Whether there is a table. Its log is not read."""
    with _table_errors(place.uri):
        return bool(_library().DeltaTable.is_deltatable(place.uri, storage_options=place.options))


def _table(place: DeltaPlace) -> DeltaTable | None:
    with _table_errors(place.uri):
        return _opened(place) if _is_there(place) else None


def _opened(place: DeltaPlace, *, version: int | None = None) -> DeltaTable:
    """The table as it is now, or at a version."""
    return _library().DeltaTable(place.uri, version=version, storage_options=place.options)


def _own_table(settings: Settings) -> DeltaTable:
    """The table of these settings' results.
    Raises ServiceError if there is none, IncompatibleStateError for others'.
    """
    place = delta_place(settings)
    uri, table = place.uri, _table(place)
    if table is None:
        raise ServiceError(f"there is no Delta table in {uri}", hint="has the job written results yet?")
    _owner(table, uri).refuse_other_settings(f"the Delta table {uri}", settings)
    return table


def _owner(table: DeltaTable, uri: str) -> Owner:
    """Whose results the table holds. Raises IncompatibleStateError for a table that no evenflow has made."""
    try:
        return Owner.read(table.metadata().description or "", uri)
    except IncompatibleStateError:
        raise IncompatibleStateError(
            f"the Delta table {uri} is not known to be this query's results: its"
            " description is not the one that evenflow gives",
            hint=_NEW_TABLE,
        ) from None


def _newest(table: DeltaTable, run: str) -> int:
    """Number of the newest micro-batch that the table has of this checkpoint, -1 if none."""
    version = table.transaction_version(run)
    return -1 if version is None else int(version)


def _create(place: DeltaPlace, schema: pa.Schema, owner: Owner) -> None:
    """Make the table if it is not there. Raises ConfigError if it cannot be made."""
    try:
        if _table(place) is not None:
            return
        with _table_errors(place.uri):
            _library().DeltaTable.create(
                place.uri,
                schema=schema,
                name=owner.query,
                description=owner.text(),
                storage_options=place.options,
            )
    except ServiceError as error:
        raise ConfigError(
            f"results.path {place.uri} cannot be written: {error.message}",
            hint="set results.path to a folder that this user may make and write",
        ) from None


def _write(place: DeltaPlace, run: str, schema: pa.Schema, rows: DataFrame, batch: int) -> Publish:
    """Bring the rows of a micro-batch to this process. Returns the function that commits them."""
    return partial(commit, place, run, collected(rows, schema), batch)


def commit(place: DeltaPlace, run: str, rows: pa.Table, batch: int) -> None:
    """Append the rows, unless this micro-batch or a later one is there.

    Raises DataLossError if the table is gone, or is one of another checkpoint, ServiceError if it cannot be
    written.
    """
    if rows.num_rows == 0:
        return
    deltalake = _library()
    # No retries by the library: after a foreign commit, owner and newest micro-batch must be looked at again.
    properties = deltalake.CommitProperties(
        app_transactions=[deltalake.Transaction(run, batch)], max_commit_retries=0
    )
    refused: Exception | None = None
    for _ in range(_ATTEMPTS):
        with _table_errors(place.uri):
            table = _opened(place)
            if _owner(table, place.uri).run != run:
                raise _removal_error(place.uri, "another Delta table is in its place")
            if _newest(table, run) >= batch:
                return
            try:
                deltalake.write_deltalake(table, rows, mode="append", commit_properties=properties)
                return
            except deltalake.exceptions.CommitFailedError as error:  # another commit came between
                refused = error
    raise ServiceError(
        f"micro-batch {batch} could not be committed to the Delta table"
        f" {place.uri} in {_ATTEMPTS} attempts: {refused}",
        hint="who else writes to it? Started again, the application repeats the micro-batch",
    )


def _at_version(place: DeltaPlace, position: Position) -> DeltaTable:
    assert isinstance(position, Mapping)
    with _table_errors(place.uri):
        return _opened(place, version=position[0])


def _batches(table: DeltaTable, uri: str, passed: set[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with _table_errors(uri):
        names = {os.path.basename(file) for file in passed}
        rows = table.to_pyarrow_dataset()
        for fragment in rows.get_fragments():
            if os.path.basename(fragment.path) not in names:
                for batch in fragment.to_batches(schema=rows.schema):
                    yield from pa.Table.from_batches([batch]).select(schema.names).cast(schema).to_batches()


def _removal_error(uri: str, why: str) -> DataLossError:
    return DataLossError(f"the Delta table {uri} was removed while it was used: {why}", hint=RESTORE)


@contextmanager
def _table_errors(uri: str) -> Iterator[None]:
    """Raise errors about this table as DataLossError (the table or a file is gone) or ServiceError."""
    try:
        yield
    except EvenflowError:
        raise
    except _library().exceptions.TableNotFoundError:
        raise _removal_error(uri, _NOT_THERE) from None
    except FileNotFoundError as error:
        raise DataLossError(
            f"a file of the Delta table {uri} is gone: {' '.join(str(error).split())[:300]}",
            hint="who deletes files there? VACUUM removes those that no recent version has",
        ) from None
    except (_library().exceptions.DeltaError, pa.ArrowException, OSError) as error:
        raise ServiceError(
            f"the Delta table {uri} cannot be used: {' '.join(str(error).split())[:300]}"
        ) from None


SINK = Delta()
