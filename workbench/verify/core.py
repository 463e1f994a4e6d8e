"""The whole check, on tables.
It is pure, except that DuckDB may write to the scratch folder that it is given.

`Recomputation` computes once what must be there, and compares it with the results as often as needed. Results
that are written while verify runs are read again, with the marks of that later moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

import duckdb
import pyarrow as pa

from evenflow.settings import Settings
from workbench.verify import results
from workbench.verify.input import records
from workbench.verify.inputs import END_MARK, EVERYTHING, UNKNOWN_CLOCKS, Clocks, CommittedInput, LogBegins
from workbench.verify.rejected import delays, lost, rejections
from workbench.verify.rejected.ahead import check_ahead
from workbench.verify.rejected.counters import check_counters
from workbench.verify.report import BEHIND, BLIND, Difference, Findings, Reach, Report
from workbench.verify.sql import scalar
from workbench.verify.windows import reach, summaries
from workbench.verify.windows import recomputation as windows
from workbench.verify.windows.oracles import oracles

DUE_WITHIN = 60.0
"""Seconds that results may be behind. A due window is written after a commit interval (0.5 s) and two or
three micro-batches (1 s and more each).
A minute also covers the restart of a partitioner or of the Spark job."""

_COMMITTED_SCHEMA = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("idle_mark", pa.int64())])
Table: TypeAlias = pa.Table | pa.RecordBatchReader
_REJECTED = """SELECT * EXCLUDE (key, value, detail, through),
                      greatest(through, "offset") AS through,
                      md5_number(key) AS key_digest,
                      md5_number(value) AS value_digest,
                      coalesce(starts_with(detail, 'the registry has no schema of id ')
                               OR starts_with(detail, 'the registry refuses schema '), false) AS without_schema
               FROM source"""
"""Rejected records without their keys and values. Each stands for the offsets from its own to `through`.

Digests are enough to compare keys and values with the input record's."""


def check(
    settings: Settings,
    inputs: Table,
    rejected: Table,
    written: Table,
    committed: Sequence[CommittedInput],
    *,
    log_starts: LogBegins = EVERYTHING,
    clocks: Clocks = UNKNOWN_CLOCKS,
    results_begin: Mapping[int, int] | None = None,
    now: int | None = None,
    seconds: float = 0.0,
    due_within: float = DUE_WITHIN,
    repeats: bool = True,
    limit: int = 20,
    scratch: Path | None = None,
    memory: str = "2GB",
) -> Report:
    """Recompute the due windows from `inputs` without `rejected`, and compare them with `written` once.

    The schemas of the tables are in inputs.py. The other parameters are those of `Recomputation` and of its
    method `compare`: `results_begin` is what `begins` returns, and `due_within` is `bound`.
    """
    with Recomputation(
        settings,
        inputs,
        rejected,
        committed,
        log_starts=log_starts,
        clocks=clocks,
        limit=limit,
        scratch=scratch,
        memory=memory,
    ) as due:
        return due.compare(
            written,
            begins=lambda: results_begin or {},
            now=now,
            seconds=seconds,
            bound=due_within,
            repeats=repeats,
        )


