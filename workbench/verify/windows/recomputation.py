"""The windows again, from the tuples that were not rejected: panes, then windows, all in SQL.

A pane's row stands for the windows that end with this pane and with the empty panes after it. A RANGE frame
looks back over the window, so the work is O(result rows). A tuple is copied into each of its windows only for
aggregates that cannot be computed from totals (`Oracle.whole`).
"""

from __future__ import annotations

from contextlib import ExitStack

import duckdb

from evenflow.expressions.oracle import opened
from evenflow.grammar.column_types import ColumnType, decimal_scale
from evenflow.settings import Query, Settings
from workbench.verify.inputs import END_MARK
from workbench.verify.sql import floor_divided, scalar
from workbench.verify.windows import emissions
from workbench.verify.windows.oracles import oracles, sql_type
from workbench.verify.windows.result_column import Oracle


def recompute(
    db: duckdb.DuckDBPyConnection, settings: Settings, mark: int, compared_from: int | None = None
) -> int:
    """Make `panes`, `keys`, `skipped` and `expected`. Returns the number of open windows. Needs `tuples`.

    `expected` has a row for each window and key: the window's end, the key's id, values a*, tolerances t*,
    `tuples` (how many the key has in the window), `unfit` (how many of the values are null because they do
    not fit), and what `emissions.pick` adds. mark: event time (ms) up
    to which windows are due. compared_from: windows that begin before this event time (ms) are in `skipped`
    only. None: all windows are expected.
    """
    query = settings.query
    every_row(db, query, mark)
    emit(db, settings, mark, compared_from)
    return open_windows(db, query, mark)


def every_row(db: duckdb.DuckDBPyConnection, query: Query, mark: int, *, tuples: str = "tuples") -> None:
    """Make `panes`, `keys` and `expected`, which has every row of every window that is due.

    tuples: name of the table with the tuples.
    """
    _panes(db, query, tuples)
    db.execute(
        "CREATE TABLE keys AS SELECT key, row_number() OVER ()::BIGINT AS id"
        " FROM (SELECT DISTINCT key FROM panes)"
    )
    db.execute("ALTER TABLE panes RENAME TO panes_by_key")
    db.execute("CREATE TABLE panes AS SELECT id, p.* EXCLUDE (key) FROM panes_by_key p JOIN keys USING (key)")
    db.execute("DROP TABLE panes_by_key")
    _windows(db, query, mark, tuples)


def emit(db: duckdb.DuckDBPyConnection, settings: Settings, mark: int, compared_from: int | None) -> None:
    """Reduce `expected` to the rows that come out and are compared, and make `skipped`.
    Parameters as in `recompute`.
    """
    query = settings.query
    emissions.pick(db, query, mark, buckets=settings.buckets)
    begin = emissions.compared_from(query, compared_from)
    early = "false" if begin is None else f"window_end < {begin + query.window}"
    db.execute(f"CREATE TABLE skipped AS SELECT DISTINCT window_end FROM expected WHERE {early}")
    db.execute(f"DELETE FROM expected WHERE {early}")


def last_due_pane(query: Query, mark: int) -> int:
    """Index of the last pane that ended at or before the mark."""
    return mark // query.slide_ms - 1


