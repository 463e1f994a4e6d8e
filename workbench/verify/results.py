"""The results as they were written, and their comparison with what was recomputed."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.errors import IncompatibleStateError
from evenflow.settings import Query, Settings
from evenflow.twostep import key_schema
from workbench.verify.differences import add_differences
from workbench.verify.input.derived_columns import array_key
from workbench.verify.inputs import RESULTS_SCHEMA
from workbench.verify.report import Findings, Tuples
from workbench.verify.sql import identifier, newest, pointer, quoted
from workbench.verify.windows import emissions
from workbench.verify.windows.oracles import is_number, oracles, sql_type
from workbench.verify.windows.recomputation import first_emitted_pane
from workbench.verify.windows.result_column import Oracle
from workbench.verify.windows.tuples import column_places, compare_tuples


def load(db: duckdb.DuckDBPyConnection, settings: Settings, results: pa.Table | pa.RecordBatchReader) -> None:
    """Make tables `got` and `single`, and add the keys of the results to `keys`.

    `got` has one row per result, with its place. The row is `malformed` if it is no result row of the query,
    and `misplaced` if the record's key is not the row's key.
    `single` has one row per (window, key), with updates the one of the highest revision. It holds how many
    `times` that row was written, and whether the values of these times differ (`differs`).

    results: RESULTS_SCHEMA or typed columns, streamed through once.
    """
    query = settings.query
    if not results.schema.names:  # a Parquet sink without files
        results = RESULTS_SCHEMA.empty_table()
    typed = "window_start" in results.schema.names
    source = _from_columns(query, results.schema) if typed else _from_json(query)
    db.register("results", results)
    db.execute(f"CREATE OR REPLACE TABLE got AS {source}")
    db.unregister("results")
    db.execute(
        "INSERT INTO keys SELECT key, (SELECT coalesce(max(id), 0) FROM keys) + row_number() OVER () "
        "FROM (SELECT key FROM got WHERE NOT malformed EXCEPT SELECT key FROM keys)"
    )
    names = [f"a{i}" for i in range(len(_columns(query)))]
    # min and max skip nulls. The count tells that a value is null in some of the rows only.
    differ = " OR ".join(
        f"(min({name}) IS DISTINCT FROM max({name}) OR count({name}) NOT IN (0, count(*)))" for name in names
    )
    picked = ", ".join(f"first({name}) AS {name}" for name in names)
    highest = newest(query, f"a{len(query.aggregates)}", "id", "window_start", "window_end")
    db.execute(
        f"CREATE OR REPLACE TABLE single AS SELECT id, window_start, window_end, {picked}, {differ} AS"
        " differs, count(*) AS times, min(partition) AS partition, max(partition) AS other_partition,"
        ' max("offset") AS "offset" FROM (SELECT * FROM got JOIN keys USING (key) WHERE NOT malformed'
        f" {highest}) GROUP BY id, window_start, window_end"
    )


def leave_out(
    db: duckdb.DuckDBPyConnection,
    query: Query,
    *,
    mark: int,
    now: int,
    compared_from: int | None,
    final: bool,
) -> None:
    """Delete from `single` the rows that are not compared.

    These are the rows of windows that became due after `mark` and not after `now`, and the rows of windows
    that begin before `compared_from`. The latter windows are noted in `skipped`. All three are event times in
    ms. With updates they are also the rows of open windows, and unless all results are `final` those of
    windows of which an update may be on its way.
    """
    if query.emission.updates:
        db.execute(f"DELETE FROM single WHERE window_end > {now}")
        if not final:
            # The mark of whoever wrote the newest window lay no further before the window's end than this.
            newest = f"(SELECT max(window_end) FROM got WHERE NOT malformed) - {query.emission.updates}"
            db.execute(f"DELETE FROM single WHERE window_end > {newest}")
    db.execute(
        f"DELETE FROM single WHERE window_end > {mark} AND window_end <= {now} AND window_start = window_end"
        f" - {query.window} AND window_end % {query.slide_ms} = 0"
    )
    compared_from = emissions.compared_from(query, compared_from)
    if compared_from is not None:
        db.execute(
            f"INSERT INTO skipped SELECT DISTINCT window_end FROM single WHERE window_start < {compared_from}"
            " AND window_end NOT IN (SELECT window_end FROM skipped)"
        )
        db.execute(f"DELETE FROM single WHERE window_start < {compared_from}")


def compare(
    db: duckdb.DuckDBPyConnection, settings: Settings, now: int, findings: Findings, *, repeats: bool
) -> Tuples:
    """Compare every (window, key, value). Needs `due`, `expected`, `keys`, `got` and `single`.

    now: the mark (ms) up to which windows were closed when the results had been read. repeats: whether equal
    rows may be there several times. Returns how many tuples the rows that are due hold.
    """
    query = settings.query
    _malformed(db, findings)
    _misplaced(db, query, findings)
    _duplicates(db, query, findings)
    if not repeats:
        _repetitions(db, query, findings)
    _missing(db, query, findings)
    _unexpected(db, query, now, findings)
    for i, (name, oracle) in enumerate(zip(query.aggregates, oracles(query), strict=True)):
        _values(db, query, i, name, _wrong(query, i, oracle), findings)
    # How often a row came out again depends on how the stream was cut into micro-batches.
    columns = () if query.emission.updates else query.emission.columns
    for i, name in enumerate(columns, len(query.aggregates)):
        wrong = f"e.a{i} IS DISTINCT FROM s.a{i}"
        if name == "rank":
            wrong = f"NOT coalesce(s.a{i} BETWEEN e.least AND e.most, false)"
        _values(db, query, i, name, wrong, findings)
    if query.emission.mode == "top":
        _ranks(db, query, findings)
    return compare_tuples(db, settings, findings)


def _columns(query: Query) -> dict[str, pa.DataType]:
    """Result column -> its type: the aggregates, then the columns that `emit` adds,
    then those that count tuples.
    """
    plan = AggregatePlan.of(query)
    schemas = (plan.output_schema, plan.emission_schema, plan.tuples_schema)
    return {field.name: field.type for schema in schemas for field in schema}


def _from_json(query: Query) -> str:
    """SQL of JSON rows: each text is cut into cells once,
    then the cells are cast to the types of the columns.
    """
    keys = ["key", "key_base64"] if query.result_keys == ("key",) else list(query.result_keys)
    fields = ["window_start", "window_end", *keys, *_columns(query)]
    paths = ", ".join(quoted(pointer([field])) for field in fields)
    whole = "kinds[{0}] IN ('BIGINT', 'UBIGINT')"
    values, fine = [], [whole.format(1), whole.format(2), "(key IS NOT NULL)"]
    counts = set(column_places(query).values())  # these columns are never null
    for i, (name, kind) in enumerate(_columns(query).items()):
        at = i + 3 + len(keys)  # after the bounds and the key, and DuckDB's lists count from 1
        values.append(f"{_json_value(name, kind, at)} AS a{i}")
        value = f"({_json_fits(kind, at, i)}) AND a{i} IS NOT NULL"
        fine.append(f"({value})" if i in counts else f"(kinds[{at}] = 'NULL' OR {value})")
    return f"""
        WITH cut AS (
            SELECT partition, "offset", key AS record_key, TRY(decode(value)) AS text,
                   TRY(json_extract_string(text, [{paths}])) AS cells, TRY(json_type(text, [{paths}])) AS kinds
            FROM results),
        typed AS (
            SELECT partition, "offset", record_key, kinds, cells,
                   TRY_CAST(cells[1] AS BIGINT) AS window_start, TRY_CAST(cells[2] AS BIGINT) AS window_end,
                   {_json_key(query)} AS key,
                   {", ".join(values)}
            FROM cut)
        SELECT * EXCLUDE (kinds, cells, record_key), NOT coalesce({" AND ".join(fine)}, false) AS malformed,
               record_key IS DISTINCT FROM key AS misplaced FROM typed"""


def _json_value(name: str, kind: pa.DataType, at: int) -> str:
    """SQL of a value, null if the row holds no value of this type.

    Decimals and lists are read from the row's text, because DuckDB has made doubles of the numbers in
    `cells`.
    """
    if pa.types.is_decimal(kind) or pa.types.is_list(kind):
        row = f"TRY_CAST(TRY_CAST(text AS JSON) AS STRUCT({identifier(name)} {sql_type(kind)}))"
        return f"struct_extract({row}, {quoted(name)})"
    return f"TRY_CAST(cells[{at}] AS {sql_type(kind)})"


def _json_fits(kind: pa.DataType, at: int, i: int) -> str:
    """SQL: whether the JSON has the form of a value of this type."""
    whole = f"kinds[{at}] IN ('BIGINT', 'UBIGINT')"
    if pa.types.is_integer(kind):
        # DuckDB calls a whole number beyond 64 bits a DOUBLE.
        return f"{whole} OR (kinds[{at}] = 'DOUBLE' AND regexp_full_match(cells[{at}], '-?\\d+'))"
    if pa.types.is_floating(kind):
        return (
            f"(({whole} OR kinds[{at}] = 'DOUBLE') AND isfinite(a{i})) "
            f"OR cells[{at}] IN ('NaN', 'Infinity', '-Infinity') AND kinds[{at}] = 'VARCHAR'"
        )
    if pa.types.is_decimal(kind):
        return f"{whole} OR kinds[{at}] = 'DOUBLE'"
    json = "ARRAY" if pa.types.is_list(kind) else "BOOLEAN" if pa.types.is_boolean(kind) else "VARCHAR"
    return f"kinds[{at}] = '{json}'"


def _json_key(query: Query) -> str:
    """SQL of a row's key as bytes, null if the row's key does not have the type of the query's key."""
    if query.result_keys != ("key",):
        return array_key(
            {
                _json_part(query.column_type(name), at): query.column_type(name)
                for at, name in enumerate(query.result_keys, 3)
            }
        )
    kinds = "('BIGINT', 'UBIGINT')" if query.key_kind == "int64" else "('VARCHAR')"
    plain = f"WHEN kinds[3] IN {kinds} AND kinds[4] IS NULL THEN encode(cells[3])"
    raw = "WHEN kinds[3] IS NULL AND kinds[4] = 'VARCHAR' THEN TRY(from_base64(cells[4]))"
    return f"CASE {plain} {raw if query.key_kind == 'raw' else ''} END"


