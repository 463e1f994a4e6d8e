"""A table of Postgres: each micro-batch is one transaction, which upserts its rows and notes its number.

The driver writes. A small table `evenflow_results` beside the results has a row for each table of results:
whose results they are, the epoch of the driver that writes them, and the number of the last micro-batch. A
transaction locks that row first. It ends with FencedError if a newer driver is noted there, and writes
nothing if the micro-batch is.

`results.path` is `postgresql://user@host:port/database/table`, or with a schema `.../database/schema/table`.
A password in it is refused. The client library of Postgres takes the password from PGPASSWORD, or from the
file that PGPASSFILE names.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from evenflow.errors import (
    ConfigError,
    DataLossError,
    EvenflowError,
    FencedError,
    IncompatibleStateError,
    ServiceError,
)
from evenflow.settings import Settings
from evenflow.settings.typed_key import longest_key
from evenflow.text.zero_bytes import GROWTH, original, storable
from evenflow.twostep import key_schema, readable_schema
from spark_consumers.checkpoints.result_files import Owner, refuse_ahead
from spark_consumers.sinks.base import RESTORE, Position, Start, StartFacts
from spark_consumers.sinks.typed_rows import TypedSink, collected
from spark_consumers.stage_output import Publish, Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCH_COLUMN = "_micro_batch"
NOTES = "evenflow_results"
_LOG = logging.getLogger(__name__)
_LONGEST_NAME = 63
_LONGEST_ENTRY = 2_600
"""Bytes of the columns of a key as they are stored. An entry of an index has room for 2,704 in all."""
_LONGEST_WINDOW_MS = 99 * 365 * 86_400_000
_SYSTEM_COLUMNS = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})
_ROWS_AT_ONCE = 10_000
_CONNECT_SECONDS = 10
# A driver that stands still in a transaction loses it, and then a newer driver gets the lock.
_SESSION = "SET TIME ZONE 'UTC'; SET idle_in_transaction_session_timeout = '60s'; SET lock_timeout = '120s'"
_FORM = "postgresql://user@host:5432/database/table, or with a schema .../database/schema/table"
_PASSWORD = (
    "the password comes from the environment variable PGPASSWORD, or from the file that PGPASSFILE names"
)
_NEW_TABLE = "name another table in results.path (docs/operations/refusals.md)"
_TYPES = {
    pa.int64(): "bigint",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.binary(): "bytea",
    pa.bool_(): "boolean",
    pa.date32(): "date",
}


@dataclass(frozen=True, kw_only=True)
class Table:
    """Which table, of which server.
    Empty texts and None stand for what Postgres's client library takes by itself.
    """

    host: str
    """Name or address of the server."""
    port: int | None
    """Port of the server."""
    user: str | None
    """User who connects. The password is no part of the address."""
    database: str
    """Name of the database."""
    schema: str | None
    """Schema of the table."""
    name: str
    """Name of the table, without its schema."""

    def __str__(self) -> str:
        server = self.host if self.port is None else f"{self.host}:{self.port}"
        return "/".join(["postgresql:/", server, self.database, *self.names])

    @property
    def names(self) -> list[str]:
        """The schema, if there is one, and the table."""
        return [self.name] if self.schema is None else [self.schema, self.name]

    @property
    def notes(self) -> list[str]:
        """As `names`, of the table of notes."""
        return [*self.names[:-1], NOTES]


class Postgres(TypedSink):
    """The result table in Postgres, with the number of its micro-batch in each row."""

    name = "postgres"
    needs = ("path",)
    repeats = False

    def check(self, settings: Settings) -> None:
        """Raise ConfigError without the library, or for an address, a name or a type that cannot work."""
        super().check(settings)
        _library()
        table_of(settings)
        columns(settings)
        if settings.query.window > _LONGEST_WINDOW_MS:
            raise ConfigError(
                "results.sink = 'postgres' takes windows of at most 99 years",
                hint=(
                    "its client library holds the years 1 to 9999, and event times may be of the years 100 to"
                    " 9899"
                ),
            )

    def place(self, settings: Settings) -> str:
        return f"postgres {table_of(settings)}"

    def by_hand(self, settings: Settings) -> str:
        return f"results in {self.place(settings)}: drop the table by hand, and delete its row in {NOTES}"

    def reach(self, settings: Settings) -> None:
        """Raise ServiceError without a connection, IncompatibleStateError for a table that does not fit,
        ConfigError if keys may be too long for a new table.
        """
        table = table_of(settings)
        with _connected(table) as connection:
            _refuse_unfit(connection, table, settings)
            begun = _note(connection, table) is not None
        _judge_long_keys(settings, begun=begun)

    def admit(self, settings: Settings, contents: StartFacts) -> None:
        table = table_of(settings)
        with _connected(table) as connection:
            exists = _refuse_unfit(connection, table, settings)
            note = _note(connection, table)
            if note is None:
                _refuse_unnoted(connection, table, exists, contents)
                return
        owner, _, newest = note
        where = f"the table {table}"
        owner.refuse_other_run(where, settings, contents.run, anew=_NEW_TABLE)
        refuse_ahead(where, newest, contents.planned, anew=_NEW_TABLE)
        if not exists:
            raise _loss_of_table(table, -1 if contents.planned is None else contents.planned)

    def newest_end(self, settings: Settings) -> int | None:
        """End of the newest window that has a row (event time in ms). None if there is no row, or no
        table.
        """
        table = table_of(settings)
        with _connected(table) as connection:
            if not _table_columns(connection, table.names):
                return None
            # The primary key begins with window_start, so this reads one row.
            row = connection.execute(_sql("SELECT max(window_start) FROM {}", table.names)).fetchone()
        return None if row[0] is None else round(row[0].timestamp() * 1000) + settings.query.window

    def loss(self, settings: Settings) -> str | None:
        """Whether the table or its note is gone."""
        table = table_of(settings)
        with _connected(table) as connection:
            lost = [] if _table_columns(connection, table.names) else [f"the table {table}"]
            if _note(connection, table) is None:
                lost.append(f"its row in {NOTES}")
        if not lost:
            return None
        are = "is" if len(lost) == 1 else "are"
        return (
            f"{' and '.join(lost)} {are} gone, with the results that the query has written there: {RESTORE}"
        )

    def loss_error(self, settings: Settings, loss: str) -> DataLossError:
        return _removed(table_of(settings))

    def writer(self, settings: Settings, start: Start) -> Write:
        owner = Owner(query=settings.query.name, fingerprint=settings.fingerprint, run=start.run)
        table, schema = table_of(settings), readable_schema(settings.query)
        _begin(table, settings, owner, start.epoch)
        keys = ["window_start", *key_schema(settings.query).names]
        return partial(
            _write, Upsert(table=table, schema=schema, keys=keys, run=owner.run, epoch=start.epoch)
        )

    def position(self, settings: Settings) -> Position:
        """Behind the last micro-batch that has rows or is noted."""
        table = table_of(settings)
        with _connected(table) as connection:
            return {0: _own_note(connection, table, settings) + 1}

    def read_back(
        self, settings: Settings, *, after: Position | None = None, until: Position | None = None
    ) -> pa.RecordBatchReader:
        """The rows of the micro-batches from `after` on and before `until`."""
        table = table_of(settings)
        with _connected(table) as connection:
            newest = _own_note(connection, table, settings)
        assert isinstance(after, Mapping | None)
        assert isinstance(until, Mapping | None)
        bounds = (0 if after is None else after[0], newest + 1 if until is None else until[0])
        schema = readable_schema(settings.query)
        return pa.RecordBatchReader.from_batches(schema, _batches(table, schema, bounds))


@dataclass(frozen=True, kw_only=True)
class Upsert:
    """Writes micro-batches into a table."""

    table: Table
    """Into which the rows go."""
    schema: pa.Schema
    """Columns of the results."""
    keys: Sequence[str]
    """Columns of the table's primary key."""
    run: str
    """Random word of the checkpoint, as in `Start`."""
    epoch: int
    """Epoch of the driver, as in `Start`."""

    def commit(self, rows: pa.Table, batch: int) -> None:
        """Upsert the rows and note the micro-batch, unless it or a later one is noted.

        Raises FencedError if a newer driver is noted, DataLossError if the note of this checkpoint is gone,
        ServiceError if Postgres refuses.
        """
        with _connected(self.table) as connection:
            noted = connection.execute(
                _sql("SELECT run, epoch, batch FROM {} WHERE results = %s FOR UPDATE", self.table.notes),
                [self.table.name],
            ).fetchone()
            if noted is None:
                raise _removed(self.table)
            if noted[0] != self.run:
                raise _loss_of_table(self.table, batch - 1)
            if noted[1] > self.epoch:
                raise FencedError(
                    f"another driver (epoch {noted[1]}) writes to the table {self.table},"
                    f" and this one has epoch {self.epoch}",
                    hint="run one driver of a query at a time (docs/operations/start-and-stop.md)",
                )
            if noted[2] >= batch:
                return
            if rows.num_rows:
                self._upsert(connection, rows, batch)
            connection.execute(
                _sql("UPDATE {} SET batch = %s WHERE results = %s", self.table.notes),
                [batch, self.table.name],
            )

    def _upsert(self, connection: Any, rows: pa.Table, batch: int) -> None:
        names = [*self.schema.names, BATCH_COLUMN]
        connection.execute(
            _sql("CREATE TEMP TABLE evenflow_incoming (LIKE {}) ON COMMIT DROP", self.table.names)
        )
        sql = _library().sql
        copying = sql.SQL("COPY evenflow_incoming ({}) FROM STDIN").format(_listed(names))
        with connection.cursor() as cursor, cursor.copy(copying) as copy:
            for part in rows.to_batches(max_chunksize=_ROWS_AT_ONCE):
                for row in zip(*(storable(column).to_pylist() for column in part.columns), strict=True):
                    copy.write_row((*row, batch))
        sets = [
            sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name))
            for name in names
            if name not in self.keys
        ]
        connection.execute(
            sql.SQL(
                "INSERT INTO {table} ({names}) SELECT {names} FROM evenflow_incoming "
                "ON CONFLICT ({keys}) DO UPDATE SET {sets}"
            ).format(
                table=sql.Identifier(*self.table.names),
                names=_listed(names),
                keys=_listed(self.keys),
                sets=sql.SQL(", ").join(sets),
            )
        )


