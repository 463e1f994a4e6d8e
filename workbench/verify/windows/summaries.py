"""The rows of a summary again: those of its parts from the tuples,
and then these rows as tuples of one more aggregation.
"""

from __future__ import annotations

import duckdb

from evenflow.settings import Query, Settings
from evenflow.settings.sections.query.summaries import KEY
from workbench.verify.sql import sql_type
from workbench.verify.windows import recomputation as windows

_ROWS = "rows_of_parts"


def recompute(
    db: duckdb.DuckDBPyConnection, settings: Settings, mark: int, compared_from: int | None = None
) -> int:
    """As `windows.recompute`, for a summary."""
    query = settings.query
    waiting = 0
    for number, (part, by) in enumerate(query.parts):
        windows.every_row(db, part, mark)
        waiting = max(waiting, windows.open_windows(db, part, mark))
        select = _select(query, part, by)
        db.execute(f"CREATE TABLE {_ROWS} AS {select}" if number == 0 else f"INSERT INTO {_ROWS} {select}")
        db.execute(
            "DROP VIEW totals; DROP TABLE IF EXISTS wholes; DROP TABLE expected;"
            " DROP TABLE panes; DROP TABLE keys"
        )
    # All rows of one end are the tuples of one pane, whatever windows they are of.
    once = query.model_copy(update={"window": query.slide_ms, "emit_from": None})
    windows.every_row(db, once, mark, tuples=_ROWS)
    db.execute(f"""UPDATE expected SET tuples = made.tuples
            FROM (SELECT id, time + {query.slide_ms} AS window_end, sum(tuples)::HUGEINT AS tuples
                  FROM {_ROWS} JOIN keys USING (key) GROUP BY ALL) made
            WHERE expected.id = made.id AND expected.window_end = made.window_end""")
    if query.emit_from is not None:
        db.execute(f"DELETE FROM expected WHERE window_end - {query.window} < {query.emit_from}")
    windows.emit(db, settings, mark, compared_from)
    return waiting


def _select(query: Query, part: Query, by: str) -> str:
    """SQL of the rows of a part as tuples of the summary: key, time (in the last pane), v*, tuples,
    reason and chosen.
    """
    at = {name: f"a{number}" for number, name in enumerate(part.aggregates)}
    key = "key" if by == KEY else f"encode(({at[by]})::VARCHAR)"
    values = [
        f"CAST({at.get(name, 'NULL')} AS {sql_type(type_)}) AS v{number}"
        for number, (name, type_) in enumerate(query.value_columns.items())
    ]
    listed = "".join(f", {value}" for value in values)
    return (
        f"SELECT {key} AS key, (window_end - {query.slide_ms})::BIGINT AS time{listed}, tuples, NULL::VARCHAR"
        f" AS reason, true AS chosen FROM expected JOIN keys USING (id) WHERE {key} IS NOT NULL"
    )
