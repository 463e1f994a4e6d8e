"""Load of each worker within a sliding window of whole slides.

The window is the current slide and the `slides - 1` before it. The clock never runs backwards: a tuple
older than the current slide counts in the current slide. A gap longer than the window empties it.
Cost: O(1) per tuple, O(workers) per slide that passes (at most `slides` of them at once). State:
(slides + 1) x workers counters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.arrays import LAST_TIME, NEVER, Int64s
from evenflow.kernels import inlined, kernel

ROW = 3
"""Of `clock`: the row of `ring` that counts the current slide."""


class WindowLoads(NamedTuple):
    """`loads[w]` is the load of worker w in the window. A kernel unpacks this once, before its loop."""

    loads: Int64s
    ring: npt.NDArray[np.int64]
    clock: Int64s
    """[current slide, slide length in ms, end of the current slide in ms, its row in `ring`]"""


def window_loads(workers: int, *, window_ms: int, slide_ms: int) -> WindowLoads:
    """An empty window; `window_ms` is a multiple of `slide_ms`."""
    ring = np.zeros((window_ms // slide_ms, workers), np.int64)
    return WindowLoads(np.zeros(workers, np.int64), ring, np.array([NEVER, slide_ms, NEVER, 0], np.int64))


def loads_from(state: Mapping[str, npt.NDArray[Any]]) -> WindowLoads:
    """The loads among the arrays of a partitioner's state, into which `_asdict` put them."""
    return WindowLoads(**{name: state[name] for name in WindowLoads._fields})


@inlined
def end_of(slide: Any, length: Any) -> Any:
    """When the slide ends, ms, but at most LAST_TIME: a slide cut short by the end of time ends nowhere else.

    LAST_TIME itself is then in the slide and yet due: moving a clock to the slide it is in changes nothing.
    """
    return LAST_TIME if slide >= LAST_TIME // length else (slide + 1) * length


@inlined
def passed(slides: Any, current: Any, now: Any) -> np.int64:
    """Slides from the current one to `now`, at most `slides`; exact also where int64 would overflow."""
    return np.int64(min(np.uint64(slides), np.uint64(now) - np.uint64(current)))


@inlined
def due(clock: Int64s, time: Any) -> Any:
    """Whether `advance` has anything to do: to ask first saves a call per tuple (measured: 7 ns each).

    The clocks of `window_holders` and `window_cardinalities` answer the same.
    """
    return time >= clock[2]


@kernel
def advance(loads: Int64s, ring: Int64s, clock: Int64s, time: Any) -> bool:
    """Move the window to `time`; True when loads may have changed. `WindowLoads` comes first."""
    moved = time >= clock[2]
    if moved:
        _move(loads, ring, clock, time)
    return bool(moved)


@kernel
def _move(loads: Int64s, ring: Int64s, clock: Int64s, time: Any) -> None:
    now = time // clock[1]
    current = clock[0]
    slides, workers = ring.shape
    if current != NEVER:
        for step in range(passed(slides, current, now)):
            slot = (now - step) % slides
            for worker in range(workers):
                loads[worker] -= ring[slot, worker]
                ring[slot, worker] = 0
    clock[0] = now
    clock[2] = end_of(now, clock[1])
    clock[ROW] = now % slides


@inlined
def add(loads: Int64s, ring: Int64s, clock: Int64s, worker: Any) -> None:
    """One tuple for this worker, in the current slide."""
    loads[worker] += 1
    ring[clock[ROW], worker] += 1
