"""Was every tuple rejected that came late, and no other? A tuple is late by its partition's own mark
(`late`), or by the mark that the partition got while it was idle (`idle`).

`late` follows from the input alone: the mark is the largest accepted event time before the tuple, less the
delay. The delay of each tuple is that of its offset (`delays`), and the marks of the accepted tuples are in
view `marked`.

`idle` does not follow from the input, because the clock decided when a partition became idle, and which other
partition gave it a mark. For each idle rejection this can be checked:
* The rejection names the mark that the tuple was held against.
* The tuple's pane had ended by that mark, and not by the partition's own mark.
* Some input partition had that mark. Idle marks are copied from another partition, so each is an accepted
  event time less the delay that held at its offset.
* The mark does not exceed the last idle mark that was committed.
* The marks of a partition only grow from one rejection to the next.
* No later tuple of a pane that had ended by that mark was let through.

Two things cannot be checked: that the partition had really been silent for `idle_timeout`, and that the mark
was that of the slowest partition at that moment. Both change which tuples are rejected. Neither changes the
results of the tuples that were not rejected.
"""

from __future__ import annotations

import duckdb

from evenflow.settings import Query
from workbench.verify.inputs import NO_MARK
from workbench.verify.report import Difference, Findings, missed, wrong
from workbench.verify.sql import pane_end, scalar, stream


def check_lateness(db: duckdb.DuckDBPyConnection, query: Query, findings: Findings) -> None:
    """Check the rejections as `late` and `idle`.
    Needs `marked`, and tables `rejected`, `committed` and `lost`.
    """
    _judge(db, query.origin.slide_ms)
    _given_marks(db)
    _claims(db)
    _late(db, findings)
    _idle(db, findings)
    _growing(db, findings)
    _let_through(db, query.origin.slide_ms, findings)
    _committed_marks(db, findings)


def _judge(db: duckdb.DuckDBPyConnection, slide: int) -> None:
    """Table `judged`: the tuples that are late or might be late.

    low, high: bounds (ms) of the partition's own mark before the tuple. They differ only where tuples were
    lost.
    """
    # greatest() skips nulls, so `high` is `low` where nothing was lost.
    db.execute(f"""CREATE TABLE judged AS
            SELECT j.* EXCLUDE (own), own AS low, greatest(own, l.mark) AS high,
                   r.mark AS claimed, c.idle_mark
            FROM (SELECT partition, "offset", reason, {pane_end(slide)} AS pane_end,
                         max(CASE WHEN reason IS NULL THEN own END) OVER (
                             PARTITION BY partition ORDER BY "offset"
                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS own
                  FROM marked) j
            JOIN committed c ON c.partition = j.partition
            LEFT JOIN lost l ON l.partition = j.partition
            LEFT JOIN rejected r ON r.partition = j.partition AND r."offset" = j."offset"
            WHERE j.pane_end <= own OR j.reason IN ('late', 'idle')""")


def _given_marks(db: duckdb.DuckDBPyConnection) -> None:
    """Table `given`: the marks that rejections or the committed state name, and that some partition did
    have.
    """
    # Where `low` is null the partition has no mark yet. `claimed - 1` then makes the comparison true.
    db.execute(
        "CREATE TABLE questioned AS SELECT DISTINCT claimed AS mark FROM judged WHERE reason IN ('late',"
        " 'idle') AND claimed > coalesce(low, claimed - 1) UNION SELECT idle_mark FROM"
        " committed WHERE idle_mark IS NOT NULL"
    )
    db.execute("CREATE TABLE given (mark BIGINT)")
    # The search for them goes through all tuples, so it is left out if no mark is in question.
    if scalar(db, "SELECT count(*) FROM questioned"):
        db.execute("""INSERT INTO given SELECT DISTINCT own FROM (
                   SELECT own, max(own) OVER (
                       PARTITION BY partition ORDER BY "offset"
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
                   FROM marked WHERE reason IS NULL)
               WHERE own > coalesce(before, own - 1) AND own IN (SELECT mark FROM questioned)""")
    # A mark that came from a lost tuple cannot be looked up, so it is believed.
    db.execute("INSERT INTO given SELECT mark FROM questioned WHERE mark <= (SELECT max(mark) FROM lost)")


