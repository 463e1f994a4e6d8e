"""Load of each worker within a sliding window of whole slides.

The window is the current slide and the `slides - 1` before it. The clock never runs backwards: a tuple
older than the current slide counts in the current slide. A gap longer than the window empties it.
Cost: O(1) per tuple, O(workers) per slide that passes (at most `slides` of them at once). State:
(slides + 1) x workers counters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.kernels import kernel

Int64s = npt.NDArray[np.int64]
_NEVER = -(2**63)


class WindowLoads(NamedTuple):
    """`loads[w]` is the load of worker w in the window; the rest is private to the kernels below."""

    loads: Int64s
    ring: npt.NDArray[np.int64]
    clock: Int64s
    """[current slide, slide length in ms, end of the current slide in ms]"""


def window_loads(workers: int, *, window_ms: int, slide_ms: int) -> WindowLoads:
    """An empty window; `window_ms` is a multiple of `slide_ms`."""
    ring = np.zeros((window_ms // slide_ms, workers), np.int64)
    return WindowLoads(np.zeros(workers, np.int64), ring, np.array([_NEVER, slide_ms, _NEVER], np.int64))


@kernel
def advance(window: WindowLoads, time: Any) -> bool:
    """Move the window to `time`; True when loads may have changed."""
    if time < window.clock[2]:
        return False
    now = time // window.clock[1]
    current = window.clock[0]
    slides, workers = window.ring.shape
    if current != _NEVER:
        for step in range(min(slides, now - current)):
            slot = (now - step) % slides
            for worker in range(workers):
                window.loads[worker] -= window.ring[slot, worker]
                window.ring[slot, worker] = 0
    window.clock[0] = now
    window.clock[2] = (now + 1) * window.clock[1]
    return True


@kernel
def add(window: WindowLoads, worker: Any) -> None:
    """One tuple for this worker, in the current slide."""
    window.loads[worker] += 1
    window.ring[window.clock[0] % window.ring.shape[0], worker] += 1
