"""The first tuples of a source: as a stream to route, and as the sample that `evenflow.advice` takes.

A sample is consecutive and not drawn at random, because windows, drift and what a partitioner learns depend on
neighbouring tuples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.advice import Sample, Strays
from evenflow.arrays import Bools, Int64s
from evenflow.errors import ConfigError
from evenflow.gaps import body_of
from evenflow.simulation import KeyedStream, from_columns
from evenflow.simulation.streams import check_order
from evenflow.sources.source import Source
from evenflow.talking.words import moment

_FEW_STRAYS = 0.01
"""Times beyond a gap are strays only if they are at most this share of the sample. More are a part of the stream."""


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


def first_tuples(source: Source, tuples: int, *, timed: bool, far_ms: int | None = None) -> Sample:
    """The first tuples of a source, in its own order. timed: whether its times are real and not numbered.

    far_ms: of real times, the few that lie further than this (ms) from the others are set aside as strays. None: none are.
    """
    # One tuple more is read, to see whether the source has more.
    keys, times = first_columns(source, tuples + 1)
    complete = len(keys) <= tuples
    keys, times = keys[:tuples], times[:tuples]
    if not timed or far_ms is None:
        return Sample(name=source.name, keys=keys, times=times, timed=timed, complete=complete)
    regular, strays = _apart(times, far_ms)
    return Sample(
        name=source.name,
        keys=keys.filter(pa.array(regular)),
        times=times[regular],
        timed=True,
        complete=complete,
        strays=strays,
    )


def _apart(times: Int64s, far_ms: int) -> tuple[Bools, tuple[Strays, ...]]:
    """(which times are no strays, the strays by cause). A file is sorted, so that only the distance tells a stray."""
    regular = body_of(times, far_ms)
    count = int((~regular).sum())
    if not count or count > _FEW_STRAYS * len(times):
        return np.ones(len(times), bool), ()
    low, high = int(times[regular].min()), int(times[regular].max())
    sides = {
        f"lie far before {moment(low)}, where the others begin": times < low,
        f"lie far behind {moment(high)}, where the others end": times > high,
    }
    return regular, tuple(
        Strays(
            tuples=int(which.sum()),
            share=float(which.mean()),
            cause=cause,
            example=f"{moment(int(times[which][0]))} in row {int(np.argmax(which)) + 1:,} by time",
        )
        for cause, which in sides.items()
        if which.any()
    )


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
