"""Exact counts of the keys of a tumbling window, with the last slide in which each was noted.

Idea: the counts are in a hash table with linear probing, whose slots bear the number of the window that
filled them. A slot of an earlier window counts as empty, so a new window begins at no cost. Nothing is
deleted within a window, so probing stays right.

A kernel cannot enlarge the table. It asks `is_full` before each tuple, and returns if there is no room.
Python then calls `grow` and the kernel again. Cost: O(1). State: 32 bytes per slot, and 2 to 4 slots per
distinct key of the fullest window so far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.keys import first_slot
from evenflow.numeric.arrays import NEVER, Int64s, Rows, UInt64s, Whole, records
from evenflow.numeric.kernels import kernel

CELL = np.dtype([("key", np.uint64), ("window", np.int64), ("count", np.int64), ("last", np.int64)])
"""The key, the window that filled the slot, its count, the slide in which it was last noted."""
_LEAST_SLOTS = 64


class Counts(NamedTuple):
    """The table of counts: what kernels take as one argument."""

    cells: Rows
    """(slots,) of CELL."""
    fill: Int64s
    """(1,): how many keys the present window has."""


class Entries(NamedTuple):
    """The keys of a window."""

    keys: UInt64s
    """(keys,): ascending."""
    counts: Int64s
    """(keys,): tuples of each key in the window."""
    last: Int64s
    """(keys,): the slide in which each key was noted last."""


@kernel
def is_full(counts: Counts) -> bool:
    """Whether the table must grow before it can take one more key: half of its slots are in use."""
    return counts.fill[0] >= counts.cells.shape[0] // 2


@kernel
def slot_of(counts: Counts, key: np.uint64, window: Whole) -> np.int64:
    """The key's slot in this window. If the key has none, a new slot with count 0.

    Windows are numbered from 1, because 0 stands for a slot that was never used.
    """
    cells = counts.cells
    mask = np.int64(cells.shape[0] - 1)
    at = first_slot(key, mask)
    # At most half of the slots are in use (`is_full`), so the probing ends.
    while cells[at]["window"] == window:
        if cells[at]["key"] == key:
            return at
        at = (at + 1) & mask
    cells[at]["key"] = key
    cells[at]["window"] = window
    cells[at]["count"] = 0
    cells[at]["last"] = NEVER
    counts.fill[0] += 1
    return at


@kernel
def _fill(counts: Counts, window: Whole, entries: Entries) -> None:
    for row in range(entries.keys.shape[0]):
        at = slot_of(counts, entries.keys[row], window)
        counts.cells[at]["count"] = entries.counts[row]
        counts.cells[at]["last"] = entries.last[row]


def _slots(keys: int) -> int:
    """The slots of a table that has room for one key more than these."""
    return max(_LEAST_SLOTS, 2 << keys.bit_length())


def _empty(slots: int) -> Counts:
    return Counts(records(slots, CELL), np.zeros(1, np.int64))


class TumblingCounts:
    """The table and its growth. Kernels work on `table`."""

    def __init__(self) -> None:
        self.table = _empty(_LEAST_SLOTS)

    @property
    def full(self) -> bool:
        """Whether the next new key has no room."""
        return bool(is_full(self.table))

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return sum(array.nbytes for array in self.table)

    def bound(self, keys: int) -> int:
        """The most that `nbytes` can be while no window has more than `keys` keys.

        The table doubles when half of it is in use and a tuple comes. So it has at most 4 x 2^floor(log2
        keys) slots, and at least 64. A slot takes 32 bytes. `fill` comes on top.
        """
        return _slots(keys) * CELL.itemsize + self.table.fill.nbytes

    def count(self, key: int, window: int) -> int:
        """How often the key was counted in this window."""
        cells, mask = self.table.cells, len(self.table.cells) - 1
        at = int(first_slot(np.uint64(key), np.int64(mask)))
        while cells["window"][at] == window:
            if cells["key"][at] == np.uint64(key):
                return int(cells["count"][at])
            at = (at + 1) & mask
        return 0

    def entries(self, window: int) -> Entries:
        """The keys of this window and their counts."""
        cells = self.table.cells[self.table.cells["window"] == window]
        cells = cells[np.argsort(cells["key"])]
        return Entries(*(np.ascontiguousarray(cells[name]) for name in ("key", "count", "last")))

    def frequent(self, window: int, least: int) -> UInt64s:
        """Keys counted at least this often in this window, ascending."""
        cells = self.table.cells
        return np.sort(cells["key"][(cells["count"] >= least) & (cells["window"] == window)])

    def begin(self) -> None:
        """Begin a new window. The table halves if the last window used less than a sixteenth of it."""
        slots = len(self.table.cells)
        if slots > _LEAST_SLOTS and 16 * int(self.table.fill[0]) < slots:
            self.table = _empty(slots // 2)
        self.table.fill[0] = 0

    def load(self, window: int, entries: Entries) -> None:
        """Hold exactly these entries."""
        self.table = _empty(_slots(len(entries.keys)))
        _fill(self.table, np.int64(window), entries)

    def grow(self, window: int) -> None:
        """Make room. Entries of earlier windows are dropped."""
        entries = self.entries(window)
        self.table = _empty(2 * len(self.table.cells))
        _fill(self.table, np.int64(window), entries)

    def forget_slides(self) -> None:
        """Keep the counts, but forget the slide in which each key was noted."""
        self.table.cells["last"] = NEVER
