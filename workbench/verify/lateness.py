"""Was what came late rejected, and only that? Late by the partition's own tuples, or by a mark it got while idle.

`late` follows from the input alone: the largest accepted event time before a tuple, less the delay, is the mark.

`idle` does not: when a partition was put to sleep, and by which of the others, was decided by the clock. What can
be checked of each idle rejection is that it names the mark that it was held against, that the tuple's pane had
ended by that mark and not by the partition's own, that some input partition did have that mark (idle marks are
copied from another partition, so each is an accepted event time less the delay), that it does not exceed the last
one committed, that the marks of a partition only grow from one rejection to the next, and that no later tuple
behind it was let through. What cannot be checked: that the partition had really been silent for idle_timeout, and
that the mark was that of the slowest partition at that moment. Both change which tuples are rejected, never
whether results are those of the tuples that were not.
"""

from __future__ import annotations

import duckdb

from evenflow.settings import Query
from workbench.verify.inputs import NO_MARK
from workbench.verify.report import Difference, Findings, missed, wrong
from workbench.verify.sql import pane_end, scalar, stream


def check_lateness(db: duckdb.DuckDBPyConnection, query: Query, found: Findings) -> None:
    """Needs `readable`, `rejected`, `committed` and `lost`."""
    delay = query.out_of_orderness + query.allowed_lateness
    _judge(db, query.origin.slide_ms, delay)
    _given_marks(db, delay)
    _claims(db, delay)
    _late(db, found)
    _idle(db, found)
    _growing(db, found)
    _let_through(db, query.origin.slide_ms, found)
    _committed_marks(db, delay, found)


def _judge(db: duckdb.DuckDBPyConnection, slide: int, delay: int) -> None:
    """Tuples that are or might be late. low, high: bounds of the own mark. They differ where tuples were lost."""
    db.execute(
        f"""CREATE TABLE judged AS
            SELECT j.*, largest - {delay} AS low, greatest(largest, l.until) - {delay} AS high,
                   r.mark AS claimed, c.idle_mark
            FROM (SELECT partition, "offset", reason, {pane_end(slide)} AS pane_end,
                         max(CASE WHEN reason IS NULL THEN time END) OVER (
                             PARTITION BY partition ORDER BY "offset"
                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS largest
                  FROM readable) j
            JOIN committed c ON c.partition = j.partition
            LEFT JOIN lost l ON l.partition = j.partition
            LEFT JOIN rejected r ON r.partition = j.partition AND r."offset" = j."offset"
            WHERE j.pane_end <= largest - {delay} OR j.reason IN ('late', 'idle')"""
    )


def _given_marks(db: duckdb.DuckDBPyConnection, delay: int) -> None:
    """Table `given`: those of the marks in question that some partition did have."""
    db.execute(
        "CREATE TABLE questioned AS SELECT DISTINCT claimed AS mark FROM judged WHERE reason IN ('late', 'idle') "
        "AND claimed > coalesce(low, claimed - 1) UNION SELECT idle_mark FROM committed WHERE idle_mark IS NOT NULL"
    )
    db.execute("CREATE TABLE given (mark BIGINT)")
    if scalar(db, "SELECT count(*) FROM questioned"):
        db.execute(
            f"""INSERT INTO given SELECT DISTINCT time - {delay} FROM (
                    SELECT time, max(time) OVER (
                        PARTITION BY partition ORDER BY "offset"
                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
                    FROM readable WHERE reason IS NULL)
                WHERE time > coalesce(before, time - 1) AND time - {delay} IN (SELECT mark FROM questioned)"""
        )
    # a mark that came from a lost tuple cannot be looked up
    db.execute(
        f"INSERT INTO given SELECT mark FROM questioned WHERE mark <= (SELECT max(until) FROM lost) - {delay}"
    )


