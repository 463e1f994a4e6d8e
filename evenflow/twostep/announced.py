"""What was announced to a worker: which keys other workers have tuples of, by pane (`evenflow/homes.py`).

announced       int64: the panes with announcements
announced/PANE  int64: the hashes of the pane's keys, ascending
"""

from __future__ import annotations

import numpy as np

from evenflow.arrays import Int64s, UInt64s
from evenflow.twostep.stored import BucketState, needed, packed, unpacked

_NAME = "announced"


class Announced:
    """Hashes of keys by pane. `save` writes what changed."""

    def __init__(self, state: BucketState) -> None:
        self._state = state
        saved = state.get(_NAME)
        self._saved: set[int] = set() if saved is None else set(unpacked(saved).tolist())
        self._panes = set(self._saved)
        self._read: dict[int, UInt64s] = {}
        self._new: dict[int, list[UInt64s]] = {}

    def add(self, panes: Int64s, hashes: UInt64s) -> None:
        """Take in announcements, shape (announcements,). One that is known already changes nothing."""
        for pane in np.unique(panes).tolist():
            self._new.setdefault(pane, []).append(hashes[panes == pane])
            self._panes.add(pane)

    def between(self, first: int, last: int) -> UInt64s:
        """The hashes that were announced for any of the panes `first` to `last`."""
        found = [self._of(pane) for pane in sorted(self._panes) if first <= pane <= last]
        return np.concatenate([np.empty(0, np.uint64), *found])

    def forget(self, before: int) -> None:
        """Forget what was announced for panes below `before`."""
        self._panes = {pane for pane in self._panes if pane >= before}

    def save(self) -> None:
        """Write the panes that changed, and delete those that are forgotten."""
        for pane in sorted(self._saved - self._panes):
            self._state.delete(f"{_NAME}/{pane}")
        for pane in sorted(self._panes & {*self._new}):
            self._state.put(f"{_NAME}/{pane}", packed(self._of(pane).view(np.int64)))
        if self._panes != self._saved:
            self._state.put(_NAME, packed(np.array(sorted(self._panes), np.int64)))

    def _of(self, pane: int) -> UInt64s:
        if pane not in self._read:
            known = self._saved_of(pane) if pane in self._saved else np.empty(0, np.uint64)
            self._read[pane] = np.unique(np.concatenate([known, *self._new.get(pane, ())]))
        return self._read[pane]

    def _saved_of(self, pane: int) -> UInt64s:
        hashes: UInt64s = unpacked(needed(self._state, f"{_NAME}/{pane}")).view(np.uint64)
        return hashes
