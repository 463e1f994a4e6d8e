"""Small pieces of SQL, and a way to look at many rows without holding them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import duckdb

from evenflow.expressions.kinds import DECIMAL_DIGITS
from evenflow.grammar.column_types import ANY_VALUE, decimal_scale
from evenflow.settings import Query

_TYPES = {"int64": "BIGINT", "float64": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN", "date": "DATE"}
_TYPES[ANY_VALUE] = "VARCHAR"
_ROWS = 10_000
SPAN = '(through - "offset" + 1)'
"""SQL of how many records a row of `records` or `rejected` stands for. Only a skipped stretch is several."""
OFFSETS = f"coalesce(sum({SPAN}), 0)::BIGINT"
"""SQL of how many records all such rows stand for."""


def stream(
    db: duckdb.DuckDBPyConnection, sql: str, parameters: list[Any] | None = None
) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, 10,000 at a time in memory."""
    # A cursor of its own: the caller may run other queries on `db` while it reads these rows.
    cursor = db.cursor()
    cursor.execute(sql, parameters or [])
    while rows := cursor.fetchmany(_ROWS):
        yield from rows


def scalar(db: duckdb.DuckDBPyConnection, sql: str, parameters: list[Any] | None = None) -> Any:
    """The one value that a query gives."""
    (row,) = db.execute(sql, parameters or []).fetchall()
    return row[0]


def quoted(text: str) -> str:
    """The text as a string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """The name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def newest(query: Query, revision: str, *same: str) -> str:
    """SQL that leaves only the rows of the highest revision of each window and key, if rows come out again.

    revision: the column that holds it. same: the columns that say which window and key. All are SQL.
    """
    if not query.emission.updates:
        return ""
    return f"QUALIFY {revision} = max({revision}) OVER (PARTITION BY {', '.join(same)})"


def pointer(path: Iterable[str]) -> str:
    """JSON pointer (RFC 6901) to a field. path: the fields on the way, the outermost first."""
    return "".join("/" + field.replace("~", "~0").replace("/", "~1") for field in path)


def floor_divided(expression: str, by: int) -> str:
    """SQL that divides integers rounding down, also below zero (DuckDB's // rounds towards zero)."""
    return f"(({expression} - ({expression} % {by} + {by}) % {by}) // {by})"


def pane_end(query_slide: int) -> str:
    """SQL of the end (ms) of the pane that column `time` falls into."""
    return f"(({floor_divided('time', query_slide)} + 1) * {query_slide})"


def sql_type(type_: str) -> str:
    """DuckDB's name of the type of a column of the record or of the lookup file."""
    scale = decimal_scale(type_)
    return _TYPES[type_] if scale is None else f"DECIMAL({DECIMAL_DIGITS}, {scale})"
