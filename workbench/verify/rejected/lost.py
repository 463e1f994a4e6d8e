"""What retention has deleted of the input, and from when on windows can be compared all the same.

A partition has lost something if its log begins after the place where the query began, and if the partitioner
has counted more tuples than are left or has read an end of stream that is no longer there. The event times of
lost tuples that were accepted have an upper bound. When a later tuple was accepted, its pane ended after the
partition's mark. So no tuple before it had an event time at or after the end of that pane plus the delay.
Windows that begin after this bound hold no lost tuple and are compared exactly.

Lost rejections matter too. If the rejected topic has lost records, it is not known which input records they
stood for. So all input records that they can have stood for count as lost: those up to the end of the block
of the first rejection that is left.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from evenflow.settings import Settings
from evenflow.settings.sections.rhythm import MOST_BLOCK
from workbench.verify.inputs import CommittedInput, LogBegins
from workbench.verify.rejected.delays import Delays
from workbench.verify.rejected.ends import end_of
from workbench.verify.report import LostRecords
from workbench.verify.sql import OFFSETS, pane_end, scalar

_SCHEMA = pa.schema(
    [(name, pa.int64()) for name in ("partition", "before", "tuples", "routed", "until", "mark")],
)


def find_lost(
    db: duckdb.DuckDBPyConnection,
    settings: Settings,
    committed: Sequence[CommittedInput],
    log_starts: LogBegins,
) -> dict[int, LostRecords]:
    """What each input partition has lost. Also makes table `lost`.

    Records and rejections that cannot be judged are deleted from the tables.
    """
    losses = {}
    for state in committed:
        before = _before(db, settings, state, log_starts)
        if before:
            losses[state.partition] = _lost(db, settings, state, before)
    rows = [vars(lost) for lost in losses.values()]
    db.register("source", pa.Table.from_pylist(rows, schema=_SCHEMA))
    db.execute("CREATE TABLE lost AS SELECT * FROM source")
    db.unregister("source")
    return losses


def _before(
    db: duckdb.DuckDBPyConnection, settings: Settings, state: CommittedInput, log_starts: LogBegins
) -> int:
    """Offset from which on everything of this partition is there. 0 if nothing is lost."""
    before = 0
    first = min(log_starts.inputs.get(state.partition, 0), state.offset)
    marker_gone = state.ended and end_of(db, state.partition) is None
    if first and (marker_gone or state.read > _read(db, state.partition)):
        before = first
    rejected, oldest = db.execute(
        f'SELECT {OFFSETS}, min("offset") FROM rejected WHERE partition = ?', [state.partition]
    ).fetchall()[0]
    if log_starts.rejected.get(state.partition, 0) and state.rejected > rejected:
        # Within a block rejections are not written in the order of offsets. So the first that is left may
        # have lost others of its block with later offsets.
        block = settings.partitioner.block_tuples or MOST_BLOCK
        block_end = state.offset if oldest is None else oldest + block
        before = max(before, min(block_end, state.offset))
    return before


def _lost(
    db: duckdb.DuckDBPyConnection, settings: Settings, state: CommittedInput, before: int
) -> LostRecords:
    """Delete what lies before offset `before`, and say by the committed counters how much is lost."""
    for table in ("records", "rejected"):  # of a skipped stretch, the rest can be judged
        db.execute(
            f'UPDATE {table} SET "offset" = ? WHERE partition = ? AND "offset" < ? AND through >= ?',
            [before, state.partition, before, before],
        )
    for table in ("records", "strict", "rejected"):
        db.execute(f'DELETE FROM {table} WHERE partition = ? AND "offset" < ?', [state.partition, before])
    read = _read(db, state.partition)
    rejected = scalar(
        db,
        f"SELECT {OFFSETS} FROM records WHERE partition = ? AND marker IS NULL AND reason IS NOT NULL",
        [state.partition],
    )
    routed = state.routed + state.filtered - (read - rejected)
    until = _until(db, settings, state) if routed > 0 else None
    return LostRecords(
        partition=state.partition,
        before=before,
        tuples=state.read - read,
        routed=routed,
        until=until,
        mark=None if until is None else until - Delays(settings.query, state).first,
    )


def _read(db: duckdb.DuckDBPyConnection, partition: int) -> int:
    sql = f"SELECT {OFFSETS} FROM records WHERE partition = ? AND marker IS NULL"
    return int(scalar(db, sql, [partition]))


def _until(db: duckdb.DuckDBPyConnection, settings: Settings, state: CommittedInput) -> int | None:
    """Upper bound (ms) of the event times that were accepted and lost.
    The module's docstring has the argument.
    """
    query = settings.query
    delay = Delays(query, state).last
    end = scalar(
        db,
        f"SELECT min({pane_end(query.origin.slide_ms)}) FROM readable WHERE partition = ? AND reason IS NULL",
        [state.partition],
    )
    bounds = [
        bound for bound in (state.max_time, None if end is None else end + delay - 1) if bound is not None
    ]
    return min(bounds, default=None)
