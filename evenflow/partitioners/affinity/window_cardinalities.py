"""C[w] by HyperLogLog: about how many distinct keys each worker has in a window of whole slides.

The window and its clock work as in `window_loads`. A register cannot forget, so a sliding window keeps one
bank of registers per slide, and needs the maximum over all banks. The maxima are kept like a queue made of
two stacks. Each slide before the *pivot* holds the maximum from itself up to the pivot. One further bank
holds the maximum of the slides from the pivot on. When the last slide before the pivot leaves, the maxima
are made anew from all slides, and the pivot moves to the present. So a slide that passes costs about 4
passes over one bank instead of `slides`.

A window of one slide (tumbling, cumulative) needs one bank only. State: workers x 2^precision bytes, and
slides + 2 times as much when the window slides. `hyperloglog` has the estimate and its laws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import NEVER, Float64s, Rows, State, UInt8s, Whole, record
from evenflow.numeric.kernels import inlined, kernel
from evenflow.sketches import hyperloglog
from evenflow.sketches.hyperloglog import Registers, add, rank_of, register_of, registers
from evenflow.sketches.window_loads import end_of, passed

CLOCK = np.dtype([(name, np.int64) for name in ("slide", "length", "end", "slot", "pivot")])
"""The current slide, slide length in ms, end of the current slide in ms, its place in `ring`, the pivot."""


class WindowCardinalities(NamedTuple):
    """The sketches of all workers in a window: what kernels take as one argument."""

    whole: Registers
    """Registers of the whole window, one row per worker. `hyperloglog.estimate` and `would_change` read
    them.
    """
    ring: UInt8s
    """(slides, workers, m): the registers of each slide, or the maxima from the slide up to the pivot. Empty
    if the window is one slide."""
    newer: UInt8s
    """(workers, m): maxima of the complete slides from the pivot on. Empty if the window is one slide."""
    clock: Rows
    """One of CLOCK."""

    @property
    def state(self) -> State:
        """The arrays that a snapshot needs. Sums and estimates are computed from them again."""
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


def restored(state: State) -> WindowCardinalities:
    """The window whose `state` is given."""
    workers, slots = state["values"].shape
    whole = registers(workers, slots.bit_length() - 1)._replace(values=state["values"])
    return WindowCardinalities(whole, state["ring"], state["newer"], state["clock"])


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
def _raise_slide_to_slide(ring: UInt8s, slot: Whole, source: Whole) -> None:
    for worker in range(ring.shape[1]):
        for at in range(ring.shape[2]):
            value, other = ring[slot, worker, at], ring[source, worker, at]
            ring[slot, worker, at] = other if other > value else value


@kernel
def _begin_slide(window: WindowCardinalities, slide: Whole) -> None:
    """Begin `slide`. The slide that is `slides` older leaves the window."""
    ring, newer, clock = window.ring, window.newer, window.clock[()]
    slides = ring.shape[0]
    # The slide that is complete now joins the slides from the pivot on.
    _raise_to_slide(newer, ring, (slide - 1) % slides)
    _clear_slide(ring, slide % slides)
    oldest = slide - slides + 1
    if oldest >= clock["pivot"]:
        # From the newest slide back, each takes over the maxima of the next: each then covers itself up to
        # the pivot.
        for older in range(slide - 2, oldest - 1, -1):
            _raise_slide_to_slide(ring, older % slides, (older + 1) % slides)
        _clear(newer)
        clock["pivot"] = slide


@kernel
def advance(window: WindowCardinalities, time: Whole) -> bool:
    """Move the window to `time`, ms. Returns whether estimates may have changed."""
    values, ring, newer, clock = window.whole.values, window.ring, window.newer, window.clock[()]
    if time < clock["end"]:
        return False
    now = time // clock["length"]
    current, slides = clock["slide"], ring.shape[0]
    if current == NEVER:
        clock["pivot"] = now
    elif now == current:  # the last slide that int64 can hold: its end is cut short, so it is always due
        return False
    elif passed(slides, current, now) == slides:
        # Nothing of the old window is left.
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
        # Registers fell when slides left. -1 says that sums and estimates are computed again when they are
        # asked for.
        window.whole.sums[worker] = -1
        window.whole.estimates[worker] = -1
    clock["slide"] = now
    clock["end"] = end_of(now, clock["length"])
    clock["slot"] = now % max(1, slides)
    return True


@inlined
def touch_slide(window: WindowCardinalities, worker: Whole, hashed: np.uint64) -> None:
    """As `touch`, for a key that is known to change no register of the window as a whole."""
    ring = window.ring
    if ring.shape[0] > 0:
        slot, slots = window.clock[()]["slot"], ring.shape[2]
        at = register_of(hashed, slots)
        ring[slot, worker, at] = max(np.int64(ring[slot, worker, at]), rank_of(hashed, slots))


@kernel
def touch(window: WindowCardinalities, worker: Whole, hashed: np.uint64) -> bool:
    """The worker gets a tuple in the current slide. Returns whether that changed the window's registers.

    hashed: `sketch_hash` of the tuple's key.
    """
    touch_slide(window, worker, hashed)
    return add(window.whole, worker, hashed)


def estimates(window: WindowCardinalities) -> Float64s:
    """C[w] of every worker, shape (workers,). A copy."""
    whole = window.whole
    return np.array([hyperloglog.estimate(whole, worker) for worker in range(len(whole.sums))])
