"""Where an input partition ended, by the markers in it (rule 6)."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from workbench.verify.sql import stream


@dataclass(frozen=True)
class End:
    """Where a partition ended: offset of the last marker it took. `announced` tuples by its producers."""

    offset: int
    announced: int


def end_of(db: duckdb.DuckDBPyConnection, partition: int) -> End | None:
    """Where every announced producer of the partition had ended. None if they have not."""
    tuples: dict[str, int] = {}
    announced = 0
    rows = stream(
        db,
        'SELECT "offset", marker.producer, marker.tuples, marker.producers FROM records '
        'WHERE marker IS NOT NULL AND partition = ? ORDER BY "offset"',
        [partition],
    )
    for offset, producer, count, producers in rows:
        if producer in tuples:
            continue
        tuples[producer] = count
        announced = max(announced, producers)
        if len(tuples) >= announced:
            return End(offset, sum(tuples.values()))
    return None
