"""The whole check on tables: pure but for the scratch space DuckDB is given."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import duckdb
import pyarrow as pa

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from workbench.verify import records, rejections, results, windows
from workbench.verify.counters import check_counters
from workbench.verify.inputs import END_MARK, Committed
from workbench.verify.report import Findings, Report

_FUNCTIONS = {"count", "sum", "mean", "min", "max"}
_COMMITTED_SCHEMA = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("idle_mark", pa.int64())])


def check(
    settings: Settings,
    inputs: pa.Table | pa.RecordBatchReader,
    rejected: pa.Table,
    written: pa.Table | pa.RecordBatchReader,
    committed: Sequence[Committed],
    *,
    limit: int = 20,
    scratch: Path | None = None,
    memory: str = "2GB",
) -> Report:
    """Recompute the due windows from `inputs` less `rejected` and compare with `written`; schemas in inputs.py.

    committed: one state per input partition; records at or after its offset are left out. limit: how many
    differences of each kind are kept. scratch: existing folder for data beyond `memory`; None: all in memory.
    """
    _computable(settings)
    found = Findings(limit=limit)
    with closing(_database(scratch, memory)) as db:
        states = [{name: asdict(state)[name] for name in _COMMITTED_SCHEMA.names} for state in committed]
        _keep(db, "committed", pa.Table.from_pylist(states, schema=_COMMITTED_SCHEMA))
        _keep(
            db,
            "rejected",
            rejected,
            'SELECT r.* FROM source r JOIN committed c ON c.partition = r.partition AND r."offset" < c."offset"',
        )
        records.load(db, settings, inputs)
        rejections.check_rejections(db, settings, committed, found)
        counters = check_counters(db, settings.query, committed, found)
        mark = min(state.mark for state in committed)
        results.load(db, settings, written)
        ended = all(state.ended for state in committed)
        open_windows = windows.recompute(db, settings, mark)
        pending = 0 if ended else results.set_aside_pending(db)
        results.compare(db, settings, mark, found)
        (rows,) = db.execute("SELECT count(*), count(DISTINCT window_end) FROM expected").fetchall()
    return Report(
        windows=rows[1],
        rows=rows[0],
        open_windows=open_windows,
        pending_windows=pending,
        ended=ended,
        mark=None if abs(mark) >= END_MARK else mark,
        read=sum(c.read for c in counters),
        routed=sum(c.routed for c in counters),
        rejected=sum(c.rejected for c in counters),
        differences=found.total,
        kinds=found.kinds,
        first=tuple(found.kept),
        counters=counters,
    )


def _computable(settings: Settings) -> None:
    """Refuse what cannot be recomputed here, rather than pass it."""
    query = settings.query
    for name, spec in query.aggregates.items():
        if spec.function not in _FUNCTIONS:
            raise ConfigError(f"verify cannot recompute {name} = {str(spec)!r}")
    if not query.key.startswith("@") and query.column_type(query.key) == "float64":
        raise ConfigError(
            "verify cannot compare keys of type float64", hint="declare the key string or int64"
        )


def _database(scratch: Path | None, memory: str) -> duckdb.DuckDBPyConnection:
    if scratch is None:
        db = duckdb.connect()
    else:
        db = duckdb.connect(str(scratch / "verify.duckdb"))
        db.execute("SET temp_directory = '" + str(scratch / "spill").replace("'", "''") + "'")
    db.execute(f"SET memory_limit = '{memory}'")
    db.execute("SET preserve_insertion_order = false")
    return db


def _keep(
    db: duckdb.DuckDBPyConnection, name: str, table: pa.Table, select: str = "SELECT * FROM source"
) -> None:
    db.register("source", table)
    db.execute(f"CREATE TABLE {name} AS {select}")
    db.unregister("source")