def _json_part(type_: str, at: int) -> str:
    """SQL of a part of a row's key, null if the row holds no value of this type."""
    kinds = {"int64": "('BIGINT', 'UBIGINT')", "bool": "('BOOLEAN')"}.get(type_, "('VARCHAR')")
    sql = {"int64": "BIGINT", "bool": "BOOLEAN", "date": "DATE"}.get(type_, "VARCHAR")
    return f"(CASE WHEN kinds[{at}] IN {kinds} THEN TRY_CAST(cells[{at}] AS {sql}) END)"


def _from_columns(query: Query, schema: pa.Schema) -> str:
    """SQL of typed results. Their timestamps become milliseconds, whatever the unit."""
    _check_columns(query, schema)
    bounds = [f"epoch_ms({name}) AS {name}" for name in ("window_start", "window_end")]
    values = [
        f"{identifier(name)}::{sql_type(kind)} AS a{i}"
        for i, (name, kind) in enumerate(_columns(query).items())
    ]
    counts = [f"a{i}" for i in column_places(query).values()]
    missing = " OR ".join(f"{name} IS NULL" for name in ("window_start", "window_end", *counts))
    return (
        f'SELECT NULL::INTEGER AS partition, row_number() OVER () - 1 AS "offset", {", ".join(bounds)}, '
        f"{key_of_results(query)} AS key, {', '.join(values)}, "
        f"({missing} OR {key_of_results(query)} IS NULL) AS malformed, false AS misplaced FROM results"
    )


