"""C[w] by HyperLogLog: about how many distinct keys each worker has, within a window of whole slides.

The window and its clock are those of `window_loads`. A register cannot forget, so a sliding window keeps
one bank of registers per slide and their maxima. The maxima are kept as a queue of two stacks: the older
slides hold the maximum from themselves up to a *pivot*, one bank holds that of the slides from the pivot
on. When the last of the older slides leaves, all slides are summed up anew and the pivot moves to the
present. A slide that passes then costs 4 passes over one bank instead of `slides`.

A window of one slide (tumbling, cumulative) needs the one bank only. State: workers x 2^precision bytes,
times slides + 2 when it slides. `hyperloglog` has the estimate and its laws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.arrays import NEVER, Float64s, Rows, State, UInt8s, Whole, record
from evenflow.kernels import inlined, kernel
from evenflow.sketches import hyperloglog
from evenflow.sketches.hyperloglog import Registers, add, rank_of, register_of, registers
from evenflow.sketches.window_loads import end_of, passed

CLOCK = np.dtype([(name, np.int64) for name in ("slide", "length", "end", "slot", "pivot")])
"""The current slide, slide length in ms, end of the current slide in ms, its place in `ring`, the pivot."""


class WindowCardinalities(NamedTuple):
    """What kernels take as one argument."""

    whole: Registers
    """Of the whole window, one row per worker. Read them with `hyperloglog.estimate` and `would_change`."""
    ring: UInt8s
    """(slides, workers, m): registers of each slide, or maxima from it up to the pivot. Empty for 1 slide."""
    newer: UInt8s
    """(workers, m): maxima of the complete slides from the pivot on. Empty for 1 slide."""
    clock: Rows
    """One of CLOCK."""

    @property
    def kept(self) -> State:
        """What a snapshot needs. The rest follows from it."""
        return {"values": self.whole.values, "ring": self.ring, "newer": self.newer, "clock": self.clock}

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return sum(array.nbytes for array in (*self.whole, self.ring, self.newer, self.clock))


def window_cardinalities(
    workers: int, precision: int, *, window_ms: int, slide_ms: int
) -> WindowCardinalities:
    """An empty window. `window_ms` is a multiple of `slide_ms`."""
    slides = window_ms // slide_ms
    banks = slides if slides > 1 else 0
    shape = (workers, 1 << precision)
    return WindowCardinalities(
        whole=registers(workers, precision),
        ring=np.zeros((banks, *shape), np.uint8),
        newer=np.zeros(shape if banks else (0, 0), np.uint8),
        clock=record(CLOCK, slide=NEVER, length=slide_ms, end=NEVER),
    )


def restored(kept: State) -> WindowCardinalities:
    """The window that has this `kept`."""
    workers, slots = kept["values"].shape
    whole = registers(workers, slots.bit_length() - 1)._replace(values=kept["values"])
    return WindowCardinalities(whole, kept["ring"], kept["newer"], kept["clock"])


@kernel
def _clear(bank: UInt8s) -> None:
    for worker in range(bank.shape[0]):
        for at in range(bank.shape[1]):
            bank[worker, at] = 0


@kernel
def _clear_slide(ring: UInt8s, slot: Whole) -> None:
    for worker in range(ring.shape[1]):
        for at in range(ring.shape[2]):
            ring[slot, worker, at] = 0


@kernel
def _raise_to_slide(bank: UInt8s, ring: UInt8s, slot: Whole) -> None:
    for worker in range(bank.shape[0]):
        for at in range(bank.shape[1]):
            value, other = bank[worker, at], ring[slot, worker, at]
            bank[worker, at] = other if other > value else value


@kernel
def _raise_slide_to_slide(ring: UInt8s, slot: Whole, of: Whole) -> None:
    for worker in range(ring.shape[1]):
        for at in range(ring.shape[2]):
            value, other = ring[slot, worker, at], ring[of, worker, at]
            ring[slot, worker, at] = other if other > value else value


@kernel
def _begin_slide(window: WindowCardinalities, slide: Whole) -> None:
    """`slide` begins and the one `slides` before it leaves."""
    ring, newer, clock = window.ring, window.newer, window.clock[()]
    slides = ring.shape[0]
    # The slide that is complete now joins those that are newer than the pivot.
    _raise_to_slide(newer, ring, (slide - 1) % slides)
    _clear_slide(ring, slide % slides)
    oldest = slide - slides + 1
    if oldest >= clock["pivot"]:
        # From the newest back, each slide takes over the maxima of the next one: then each tells all from it to the pivot.
        for older in range(slide - 2, oldest - 1, -1):
            _raise_slide_to_slide(ring, older % slides, (older + 1) % slides)
        _clear(newer)
        clock["pivot"] = slide


@kernel
def advance(window: WindowCardinalities, time: Whole) -> bool:
    """Move the window to `time`. True when estimates may have changed."""
    values, ring, newer, clock = window.whole.values, window.ring, window.newer, window.clock[()]
    if time < clock["end"]:
        return False
    now = time // clock["length"]
    current, slides = clock["slide"], ring.shape[0]
    if current == NEVER:
        clock["pivot"] = now
    elif now == current:  # the last slide of all
        return False
    elif passed(slides, current, now) == slides:
        _clear(values)
        _clear(newer)
        for slot in range(slides):
            _clear_slide(ring, slot)
        clock["pivot"] = now
    else:
        for slide in range(current + 1, now + 1):
            _begin_slide(window, slide)
        _clear(values)
        oldest = now - slides + 1
        if oldest < clock["pivot"]:
            _raise_to_slide(values, ring, oldest % slides)
        for worker in range(values.shape[0]):
            for at in range(values.shape[1]):
                value, other = values[worker, at], newer[worker, at]
                values[worker, at] = other if other > value else value
    for worker in range(values.shape[0]):
        # Registers fell when slides left, so the sums are to be made anew when somebody asks.
        window.whole.sums[worker] = -1
        window.whole.estimates[worker] = -1
    clock["slide"] = now
    clock["end"] = end_of(now, clock["length"])
    clock["slot"] = now % max(1, slides)
    return True


@inlined
def touch_slide(window: WindowCardinalities, worker: Whole, hashed: np.uint64) -> None:
    """As `touch`, for a key that is known to change nothing in the window as a whole."""
    ring = window.ring
    if ring.shape[0] > 0:
        slot, slots = window.clock[()]["slot"], ring.shape[2]
        at = register_of(hashed, slots)
        ring[slot, worker, at] = max(np.int64(ring[slot, worker, at]), rank_of(hashed, slots))


@kernel
def touch(window: WindowCardinalities, worker: Whole, hashed: np.uint64) -> bool:
    """The worker gets a tuple of the key `hashed` (`sketch_hash`) in the current slide. True when that has
    changed the window."""
    touch_slide(window, worker, hashed)
    return add(window.whole, worker, hashed)


def estimates(window: WindowCardinalities) -> Float64s:
    """C[w] of every worker. A copy."""
    whole = window.whole
    return np.array([hyperloglog.estimate(whole, worker) for worker in range(len(whole.sums))])