def table_of(settings: Settings) -> Table:
    """The table that `results.path` names. Raises ConfigError for a path of another form, or with a
    password.
    """
    path = settings.results.path
    assert path is not None  # `check` refuses settings without a path
    try:
        parts = urlsplit(path)
        port = parts.port
    except ValueError:
        raise ConfigError("results.path is no address of a table", hint=f"write {_FORM}") from None
    if parts.password is not None or parts.query:  # neither is shown
        raise ConfigError(
            "results.path holds a password or options, and evenflow shows this setting in its messages",
            hint=f"write {_FORM}; {_PASSWORD}",
        )
    names = [unquote(name) for name in parts.path.split("/")[1:]]
    if parts.scheme != "postgresql" or parts.fragment or len(names) not in (2, 3) or not all(names):
        raise ConfigError(f"results.path {path!r} is no address of a table", hint=f"write {_FORM}")
    for name in names:
        _refuse_long(name, "name another in results.path")
    if names[-1] == NOTES:
        raise ConfigError(
            f"results.path names the table {NOTES}, in which evenflow notes what it has written",
            hint="name another table in results.path",
        )
    return Table(
        host=parts.hostname or "",
        port=port,
        user=None if parts.username is None else unquote(parts.username),
        database=names[0],
        schema=names[1] if len(names) == 3 else None,
        name=names[-1],
    )


