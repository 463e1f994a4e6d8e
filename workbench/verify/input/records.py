"""Records to tuples: DuckDB reads what is plainly fine, strict_reader.py everything else.

The SQL accepts a record only where there is no room for two opinions (no escapes, no repeated names, no
odd spelling of a number). The strict reader reads the other records. So the bulk is fast, and a poison record
is judged by code that does nothing else. Table `records` has every record below the committed offsets. View
`tuples` has the tuples of the readable records.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa

from evenflow.errors import ConfigError
from evenflow.grammar.arrow_types import arrow_type
from evenflow.grammar.column_types import ANY_VALUE, decimal_scale
from evenflow.grammar.paths import segments
from evenflow.settings import Query, Settings
from partitioner_service.kafka.sink import SKIPPED
from workbench.unreadable import Unreadable, WithheldSchema
from workbench.verify.input import derived_columns
from workbench.verify.input.strict_reader import (
    CSV_NULLS,
    StrictReader,
    cell_types,
    filters_before_keys,
    readable_times,
)
from workbench.verify.sql import floor_divided, pointer, quoted, sql_type

_ROWS = 20_000
_DOUBTFUL = r"\\|,\s*[}\]]|[Nn][Aa][Nn]|[Ii][Nn][Ff]"
"""JSON that the strict reader has to judge: escapes, trailing commas, NaN and Inf.
DuckDB accepts the last three.
"""
_ROUNDED = r"\d[eE][-+]?\d|[\d.]{17}"
"""Numbers that DuckDB may round when it takes them out of JSON:
those with an exponent or of 17 characters and more.
"""
_ISO = r"[1-9]\d{3}-\d{2}-\d{2}[T ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?Z?"
_INPUTS = """
            FROM inputs i
            JOIN committed c ON c.partition = i.partition AND i."offset" < c."offset"
            LEFT JOIN (SELECT partition, "offset", any_value(reason) AS reason FROM rejected GROUP BY ALL) r
              ON r.partition = i.partition AND r."offset" = i."offset"
            LEFT JOIN stretches s ON s.partition = i.partition AND i."offset" BETWEEN s.low AND s.high
