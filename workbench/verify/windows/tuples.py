"""How many tuples each result row says that it is made of, compared with the input (rule "a gap is noticed").

A sketch, a maximum or a mean may hide a lost tuple. The number of tuples hides none. So each row of a query
without `count` has the column `_tuples`. With `changes` and `top` some keys of a window have no row. So each
row also has `_tuples_of_all`, which counts the tuples of these keys, too. What remains unseen there: with
`changes`, a bucket that emits no row of any window that a lost tuple belongs to.
"""

from __future__ import annotations

import duckdb

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.plan import TUPLES, TUPLES_OF_ALL
from evenflow.settings import Query, Settings
from workbench.verify.differences import add_differences
from workbench.verify.report import Findings, Tuples
from workbench.verify.windows.buckets import ONE_BUCKET, place_keys


def compare_tuples(db: duckdb.DuckDBPyConnection, settings: Settings, findings: Findings) -> Tuples:
    """Compare the columns that count tuples. Returns how many the rows that are due hold.

    Needs `due`, `expected`, `of_all`, `keys`, `got` and `single`.
    """
    query = settings.query
    columns = column_places(query)
    if TUPLES in columns:
        _of_rows(db, query, f"a{columns[TUPLES]}", findings)
    if TUPLES_OF_ALL in columns:
        # With `top` one task merges the leaders of all buckets, so the number counts all keys of the window.
        place_keys(db, settings.buckets if query.emission.mode == "changes" else ONE_BUCKET)
        _of_all(db, query, f"a{columns[TUPLES_OF_ALL]}", findings)
    return _totals(db, query, f"a{columns[TUPLES]}" if TUPLES in columns else f"a{_count(query)}")


def column_places(query: Query) -> dict[str, int]:
    """Column of `AggregatePlan.tuples_schema` -> its number among the values of `got` and `single`."""
    first = len(query.aggregates) + len(query.emission.columns)
    return {name: first + i for i, name in enumerate(AggregatePlan.of(query).tuples_schema.names)}


def _count(query: Query) -> int:
    """Number of the aggregate that counts all tuples. There is one wherever rows have no `_tuples`."""
    return next(
        i for i, spec in enumerate(query.aggregates.values()) if spec.function == "count" and not spec.column
    )


def _of_rows(db: duckdb.DuckDBPyConnection, query: Query, column: str, findings: Findings) -> None:
    add_differences(
        db,
        findings,
        "value",
        f'SELECT key, e.window_end, e.tuples AS e, s.{column} AS g, s.partition, s."offset" FROM expected e '
        "JOIN single s ON s.id = e.id AND s.window_end = e.window_end "
        f"AND s.window_start = s.window_end - {query.window} JOIN keys ON keys.id = e.id "
        f"WHERE e.tuples IS DISTINCT FROM s.{column}",
        detail="the row is made of another number of tuples than the input has",
        column=TUPLES,
        window=query.window,
    )


def _of_all(db: duckdb.DuckDBPyConnection, query: Query, column: str, findings: Findings) -> None:
    """One difference for each number that is wrong, because all rows of a window
    and bucket have the same number.
    """
    # A bucket without tuples in the window has no row in `of_all`. The outer join gives null for it, which
    # stands for 0.
    add_differences(
        db,
        findings,
        "value",
        f"SELECT min(key) AS key, d.window_end, coalesce(any_value(o.tuples), 0) AS e, s.{column} AS g,"
        ' min(s.partition) AS partition, min(s."offset") AS "offset" FROM expected d JOIN single s ON s.id ='
        f" d.id AND s.window_end = d.window_end AND s.window_start = s.window_end - {query.window} JOIN keys"
        " ON keys.id = d.id JOIN bucketed b ON b.id = d.id LEFT JOIN of_all o ON o.bucket = b.bucket AND"
        f" o.window_end = d.window_end GROUP BY b.bucket, d.window_end, s.{column} HAVING"
        f" coalesce(any_value(o.tuples), 0) IS DISTINCT FROM s.{column}",
        detail=(
            "all keys of the window together have another number of tuples in the input"
            if query.emission.mode == "top"
            else "all keys of this key's bucket together have another number of tuples in the input"
        ),
        column=TUPLES_OF_ALL,
        window=query.window,
    )


def _totals(db: duckdb.DuckDBPyConnection, query: Query, column: str) -> Tuples:
    due, merged = db.execute(
        f"SELECT coalesce(sum(e.tuples), 0), coalesce(sum(s.{column}), 0) FROM due e "
        "LEFT JOIN single s ON s.id = e.id AND s.window_end = e.window_end "
        f"AND s.window_start = s.window_end - {query.window} WHERE e.sure OR s.id IS NOT NULL"
    ).fetchall()[0]
    return Tuples(due=int(due), merged=int(merged))
