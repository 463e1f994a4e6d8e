"""The busiest windows of a finished demo, read back from its results."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.json

from evenflow.settings import Settings
from topics import reader
from workbench.verify.sql import identifier

_CANDIDATES = 5_000
"""How many of the busiest windows are searched for such that do not overlap."""


@dataclass(frozen=True, kw_only=True)
class DemoWindow:
    """A window of the results."""

    start: int
    """Event time (ms) at which the window begins."""
    end: int
    """Event time (ms) at which it ends."""
    tuples: int | None
    """Sum of the count aggregate. None if the query has none."""
    keys: int
    """Number of keys in the window."""
    key: str
    """The key with the most tuples, as text."""
    values: dict[str, Any]
    """The aggregates of that key, by name."""


def busiest(settings: Settings, most: int) -> list[DemoWindow]:
    """The windows with the most tuples that do not overlap each other. If the query counts nothing, the
    most keys decide.
    """
    query = settings.query
    names = list(query.aggregates)
    counts = [name for name, spec in query.aggregates.items() if spec.function == "count"]
    tables = list(_tables(settings))
    if not tables:
        return []
    results = pa.concat_tables(tables, promote_options="permissive")
    if query.result_keys == ("key",):
        if "key_base64" not in results.column_names:
            results = results.append_column("key_base64", pa.nulls(results.num_rows, pa.string()))
        shown = "coalesce(results.key::VARCHAR, key_base64)"
    else:  # a column for each part
        shown = f"concat_ws(', ', {', '.join(map(identifier, query.result_keys))})"
    size = identifier(counts[0]) if counts else "1"
    columns = ", ".join(map(identifier, names))
    with duckdb.connect() as db:
        db.register("results", results)
        rows = db.execute(
            f"""
            WITH distinct_rows AS (
                SELECT DISTINCT window_start, window_end, {shown} AS key, {columns} FROM results
            ), largest AS (
                SELECT *, sum({size}) OVER w AS tuples, count(*) OVER w AS keys,
                       row_number() OVER (PARTITION BY window_end ORDER BY {size} DESC, key) AS rank
                FROM distinct_rows WINDOW w AS (PARTITION BY window_end)
            )
            SELECT window_start, window_end, tuples::BIGINT, keys, key, {columns} FROM largest WHERE rank = 1
            ORDER BY tuples DESC, window_end LIMIT {_CANDIDATES}
            """
        ).fetchall()
    chosen: list[DemoWindow] = []
    for start, end, tuples, keys, key, *values in rows:
        if len(chosen) < most and all(end <= other.start or start >= other.end for other in chosen):
            chosen.append(
                DemoWindow(
                    start=start,
                    end=end,
                    tuples=tuples if counts else None,
                    keys=keys,
                    key=key,
                    values=dict(zip(names, values, strict=True)),
                )
            )
    return chosen


def _tables(settings: Settings) -> Any:
    """The rows of the results topic, a table for each batch of records."""
    for batch in reader.read_range(settings.kafka, settings.topic("results")):
        lines = b"\n".join(message.value() or b"" for message in batch)
        # As large as all lines together, because Arrow refuses a line that does not fit its `block_size`.
        yield pyarrow.json.read_json(
            io.BytesIO(lines), read_options=pyarrow.json.ReadOptions(block_size=len(lines) + 64)
        )
