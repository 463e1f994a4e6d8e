"""Was each rejection right, and was everything rejected that had to be?

Each input partition is judged by itself, in offset order. Progress comes from the tuples that were not
rejected: so a wrong rejection is reported once, and does not make those after it look wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from evenflow.settings import Query, Settings
from workbench.verify.inputs import REASONS, Committed
from workbench.verify.records import floor_divided
from workbench.verify.report import Difference, Findings


@dataclass(frozen=True)
class End:
    """Where a partition ended: offset of the last marker it took; `announced` tuples by its producers."""

    offset: int
    announced: int


def check_rejections(
    db: duckdb.DuckDBPyConnection, settings: Settings, committed: Sequence[Committed], found: Findings
) -> None:
    """Everything about the rejected topic but its counters."""
    ends = {state.partition: end_of(db, state.partition) for state in committed}
    _sources(db, found)
    _unreadable(db, found)
    _after_end(db, ends, found)
    _late_and_idle(db, settings.query, found)
    if settings.query.max_jump is not None:
        for state in committed:
            _jumps(db, settings.query, state.partition, found)
    else:
        for partition, offset in _query(db, "SELECT partition, \"offset\" FROM tuples WHERE reason = 'jump'"):
            found.add(_wrong(partition, offset, "rejected as jump, but max_jump is off"))


def end_of(db: duckdb.DuckDBPyConnection, partition: int) -> End | None:
    """Where every announced producer of the partition had ended; None if they have not."""
    tuples: dict[str, int] = {}
    announced = 0
    rows = _query(
        db,
        'SELECT "offset", marker.producer, marker.tuples, marker.producers FROM records '
        'WHERE marker IS NOT NULL AND partition = ? ORDER BY "offset"',
        [partition],
    )
    for offset, producer, count, producers in rows:
        if producer in tuples:
            continue
        tuples[producer] = count
        announced = max(announced, producers)
        if len(tuples) >= announced:
            return End(offset, sum(tuples.values()))
    return None


def _sources(db: duckdb.DuckDBPyConnection, found: Findings) -> None:
    """Every rejected record stands for one input record, once, with a known reason, unchanged."""
    for partition, offset, count in _query(
        db, 'SELECT partition, "offset", count(*) FROM rejected GROUP BY ALL HAVING count(*) > 1'
    ):
        found.add(_wrong(partition, offset, f"rejected {count} times"))
    for partition, offset, reason in _query(
        db,
        'SELECT r.partition, r."offset", r.reason FROM rejected r '
        'LEFT JOIN records i ON i.partition = r.partition AND i."offset" = r."offset" '
        "WHERE i.partition IS NULL OR i.marker IS NOT NULL ORDER BY ALL",
    ):
        found.add(_wrong(partition, offset, f"rejected as {reason}, but there is no such input record"))
    for partition, offset, reason in _query(
        db,
        'SELECT partition, "offset", reason FROM rejected WHERE reason IS NULL OR reason NOT IN '
        f"({', '.join(repr(reason) for reason in REASONS)}) ORDER BY ALL",
    ):
        found.add(_wrong(partition, offset, f"rejected for an unknown reason: {reason!r}"))
    for partition, offset in _query(
        db,
        'SELECT r.partition, r."offset" FROM rejected r '
        'JOIN records i ON i.partition = r.partition AND i."offset" = r."offset" AND i.marker IS NULL '
        "WHERE r.omitted = false AND "
        "(r.key IS DISTINCT FROM i.raw_key OR r.value IS DISTINCT FROM i.raw_value) ORDER BY ALL",
    ):
        found.add(_wrong(partition, offset, "the rejected record is not the input record unchanged"))


def _unreadable(db: duckdb.DuckDBPyConnection, found: Findings) -> None:
    for partition, offset in _query(
        db, "SELECT partition, \"offset\" FROM strict WHERE readable AND reason = 'unreadable' ORDER BY ALL"
    ):
        found.add(_wrong(partition, offset, "rejected as unreadable, but it is readable"))
    for partition, offset, reason, why in _query(
        db,
        'SELECT partition, "offset", reason, why FROM strict '
        "WHERE NOT readable AND reason IS DISTINCT FROM 'unreadable' ORDER BY ALL",
    ):
        if reason is None:
            detail = f"unreadable ({why}) but not rejected"
            found.add(Difference(kind="unreadable", detail=detail, partition=partition, offset=offset))
        else:
            found.add(_wrong(partition, offset, f"rejected as {reason}, but it is unreadable ({why})"))


def _after_end(db: duckdb.DuckDBPyConnection, ends: dict[int, End | None], found: Findings) -> None:
    for partition, end in ends.items():
        last = 2**62 if end is None else end.offset
        for offset in _query(
            db,
            "SELECT \"offset\" FROM records WHERE partition = ? AND marker IS NULL AND reason = 'after-end' "
            'AND "offset" < ? ORDER BY ALL',
            [partition, last],
        ):
            found.add(_wrong(partition, offset[0], "rejected as after-end, but the partition had not ended"))
        for (offset,) in _query(
            db,
            'SELECT "offset" FROM records WHERE partition = ? AND marker IS NULL '
            "AND reason IS DISTINCT FROM 'after-end' AND \"offset\" > ? ORDER BY ALL",
            [partition, last],
        ):
            found.add(_missed(partition, offset, "comes after every announced producer had ended"))


def _late_and_idle(db: duckdb.DuckDBPyConnection, query: Query, found: Findings) -> None:
    """The rule in one window function: the largest accepted time before each tuple, less the delay."""
    delay = query.out_of_orderness + query.allowed_lateness
    end = f"(({floor_divided('time', query.slide_ms)} + 1) * {query.slide_ms})"
    db.execute(
        f"""CREATE TABLE judged AS
            SELECT j.*, r.mark AS claimed, c.idle_mark FROM (
                SELECT partition, "offset", reason, {end} AS pane_end,
                       max(CASE WHEN reason IS NULL THEN time END) OVER (
                           PARTITION BY partition ORDER BY "offset"
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) - {delay} AS mark
                FROM tuples) j
            JOIN committed c ON c.partition = j.partition
            LEFT JOIN rejected r ON r.partition = j.partition AND r."offset" = j."offset"
            WHERE j.pane_end <= j.mark OR j.reason IN ('late', 'idle')"""
    )
    select = 'SELECT partition, "offset", pane_end, mark, idle_mark, claimed FROM judged WHERE '
    for partition, offset, pane_end, mark, _, _ in _query(
        db, select + "reason IS NULL AND pane_end <= mark ORDER BY ALL"
    ):
        found.add(_missed(partition, offset, f"late: its pane ended at {pane_end}, the mark was {mark}"))
    for partition, offset, pane_end, mark, _, _ in _query(
        db, select + "reason = 'late' AND coalesce(pane_end > mark, true) ORDER BY ALL"
    ):
        found.add(
            _wrong(
                partition, offset, f"rejected as late, but its pane ends at {pane_end}, the mark was {mark}"
            )
        )
    for partition, offset, pane_end, _, idle, _ in _query(
        db, select + "reason = 'idle' AND coalesce(pane_end > idle_mark, true) ORDER BY ALL"
    ):
        found.add(
            _wrong(
                partition,
                offset,
                f"rejected as idle, but its pane ends at {pane_end}, the idle mark is {idle}",
            )
        )
    for partition, offset, _, mark, _, claimed in _query(
        db,
        select + "reason = 'late' AND pane_end <= mark AND claimed IS NOT NULL AND claimed <> mark "
        "AND NOT (claimed > mark AND claimed <= coalesce(idle_mark, claimed - 1)) ORDER BY ALL",
    ):
        found.add(_wrong(partition, offset, f"rejected as late by mark {claimed}, but the mark was {mark}"))


def _jumps(db: duckdb.DuckDBPyConnection, query: Query, partition: int, found: Findings) -> None:
    """Replay rule 5: the last consecutive tuples too far ahead confirm the jump when they lie within max_jump."""
    assert query.max_jump is not None
    cursor = db.cursor()
    cursor.execute(
        'SELECT "offset", time, reason FROM tuples WHERE partition = ? '
        "AND reason IS DISTINCT FROM 'unreadable' ORDER BY \"offset\"",
        [partition],
    )
    progress: int | None = None
    run: list[int] = []
    while rows := cursor.fetchmany(50_000):
        for offset, time, reason in rows:
            jump = progress is None or time - progress > query.max_jump
            if jump:
                run = [*run, time][-query.jump_confirmations :]
                jump = len(run) < query.jump_confirmations or max(run) - min(run) > query.max_jump
            if not jump:
                run = []
            if jump and reason != "jump":
                detail = f"a jump from {progress} to {time} that nothing had confirmed"
                found.add(_missed(partition, offset, detail))
            if not jump and reason == "jump":
                detail = f"rejected as jump, but {time} is no unconfirmed jump from {progress}"
                found.add(_wrong(partition, offset, detail))
            if reason is None and (progress is None or time > progress):
                progress = time


def _wrong(partition: int, offset: int, detail: str) -> Difference:
    return Difference(kind="rejected", detail=detail, partition=partition, offset=offset)


def _missed(partition: int, offset: int, detail: str) -> Difference:
    return Difference(
        kind="not-rejected", detail=f"should have been rejected: {detail}", partition=partition, offset=offset
    )


def _query(
    db: duckdb.DuckDBPyConnection, sql: str, parameters: list[int] | None = None
) -> list[tuple[int, ...]]:
    return db.execute(sql, parameters or []).fetchall()