def columns(settings: Settings) -> dict[str, str]:
    """The columns of the table and their types in Postgres.
    Raises ConfigError for one that Postgres cannot have.
    """
    types: dict[str, str] = {}
    for field in readable_schema(settings.query):
        kind = _type(field.type)
        if kind is None:
            raise ConfigError(
                f"results.sink = 'postgres' has no type for the column {field.name!r}, which is {field.type}",
                hint="take the sink parquet or delta for it, or compute it in a query of its own",
            )
        _refuse_long(field.name, "give the column another name, under a new query name")
        if field.name in _SYSTEM_COLUMNS or field.name == BATCH_COLUMN:
            raise ConfigError(
                "a table of results in Postgres cannot have a column"
                f" {field.name!r} of the query: it has its own",
                hint="give the column another name, under a new query name",
            )
        types[field.name] = kind
    return {**types, BATCH_COLUMN: "bigint"}


def _type(kind: pa.DataType) -> str | None:
    if pa.types.is_timestamp(kind):
        return "timestamp with time zone"
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        element = _type(kind.value_type)
        return None if element is None or pa.types.is_list(kind.value_type) else f"{element}[]"
    return _TYPES.get(kind)


def _judge_long_keys(settings: Settings, *, begun: bool) -> None:
    """Raise ConfigError if a key may be longer than Postgres can index. If the query has begun, only warn:
    its limit is fixed.
    """
    types = key_schema(settings.query).types
    has_text = any(map(pa.types.is_string, types))
    if not has_text and not any(map(pa.types.is_binary, types)):
        return
    longest = _LONGEST_ENTRY // GROWTH if has_text else _LONGEST_ENTRY
    most, setting = longest_key(settings.query)
    if most <= longest:
        return
    words = (
        f"a key may have {most:,} bytes (query.{setting}), and Postgres may be unable to index one above"
        f" {longest:,}: one such record would stop the application"
    )
    if begun:
        _LOG.warning("%s", words)
        return
    raise ConfigError(
        words, hint=f"set query.{setting} = {longest}: a record with a longer key is then rejected"
    )


