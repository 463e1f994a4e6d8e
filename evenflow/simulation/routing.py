"""Routes one stream through one partitioner. Its sources work side by side, each with its own state."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from evenflow.arrays import Int32s, Int64s
from evenflow.partitioners import Partitioner
from evenflow.simulation.scenario import Entrant, Scenario
from evenflow.simulation.streams import KeyedStream

BLOCK = 1 << 18
"""Tuples of the stream that are routed at once. The size does not change results. A micro-batch is its own block."""
_WARM_UP_TUPLES = 2_000
_WARM_UP_BATCHES = 4
_LATEST = 2**62
Progress = Callable[[int], None]
"""A callback that is told how many tuples have been routed. It may raise an exception to stop the routing."""


@dataclass(frozen=True, eq=False)
class Routed:
    """The outcome of routing a stream.

    workers: the worker of each tuple, shape (m,). seconds: processor time inside `assign`. hot_keys: see
    `results.Figures`.
    """

    workers: Int32s
    seconds: float
    hot_keys: int | None
    exchanged: bool
    """Whether the sources told each other what they know."""


def route(
    stream: KeyedStream, who: Entrant, scenario: Scenario, *, progress: Progress = lambda done: None
) -> Routed:
    """The worker of every tuple, and the time spent in `assign`.

    The time is the processor time of this thread, so other processes on the machine do not count.
    """
    warm_up(stream, who, scenario)
    sources = scenario.partitioners(who, stream)
    micro_batch = sources[0].micro_batch
    edges = scenario.batches(stream) if micro_batch else [*range(0, len(stream), BLOCK), len(stream)]
    exchange = type(sources[0]).exchange(sources, scenario.slide_ms) if scenario.exchange else None
    meetings = {} if exchange is None else exchange.meetings(scenario.clock(stream.times))
    out = np.empty(len(stream), np.int32)
    seconds, told = 0.0, 0
    # A block ends wherever the sources meet, so that what they tell each other counts for the next tuple.
    for low, high in pairwise(sorted({*meetings, *(int(edge) for edge in edges)})):
        if exchange is not None:
            for moment in meetings.get(low, ()):
                exchange.tell(moment)
        seconds += _route_block(sources, stream, out, low, high)
        if high - told >= BLOCK or high == len(stream):
            progress(high)
            told = high
    hot = [seen.head_keys for seen in (source.observe() for source in sources) if seen.head_keys is not None]
    return Routed(out, seconds, max(hot) if hot else None, exchange is not None)


def _route_block(sources: list[Partitioner], stream: KeyedStream, out: Int32s, low: int, high: int) -> float:
    """Route tuples low .. high-1 into `out`, tuple t by source t mod sources. Returns the seconds inside `assign`."""
    seconds = 0.0
    for number, source in enumerate(sources):
        # The first tuple at or after `low` that is this source's, and then every len(sources)-th.
        mine = slice(low + (number - low) % len(sources), high, len(sources))
        keys, times = np.ascontiguousarray(stream.keys[mine]), np.ascontiguousarray(stream.times[mine])
        assign = source.assign_batch if source.micro_batch else source.assign
        if len(keys):
            began = time.thread_time()
            workers = assign(keys, times)
            seconds += time.thread_time() - began
            out[mine] = workers
    return seconds


def warm_up(stream: KeyedStream, who: Entrant, scenario: Scenario) -> Partitioner:
    """Compile or load the kernels with a partitioner that is thrown away, so that no measured time includes it.

    Half of the tuples lie in one slide. The other half spans three times the longest length among the partitioner's
    options (a window, an interval). So the code for the end of a window or interval has run at least twice.
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
    """Times of the tuples of a warm-up, ms: the first half at 0, the others over three times the longest length."""
    half = _WARM_UP_TUPLES // 2
    step = min(-(-3 * max(lengths, default=1) // half), _LATEST // half)
    times: Int64s = np.maximum(0, np.arange(1 - half, half + 1)) * step
    return times