def _claims(db: duckdb.DuckDBPyConnection) -> None:
    """Table `claims`: the rejections, each with the mark that it names.

    fine: whether that mark can have been in force, and makes the tuple late.
    """
    db.execute("""CREATE TABLE claims AS
           SELECT *, coalesce(claimed >= pane_end AND CASE reason
                WHEN 'late' THEN pane_end <= high AND (claimed BETWEEN coalesce(low, claimed) AND high
                                                       OR claimed > high AND granted)
                WHEN 'idle' THEN pane_end > coalesce(low, pane_end - 1) AND granted END, false) AS fine
           FROM (SELECT *, claimed <= idle_mark AND claimed IN (SELECT mark FROM given) AS granted
                 FROM judged WHERE reason IN ('late', 'idle'))""")


def _late(db: duckdb.DuckDBPyConnection, findings: Findings) -> None:
    for partition, offset, end, mark in stream(
        db,
        'SELECT partition, "offset", pane_end, low FROM judged WHERE reason IS NULL AND pane_end <= low ORDER'
        " BY ALL",
    ):
        findings.add(missed(partition, offset, f"late: its pane ended at {end}, the mark was {mark}"))
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
        findings.add(wrong(partition, offset, detail))


def _idle(db: duckdb.DuckDBPyConnection, findings: Findings) -> None:
    for partition, offset, end, own, claimed, last in stream(
        db,
        'SELECT partition, "offset", pane_end, low, claimed, idle_mark FROM claims '
        "WHERE reason = 'idle' AND NOT fine ORDER BY ALL",
    ):
        findings.add(wrong(partition, offset, "rejected as idle, " + _why_not_idle(end, own, claimed, last)))


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


def _growing(db: duckdb.DuckDBPyConnection, findings: Findings) -> None:
    """Rejections by a mark below the mark of an earlier rejection in the same partition."""
    for partition, offset, mark, before in stream(
        db,
        """SELECT partition, "offset", claimed, before FROM (
               SELECT *, max(claimed) OVER (PARTITION BY partition ORDER BY "offset"
                                            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
               FROM claims WHERE fine)
           WHERE claimed < before ORDER BY ALL""",
    ):
        detail = f"rejected by mark {mark} after one was rejected by {before}: marks only grow"
        findings.add(wrong(partition, offset, detail))


def _let_through(db: duckdb.DuckDBPyConnection, slide: int, findings: Findings) -> None:
    """Tuples that were accepted although an earlier rejection had a mark by which their panes had ended."""
    # The ASOF join finds the last such rejection before each tuple. Marks up to the partition's own are left
    # out, because `_late` checks all tuples against these.
    for partition, offset, end, mark in stream(
        db,
        f"""SELECT t.partition, t."offset", {pane_end(slide)} AS pane_end, c.claimed
            FROM readable t ASOF JOIN (SELECT * FROM claims WHERE fine AND claimed > coalesce(high, {NO_MARK})) c
              ON t.partition = c.partition AND t."offset" > c."offset"
            WHERE t.reason IS NULL AND {pane_end(slide)} <= c.claimed ORDER BY ALL""",
    ):
        detail = f"idle: its pane ended at {end}, one before it was held against mark {mark}"
        findings.add(missed(partition, offset, detail))


def _committed_marks(db: duckdb.DuckDBPyConnection, findings: Findings) -> None:
    for partition, mark in stream(
        db,
        "SELECT partition, idle_mark FROM committed WHERE idle_mark IS NOT NULL "
        "AND idle_mark NOT IN (SELECT mark FROM given) ORDER BY ALL",
    ):
        detail = "the committed idle mark is one that no input partition has had"
        findings.add(
            Difference(kind="state", detail=detail, partition=partition, column="idle_mark", got=mark)
        )
