"""Exact counts of the keys of a tumbling window, with the last slide in which each was noted.

Idea: a linear-probing table whose slots bear the number of the window that filled them. A slot of an
earlier window counts as empty, so beginning a new window costs nothing. Nothing is deleted within a
window, so probing stays right.

A kernel cannot enlarge the table: it checks `fill[0] < limit(cells)` before a tuple and returns when
there is no room; Python calls `grow` and the kernel again. Cost: O(1). State: 32 bytes per slot, 2 to 4
slots per distinct key of the fullest window so far.
"""

from __future__ import annotations

import numpy as np

from evenflow.arrays import NEVER, Int64s, UInt64s
from evenflow.kernels import kernel
from evenflow.keys import home_slot

_KEY, _WINDOW, COUNT, LAST = range(4)
_LEAST_SLOTS = 64


@kernel
def limit(cells: Int64s) -> np.int64:
    """Keys that fit before the table must grow."""
    return np.int64(cells.shape[0] // 2)


@kernel
def slot_of(cells: Int64s, fill: Int64s, key: np.uint64, window: np.int64) -> np.int64:
    """The key's slot in this window (numbered from 1); a new one with count 0 when it had none."""
    mask = np.int64(cells.shape[0] - 1)
    at = home_slot(key, mask)
    word = np.int64(key)
    while cells[at, _WINDOW] == window:
        if cells[at, _KEY] == word:
            return at
        at = (at + 1) & mask
    cells[at, _KEY] = word
    cells[at, _WINDOW] = window
    cells[at, COUNT] = 0
    cells[at, LAST] = NEVER
    fill[0] += 1
    return at


@kernel
def _fill(cells: Int64s, fill: Int64s, window: np.int64, keys: UInt64s, counts: Int64s, last: Int64s) -> None:
    for row in range(keys.shape[0]):
        at = slot_of(cells, fill, keys[row], window)
        cells[at, COUNT] = counts[row]
        cells[at, LAST] = last[row]


def _slots(keys: int) -> int:
    """Of a table that has room for one key more than these."""
    return max(_LEAST_SLOTS, 2 << keys.bit_length())


class TumblingCounts:
    """The table; kernels take `cells` and `fill`, the number of keys of the present window."""

    def __init__(self) -> None:
        self.cells = np.zeros((_LEAST_SLOTS, 4), np.int64)
        self.fill = np.zeros(1, np.int64)

    @property
    def full(self) -> bool:
        """Whether the next new key has no room."""
        return int(self.fill[0]) >= len(self.cells) // 2

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return self.cells.nbytes + self.fill.nbytes

    def bound(self, keys: int) -> int:
        """The most that `nbytes` can be while no window has more keys.

        The table doubles when half of it is in use and a tuple comes. So it has at most 4 x 2^floor(log2 keys)
        slots, and at least 64, of 32 bytes; and there is `fill`.
        """
        return _slots(keys) * self.cells.itemsize * self.cells.shape[1] + self.fill.nbytes

    def entries(self, window: int) -> tuple[UInt64s, Int64s, Int64s]:
        """(keys ascending, counts, last slides) of this window."""
        found = self.cells[self.cells[:, _WINDOW] == window]
        keys = np.ascontiguousarray(found[:, _KEY]).view(np.uint64)
        order = np.argsort(keys)
        return keys[order], found[order, COUNT], found[order, LAST]

    def frequent(self, window: int, least: int) -> UInt64s:
        """Keys counted at least this often in this window, ascending."""
        found = self.cells[(self.cells[:, COUNT] >= least) & (self.cells[:, _WINDOW] == window), _KEY]
        return np.sort(found.view(np.uint64))

    def begin(self) -> None:
        """A new window; the table halves when the last one needed little of it."""
        if len(self.cells) > _LEAST_SLOTS and 16 * int(self.fill[0]) < len(self.cells):
            self.cells = np.zeros((len(self.cells) // 2, 4), np.int64)
        self.fill[0] = 0

    def load(self, window: int, keys: UInt64s, counts: Int64s, last: Int64s) -> None:
        """Hold exactly these entries."""
        self.cells = np.zeros((_slots(len(keys)), 4), np.int64)
        self.fill[0] = 0
        _fill(self.cells, self.fill, np.int64(window), keys, counts, last)

    def grow(self, window: int) -> None:
        """Make room; entries of earlier windows are dropped."""
        entries = self.entries(window)
        slots = 2 * len(self.cells)
        self.cells = np.zeros((slots, 4), np.int64)
        self.fill[0] = 0
        _fill(self.cells, self.fill, np.int64(window), *entries)

    def forget_slides(self) -> None:
        """Keep the counts, not where in time they came from."""
        self.cells[:, LAST] = NEVER
