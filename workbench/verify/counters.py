"""read = routed + rejected, and the committed progress of each input partition."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from evenflow.settings import Query
from workbench.verify.inputs import END_MARK, NO_MARK, Committed
from workbench.verify.rejections import end_of
from workbench.verify.report import Counters, Difference, Findings


def check_counters(
    db: duckdb.DuckDBPyConnection, query: Query, committed: Sequence[Committed], found: Findings
) -> tuple[Counters, ...]:
    """Count the tuples below each committed offset and compare with what was committed with it."""
    counted = {
        partition: (read, rejected)
        for partition, read, rejected in db.execute(
            "SELECT partition, count(*), count(reason) FROM records WHERE marker IS NULL GROUP BY partition"
        ).fetchall()
    }
    largest = dict(
        db.execute(
            "SELECT partition, max(time) FROM tuples WHERE reason IS NULL GROUP BY partition"
        ).fetchall()
    )
    all_counters = []
    for state in committed:
        read, rejected = counted.get(state.partition, (0, 0))
        counters = Counters(
            partition=state.partition,
            offset=state.offset,
            read=read,
            routed=read - rejected,
            rejected=rejected,
            committed_read=state.read,
            committed_routed=state.routed,
            committed_rejected=state.rejected,
            ended=state.ended,
        )
        _compare(counters, found)
        _check_state(db, query, state, largest.get(state.partition), found)
        all_counters.append(counters)
    return tuple(all_counters)


def _compare(counters: Counters, found: Findings) -> None:
    for name in ("read", "routed", "rejected"):
        here, there = getattr(counters, name), getattr(counters, f"committed_{name}")
        if here != there:
            found.add(_off("counters", counters.partition, name, here, there, "the committed counter is off"))
    total = counters.committed_routed + counters.committed_rejected
    if counters.committed_read != total:
        detail = "committed read is not routed + rejected"
        found.add(_off("counters", counters.partition, "read", total, counters.committed_read, detail))


def _check_state(
    db: duckdb.DuckDBPyConnection, query: Query, state: Committed, largest: int | None, found: Findings
) -> None:
    """Maximum, mark and end as they follow from the records; the markers' tuple counts."""
    if state.max_time != largest:
        found.add(
            _off("state", state.partition, "max_time", largest, state.max_time, "the committed maximum")
        )
    end = end_of(db, state.partition)
    if (end is not None) != state.ended:
        detail = "whether the partition has ended"
        found.add(_off("state", state.partition, "ended", str(end is not None), str(state.ended), detail))
    delay = query.out_of_orderness + query.allowed_lateness
    own = NO_MARK if largest is None else largest - delay
    mark = END_MARK if end is not None else own if state.idle_mark is None else max(own, state.idle_mark)
    if mark != state.mark:
        found.add(_off("state", state.partition, "mark", mark, state.mark, "the committed mark"))
    if end is not None:
        (row,) = db.execute(
            'SELECT count(*) FROM records WHERE marker IS NULL AND partition = ? AND "offset" < ?',
            [state.partition, end.offset],
        ).fetchall()
        if row[0] != end.announced:
            detail = "the producers' markers announce another number of tuples than the partition holds"
            found.add(_off("counters", state.partition, "tuples", end.announced, row[0], detail))


def _off(
    kind: str, partition: int, name: str, expected: int | str | None, got: int | str | None, detail: str
) -> Difference:
    return Difference(kind=kind, detail=detail, partition=partition, column=name, expected=expected, got=got)