class Recomputation:
    """The input, checked against its rejections and counters, and the results that are due according to it.

    committed: one state per input partition. Records at or after its offset are left out. log_starts: what
    retention has left of the topics. clocks: between which moments tuples were judged. limit: how many
    differences of each kind are kept. scratch: existing folder for data beyond `memory` (a size in DuckDB's
    words). None: all data stay in memory. A table may be a reader, which is streamed through once. Raises
    ConfigError for an aggregate that verify cannot recompute.
    """

    def __init__(
        self,
        settings: Settings,
        inputs: Table,
        rejected: Table,
        committed: Sequence[CommittedInput],
        *,
        log_starts: LogBegins = EVERYTHING,
        clocks: Clocks = UNKNOWN_CLOCKS,
        limit: int = 20,
        scratch: Path | None = None,
        memory: str = "2GB",
    ) -> None:
        oracles(settings.query)  # refuses what cannot be recomputed before anything is read
        self._settings = settings
        # A summary reads no columns of records: its parts do, which are the query and its views.
        self._reading = settings if settings.query.summary is None else settings.origin
        self._mark = min(state.mark for state in committed)
        self._ended = all(state.ended for state in committed)
        self._findings = Findings(limit=limit)
        self._db = _database(scratch, memory)
        try:
            self._recompute(inputs, rejected, committed, log_starts)
            check_ahead(self._db, self._reading.query, clocks, self._findings)
        except BaseException:
            # The caller's `with` has not begun yet, so nothing else would close the database.
            self._db.close()
            raise

    def __enter__(self) -> Recomputation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def _recompute(
        self, inputs: Table, rejected: Table, committed: Sequence[CommittedInput], log_starts: LogBegins
    ) -> None:
        db, settings, findings = self._db, self._reading, self._findings
        states = [{name: asdict(state)[name] for name in _COMMITTED_SCHEMA.names} for state in committed]
        _keep(db, "committed", pa.Table.from_pylist(states, schema=_COMMITTED_SCHEMA))
        _keep(db, "rejected", rejected, _REJECTED)
        # The input is read up to the committed offset only, so later rejections have no input record here.
        db.execute(
            "DELETE FROM rejected USING committed c WHERE c.partition = rejected.partition "
            'AND rejected."offset" >= c."offset"'
        )
        db.execute(
            'UPDATE rejected SET through = c."offset" - 1 FROM committed c WHERE c.partition = rejected.partition '
            'AND rejected.through >= c."offset"'
        )
        records.load(db, settings, inputs)
        # Before any check: this also deletes the records and rejections that can no longer be judged.
        self._lost = lost.find_lost(db, settings, committed, log_starts)
        delays.load_delays(db, settings.query, committed)
        rejections.check_rejections(db, settings, committed, self._lost, findings)
        self._without_schema = rejections.without_schema(db, settings)
        self._withheld = rejections.withheld(db, settings)
        self._counters = check_counters(db, settings.query, committed, self._lost, findings)
        until = [loss.until for loss in self._lost.values() if loss.until is not None]
        self._compared_from = max(until) + 1 if until else None
        of_summary = self._settings.query.summary is not None
        recompute = summaries.recompute if of_summary else windows.recompute
        self._open = recompute(db, self._settings, self._mark, self._compared_from)

    def compare(
        self,
        written: Table,
        *,
        begins: Callable[[], Mapping[int, int]] = dict,
        now: int | None = None,
        seconds: float = 0.0,
        bound: float = DUE_WITHIN,
        repeats: bool = True,
    ) -> Report:
        """Compare these results with those that are due.

        begins: called after `written` has been read. Returns the first offset that is left of each partition
        of the results. now: the mark (ms) that was committed when the end of `written` was known. None: the
        mark of `committed`. seconds: how long ago `committed` was read. bound: for how many seconds a due
        window may be pending. repeats: whether equal rows may be there several times.
        """
        db, settings, findings = self._db, self._settings, self._findings.copy()
        now = self._mark if now is None else max(now, self._mark)
        results.load(db, settings, written)
        results.leave_out(
            db,
            settings.query,
            mark=self._mark,
            now=now,
            compared_from=self._compared_from,
            # Whoever had all this time to write an update has written it.
            final=self._ended or 0 < bound <= seconds,
        )
        # `begins` is called last: retention may have deleted results while they were read.
        doubtful = reach.find_doubtful(db, settings.buckets, begins())
        far = reach.find_due(db, settings.query, now=now, ended=self._ended, seconds=seconds, bound=bound)
        tuples = results.compare(db, settings, now, findings, repeats=repeats)
        rows, ends, unfit = db.execute(
            "SELECT count(*), count(DISTINCT window_end), coalesce(sum(unfit), 0) FROM due"
        ).fetchall()[0]
        skipped = int(scalar(db, "SELECT count(*) FROM skipped"))
        _conclude(far, rows, skipped, doubtful, findings)
        return Report(
            windows=ends,
            rows=rows,
            open_windows=self._open,
            pending_windows=far.windows,
            ended=self._ended,
            mark=None if abs(self._mark) >= END_MARK else self._mark,
            read=sum(c.read for c in self._counters),
            routed=sum(c.routed for c in self._counters),
            rejected=sum(c.rejected for c in self._counters),
            filtered=sum(c.filtered for c in self._counters),
            differences=findings.total,
            kinds=findings.kinds,
            first=tuple(findings.examples),
            counters=self._counters,
            reach=far,
            tuples=tuples,
            unfit=int(unfit),
            without_schema=self._without_schema,
            withheld=self._withheld,
            lost=tuple(self._lost.values()),
            compared_from=self._compared_from,
            skipped_windows=skipped,
            doubtful_rows=doubtful,
        )


def _conclude(far: Reach, rows: int, skipped: int, doubtful: int, findings: Findings) -> None:
    """Add the findings that are no differences: results are behind for too long,
    or nothing could be compared.
    """
    if not far.in_time:
        findings.add(
            Difference(kind=BEHIND, detail=f"{far}; {far.bound:g} s are allowed: is the Spark job alive?")
        )
    if rows == 0 and (skipped or doubtful):
        detail = (
            f"nothing is left to compare: {skipped} windows hold lost tuples,"
            f" {doubtful} rows may have been deleted"
        )
        findings.add(Difference(kind=BLIND, detail=detail))


def _database(scratch: Path | None, memory: str) -> duckdb.DuckDBPyConnection:
    if scratch is None:
        db = duckdb.connect()
    else:
        db = duckdb.connect(str(scratch / "verify.duckdb"))
        db.execute("SET temp_directory = '" + str(scratch / "spill").replace("'", "''") + "'")
    db.execute(f"SET memory_limit = '{memory}'")
    # Keeping the order of insertion costs memory. A query that needs an order asks for it.
    db.execute("SET preserve_insertion_order = false")
    return db


def _keep(
    db: duckdb.DuckDBPyConnection, name: str, table: Table, select: str = "SELECT * FROM source"
) -> None:
    db.register("source", table)
    db.execute(f"CREATE TABLE {name} AS {select}")
    db.unregister("source")
