"""What retention has taken from the input, and from when on windows can be compared all the same.

A partition has lost something when its log begins above 0 and the partitioner has counted more tuples than are
left, or has read an end of stream that is not there any more. Whatever was accepted among the lost ones is bounded
from above: a tuple that was accepted later had a pane that ended behind the partition's mark, so no tuple before
it was later than the end of that pane plus the delay. Windows that begin after that bound hold no lost tuple and
are compared exactly.

Rejections count as well: where the rejected topic has lost some, which of the input records they stood for is not
known, and those records count as lost. They lie in the block of the first rejection that is left, or before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from evenflow.settings import Settings
from workbench.verify.ends import end_of
from workbench.verify.inputs import Committed, Kept
from workbench.verify.sql import pane_end, scalar


@dataclass(frozen=True, kw_only=True)
class Lost:
    """One input partition of which records below offset `before` are gone, or cannot be judged any more.

    tuples: how many of its tuples that is, `routed` of them. until: none of those has a later event time (ms), None
    when none was routed.
    """

    partition: int
    before: int
    tuples: int
    routed: int
    until: int | None


_SCHEMA = pa.schema(
    [(name, pa.int64()) for name in ("partition", "before", "tuples", "routed", "until")],
)


def find_lost(
    db: duckdb.DuckDBPyConnection, settings: Settings, committed: Sequence[Committed], kept: Kept
) -> dict[int, Lost]:
    """Lost parts by input partition. Makes table `lost`. What cannot be judged is taken out of the tables."""
    found = {}
    for state in committed:
        before = _before(db, settings, state, kept)
        if before:
            found[state.partition] = _lost(db, settings, state, before)
    rows = [vars(lost) for lost in found.values()]
    db.register("source", pa.Table.from_pylist(rows, schema=_SCHEMA))
    db.execute("CREATE TABLE lost AS SELECT * FROM source")
    db.unregister("source")
    return found


def _before(db: duckdb.DuckDBPyConnection, settings: Settings, state: Committed, kept: Kept) -> int:
    """Offset from which on everything of this partition is there. 0 when nothing is lost."""
    before = 0
    first = min(kept.inputs.get(state.partition, 0), state.offset)
    marker_gone = state.ended and end_of(db, state.partition) is None
    if first and (marker_gone or state.read > _read(db, state.partition)):
        before = first
    rejected, oldest = db.execute(
        'SELECT count(*), min("offset") FROM rejected WHERE partition = ?', [state.partition]
    ).fetchall()[0]
    if kept.rejected.get(state.partition, 0) and state.rejected > rejected:
        block_end = state.offset if oldest is None else oldest + settings.partitioner.block_tuples
        before = max(before, min(block_end, state.offset))
    return before


def _lost(db: duckdb.DuckDBPyConnection, settings: Settings, state: Committed, before: int) -> Lost:
    for table in ("records", "strict", "rejected"):
        db.execute(f'DELETE FROM {table} WHERE partition = ? AND "offset" < ?', [state.partition, before])
    read = _read(db, state.partition)
    rejected = scalar(
        db,
        "SELECT count(*) FROM records WHERE partition = ? AND marker IS NULL AND reason IS NOT NULL",
        [state.partition],
    )
    routed = state.routed + state.filtered - (read - rejected)
    return Lost(
        partition=state.partition,
        before=before,
        tuples=state.read - read,
        routed=routed,
        until=_until(db, settings, state) if routed > 0 else None,
    )


def _read(db: duckdb.DuckDBPyConnection, partition: int) -> int:
    return int(scalar(db, "SELECT count(*) FROM records WHERE partition = ? AND marker IS NULL", [partition]))


def _until(db: duckdb.DuckDBPyConnection, settings: Settings, state: Committed) -> int | None:
    query = settings.query
    delay = query.out_of_orderness + query.allowed_lateness
    end = scalar(
        db,
        f"SELECT min({pane_end(query.origin.slide_ms)}) FROM readable WHERE partition = ? AND reason IS NULL",
        [state.partition],
    )
    bounds = [
        bound for bound in (state.max_time, None if end is None else end + delay - 1) if bound is not None
    ]
    return min(bounds, default=None)
