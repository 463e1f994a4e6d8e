"""Routes one stream through one partitioner. Its sources work side by side, each with its own state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from evenflow.numeric.arrays import Int32s, Int64s
from evenflow.partitioners import Partitioner
from evenflow.simulation.channel import ChannelTraffic, Exchange
from evenflow.simulation.scenario import Entrant, Scenario
from evenflow.simulation.streams import KeyedStream

BLOCK = 1 << 18
"""Tuples of the stream that are routed at once. The size does not change results.
A micro-batch is its own block.
"""
_WARM_UP_TUPLES = 2_000
_WARM_UP_BATCHES = 4
_LATEST = 2**62
Progress = Callable[[int], None]
"""A callback that is told how many tuples have been routed. It may raise an exception to stop the routing."""


@dataclass(frozen=True, eq=False)
class RoutedStream:
    """The outcome of routing a stream."""

    workers: Int32s
    """(m,): the worker of each tuple."""
    seconds: float
    """Processor time inside `assign`."""
    hot_keys: int | None
    """Keys treated as frequent at the end, as in `results.Figures`."""
    sent: ChannelTraffic | None
    """What the sources told each other. None if they told nothing."""
    takes_costs: bool = False
    """Whether the partitioner weighs tuples by their costs."""


def route(
    stream: KeyedStream, who: Entrant, scenario: Scenario, *, progress: Progress = lambda done: None
) -> RoutedStream:
    """The worker of every tuple, and the time spent in `assign`.

    The time is the processor time of this thread, so other processes on the machine do not count.
    """
    warm_up(stream, who, scenario)
    sources = scenario.partitioners(who, stream)
    edges = (
        scenario.batches(stream) if sources[0].micro_batch else [*range(0, len(stream), BLOCK), len(stream)]
    )
    exchange = _exchange(sources, scenario)
    out = np.empty(len(stream), np.int32)
    seconds, last_report = 0.0, 0
    for low, high in _pieces([int(edge) for edge in edges], stream, scenario, exchange):
        seconds += _route_block(sources, stream, out, low, high)
        if high - last_report >= BLOCK or high == len(stream):
            progress(high)
            last_report = high
    hot = [
        observation.head_keys
        for observation in (source.observe() for source in sources)
        if observation.head_keys is not None
    ]
    sent = None if exchange is None else exchange.sent
    return RoutedStream(out, seconds, max(hot) if hot else None, sent, sources[0].takes_costs)


def _exchange(sources: Sequence[Partitioner], scenario: Scenario) -> Exchange | None:
    if scenario.exchange is None or not sources[0].tells:
        return None
    return Exchange(sources, scenario.exchange, patience_ms=scenario.slide_ms)


def _pieces(
    edges: Sequence[int], stream: KeyedStream, scenario: Scenario, exchange: Exchange | None
) -> Iterator[tuple[int, int]]:
    """(first, last + 1) rows of each piece of the stream that is routed at once.
    What is due before it has happened.

    A piece ends at an edge, and wherever something is due in the exchange, so that it counts for the next
    tuple.
    """
    if exchange is None:
        yield from pairwise(edges)
        return
    clock = np.maximum.accumulate(scenario.clock(stream.times))
    for first, last in pairwise(edges):
        low = first
        while low < last:
            # Not at every edge: edges must not change what is told.
            if exchange.next_at <= clock[low]:
                exchange.catch_up(int(clock[low]))
            high = min(last, int(np.searchsorted(clock, exchange.next_at)))
            yield low, high
            low = high


def _route_block(sources: list[Partitioner], stream: KeyedStream, out: Int32s, low: int, high: int) -> float:
    """Route tuples low .. high-1 into `out`, tuple t by source t mod sources.
    Returns the seconds inside `assign`.
    """
    seconds = 0.0
    for number, source in enumerate(sources):
        # The first tuple at or after `low` that is this source's, and then every len(sources)-th.
        mine = slice(low + (number - low) % len(sources), high, len(sources))
        keys, times = np.ascontiguousarray(stream.keys[mine]), np.ascontiguousarray(stream.times[mine])
        # A partitioner that does not weigh tuples routes as if there were no costs.
        weighed = stream.costs if source.takes_costs else None
        costs = None if weighed is None else np.ascontiguousarray(weighed[mine])
        assign = source.assign_batch if source.micro_batch else source.assign
        if len(keys):
            # Columns are made contiguous before the clock starts: that is the work of the service, not of the
            # algorithm.
            began = time.thread_time()
            workers = assign(keys, times, costs)
            seconds += time.thread_time() - began
            out[mine] = workers
    return seconds


def warm_up(stream: KeyedStream, who: Entrant, scenario: Scenario) -> Partitioner:
    """Compile or load the kernels with a partitioner that is thrown away,
    so that no measured time includes it.

    Half of the tuples lie in one slide. The other half spans three times the longest length among the
    partitioner's options (a window, an interval). So the code for the end of a window or interval has run at
    least twice.
    """
    scratch = scenario.partitioners(who, stream)[0]
    keys = np.resize(stream.keys[:_WARM_UP_TUPLES], _WARM_UP_TUPLES)
    times = warm_up_times(
        [value for name, value in dict(scratch.options).items() if name.endswith("_ms") and value]
    )
    for piece in np.array_split(np.arange(_WARM_UP_TUPLES), _WARM_UP_BATCHES):
        scratch.assign_batch(keys[piece], times[piece])
    return scratch


def warm_up_times(lengths: Sequence[int]) -> Int64s:
    """Times of the tuples of a warm-up, ms: the first half at 0,
    the others over three times the longest length.
    """
    half = _WARM_UP_TUPLES // 2
    step = min(-(-3 * max(lengths, default=1) // half), _LATEST // half)
    times: Int64s = np.maximum(0, np.arange(1 - half, half + 1)) * step
    return times
