"""Which records are too large, by the bytes of their keys and texts (reason `too-large`)."""

from __future__ import annotations

import duckdb

from evenflow.grammar.column_types import ANY_VALUE
from evenflow.limits import REPEATED_BYTES
from evenflow.settings import Query


def note_large(db: duckdb.DuckDBPyConnection, query: Query, tuples: str, *, repeats: bool = False) -> None:
    """Make `large` (partition, offset), and note these records in `records` and `strict`:
    they have no tuples.

    tuples: SQL of the tuples of the records that could be read, with key and v*. repeats: whether it has
    `repeated`, too: the bytes of the texts of a record that each of its elements repeats.
    """
    texts = [
        f"coalesce(strlen(v{i}), 0)"
        for i, type_ in enumerate(query.value_columns.values())
        if type_ in ("string", ANY_VALUE)
    ]
    beyond = [f"max(octet_length(key)) > {query.max_key_bytes}"]
    beyond += [f"max({' + '.join(texts)}) > {query.max_value_bytes}"] if texts else []
    beyond += [f"max(repeated) * count(*) > {REPEATED_BYTES}"] if repeats else []
    db.execute(
        f'CREATE TABLE large AS SELECT partition, "offset", any_value(reason) AS reason FROM ({tuples}) '
        f'GROUP BY partition, "offset" HAVING {" OR ".join(beyond)}'
    )
    for table in ("records", "strict"):
        db.execute(
            f"UPDATE {table} SET readable = false FROM large l WHERE {table}.partition = l.partition "
            f'AND {table}."offset" = l."offset"'
        )
    db.execute(
        "UPDATE strict SET large = true FROM large l WHERE strict.partition ="
        ' l.partition AND strict."offset" = l."offset"'
    )
    db.execute(
        'INSERT INTO strict (partition, "offset", reason, readable, large) '
        'SELECT partition, "offset", reason, false, true FROM large l '
        'WHERE NOT EXISTS (FROM strict s WHERE s.partition = l.partition AND s."offset" = l."offset")'
    )
