"""How far results reach, and which of the due rows are compared.

While the input runs, the reducer may be behind. Windows newer than the newest written one are then pending,
not missing. A dead reducer looks the same for a moment, and only time tells the two apart. So verify waits
for pending windows (shell.py), and windows that have been due for longer than the bound are a finding. The
bound is processing time by verify's own clock. How far results are behind in event time is only reported: it
says nothing when data are replayed faster than they were recorded.

Where retention has deleted results, a row that is not there was either deleted or never written. A bucket
emits its windows in order. So among the rows of one bucket in one partition, every row newer than the oldest
row that is left was written after that row, and cannot have been deleted. Only older rows are doubtful. All
others are compared.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from evenflow.keys import Buckets
from evenflow.settings import Query
from workbench.verify.report import Reach
from workbench.verify.sql import scalar
from workbench.verify.windows.buckets import place_keys

_ANYWHERE = -1
"""Stands for the partition of typed results, which do not say where they lie."""


def find_doubtful(db: duckdb.DuckDBPyConnection, buckets: Buckets, begins: Mapping[int, int]) -> int:
    """Make `doubtful` (id, window_end): due rows that are not there and may have been deleted.
    Returns their number.

    begins: first offset that is left of each partition of the results. Needs `expected`, `keys` and `single`.
    """
    db.execute("CREATE OR REPLACE TABLE doubtful (id BIGINT, window_end BIGINT)")
    trimmed = [partition for partition, first in begins.items() if first > 0]
    if not trimmed:
        return 0
    place_keys(db, buckets)
    # A key with rows is judged by its own partition. A key without rows may lie in any trimmed partition
    # (`anywhere`), so it is judged by the newest bound among them, and is doubtful throughout if one of them
    # has no row of its bucket.
    placed = bool(scalar(db, "SELECT count(partition) FROM single"))
    listed = ", ".join(f"({partition})" for partition in (trimmed if placed else [_ANYWHERE]))
    db.execute(f"""INSERT INTO doubtful
            WITH trimmed AS (SELECT col0 AS place FROM (VALUES {listed})),
            rows AS (SELECT s.id, b.bucket, window_end, coalesce(partition, {_ANYWHERE}) AS place
                     FROM single s JOIN bucketed b USING (id)),
            oldest AS (SELECT place, bucket, min(window_end) AS window_end FROM rows SEMI JOIN trimmed USING (place)
                       GROUP BY ALL),
            anywhere AS (SELECT bucket, CASE WHEN count(o.bucket) = count(*) THEN max(o.window_end) END AS window_end
                         FROM trimmed CROSS JOIN (SELECT DISTINCT bucket FROM bucketed)
                         LEFT JOIN oldest o USING (place, bucket) GROUP BY bucket),
            places AS (SELECT id, any_value(place) AS place FROM rows GROUP BY id)
            SELECT e.id, e.window_end FROM expected e
            JOIN bucketed b USING (id)
            LEFT JOIN places p ON p.id = e.id
            LEFT JOIN oldest o ON o.place = p.place AND o.bucket = b.bucket
            LEFT JOIN anywhere a ON a.bucket = b.bucket
            ANTI JOIN single s ON s.id = e.id AND s.window_end = e.window_end
            WHERE CASE WHEN p.place IS NULL THEN coalesce(e.window_end <= a.window_end, true)
                       ELSE coalesce(e.window_end <= o.window_end, false) END""")
    return int(scalar(db, "SELECT count(*) FROM doubtful"))


def find_due(
    db: duckdb.DuckDBPyConnection, query: Query, *, now: int, ended: bool, seconds: float, bound: float
) -> Reach:
    """Make view `due`: the expected rows that must be there. Pending and doubtful rows are not in it.

    now: mark (ms) when the results had been read. ended: whether the input has ended. seconds: time since the
    marks that make windows due were read. bound: for how many seconds windows may be pending.
    """
    newest, behind_newest = db.execute(
        f"SELECT max(window_end), max(window_end) FILTER (window_end <= {now}) FROM single "
        f"WHERE window_start = window_end - {query.window}"
    ).fetchall()[0]
    certain = "(SELECT * FROM expected ANTI JOIN doubtful USING (id, window_end))"
    oldest, last = db.execute(f"SELECT min(window_end), max(window_end) FROM {certain}").fetchall()[0]
    written = newest if ended else behind_newest
    # After the end of the input all due windows are compared. Before it, those up to the newest written one,
    # or none.
    limit = last if ended or last is None else written if written is not None else oldest - 1
    pending = 0
    if last is not None and limit < last:
        pending = int(
            scalar(db, f"SELECT count(DISTINCT window_end) FROM {certain} WHERE window_end > {limit}")
        )
    compared = "" if limit is None else f" WHERE window_end <= {limit}"
    db.execute(f"CREATE OR REPLACE VIEW due AS SELECT * FROM {certain}{compared}")
    # Without any result, results are taken to reach the window before the oldest due one.
    since = written if written is not None else None if oldest is None else oldest - query.slide_ms
    return Reach(
        written=written,
        due=last,
        windows=pending,
        behind=last - since if pending and last is not None and since is not None else 0,
        seconds=seconds,
        bound=bound,
    )
