"""The first tuples of a source: as a stream to route, and as the sample that `evenflow.advice` takes.

A sample is consecutive, not drawn at random: windows, drift and what a partitioner learns are of neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.advice import Sample
from evenflow.arrays import Int64s
from evenflow.errors import ConfigError
from evenflow.simulation import KeyedStream, from_columns
from evenflow.simulation.streams import check_order
from evenflow.sources.source import Source


class Columns(NamedTuple):
    """Tuples in the order of their source."""

    keys: pa.Array
    times: Int64s
    """Event times, ms."""


def first_columns(source: Source, tuples: int | None) -> Columns:
    """Keys and times of the first so many tuples of a source, or of all. ConfigError for all of one that never ends."""
    if source.rows is None and tuples is None:
        raise ConfigError(f"{source.name} never ends", hint="say with --tuples how many are wanted")
    keys: list[pa.Array] = []
    times: list[np.ndarray] = []
    read = 0
    for batch in source.batches():
        keys.append(batch.keys)
        times.append(batch.times)
        read += len(batch)
        if tuples is not None and read >= tuples:
            break
    return Columns(
        keys=pa.chunked_array(keys, pa.large_binary()).combine_chunks()[:tuples],
        times=np.concatenate([np.empty(0, np.int64), *times])[:tuples],
    )


def first_tuples(source: Source, tuples: int, *, timed: bool) -> Sample:
    """The first tuples of a source in its own order. `timed`: its times are not made up."""
    # One tuple more shows that the source has more.
    keys, times = first_columns(source, tuples + 1)
    complete = len(keys) <= tuples
    return Sample(name=source.name, keys=keys[:tuples], times=times[:tuples], timed=timed, complete=complete)


def stream_of(
    source: Source, *, tuples: int | None, timed: bool, rate: float | None, max_disorder_ms: int
) -> KeyedStream:
    """The source as a stream, in its own order.

    Without times its tuples are numbered, at `rate` tuples per second. ConfigError for a time that lies further back
    than `max_disorder_ms`.
    """
    found = first_columns(source, tuples)
    if not timed:
        return from_columns(found.keys, None, rate=rate)
    stream = from_columns(found.keys, found.times)
    check_order(found.times, max_disorder_ms=max_disorder_ms, where=source.name)
    return stream
