"""The first tuples of a source: as a stream to route, and as the sample that `evenflow.advice` takes.

A sample is consecutive and not drawn at random, because windows, drift and what a partitioner learns depend
on neighbouring tuples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.advice import Sample, Strays
from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Bools, Int64s
from evenflow.numeric.gaps import body_of
from evenflow.reporting.words import moment
from evenflow.simulation import KeyedStream, from_columns
from evenflow.simulation.streams import check_order
from evenflow.sources.costs import cost_column, in_settings
from evenflow.sources.source import Source, column_at

_FEW_STRAYS = 0.01
"""Times beyond a gap are strays only if they are at most this share of the sample.
More are a part of the stream.
"""


class SampleColumns(NamedTuple):
    """Tuples in the order of their source."""

    keys: pa.Array
    """The record key of each tuple."""
    times: Int64s
    """Event times, ms."""
    costs: pa.ChunkedArray | None
    """The cost column as the source has it. None if none was named."""


def first_columns(source: Source, tuples: int | None, *, cost: str | None = None) -> SampleColumns:
    """Keys, times and costs of the first `tuples` tuples of a source, or of all tuples if it is None.

    cost: the column of the costs, which is among those that the source carries. ConfigError if all tuples of
    an endless source are asked for, or if there is no such column.
    """
    if source.rows is None and tuples is None:
        raise ConfigError(f"{source.name} never ends", hint="say with --tuples how many are wanted")
    keys: list[pa.Array] = []
    times: list[np.ndarray] = []
    costs: list[pa.ChunkedArray] = []
    read = 0
    for batch in source.batches():
        keys.append(batch.keys)
        times.append(batch.times)
        if cost is not None:
            costs.append(column_at(source.name, batch.columns, cost))
        read += len(batch)
        if tuples is not None and read >= tuples:
            break
    return SampleColumns(
        keys=pa.chunked_array(keys, pa.large_binary()).combine_chunks()[:tuples],
        times=np.concatenate([np.empty(0, np.int64), *times])[:tuples],
        costs=_joined(costs)[:tuples] if costs else None,
    )


def _joined(pieces: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for piece in pieces for chunk in piece.chunks], pieces[0].type)


def first_tuples(
    source: Source, tuples: int, *, timed: bool, far_ms: int | None = None, cost: str | None = None
) -> Sample:
    """The first tuples of a source, in its own order. timed: whether its times are real and not numbered.

    far_ms: of real times, the few that lie further than this (ms) from the others are set aside as strays.
    None: none are. cost: as for `first_columns`. Costs that are all equal are left out of the sample, and a
    remark says so.
    """
    # One tuple more is read, to see whether the source has more.
    keys, times, costs = first_columns(source, tuples + 1, cost=cost)
    complete = len(keys) <= tuples
    keys, times = keys[:tuples], times[:tuples]
    costs = None if costs is None else costs[:tuples]
    sample = Sample(name=source.name, keys=keys, times=times, timed=timed, complete=complete)
    if timed and far_ms is not None:
        regular, strays = _apart(times, far_ms)
        mask = pa.array(regular)
        costs = None if costs is None else costs.filter(mask)
        sample = replace(sample, keys=keys.filter(mask), times=times[regular], strays=strays)
    if cost is None or costs is None:
        return sample
    read = cost_column(costs, name=cost, where=source.name)
    values = None if read.same is not None else read.costs
    return replace(sample, costs=values, cost=in_settings(cost), cost_remarks=read.remarks)


def _apart(times: Int64s, far_ms: int) -> tuple[Bools, tuple[Strays, ...]]:
    """(which times are no strays, the strays by cause).
    A file is sorted, so that only the distance tells a stray.
    """
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
    source: Source,
    *,
    tuples: int | None,
    timed: bool,
    rate: float | None,
    max_disorder_ms: int,
    cost: str | None = None,
    remark: Callable[[str], None] = lambda sentence: None,
) -> KeyedStream:
    """The source as a stream, in its own order.

    If `timed` is false, the tuples are numbered at `rate` tuples per second. Otherwise a time that lies more
    than `max_disorder_ms` behind an earlier one raises ConfigError. cost: as for `first_columns`. remark: is
    told what the user should know of the costs.
    """
    columns = first_columns(source, tuples, cost=cost)
    costs = None
    if cost is not None and columns.costs is not None:
        read = cost_column(columns.costs, name=cost, where=source.name)
        costs = read.costs
        for sentence in read.remarks:
            remark(sentence)
    if not timed:
        return from_columns(columns.keys, None, rate=rate, costs=costs)
    stream = from_columns(columns.keys, columns.times, costs=costs)
    check_order(columns.times, max_disorder_ms=max_disorder_ms, where=source.name)
    return stream
