"""The first tuples of a source: as a stream to route, and as the sample that `evenflow.advice` takes.

A sample is consecutive and not drawn at random, because windows, drift and what a partitioner learns depend on
neighbouring tuples.
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
    """Keys and times of the first `tuples` tuples of a source, or of all tuples if it is None.

    ConfigError if all tuples of an endless source are asked for.
    """
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
    """The first tuples of a source, in its own order. timed: whether its times are real and not numbered."""
    # One tuple more is read, to see whether the source has more.
    keys, times = first_columns(source, tuples + 1)
    complete = len(keys) <= tuples
    return Sample(name=source.name, keys=keys[:tuples], times=times[:tuples], timed=timed, complete=complete)


def stream_of(
    source: Source, *, tuples: int | None, timed: bool, rate: float | None, max_disorder_ms: int
) -> KeyedStream:
    """The source as a stream, in its own order.

    If `timed` is false, the tuples are numbered at `rate` tuples per second. Otherwise a time that lies more than
    `max_disorder_ms` behind an earlier one raises ConfigError.
    """
    found = first_columns(source, tuples)
    if not timed:
        return from_columns(found.keys, None, rate=rate)
    stream = from_columns(found.keys, found.times)
    check_order(found.times, max_disorder_ms=max_disorder_ms, where=source.name)
    return stream