def first_emitted_pane(query: Query) -> int:
    """Index of the first pane that a window may end with. Windows that end earlier begin before
    `emit_from`.
    """
    if query.emit_from is None:
        return -END_MARK
    # Twice negated, // rounds up.
    return -((-(query.emit_from + query.window)) // query.slide_ms) - 1


def _panes(db: duckdb.DuckDBPyConnection, query: Query, tuples: str) -> None:
    parts = ["count(*)::BIGINT AS rows"]
    for i, kind in enumerate(query.value_columns.values()):
        parts += [f"count(v{i})::BIGINT AS n{i}", f"min(v{i}) AS lo{i}", f"max(v{i}) AS hi{i}"]
        if _is_number(kind):
            total = "fsum" if kind == "float64" else "sum"
            parts += [f"{total}(v{i}) AS s{i}", f"sum(abs(v{i}::DOUBLE)) AS m{i}"]
    db.execute(
        f"CREATE TABLE panes AS SELECT {_group(query)} AS key, {floor_divided('time', query.slide_ms)} AS"
        f" pane, {', '.join(parts)} FROM {tuples} AS tuples WHERE reason IS NULL AND chosen AND"
        f" {_group(query)} IS NOT NULL GROUP BY ALL"
    )


def _group(query: Query) -> str:
    """SQL of the bytes that a tuple is grouped by: its key,
    or the value of the column that a view has for it.
    """
    if query.own_key is None:
        return "tuples.key"
    return f"encode(v{list(query.value_columns).index(query.own_key)}::VARCHAR)"


def _windows(db: duckdb.DuckDBPyConnection, query: Query, mark: int, tuples: str) -> None:
    span = query.panes_per_window
    columns = list(query.value_columns)
    names = ["rows"]
    for i, kind in enumerate(query.value_columns.values()):
        names += [f"{name}{i}" for name in ("n", "lo", "hi", *(("s", "m") if _is_number(kind) else ()))]
    first, last = first_emitted_pane(query), last_due_pane(query, mark)
    if span == 1:
        db.execute(
            f"CREATE VIEW totals AS SELECT id, pane AS last, {', '.join(names)} FROM panes "
            f"WHERE pane BETWEEN {first} AND {last}"
        )
    else:
        # `stop` is the first pane that this row need not stand for: the next pane of the key has a row of its
        # own, and after `span` panes the window is empty. The copies hold nulls (`slot_columns`), so that a
        # pane is totalled once.
        over = {"lo": "min", "hi": "max"}
        frames = [
            f"{_folded(name, columns, query) if name[:2] not in over else over[name[:2]]}({name}) OVER w AS"
            f" {name}"
            for name in names
        ]
        slot_columns = [f"CASE WHEN last = pane THEN {name} END AS {name}" for name in names]
        db.execute(f"""CREATE VIEW totals AS
                WITH followed AS (
                    SELECT *, least(coalesce(lead(pane) OVER (PARTITION BY id ORDER BY pane), pane + {span}),
                                    pane + {span}, {last} + 1) AS stop
                    FROM panes WHERE pane <= {last}),
                spread AS (SELECT *, unnest(range(pane, stop)) AS last FROM followed),
                slots AS (SELECT id, last, {", ".join(slot_columns)} FROM spread)
                SELECT * FROM (
                    SELECT id, last, {", ".join(frames)} FROM slots
                    WINDOW w AS (PARTITION BY id ORDER BY last
                                 RANGE BETWEEN {span - 1} PRECEDING AND CURRENT ROW))
                WHERE last >= {first}""")
    due = oracles(query)
    joined = "totals"
    if any(oracle.whole for oracle in due):
        _whole(db, query, due, (first, last), tuples)
        joined = "totals LEFT JOIN wholes USING (id, last)"
    values = [
        (
            f"CAST({f'a{i}' if oracle.whole else oracle.value} AS {sql_type(oracle.kind)}) AS a{i}, "
            f"{f't{i}' if oracle.whole else oracle.tolerance} AS t{i}"
            if oracle.wrong is None
            else f"a{i}, t{i}"
        )
        for i, oracle in enumerate(due)
        if not oracle.after
    ]
    unfit = " + ".join(
        f"coalesce({f'u{i}' if oracle.whole else oracle.unfit}, false)::INTEGER"
        for i, oracle in enumerate(due)
        if not oracle.after
    )
    select_sql = (
        f"SELECT id, (last + 1) * {query.slide_ms} AS window_end, {', '.join(values)}, rows::HUGEINT AS"
        f" tuples, {unfit} AS unfit FROM {joined}"
    )
    after = {i: oracle for i, oracle in enumerate(due) if oracle.after}
    if after:
        opened(db)
        more = ", ".join(
            f"CAST({oracle.value} AS {sql_type(oracle.kind)}) AS a{i}, {oracle.tolerance} AS t{i}"
            for i, oracle in after.items()
        )
        wrong = " + ".join(f"coalesce({oracle.unfit}, false)::INTEGER" for oracle in after.values())
        select_sql = f"SELECT * EXCLUDE (unfit), {more}, unfit + {wrong} AS unfit FROM ({select_sql})"
    db.execute(f"CREATE TABLE expected AS {select_sql}")


def _whole(
    db: duckdb.DuckDBPyConnection, query: Query, due: list[Oracle], ends: tuple[int, int], tuples: str
) -> None:
    """Make `wholes` (id, last, a*, t*, u*): the values over the tuples of each window that ends
    with pane `last`.

    ends: the first and the last pane that a window ends with. tuples: name of the table with the tuples.
    """
    first, last = ends
    columns = "".join(f", v{i}" for i in range(len(query.value_columns)))
    outputs = [
        f"{oracle.value} AS a{i}, {oracle.tolerance} AS t{i}, {oracle.unfit} AS u{i}"
        for i, oracle in enumerate(due)
        if oracle.whole
    ]
    pane = floor_divided("time", query.slide_ms)
    with ExitStack() as functions:
        for oracle in due:
            if oracle.function is not None:
                functions.enter_context(oracle.function.registered(db))
        db.execute(
            f"""CREATE TABLE wholes AS
                WITH placed AS (SELECT id, time, {pane} AS pane{columns} FROM {tuples} AS tuples
                                JOIN keys ON keys.key = {_group(query)}
                                WHERE reason IS NULL AND chosen),
                members AS (SELECT id, time, unnest(range(pane, pane + {query.panes_per_window})) AS last{columns}
                            FROM placed)
                SELECT id, last, {", ".join(outputs)} FROM members WHERE last BETWEEN {first} AND {last} GROUP BY id, last"""
        )


def _is_number(kind: ColumnType) -> bool:
    return kind in ("int64", "float64") or decimal_scale(kind) is not None


def _folded(name: str, columns: list[str], query: Query) -> str:
    """The SQL function that totals a pane column: fsum (Kahan's summation) for floats, else sum."""
    is_float_sum = name[0] == "s" and query.value_columns[columns[int(name[1:])]] == "float64"
    return "fsum" if is_float_sum else "sum"


def open_windows(db: duckdb.DuckDBPyConnection, query: Query, mark: int) -> int:
    """Distinct windows that have a tuple but are not due yet."""
    last, span = last_due_pane(query, mark), query.panes_per_window
    # A pane is in the windows that end with the `span` panes from it on. Each pane's count stops at the next
    # pane that has tuples, so that no window is counted twice.
    return int(
        scalar(
            db,
            f"""SELECT coalesce(sum(greatest(stop - greatest(pane, {last} + 1, {first_emitted_pane(query)}), 0)), 0)
                FROM (SELECT pane, least(coalesce(lead(pane) OVER (ORDER BY pane), pane + {span}), pane + {span}) AS stop
                      FROM (SELECT DISTINCT pane FROM panes))""",
        )
    )