def key_of_results(query: Query) -> str:
    """SQL of the key's bytes from the typed columns that hold the key in results."""
    if query.result_keys == ("key",):
        return "key" if query.key_kind == "raw" else "encode(key::VARCHAR)"
    return array_key({identifier(name): query.column_type(name) for name in query.result_keys})


def _check_columns(query: Query, schema: pa.Schema) -> None:
    """Raise IncompatibleStateError for columns that are not those of this query's results."""
    right = {
        "window_start": pa.types.is_timestamp,
        "window_end": pa.types.is_timestamp,
        **{field.name: field.type.equals for field in key_schema(query)},
    } | {name: _like(kind) for name, kind in _columns(query).items()}
    for name, fits in right.items():
        if schema.names.count(name) != 1 or not fits(schema.field(name).type):
            raise IncompatibleStateError(
                "the results have the columns"
                f" {', '.join(f'{field.name}: {field.type}' for field in schema)}, in which {name} is no"
                " column of this query's results",
                hint="verify with the settings that the pipeline ran with",
            )


def _like(kind: pa.DataType) -> Callable[[pa.DataType], bool]:
    """Whether a column holds values of this kind, whatever their width."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_list)
    return next((test for test in tests if test(kind)), kind.equals)


def _malformed(db: duckdb.DuckDBPyConnection, findings: Findings) -> None:
    add_differences(
        db,
        findings,
        "malformed",
        'SELECT NULL AS key, NULL AS window_end, NULL AS e, NULL AS g, partition, "offset" FROM got WHERE'
        " malformed",
        detail="no result row of this query",
    )


def _misplaced(db: duckdb.DuckDBPyConnection, query: Query, findings: Findings) -> None:
    """Rows where a reader does not look for them.

    A reader finds the rows of a key by the record's key. It gets them in order only within one partition.
    """
    add_differences(
        db,
        findings,
        "placement",
        'SELECT key, window_end, NULL AS e, NULL AS g, partition, "offset" FROM got WHERE misplaced AND NOT'
        " malformed",
        detail="the record's key is not the row's key",
        window=query.window,
    )
    add_differences(
        db,
        findings,
        "placement",
        "SELECT key, NULL AS window_end, min(partition)::VARCHAR AS e, max(other_partition)::VARCHAR AS g, "
        'NULL AS partition, NULL AS "offset" FROM single JOIN keys USING (id) '
        "GROUP BY id, key HAVING min(partition) < max(other_partition)",
        detail="the rows of one key lie in more than one partition",
        column="partition",
    )


def _duplicates(db: duckdb.DuckDBPyConnection, query: Query, findings: Findings) -> None:
    """Rows that were written more than once, with different values."""
    add_differences(
        db,
        findings,
        "duplicate",
        'SELECT key, window_end, NULL AS e, NULL AS g, partition, "offset" FROM single JOIN keys USING (id) '
        "WHERE differs",
        detail="written more than once, with different values",
        window=query.window,
    )


def _repetitions(db: duckdb.DuckDBPyConnection, query: Query, findings: Findings) -> None:
    """Equal rows that were written more than once.
    The sink has promised each row once, so a reader counts it twice.
    """
    add_differences(
        db,
        findings,
        "duplicate",
        'SELECT key, window_end, NULL AS e, times AS g, partition, "offset" FROM single JOIN keys USING (id) '
        "WHERE times > 1 AND NOT differs",
        detail="written more than once",
        window=query.window,
    )


def _missing(db: duckdb.DuckDBPyConnection, query: Query, findings: Findings) -> None:
    """Rows that must be there and are not. A row that may be there or not (`sure` is false) is never
    missing.
    """
    add_differences(
        db,
        findings,
        "missing",
        'SELECT key, window_end, NULL AS e, NULL AS g, NULL AS partition, NULL AS "offset" FROM (SELECT *'
        " FROM due WHERE sure) e JOIN keys USING (id) ANTI JOIN (SELECT * FROM single WHERE window_start ="
        f" window_end - {query.window}) s ON s.id = e.id AND s.window_end = e.window_end",
        detail="the row is due but was never written",
        window=query.window,
    )


def _unexpected(db: duckdb.DuckDBPyConnection, query: Query, now: int, findings: Findings) -> None:
    """Rows that are not expected: of windows that are still open, of windows before `emit_from`,
    and all others.
    """
    db.execute(
        "CREATE OR REPLACE TABLE extra AS SELECT s.id, s.window_start, s.window_end, s.partition,"
        f' s."offset", coalesce(s.window_start = s.window_end - {query.window} AND s.window_end %'
        f" {query.slide_ms} = 0 AND s.window_end > {now}, false) AS early FROM single s ANTI JOIN expected e"
        f" ON e.id = s.id AND e.window_end = s.window_end AND s.window_start = s.window_end - {query.window}"
    )
    select = (
        'SELECT key, window_end, NULL AS e, NULL AS g, partition, "offset", window_start '
        "FROM extra JOIN keys USING (id)"
    )
    add_differences(
        db,
        findings,
        "not-due",
        f"{select} WHERE early",
        detail="written before the window was closed by every input partition",
    )
    emitted = (first_emitted_pane(query) + 1) * query.slide_ms
    add_differences(
        db,
        findings,
        "unexpected",
        f"{select} WHERE NOT early AND window_end >= {emitted}",
        detail=_NOT_THERE[query.emission.mode],
    )
    add_differences(
        db,
        findings,
        "unexpected",
        f"{select} WHERE NOT early AND window_end < {emitted}",
        detail="the window begins before emit_from",
    )


def _wrong(query: Query, i: int, oracle: Oracle) -> str:
    """SQL: whether value i of result row s is wrong beside the expected row e."""
    if oracle.wrong is not None:
        wrong = f"(SELECT {oracle.wrong} FROM (SELECT e.a{i} AS e, s.a{i} AS g))"
        # With emit = "changes" this column says that the row is a retraction, which holds no values.
        retraction = f"e.a{len(query.aggregates) + 1}"
        return (
            wrong
            if query.emission.mode != "changes"
            else f"CASE WHEN {retraction} THEN s.a{i} IS NOT NULL ELSE {wrong} END"
        )
    unequal = f"e.a{i} IS DISTINCT FROM s.a{i}"
    if oracle.of_row is not None:
        right = f"s.a{i} IS NOT DISTINCT FROM ({oracle.of_row})"
        # With emit = "changes" a retraction holds no values.
        retraction = f"e.a{len(query.aggregates) + 1}" if query.emission.mode == "changes" else "false"
        return f"CASE WHEN {retraction} THEN s.a{i} IS NOT NULL ELSE NOT {right} END"
    if is_number(oracle.kind):
        close = f"abs(e.a{i}::DOUBLE - s.a{i}::DOUBLE) <= abs(e.t{i})"
        # An infinite tolerance accepts every value but null. One below 0 accepts null as well.
        unequal += (
            f" AND NOT coalesce(e.t{i} <> 0 AND {close} OR isinf(e.t{i}::DOUBLE) AND s.a{i} IS NOT NULL "
            f"OR e.t{i} < 0 AND s.a{i} IS NULL, false)"
        )
    return unequal


def _values(
    db: duckdb.DuckDBPyConnection, query: Query, i: int, name: str, wrong: str, findings: Findings
) -> None:
    add_differences(
        db,
        findings,
        "value",
        f'SELECT key, e.window_end, e.a{i} AS e, s.a{i} AS g, s.partition, s."offset" FROM expected e '
        "JOIN single s ON s.id = e.id AND s.window_end = e.window_end "
        f"AND s.window_start = s.window_end - {query.window} "
        f"JOIN keys ON keys.id = e.id WHERE {wrong}",
        detail="the value differs",
        column=name,
        window=query.window,
    )


def _ranks(db: duckdb.DuckDBPyConnection, query: Query, findings: Findings) -> None:
    """Check that the ranks of a due window are 1, 2, 3, ..., in the order of its values.
    Nulls and NaN come last.
    """
    rank = f"a{len(query.aggregates)}"
    value = f"a{list(query.aggregates).index(query.emission.column)}"
    nan = f"isnan({value}::DOUBLE)" if is_number(_columns(query)[query.emission.column]) else "false"
    way = "ASC" if query.emission.ascending else "DESC"
    db.execute(f"""CREATE OR REPLACE TABLE ranks AS
            SELECT key, window_end, partition, "offset", {rank} AS got,
                   row_number() OVER (PARTITION BY window_end
                                      ORDER BY {value} IS NULL, coalesce({nan}, false), {value} {way}, key) AS place
            FROM single s JOIN keys USING (id) WHERE window_end IN (SELECT window_end FROM due)""")
    add_differences(
        db,
        findings,
        "value",
        'SELECT key, window_end, place AS e, got AS g, partition, "offset" FROM ranks WHERE got IS DISTINCT'
        " FROM place",
        detail="the rank is not that of its value among the rows of the window",
        column="rank",
        window=query.window,
    )


_NOT_THERE = {
    "all": "no tuple is in it",
    "changes": "the row is as it was in the window one slide before, or no tuple is in it",
    "top": "the row is not among the first of its window, or no tuple is in it",
}
