"""The results as they were written, and their comparison with what was recomputed."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from evenflow.settings import Query, Settings
from workbench.verify.inputs import RESULTS_SCHEMA
from workbench.verify.report import FLOAT_BOUND, Difference, Findings, shown_key
from workbench.verify.windows import first_emitted_pane


def load(db: duckdb.DuckDBPyConnection, settings: Settings, results: pa.Table | pa.RecordBatchReader) -> None:
    """Make `got`: one row per result record, with its place; `malformed` where it is no result row."""
    query = settings.query
    if not results.schema.names:
        results = RESULTS_SCHEMA.empty_table()
    db.register("results", results)
    rows_are_json = results.schema.equals(RESULTS_SCHEMA)
    source = _from_json(query) if rows_are_json else _from_columns(query, results.schema)
    db.execute(f"CREATE TABLE got AS {source}")
    db.unregister("results")


def set_aside_pending(db: duckdb.DuckDBPyConnection) -> int:
    """While the input runs, the reducer may be behind: leave out windows after the newest written one; how many."""
    newest = "coalesce((SELECT max(window_end) FROM got WHERE NOT malformed), -(2::HUGEINT**62)::BIGINT)"
    (row,) = db.execute(
        f"SELECT count(DISTINCT window_end) FROM expected WHERE window_end > {newest}"
    ).fetchall()
    if row[0]:
        db.execute(f"DELETE FROM expected WHERE window_end > {newest}")
    return int(row[0])


def compare(db: duckdb.DuckDBPyConnection, settings: Settings, mark: int, found: Findings) -> None:
    """Every (window, key, value). Needs `expected`, `keys` and `got`; mark as in windows.recompute."""
    query = settings.query
    _malformed(db, found)
    _duplicates(db, query, found)
    _missing(db, query, found)
    _unexpected(db, query, mark, found)
    for i, (name, exact) in enumerate(_columns(query).items()):
        _values(db, query, i, name, exact, found)


def _columns(query: Query) -> dict[str, bool]:
    """Result column -> whether it holds integers."""
    return {
        name: spec.function == "count"
        or (spec.function != "mean" and query.value_columns[spec.column or ""] == "int64")
        for name, spec in query.aggregates.items()
    }


def _type(is_integer: bool) -> str:
    return "HUGEINT" if is_integer else "DOUBLE"


def _from_json(query: Query) -> str:
    fields = ["window_start", "window_end", "key", "key_base64", *query.aggregates]
    paths = ", ".join("'/" + _pointer(field).replace("'", "''") + "'" for field in fields)
    whole = "kinds[{0}] IN ('BIGINT', 'UBIGINT')"
    values, fine = [], [whole.format(1), whole.format(2), "(key IS NOT NULL)"]
    for i, is_integer in enumerate(_columns(query).values()):
        at = i + 5
        values.append(f"TRY_CAST(cells[{at}] AS {_type(is_integer)}) AS a{i}")
        number = (
            f"kinds[{at}] IN ('BIGINT', 'UBIGINT') OR (kinds[{at}] = 'DOUBLE' AND regexp_full_match(cells[{at}], "
            "'-?\\d+'))"
            if is_integer
            else f"(kinds[{at}] IN ('BIGINT', 'UBIGINT', 'DOUBLE') AND isfinite(a{i})) "
            f"OR cells[{at}] IN ('NaN', 'Infinity', '-Infinity') AND kinds[{at}] = 'VARCHAR'"
        )
        fine.append(f"(kinds[{at}] = 'NULL' OR ({number}) AND a{i} IS NOT NULL)")
    return f"""
        WITH cut AS (
            SELECT partition, "offset", TRY(decode(value)) AS text,
                   TRY(json_extract_string(text, [{paths}])) AS cells, TRY(json_type(text, [{paths}])) AS kinds
            FROM results),
        typed AS (
            SELECT partition, "offset", kinds,cells,
                   TRY_CAST(cells[1] AS BIGINT) AS window_start, TRY_CAST(cells[2] AS BIGINT) AS window_end,
                   CASE WHEN kinds[3] = 'VARCHAR' AND kinds[4] IS NULL THEN encode(cells[3])
                        WHEN kinds[3] IS NULL AND kinds[4] = 'VARCHAR' THEN TRY(from_base64(cells[4])) END AS key,
                   {", ".join(values)}
            FROM cut)
        SELECT * EXCLUDE (kinds, cells), NOT coalesce({" AND ".join(fine)}, false) AS malformed FROM typed"""


def _from_columns(query: Query, schema: pa.Schema) -> str:
    """Typed results: a timestamp is milliseconds all the same."""
    bounds = [
        f"epoch_ms({name}) AS {name}"
        if pa.types.is_timestamp(schema.field(name).type)
        else f"{name}::BIGINT AS {name}"
        for name in ("window_start", "window_end")
    ]
    text = pa.types.is_string(schema.field("key").type) or pa.types.is_large_string(schema.field("key").type)
    values = [
        f'"{name.replace(chr(34), chr(34) * 2)}"::{_type(is_integer)} AS a{i}'
        for i, (name, is_integer) in enumerate(_columns(query).items())
    ]
    return (
        f'SELECT NULL::INTEGER AS partition, row_number() OVER () - 1 AS "offset", {", ".join(bounds)}, '
        f"{'encode(key)' if text else 'key'} AS key, {', '.join(values)}, key IS NULL AS malformed FROM results"
    )


def _pointer(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _malformed(db: duckdb.DuckDBPyConnection, found: Findings) -> None:
    _report(
        db,
        found,
        "malformed",
        'SELECT NULL AS key, NULL AS window_end, NULL AS e, NULL AS g, partition, "offset" FROM got WHERE malformed',
        detail="no result row of this query",
    )


def _duplicates(db: duckdb.DuckDBPyConnection, query: Query, found: Findings) -> None:
    """One row per (window, key) in `single`; those that were written with different values are reported."""
    names = [f"a{i}" for i in range(len(query.aggregates))]
    differ = " OR ".join(
        f"(min({name}) IS DISTINCT FROM max({name}) OR count({name}) NOT IN (0, count(*)))" for name in names
    )
    picked = ", ".join(f"first({name}) AS {name}" for name in names)
    db.execute(
        f"CREATE TABLE single AS SELECT id, window_start, window_end, {picked}, {differ} AS differs, "
        'any_value(partition) AS partition, max("offset") AS "offset" '
        "FROM got JOIN keys USING (key) WHERE NOT malformed GROUP BY id, window_start, window_end"
    )
    _report(
        db,
        found,
        "duplicate",
        'SELECT key, window_end, NULL AS e, NULL AS g, partition, "offset" FROM single JOIN keys USING (id) '
        "WHERE differs",
        detail="written more than once, with different values",
        window=query.window,
    )


def _missing(db: duckdb.DuckDBPyConnection, query: Query, found: Findings) -> None:
    _report(
        db,
        found,
        "missing",
        'SELECT key, window_end, NULL AS e, NULL AS g, NULL AS partition, NULL AS "offset" '
        f"FROM expected e JOIN keys USING (id) ANTI JOIN (SELECT * FROM single WHERE window_start = "
        f"window_end - {query.window}) s ON s.id = e.id AND s.window_end = e.window_end",
        detail="the row is due but was never written",
        window=query.window,
    )


def _unexpected(db: duckdb.DuckDBPyConnection, query: Query, mark: int, found: Findings) -> None:
    db.execute(
        'CREATE TABLE extra AS SELECT s.id, s.window_start, s.window_end, s.partition, s."offset", '
        f"coalesce(s.window_start = s.window_end - {query.window} AND s.window_end % {query.slide_ms} = 0 "
        f"AND s.window_end > {mark}, false) AS early "
        f"FROM single s ANTI JOIN expected e ON e.id = s.id AND e.window_end = s.window_end "
        f"AND s.window_start = s.window_end - {query.window}"
    )
    select = (
        'SELECT key, window_end, NULL AS e, NULL AS g, partition, "offset", window_start '
        "FROM extra JOIN keys USING (id)"
    )
    _report(
        db,
        found,
        "not-due",
        f"{select} WHERE early",
        detail="written before the window was closed by every input partition",
    )
    emitted = (first_emitted_pane(query) + 1) * query.slide_ms
    _report(
        db,
        found,
        "unexpected",
        f"{select} WHERE NOT early AND window_end >= {emitted}",
        detail="no tuple is in it",
    )
    _report(
        db,
        found,
        "unexpected",
        f"{select} WHERE NOT early AND window_end < {emitted}",
        detail="the window begins before emit_from",
    )


def _values(
    db: duckdb.DuckDBPyConnection, query: Query, i: int, name: str, is_integer: bool, found: Findings
) -> None:
    unequal = f"e.a{i} IS DISTINCT FROM s.a{i}"
    if not is_integer:
        close = f"abs(e.a{i} - s.a{i}) <= {FLOAT_BOUND!r} * e.m{i}"
        unequal += f" AND NOT coalesce({close} OR isinf(e.m{i}) AND s.a{i} IS NOT NULL, false)"
    _report(
        db,
        found,
        "value",
        f'SELECT key, e.window_end, e.a{i} AS e, s.a{i} AS g, s.partition, s."offset" FROM expected e '
        f"JOIN single s ON s.id = e.id AND s.window_end = e.window_end "
        f"AND s.window_start = s.window_end - {query.window} "
        f"JOIN keys ON keys.id = e.id WHERE {unequal}",
        detail="the value differs",
        column=name,
        window=query.window,
    )


def _report(
    db: duckdb.DuckDBPyConnection,
    found: Findings,
    kind: str,
    select: str,
    *,
    detail: str,
    column: str | None = None,
    window: int = 0,
) -> None:
    """Count what the query finds and keep the first by window and key."""
    (row,) = db.execute(f"SELECT count(*) FROM ({select})").fetchall()
    if not row[0]:
        return
    rows: list[tuple[Any, ...]] = db.execute(
        f'SELECT * FROM ({select}) ORDER BY window_end, key, "offset" LIMIT {found.limit}'
    ).fetchall()
    for key, end, expected, got, partition, offset, *start in rows:
        found.add(
            Difference(
                kind=kind,
                detail=detail,
                window_start=start[0] if start else None if end is None else end - window,
                window_end=end,
                key=shown_key(key),
                column=column,
                expected=expected,
                got=got,
                partition=partition,
                offset=offset,
            )
        )
    found.count_only(kind, row[0] - len(rows))