"""
_STRETCHES = f"""
            SELECT * FROM (
                SELECT partition, through AS high, greatest("offset", 1 + max(through) OVER (
                    PARTITION BY partition ORDER BY "offset", through
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS low
                FROM rejected WHERE reason = '{SKIPPED}' AND through > "offset")
            WHERE low <= high
"""
"""The offsets that orders skipped, as stretches that do not overlap. They are few, and each may be as long as a
batch. greatest() skips nulls.
"""
_VERDICT = (
    'coalesce(i.through, i."offset") AS through,'
    f" CASE WHEN s.low IS NULL THEN r.reason ELSE '{SKIPPED}' END AS reason"
)
_DATE = r"[1-9]\d{3}-\d{2}-\d{2}"


def load(db: duckdb.DuckDBPyConnection, settings: Settings, inputs: pa.Table | pa.RecordBatchReader) -> None:
    """Make `records` and `tuples` from the input, which is read once.
    Needs tables `committed` and `rejected`.
    """
    db.register("inputs", inputs)
    db.execute(f"CREATE TABLE stretches AS {_STRETCHES}")
    # A stream has no size to estimate: left to itself, DuckDB builds the joins' hash table from all of the
    # input.
    db.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    db.execute(f"CREATE TABLE records AS {_select(settings)}")
    db.execute("RESET disabled_optimizers")
    db.unregister("inputs")
    elements = settings.query.element_columns
    cells = "".join(
        f", x{i} {sql_type(type_)}{'[]' if name in elements else ''}"
        for i, (name, type_) in enumerate(cell_types(settings.query).items())
    )
    db.execute(
        'CREATE TABLE strict (partition INTEGER, "offset" BIGINT, reason VARCHAR, readable BOOLEAN, '
        f"large BOOLEAN, unmatched BOOLEAN, why VARCHAR, elements BIGINT, key BLOB, time BIGINT{cells})"
    )
    for batch in _read_strictly(db, settings):
        db.register("batch", batch)
        db.execute("INSERT INTO strict SELECT * FROM batch")
        db.unregister("batch")
    derived_columns.derive(db, settings.query)


def _read_strictly(db: duckdb.DuckDBPyConnection, settings: Settings) -> Iterator[pa.RecordBatch]:
    """The rows of `strict`: each record that the SQL has not accepted, or why it is unreadable.

    A record that was rejected as `after-end` is not read: nothing depends on what it holds. A skipped one
    cannot be.
    """
    reader = StrictReader(settings)
    types, elements = cell_types(settings.query), settings.query.element_columns
    schema = pa.schema(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("reason", pa.string()),
            ("readable", pa.bool_()),
            ("large", pa.bool_()),
            ("unmatched", pa.bool_()),
            ("why", pa.string()),
            ("elements", pa.int64()),
            ("key", pa.binary()),
            ("time", pa.int64()),
            *(
                (f"x{i}", pa.list_(arrow_type(type_)) if name in elements else arrow_type(type_))
                for i, (name, type_) in enumerate(types.items())
            ),
        ]
    )
    cursor = db.cursor()
    cursor.execute(
        'SELECT partition, "offset", reason, raw_key, raw_value, raw_timestamp FROM records '
        "WHERE marker IS NULL AND NOT readable AND reason IS DISTINCT FROM 'after-end' "
        f"AND reason IS DISTINCT FROM '{SKIPPED}'"
    )
    while rows := cursor.fetchmany(_ROWS):
        read: list[tuple[object, ...]] = []
        for partition, offset, reason, key, value, timestamp in rows:
            try:
                tuple_cells = reader.read(key, value, timestamp)
            except Unreadable as why:
                if isinstance(why, WithheldSchema) and reason != "unreadable":
                    raise _cannot_judge(partition, offset, why) from None
                nothing = (None for _ in range(3 + len(types)))  # elements, key, time and the cells
                read.append((partition, offset, reason, False, False, False, str(why), *nothing))
            else:
                row = (partition, offset, reason, True, False, False, None, tuple_cells.elements)
                read.append((*row, tuple_cells.key, tuple_cells.time, *tuple_cells.cells))
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(zip(*read, strict=True), schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cannot_judge(partition: int, offset: int, why: WithheldSchema) -> ConfigError:
    return ConfigError(
        f"record {offset} of input partition {partition} was read by the partitioner,"
        f" and verify cannot read it: {why}",
        hint="verify as a user who may read every schema that the partitioner's user may",
    )


def _select(settings: Settings) -> str:
    """SQL of the single pass over the input: the cells, their types, then key, time and columns."""
    query = settings.query
    if settings.input.registered or query.explode is not None:
        return _unread(query)
    at = {column: f"c{i}" for i, column in enumerate(settings.needed_columns)}
    json = settings.input.format == "json"
    key = "cells.key" if query.key == "@key" else "NULL::BLOB"
    time = _time(settings, at, json)
    cells = [_typed(at[column], type_, settings.input.format) for column, type_ in cell_types(query).items()]
    cell_sql = "".join(f", {sql} AS x{i}" for i, (sql, _) in enumerate(cells))
    names = [f"x{i}" for i in range(len(cells))]
    fine = " AND ".join(
        [
            "well_formed",
            "time_read BETWEEN {} AND {}".format(*readable_times(settings)),
            *_key_is_there(query),
        ]
        + [f"coalesce({ok}, false)" for _, ok in cells]
    )
    # Raw bytes are kept for the comparison with the rejected record, and for the strict reader.
    keep_raw = "(reason IS NOT NULL OR NOT readable)"
    return f"""
        WITH raw AS (
            SELECT i.partition, i."offset", i.timestamp, i.key, i.value, i.marker, i.appended, {_VERDICT},
                   {"TRY(decode(i.value))" if at else "NULL::VARCHAR"} AS text
            {_INPUTS}),
        cut AS (SELECT * EXCLUDE (text), {_cut(settings)} FROM raw),
        cells AS (SELECT *, {_cells(settings, json)} FROM cut),
        parsed AS (SELECT *, {key} AS key_read, {time} AS time_read{cell_sql} FROM cells),
        judged AS (
            SELECT *, coalesce(marker IS NULL AND (reason IS NULL OR reason NOT IN
                               ('unreadable', 'unmatched', 'too-large', 'after-end', '{SKIPPED}')) AND {fine}, false)
                   AS readable
            FROM parsed)
        SELECT partition, "offset", through, reason, marker, readable,
               CASE WHEN readable THEN key_read END AS key, CASE WHEN readable THEN time_read END AS time,
               CASE WHEN {keep_raw} THEN judged.key END AS raw_key, CASE WHEN {keep_raw} THEN value END AS raw_value,
               timestamp AS raw_timestamp, appended
               {"".join(f", CASE WHEN readable THEN {name} END AS {name}" for name in names)}
        FROM judged"""


def _unread(query: Query) -> str:
    """The same columns if all records are left to the strict reader."""
    cells = "".join(
        f", NULL::{sql_type(type_)} AS x{i}" for i, type_ in enumerate(cell_types(query).values())
    )
    return f"""
        SELECT i.partition, i."offset", {_VERDICT}, i.marker, false AS readable, NULL::BLOB AS key, NULL::BIGINT AS time,
               i.key AS raw_key, i.value AS raw_value, i.timestamp AS raw_timestamp, i.appended{cells}
        {_INPUTS}"""


def _key_is_there(query: Query) -> list[str]:
    """Conditions that the key is not null.

    Those for a derived key column are added in derived_columns.py, and so are all if the filter comes before
    the key.
    """
    if filters_before_keys(query):
        return []
    if query.key == "@key":
        return ["key_read IS NOT NULL"]
    names = list(cell_types(query))
    return [f"x{names.index(name)} IS NOT NULL" for name in query.key_columns if name in names]


def _cut(settings: Settings) -> str:
    """SQL that cuts the text once: `found` (list of cells),
    `kinds` (their types, json only), and `well_formed`.
    """
    columns = settings.needed_columns
    if not columns:
        return "true AS well_formed"
    if settings.input.format == "text":
        return "[text] AS found, text IS NOT NULL AS well_formed"
    if settings.input.format == "csv":
        delimiter = quoted(settings.input.delimiter)
        # A quoted field or a second line needs the strict reader. 65279 is the byte order mark.
        return (
            f"string_split(text, {delimiter}) AS found, text IS NOT NULL AND text <> '' AND ascii(text) <>"
            f" 65279 AND NOT regexp_matches(text, '[\"\\r\\n]') AND len(string_split(text, {delimiter})) ="
            f" {len(settings.input.columns)} AS well_formed"
        )
    ways = [segments(column) for column in columns]
    paths = "[" + ", ".join(quoted(pointer(way)) for way in ways) + "]"
    once = " AND ".join(
        _is_there_once(field) for field in dict.fromkeys(field for way in ways for field in way)
    )
    # DuckDB finds nothing below a field that holds no object. For the strict reader such a record is
    # unreadable.
    for outer in dict.fromkeys(way[:length] for way in ways for length in range(1, len(way))):
        once += f" AND coalesce(TRY(json_type(text, {quoted(pointer(outer))})), 'NULL') IN ('OBJECT', 'NULL')"
    if any(decimal_scale(type_) is not None for type_ in cell_types(settings.query).values()):
        once += f" AND NOT regexp_matches(text, {quoted(_ROUNDED)})"
    return (
        f"TRY(json_extract_string(text, {paths})) AS found, TRY(json_type(text, {paths})) AS kinds, "
        "coalesce(TRY(json_valid(text)) AND TRY(json_type(text)) = 'OBJECT' "
        f"AND NOT regexp_matches(text, {quoted(_DOUBTFUL)}) AND {once}, false) AS well_formed"
    )


def _cells(settings: Settings, json: bool) -> str:
    columns = settings.needed_columns
    if not columns:
        return "1 AS none"
    parts = []
    for i, column in enumerate(columns):
        place = settings.input.columns.index(column) if settings.input.format == "csv" else i
        parts.append(f"found[{place + 1}] AS c{i}")
        if json:
            parts.append(f"kinds[{place + 1}] AS k{i}")
    return ", ".join(parts)


def _time(settings: Settings, at: dict[str, str], json: bool) -> str:
    query = settings.query
    if query.time == "@timestamp":
        return "CASE WHEN timestamp >= 0 THEN timestamp END"
    cell = at[query.time]
    if query.time_unit == "iso":
        typed = f"{_kind(cell)} = 'VARCHAR' AND " if json else ""
        # Digits beyond milliseconds are cut off, as the strict reader does.
        plain = f"regexp_replace(rtrim({cell}, 'Z'), '(\\.\\d{{3}})\\d+$', '\\1')"
        return (
            f"CASE WHEN {typed}regexp_full_match({cell}, {quoted(_ISO)}) "
            f"THEN epoch_ms(TRY_CAST({plain} AS TIMESTAMP)) END"
        )
    if query.time_unit == "s":
        typed = f"{_kind(cell)} IN ('BIGINT', 'UBIGINT', 'DOUBLE') AND " if json else ""
        # So few digits are always in range. round_even() rounds as Python's round() does in the strict
        # reader.
        return (
            f"CASE WHEN {typed}regexp_full_match({cell}, '-?[0-8]?\\d{{1,9}}(\\.\\d{{1,6}})?') "
            f"THEN round_even(TRY_CAST({cell} AS DOUBLE) * 1000, 0)::BIGINT END"
        )
    whole = _number(cell, "int64", json)[0]
    return f"({whole})" if query.time_unit == "ms" else floor_divided(f"({whole})", 1000)


def _typed(cell: str, type_: str, form: str) -> tuple[str, str]:
    """SQL of the value, and of whether the cell plainly holds a value of this type or is plainly null.

    form: `input.format`.
    """
    json = form == "json"
    if type_ == ANY_VALUE:
        return _any(cell, form)
    if type_ in ("int64", "float64"):
        return _number(cell, type_, json)
    if type_ == "string":
        return (
            (f"CASE WHEN {_kind(cell)} = 'VARCHAR' THEN {cell} END", _null_or("VARCHAR", cell, "true"))
            if json
            else (
                cell,
                f"{cell} IS NOT NULL",
            )
        )
    shapes = {"bool": "(true|false)" if json else "(true|True|TRUE|false|False|FALSE)", "date": _DATE}
    scale = decimal_scale(type_)
    # DuckDB reads a longer number of JSON as a double.
    shape = shapes.get(type_) or rf"-?\d{{1,{15 - (scale or 0)}}}(\.\d{{1,{scale}}})?"
    json_kind = {"bool": "BOOLEAN", "date": "VARCHAR"}.get(type_, "number")
    value = (
        f"CASE WHEN regexp_full_match({cell}, {quoted(shape)}) THEN TRY_CAST({cell} AS {sql_type(type_)}) END"
    )
    fine = f"({value}) IS NOT NULL"
    if json:
        return value, _null_or(json_kind, cell, fine)
    return value, f"({cell} IN ({', '.join(quoted(text) for text in CSV_NULLS)}) OR coalesce({fine}, false))"


def _any(cell: str, form: str) -> tuple[str, str]:
    """As `_typed`, of a column of any value: the text that tells the kind of the value. Of numbers, whole
    ones are plain.
    """
    text = f"concat('\"', {cell})"
    if form == "text":
        return text, f"{cell} IS NOT NULL"
    if form == "csv":
        nulls = ", ".join(quoted(null) for null in CSV_NULLS)
        return f"CASE WHEN {cell} NOT IN ({nulls}) THEN {text} END", f"{cell} IS NOT NULL"
    kind = _kind(cell)
    whole = f"({kind} IN ('BIGINT', 'UBIGINT') AND regexp_full_match({cell}, '-?\\d{{1,18}}'))"
    short = f"rtrim({cell}, '0')"
    zeros = f"(length({cell}) - length({short}))"
    number = (
        f"CASE WHEN {short} IN ('', '-') THEN '0' WHEN {zeros} = 0 THEN {cell}"
        f" ELSE concat({short}, 'e', {zeros}) END"
    )
    value = (
        f"CASE WHEN {kind} = 'VARCHAR' THEN {text} WHEN {kind} = 'BOOLEAN' THEN"
        f" {cell} WHEN {whole} THEN {number} END"
    )
    return value, f"(coalesce({kind}, 'NULL') IN ('NULL', 'VARCHAR', 'BOOLEAN') OR coalesce({whole}, false))"


def _null_or(json_kind: str, cell: str, fine: str) -> str:
    """SQL: whether the JSON cell is null, or is of this kind and `fine`."""
    kinds = "'BIGINT', 'UBIGINT', 'DOUBLE'" if json_kind == "number" else quoted(json_kind)
    return (
        f"(coalesce({_kind(cell)}, 'NULL') = 'NULL' OR {_kind(cell)} IN"
        f" ({kinds}) AND coalesce({fine}, false))"
    )


def _number(cell: str, kind: str, json: bool) -> tuple[str, str]:
    """SQL of the value, and of whether the cell is plainly a number of this kind or plainly null."""
    whole = f"regexp_full_match({cell}, '-?\\d{{1,18}}')"
    if json:
        typed = f"{_kind(cell)} IN ('BIGINT', 'UBIGINT'{'' if kind == 'int64' else ', ' + repr('DOUBLE')})"
        null = f"coalesce({_kind(cell)}, 'NULL') = 'NULL'"
    else:
        shape = whole if kind == "int64" else f"regexp_full_match({cell}, '-?\\d+(\\.\\d+)?([eE]-?\\d+)?')"
        typed = shape
        null = f"{cell} IN ({', '.join(quoted(text) for text in CSV_NULLS)})"
    cast = f"TRY_CAST({cell} AS {sql_type(kind)})"
    value = f"CASE WHEN {typed} THEN {cast} END"
    fine = f"({value}) IS NOT NULL" if kind == "int64" else f"isfinite({value})"
    return value, f"({null} OR coalesce({fine}, false))"


def _kind(cell: str) -> str:
    """The column that holds the JSON type of a cell: c3 -> k3."""
    return "k" + cell[1:]


def _is_there_once(column: str) -> str:
    """SQL: whether the quoted name is in the text at most once. Then no object can hold this field twice."""
    name = quoted(f'"{column}"')
    return f"length(text) - length(replace(text, {name}, '')) IN (0, length({name}))"