def _claims(db: duckdb.DuckDBPyConnection, delay: int) -> None:
    """Rejections and the mark each was held against. `fine`: such a mark can have been in force there."""
    db.execute(
        """CREATE TABLE claims AS
           SELECT *, coalesce(claimed >= pane_end AND CASE reason
                WHEN 'late' THEN pane_end <= high AND (claimed BETWEEN coalesce(low, claimed) AND high
                                                       OR claimed > high AND granted)
                WHEN 'idle' THEN pane_end > coalesce(low, pane_end - 1) AND granted END, false) AS fine
           FROM (SELECT *, claimed <= idle_mark AND claimed IN (SELECT mark FROM given) AS granted
                 FROM judged WHERE reason IN ('late', 'idle'))"""
    )


def _late(db: duckdb.DuckDBPyConnection, found: Findings) -> None:
    for partition, offset, end, mark in stream(
        db,
        'SELECT partition, "offset", pane_end, low FROM judged WHERE reason IS NULL AND pane_end <= low ORDER BY ALL',
    ):
        found.add(missed(partition, offset, f"late: its pane ended at {end}, the mark was {mark}"))
    for partition, offset, end, mark, claimed in stream(
        db,
        'SELECT partition, "offset", pane_end, high, claimed FROM claims '
        "WHERE reason = 'late' AND NOT fine ORDER BY ALL",
    ):
        if mark is None or end > mark:
            detail = f"rejected as late, but its pane ends at {end}, the mark was {mark}"
        elif claimed is None:
            detail = "rejected as late without the mark that it was held against"
        else:
            detail = f"rejected as late by mark {claimed}, but the mark was {mark}"
        found.add(wrong(partition, offset, detail))


def _idle(db: duckdb.DuckDBPyConnection, found: Findings) -> None:
    for partition, offset, end, own, claimed, last in stream(
        db,
        'SELECT partition, "offset", pane_end, low, claimed, idle_mark FROM claims '
        "WHERE reason = 'idle' AND NOT fine ORDER BY ALL",
    ):
        found.add(wrong(partition, offset, "rejected as idle, " + _why_not_idle(end, own, claimed, last)))


def _why_not_idle(end: int, own: int | None, claimed: int | None, last: int | None) -> str:
    if claimed is None:
        return "without the mark that it was held against"
    if own is not None and end <= own:
        return f"but its pane ended at {end} and the partition's own mark was {own}: it is late"
    if last is None:
        return "but the partition was never idle"
    if end > claimed:
        return f"but its pane ends at {end}, the mark was {claimed}"
    if claimed > last:
        return f"by mark {claimed}, but the last idle mark is {last}"
    return f"by mark {claimed}, which no input partition has had"


def _growing(db: duckdb.DuckDBPyConnection, found: Findings) -> None:
    for partition, offset, mark, before in stream(
        db,
        """SELECT partition, "offset", claimed, before FROM (
               SELECT *, max(claimed) OVER (PARTITION BY partition ORDER BY "offset"
                                            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
               FROM claims WHERE fine)
           WHERE claimed < before ORDER BY ALL""",
    ):
        detail = f"rejected by mark {mark} after one was rejected by {before}: marks only grow"
        found.add(wrong(partition, offset, detail))


def _let_through(db: duckdb.DuckDBPyConnection, slide: int, found: Findings) -> None:
    for partition, offset, end, mark in stream(
        db,
        f"""SELECT t.partition, t."offset", {pane_end(slide)} AS pane_end, c.claimed
            FROM readable t ASOF JOIN (SELECT * FROM claims WHERE fine AND claimed > coalesce(high, {NO_MARK})) c
              ON t.partition = c.partition AND t."offset" > c."offset"
            WHERE t.reason IS NULL AND {pane_end(slide)} <= c.claimed ORDER BY ALL""",
    ):
        detail = f"idle: its pane ended at {end}, one before it was held against mark {mark}"
        found.add(missed(partition, offset, detail))


def _committed_marks(db: duckdb.DuckDBPyConnection, delay: int, found: Findings) -> None:
    for partition, mark in stream(
        db,
        "SELECT partition, idle_mark FROM committed WHERE idle_mark IS NOT NULL "
        "AND idle_mark NOT IN (SELECT mark FROM given) ORDER BY ALL",
    ):
        detail = "the committed idle mark is one that no input partition has had"
        found.add(Difference(kind="state", detail=detail, partition=partition, column="idle_mark", got=mark))
