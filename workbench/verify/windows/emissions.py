"""The rows that `emit` picks, again: taken from all rows of all windows, by SQL window functions.

Some values are known only to within a tolerance. Then it is not certain whether a row has changed, or which
rank it has. Such a row may be there or not (`sure` is false), and may have any rank that the tolerance
allows. If the row is there, its values are compared all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from evenflow.aggregates import AggregatePlan
from evenflow.expressions.oracle import renamed, rewritten
from evenflow.keys import Buckets
from evenflow.settings import Query
from workbench.verify.windows.buckets import ONE_BUCKET, place_keys
from workbench.verify.windows.oracles import is_number, oracles
from workbench.verify.windows.result_column import Oracle


def pick(db: duckdb.DuckDBPyConnection, query: Query, mark: int, *, buckets: Buckets) -> None:
    """Reduce `expected` from all rows of all windows to the rows that are emitted.

    Adds the columns of `emit` (a*) and `sure`: whether the row must be there. For `top` it also adds `least`
    and `most`, the bounds of the row's rank. If not all rows are emitted, this also makes `of_all` (bucket,
    window_end, tuples): how many tuples all keys have that one task of the reducer counts together. With
    `changes` these are the keys of a bucket. With `top` they are all keys, under bucket 0. mark: event time
    (ms) up to which windows are due. Needs `panes` and `keys`.
    """
    mode = query.emission.mode
    if mode == "all":
        _having(db, query, "expected")
        db.execute("ALTER TABLE expected ADD COLUMN sure BOOLEAN DEFAULT true")
        return
    db.execute("ALTER TABLE expected RENAME TO whole")
    _of_all(db, buckets if mode == "changes" else ONE_BUCKET)
    _having(db, query, "whole")
    if mode == "changes":
        _changes(db, query, mark)
    else:
        _top(db, query)
    db.execute("DROP TABLE whole")


def compared_from(query: Query, begin: int | None) -> int | None:
    """Event time (ms) from which on emitted windows can be compared, if windows that begin at `begin` or
    later are exact.

    With `changes`, a row also depends on the window one slide before, which must be exact too.
    """
    return begin if begin is None or query.emission.mode != "changes" else begin + query.slide_ms


def _having(db: duckdb.DuckDBPyConnection, query: Query, table: str) -> None:
    """Delete from this table the rows for which the condition of a summary is not true.
    It reads exact values only.
    """
    having = AggregatePlan.of(query).having
    if having is not None:
        places = {name: f"a{number}" for number, name in enumerate(query.aggregates)}
        db.execute(
            f"DELETE FROM {table} WHERE NOT coalesce({rewritten(renamed(having.typed, places))}, false)"
        )


def _of_all(db: duckdb.DuckDBPyConnection, buckets: Buckets) -> None:
    place_keys(db, buckets)
    db.execute(
        "CREATE TABLE of_all AS SELECT bucket, window_end, sum(tuples)::HUGEINT AS tuples "
        "FROM whole JOIN bucketed USING (id) GROUP BY ALL"
    )


def _changes(db: duckdb.DuckDBPyConnection, query: Query, mark: int) -> None:
    slide, due = query.slide_ms, oracles(query)
    own = [f"{name}{i}" for i in range(len(due)) for name in ("a", "t")]
    before = ", ".join(f"lag({name}) OVER w AS {name}_" for name in own)
    differ = " OR ".join(_differs(i, oracle) for i, oracle in enumerate(due))
    doubtful = " OR ".join(_may_differ(due)) or "false"
    none = [f"NULL AS a{i}, 0 AS t{i}" for i in range(len(due))]
    # `touched` holds the windows that gain a pane of the key, and those that have just dropped one. In any
    # other window the key's tuples are those of the window before, so nothing may differ. A key that was not
    # in the window before is `fresh`. The second SELECT makes the retractions: one slide after the last
    # window of each unbroken run. The last two columns are the revision, and whether the row is a retraction.
    db.execute(f"""CREATE TABLE expected AS
            WITH beside AS (SELECT *, lag(window_end) OVER w AS end_, {before} FROM whole
                            WINDOW w AS (PARTITION BY id ORDER BY window_end)),
            touched AS (SELECT id, (pane + 1) * {slide} AS window_end FROM panes
                        UNION SELECT id, (pane + 1 + {query.panes_per_window}) * {slide} FROM panes),
            told AS (SELECT b.*, end_ IS DISTINCT FROM b.window_end - {slide} AS fresh, {differ} AS differs,
                            t.id IS NOT NULL AND ({doubtful}) AS may_differ
                     FROM beside b LEFT JOIN touched t ON t.id = b.id AND t.window_end = b.window_end),
            last AS (SELECT id, window_end, lead(window_end) OVER w AS next FROM whole
                     WINDOW w AS (PARTITION BY id ORDER BY window_end))
            SELECT id, window_end, {", ".join(own)}, tuples, unfit, (window_end // {slide})::HUGEINT AS a{len(due)},
                   false AS a{len(due) + 1}, coalesce(fresh OR differs, false) AS sure
            FROM told WHERE fresh OR differs OR may_differ
            UNION ALL
            SELECT id, window_end + {slide}, {", ".join(none)}, 0, 0, (window_end // {slide} + 1)::HUGEINT, true, true
            FROM last WHERE next IS DISTINCT FROM window_end + {slide} AND window_end + {slide} <= {mark}""")


def _differs(i: int, oracle: Oracle) -> str:
    """SQL: whether the value certainly differs from that of the window before."""
    if _exact(oracle):
        return f"a{i} IS DISTINCT FROM a{i}_"
    if oracle.wrong is not None or not is_number(oracle.kind):
        return "false"
    # With an infinite tolerance a null says nothing: the oracle has left large values out (see
    # oracles._spread).
    both = f"abs(t{i}) + abs(t{i}_)"
    apart = f"abs(a{i}::DOUBLE - a{i}_::DOUBLE) > {both}"
    return f"coalesce((a{i} IS NULL) <> (a{i}_ IS NULL) AND {both} < 1e300 OR {apart}, false)"


def _may_differ(due: list[Oracle]) -> Iterator[str]:
    """SQL for each column whose value may or may not differ."""
    for oracle in due:
        if not _exact(oracle):
            yield "true"


def _exact(oracle: Oracle) -> bool:
    return oracle.wrong is None and oracle.tolerance == "0"


def _top(db: duckdb.DuckDBPyConnection, query: Query) -> None:
    """Make `expected` of the rows that may be among the first K of their window."""
    emission, due = query.emission, oracles(query)
    at = list(query.aggregates).index(emission.column)
    value, rank = f"a{at}", f"a{len(due)}"
    if _exact(due[at]):
        last = f"({value} IS NULL)" + (f", isnan({value})" if str(due[at].kind) == "double" else "")
        way = "ASC" if emission.ascending else "DESC"
        db.execute(f"""CREATE TABLE expected AS
                SELECT * EXCLUDE (key, place), place::HUGEINT AS {rank}, true AS sure, place AS least, place AS most FROM (
                    SELECT w.*, key,
                           row_number() OVER (PARTITION BY window_end ORDER BY {last}, {value} {way}, key) AS place
                    FROM whole w JOIN keys USING (id)) WHERE place <= {emission.rows}""")
        return
    sign = "-" if emission.ascending else ""
    worth = f"coalesce(CASE WHEN NOT isnan({value}::DOUBLE) THEN {sign}{value}::DOUBLE END, '-inf'::DOUBLE)"
    # A row's value lies between `low` and `high`. One pass over all these ends, from the largest down, counts
    # for each row how many rows are certainly above it (their `low` is above its `high`), and how many may be
    # (their `high` is not below its `low`). At equal ends a `high` comes first, so that equal values count as
    # "may be".
    wide = "'inf'::DOUBLE" if due[at].wrong is not None else f"abs(t{at}::DOUBLE)"
    db.execute(f"""CREATE TABLE expected AS
            WITH spans AS (SELECT id, window_end, {worth} AS v, {wide} AS t FROM whole),
            ends AS (SELECT id, window_end, CASE WHEN isinf(v) AND isinf(t) THEN '-inf'::DOUBLE ELSE v - t END AS low,
                            CASE WHEN isinf(t) THEN t ELSE v + t END AS high FROM spans),
            points AS (SELECT id, window_end, low AS point, true AS is_low FROM ends
                       UNION ALL SELECT id, window_end, high, false FROM ends),
            counted AS (SELECT *,
                sum(is_low::INTEGER) OVER (PARTITION BY window_end ORDER BY point DESC, is_low
                                           ROWS UNBOUNDED PRECEDING) AS lows,
                sum((NOT is_low)::INTEGER) OVER (PARTITION BY window_end ORDER BY point DESC, is_low
                                                 ROWS UNBOUNDED PRECEDING) AS highs
                FROM points),
            places AS (SELECT id, window_end, min(lows) FILTER (NOT is_low) + 1 AS least,
                              max(highs) FILTER (is_low) AS most FROM counted GROUP BY id, window_end)
            SELECT w.*, NULL::HUGEINT AS {rank}, most <= {emission.rows} AS sure, least, most
            FROM whole w JOIN places USING (id, window_end) WHERE least <= {emission.rows}""")
