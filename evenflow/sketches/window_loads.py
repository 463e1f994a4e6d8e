"""Load of each worker within a sliding window of whole slides: the sum of what its tuples cost.

The window is the current slide and the `slides - 1` slides before it. The clock never runs backwards: a tuple
that is older than the current slide counts in the current slide. A gap longer than the window empties the
window.
Cost: O(1) per tuple, and O(workers) per slide that passes (for at most `slides` slides at once).
State: (slides + 1) x workers counters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from evenflow.numeric.arrays import LAST_TIME, NEVER, Int64s, Rows, Whole, record
from evenflow.numeric.kernels import inlined, kernel

CLOCK = np.dtype([(name, np.int64) for name in ("slide", "length", "end", "row")])
"""The current slide, the length of a slide in ms, the end of the current slide in ms, its row in the ring."""


class WindowLoads(NamedTuple):
    """The loads of a window: what kernels take as one argument."""

    loads: Int64s
    """(workers,): load of each worker in the window."""
    ring: Int64s
    """(slides, workers): the costs of the tuples of each slide."""
    clock: Rows
    """One of CLOCK."""


def window_loads(workers: int, *, window_ms: int, slide_ms: int) -> WindowLoads:
    """An empty window. `window_ms` is a multiple of `slide_ms`."""
    ring = np.zeros((window_ms // slide_ms, workers), np.int64)
    clock = record(CLOCK, slide=NEVER, length=slide_ms, end=NEVER)
    return WindowLoads(np.zeros(workers, np.int64), ring, clock)


def loads_from(state: Mapping[str, Any]) -> WindowLoads:
    """The loads in a partitioner's state, where `_asdict` has put their arrays among others."""
    return WindowLoads(**{name: state[name] for name in WindowLoads._fields})


@inlined
def end_of(slide: Whole, length: Whole) -> np.int64:
    """When the slide ends, ms. A slide that reaches beyond int64 ends at LAST_TIME.

    A tuple of time LAST_TIME is then in the slide and yet `due`. That is harmless, because moving a clock to
    the slide that it shows changes nothing.
    """
    return np.int64(LAST_TIME) if slide >= LAST_TIME // length else np.int64((slide + 1) * length)


@inlined
def passed(slides: Whole, current: Whole, now: Whole) -> np.int64:
    """How many slides lie between the current slide and `now`, at most `slides`.
    Exact even if int64 would overflow.
    """
    # Unsigned, even the difference of the first and the last slide of all time fits.
    return np.int64(min(np.uint64(slides), np.uint64(now) - np.uint64(current)))


@inlined
def due(clock: Rows, time: Whole) -> bool:
    """Whether `advance` has anything to do. Asking first saves a call per tuple (measured: 7 ns each).

    The clocks of `window_holders` and `window_cardinalities` can be asked in the same way.
    """
    return bool(time >= clock[()]["end"])


@kernel
def advance(window: WindowLoads, time: Whole) -> bool:
    """Move the window to `time`, ms. Returns whether loads may have changed."""
    moved = time >= window.clock[()]["end"]
    if moved:
        _move(window, time)
    return bool(moved)


@kernel
def _move(window: WindowLoads, time: Whole) -> None:
    loads, ring, clock = window.loads, window.ring, window.clock[()]
    now = time // clock["length"]
    current = clock["slide"]
    slides, workers = ring.shape
    if current != NEVER:
        for step in range(passed(slides, current, now)):
            # `passed` is at most `slides`: after a long silence the ring is emptied once, not once per slide.
            slot = (now - step) % slides
            for worker in range(workers):
                loads[worker] -= ring[slot, worker]
                ring[slot, worker] = 0
    clock["slide"] = now
    clock["end"] = end_of(now, clock["length"])
    clock["row"] = now % slides


@inlined
def add(window: WindowLoads, worker: Whole, cost: Whole) -> None:
    """Count a tuple of this worker, which costs so much, in the current slide and in its load."""
    window.loads[worker] += cost
    note(window, worker, cost)


@inlined
def note(window: WindowLoads, worker: Whole, cost: Whole) -> None:
    """Count a tuple of this worker in the current slide.
    The caller has counted its cost in the worker's load already.
    """
    window.ring[window.clock[()]["row"], worker] += cost


def moves(clock: Rows, now: int | None) -> bool:
    """Whether a tuple of time `now`, ms, ends a slide with tuples. None: a tuple that ends none."""
    return now is not None and int(clock["slide"]) != NEVER and now >= int(clock["end"])
