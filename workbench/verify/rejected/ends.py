"""Where an input partition ended, by the end-of-stream markers in it."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from workbench.verify.sql import stream


@dataclass(frozen=True)
class End:
    """Where a partition ended."""

    offset: int
    """Offset of the marker with which all announced producers had ended."""
    announced: int
    """Tuples that its producers announced in all."""


def end_of(db: duckdb.DuckDBPyConnection, partition: int) -> End | None:
    """Where every announced producer of the partition had ended. None if one of them has not."""
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
            continue  # only a producer's first marker counts
        tuples[producer] = count
        announced = max(announced, producers)
        if len(tuples) >= announced:
            return End(offset, sum(tuples.values()))
    return None