def _refuse_long(name: str, hint: str) -> None:
    if len(name.encode()) > _LONGEST_NAME or "\0" in name:
        raise ConfigError(f"Postgres cannot have the name {name!r}: at most {_LONGEST_NAME} bytes", hint=hint)


def _library() -> Any:
    try:
        import psycopg
        import psycopg.sql
    except ImportError:
        raise ConfigError(
            "results.sink = 'postgres' needs the library psycopg, which is not installed",
            hint="pip install 'evenflow[postgres]'",
        ) from None
    return psycopg


def _listed(names: Sequence[str]) -> Any:
    sql = _library().sql
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _sql(text: str, names: Sequence[str]) -> Any:
    """The statement with the name of this table in the place of `{}`."""
    sql = _library().sql
    return sql.SQL(text).format(sql.Identifier(*names))


@contextmanager
def _connected(table: Table) -> Iterator[Any]:
    """A connection with one transaction, which is committed at the end. Raises what goes wrong as
    ServiceError, a table that is gone as DataLossError.
    """
    psycopg = _library()
    try:
        with psycopg.connect(
            host=table.host or None,
            port=table.port,
            user=table.user,
            dbname=table.database,
            connect_timeout=_CONNECT_SECONDS,
            application_name="evenflow",
            client_encoding="utf8",
            autocommit=True,
        ) as connection:
            connection.execute(_SESSION)
            with connection.transaction():
                yield connection
    except EvenflowError:
        raise
    except psycopg.errors.UndefinedTable:  # what is not there at a start is seen before it is used
        raise _removed(table) from None
    except psycopg.Error as error:
        raise ServiceError(
            f"Postgres refuses the table {table}: {' '.join(str(error).split())[:300]}", hint=_advice(error)
        ) from None


def _advice(error: Exception) -> str:
    errors = _library().errors
    if isinstance(error, errors.InsufficientPrivilege):
        return "the user needs CREATE on the schema, or both tables with SELECT, INSERT and UPDATE on them"
    if isinstance(error, _library().DataError | errors.ProgramLimitExceeded):
        return (
            f"Postgres indexes no key above {_LONGEST_ENTRY:,} bytes. To begin anew, set"
            f" query.max_key_bytes = {_LONGEST_ENTRY // GROWTH}, and name another table"
        )
    if isinstance(error, errors.LockNotAvailable):
        return "another session has locked the table or its note: end it, and start the application again"
    return f"is the server up, and are user and database right? {_PASSWORD[0].upper()}{_PASSWORD[1:]}"


def _table_columns(connection: Any, names: Sequence[str]) -> dict[str, str]:
    """The columns of a table and their types. Empty if there is no such table."""
    rows = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        [_library().sql.Identifier(*names).as_string(connection)],
    ).fetchall()
    return dict(rows)


def _refuse_unfit(connection: Any, table: Table, settings: Settings) -> bool:
    """Whether the table is there. Raises IncompatibleStateError if its columns or its primary key do not
    fit.
    """
    actual = _table_columns(connection, table.names)
    if not actual:
        return False
    expected = columns(settings)
    hint = f"take the settings that the table was made with; to begin anew {_NEW_TABLE}"
    for name in [*expected, *(name for name in actual if name not in expected)]:
        if actual.get(name) != expected.get(name):
            raise IncompatibleStateError(
                f"the table {table} has {_column_text(name, actual.get(name))}, and the results have "
                f"{_column_text(name, expected.get(name))}",
                hint=hint,
            )
    keys = connection.execute(
        "SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey) "
        "WHERE indrelid = to_regclass(%s) AND indisprimary",
        [_library().sql.Identifier(*table.names).as_string(connection)],
    ).fetchall()
    if {name for (name,) in keys} != {"window_start", *key_schema(settings.query).names}:
        raise IncompatibleStateError(
            f"the primary key of the table {table} is not window_start with the columns of the query's key",
            hint=hint,
        )
    return True


def _column_text(name: str, kind: str | None) -> str:
    return f"no column {name!r}" if kind is None else f"the column {name!r} of type {kind}"


