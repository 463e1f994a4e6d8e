"""One stream through one partitioner: its sources side by side, each with state of its own."""

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
"""Tuples of the stream routed at once. The cut changes nothing (a micro-batch is a block of its own)."""
_WARM_UP_TUPLES = 2_000
_WARM_UP_BATCHES = 4
_LATEST = 2**62
Progress = Callable[[int], None]
"""Told how many tuples have been routed. May raise to stop."""


@dataclass(frozen=True, eq=False)
class Routed:
    """What a partitioner did. `workers` has shape (m,)."""

    workers: Int32s
    seconds: float
    hot_keys: int | None
    exchanged: bool
    """Whether the sources told each other what they know."""


def route(
    stream: KeyedStream, who: Entrant, scenario: Scenario, *, progress: Progress = lambda done: None
) -> Routed:
    """The worker of every tuple, and the time spent in `assign`: of this thread, so other processes do not count."""
    warm_up(stream, who, scenario)
    sources = scenario.partitioners(who, stream)
    micro_batch = sources[0].micro_batch
    edges = scenario.batches(stream) if micro_batch else [*range(0, len(stream), BLOCK), len(stream)]
    exchange = type(sources[0]).exchange(sources, scenario.slide_ms) if scenario.exchange else None
    meetings = {} if exchange is None else exchange.meetings(scenario.clock(stream.times))
    out = np.empty(len(stream), np.int32)
    seconds, told = 0.0, 0
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
    """Tuples low .. high-1, tuple t by source t mod sources. The seconds inside `assign`."""
    seconds = 0.0
    for number, source in enumerate(sources):
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
    """Load the kernels with a partitioner that is thrown away, so that no figure holds a compilation.

    Half of its tuples lie in one slide. The others pass over three of the longest length that it knows (a window, an
    interval): what comes at the end of one has come then, twice.
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
    """Times of the tuples of a warm-up: the first half at 0, the others over three of the longest length (ms)."""
    half = _WARM_UP_TUPLES // 2
    step = min(-(-3 * max(lengths, default=1) // half), _LATEST // half)
    times: Int64s = np.maximum(0, np.arange(1 - half, half + 1)) * step
    return times