def _refuse_unnoted(connection: Any, table: Table, exists: bool, evidence: StartFacts) -> None:
    """Refuse a table with rows that no note says the owner of, or a checkpoint that has begun without a
    note.
    """
    if exists and connection.execute(_sql("SELECT 1 FROM {} LIMIT 1", table.names)).fetchone() is not None:
        raise IncompatibleStateError(
            f"the table {table} has rows, but {NOTES} does not say that they are this query's results",
            hint=_NEW_TABLE,
        )
    if evidence.planned is not None:
        raise _loss_of_table(table, evidence.planned)


def _loss_of_table(table: Table, begun: int) -> DataLossError:
    return DataLossError(
        f"the table {table} or its row in {NOTES} is gone, although this query's checkpoint has begun"
        f" micro-batches up to {begun}",
        hint="restore both, or rebuild the query under a new name (docs/operations/data-loss.md)",
    )


def _removed(table: Table) -> DataLossError:
    """What ends an application whose table, or the note of it, was removed."""
    return DataLossError(
        f"the table {table}, or its row in the table {NOTES} beside it, was removed while it was used",
        hint=RESTORE,
    )


def _note(connection: Any, table: Table) -> tuple[Owner, int, int] | None:
    """Whose results the table holds, the epoch of the driver that writes it,
    and its last micro-batch (-1: none).
    """
    if not _table_columns(connection, table.notes):
        return None
    row = connection.execute(
        _sql("SELECT query, fingerprint, run, epoch, batch FROM {} WHERE results = %s", table.notes),
        [table.name],
    ).fetchone()
    return None if row is None else (Owner(query=row[0], fingerprint=row[1], run=row[2]), row[3], row[4])


def _own_note(connection: Any, table: Table, settings: Settings) -> int:
    """The last micro-batch of the table of these settings (-1: none).

    Raises ServiceError if there is no such table, IncompatibleStateError for the results of others.
    """
    note = _note(connection, table)
    if note is None or not _table_columns(connection, table.names):
        raise ServiceError(f"there is no table of results {table}", hint="has the job written results yet?")
    note[0].refuse_other_settings(f"the table {table}", settings)
    return note[2]


def _begin(table: Table, settings: Settings, owner: Owner, epoch: int) -> None:
    """Make both tables if they are not there, and note this driver."""
    sql = _library().sql
    with _connected(table) as connection:
        connection.execute(
            "SELECT pg_advisory_xact_lock(hashtext('evenflow_results'))"
        )  # tables are made by one at a time
        if not _table_columns(connection, table.notes):
            connection.execute(
                _sql(
                    "CREATE TABLE {} (results text PRIMARY KEY, query text NOT NULL, fingerprint text NOT"
                    " NULL, run text NOT NULL, epoch bigint NOT NULL, batch bigint NOT NULL)",
                    table.notes,
                )
            )
        if not _table_columns(connection, table.names):
            keys = ["window_start", *key_schema(settings.query).names]
            fields = [
                sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind))
                for name, kind in columns(settings).items()
            ]
            connection.execute(
                sql.SQL("CREATE TABLE {} ({}, PRIMARY KEY ({}))").format(
                    sql.Identifier(*table.names), sql.SQL(", ").join(fields), _listed(keys)
                )
            )
        connection.execute(
            _sql(
                "INSERT INTO {} VALUES (%s, %s, %s, %s, %s, -1) ON CONFLICT (results) DO NOTHING", table.notes
            ),
            [table.name, owner.query, owner.fingerprint, owner.run, epoch],
        )
        # A driver that was fenced meanwhile keeps the newer epoch there, and `commit` tells it.
        connection.execute(
            _sql("UPDATE {} SET epoch = greatest(epoch, %s) WHERE results = %s AND run = %s", table.notes),
            [epoch, table.name, owner.run],
        )


def _write(upsert: Upsert, rows: DataFrame, batch: int) -> Publish:
    """Bring the rows of a micro-batch to this process. Returns the function that commits them."""
    return partial(upsert.commit, collected(rows, upsert.schema), batch)


def _batches(table: Table, schema: pa.Schema, bounds: tuple[int, int]) -> Iterator[pa.RecordBatch]:
    sql = _library().sql
    with _connected(table) as connection, connection.cursor(name="evenflow") as cursor:
        cursor.execute(
            sql.SQL("SELECT {} FROM {} WHERE {} >= %s AND {} < %s").format(
                _listed(schema.names),
                sql.Identifier(*table.names),
                *[sql.Identifier(BATCH_COLUMN)] * 2,
            ),
            bounds,
        )
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            arrays = [
                original(pa.array(values, field.type))
                for values, field in zip(zip(*rows, strict=True), schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


SINK = Postgres()
