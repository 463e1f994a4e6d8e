"""Hot keys by exact counts in tumbling windows: hot now, and for one window more.

A key becomes hot as soon as its tuples in the present window, the current one included, are more than
`share` x the tuples of the window before, and more than one: one tuple cannot be split, and where a window
has few tuples it would make every key hot. A hot key stays hot until the end of the next window. No key
becomes hot in the first window. After a pause (windows without tuples) no key is hot, and the last window that had
tuples counts as the one before. At most 1/share keys become hot per window, times the growth of the window
over the one before.

Structure: linear probing; an entry says in which window its count was made, so a window ends at no cost
and nothing is ever deleted. When the table is three quarters full the kernel stops (`crowded`) and Python
keeps the entries that still mean something (`make_room`). Cost: O(1) per tuple, amortised. State: 43 to
256 bytes per distinct key of a window and the one before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenflow.arrays import NEVER, Int64s, State
from evenflow.kernels import inlined, kernel
from evenflow.keys import home_slot
from evenflow.sketches.window_loads import end_of

_NOW, _LENGTH, _END, _ORDINAL, _SEEN, _BEFORE, _USED, _HOT, _FRESH = range(9)
_KEY, _COUNT, _COUNTED, _UNTIL = range(4)
_LEAST_CAPACITY = 64


class HotTable(NamedTuple):
    """The arrays. A kernel unpacks them once, before its loop."""

    entries: Int64s
    """(capacity, 4): key (its bits), its count, ordinal of the window of that count (0: no entry), ordinal
    of the last window in which it is hot."""
    clock: Int64s
    """[present window, its length in ms, its end in ms, its ordinal, its tuples so far, tuples of the one
    before, entries in use, keys hot now, keys hot in the next window too]"""


def _table(capacity: int) -> Int64s:
    return np.zeros((capacity, 4), np.int64)


def _capacity(kept: int) -> int:
    """Of a table made for these entries: an eighth to a quarter of it in use."""
    return max(_LEAST_CAPACITY, 4 << (kept - 1).bit_length())


@inlined
def crowded(entries: Int64s, clock: Int64s) -> Any:
    """Whether there may be no place for one more key."""
    return 4 * clock[_USED] >= 3 * entries.shape[0]


@kernel
def roll(clock: Int64s, time: Any) -> None:
    """Begin the window of `time` when it is later than the present one. Ask `window_loads.due` first."""
    if time < clock[_END]:
        return
    now = time // clock[_LENGTH]
    if now == clock[_NOW] and now != NEVER:  # the last window of all
        return
    follows = now == clock[_NOW] + 1 and clock[_NOW] != NEVER
    clock[_ORDINAL] += 1 if follows else 2
    clock[_HOT] = clock[_FRESH] if follows else 0
    clock[_FRESH] = 0
    clock[_BEFORE] = clock[_SEEN]
    clock[_SEEN] = 0
    clock[_NOW] = now
    clock[_END] = end_of(now, clock[_LENGTH])


@inlined
def _entry(entries: Int64s, wanted: np.int64) -> np.int64:
    """The key's entry, or the free one where it belongs."""
    mask = np.int64(entries.shape[0] - 1)
    at = home_slot(np.uint64(wanted), mask)
    while entries[at, _COUNTED] != 0 and entries[at, _KEY] != wanted:
        at = (at + 1) & mask
    return at


@kernel
def count(entries: Int64s, clock: Int64s, share: float, key: np.uint64) -> bool:
    """One tuple of this key in the present window; whether the key is hot."""
    wanted = np.int64(key)
    at = _entry(entries, wanted)
    ordinal = clock[_ORDINAL]
    clock[_SEEN] += 1
    if entries[at, _COUNTED] != ordinal:
        clock[_USED] += entries[at, _COUNTED] == 0
        entries[at, _KEY] = wanted
        entries[at, _COUNTED] = ordinal
        entries[at, _COUNT] = 0
    entries[at, _COUNT] += 1
    enough = max(1.0, share * clock[_BEFORE])
    if entries[at, _UNTIL] <= ordinal and clock[_BEFORE] > 0 and entries[at, _COUNT] > enough:
        clock[_HOT] += entries[at, _UNTIL] < ordinal
        clock[_FRESH] += 1
        entries[at, _UNTIL] = ordinal + 1
    return entries[at, _UNTIL] >= ordinal


@kernel
def _fill(entries: Int64s, kept: Int64s) -> None:
    for row in range(kept.shape[0]):
        at = _entry(entries, kept[row, _KEY])
        for column in range(4):
            entries[at, column] = kept[row, column]


class HotKeys:
    """The table and its growth; kernels work on `table`, which `make_room` replaces."""

    def __init__(self, *, window_ms: int) -> None:
        clock = np.array([NEVER, window_ms, NEVER, 0, 0, 0, 0, 0, 0], np.int64)
        self.table = HotTable(_table(_LEAST_CAPACITY), clock)

    @property
    def hot(self) -> int:
        """How many keys are hot now."""
        return int(self.table.clock[_HOT])

    @property
    def nbytes(self) -> int:
        """Memory of the table."""
        return sum(array.nbytes for array in self.table)

    def bound(self, keys: int) -> int:
        """The most that `nbytes` can be while two windows in a row have no more keys together.

        Entries that mean something are of the present window or the one before. So the table has at most
        4 x 2^ceil(log2 keys) entries, and at least 64, of 32 bytes; and there is the clock.
        """
        entries, clock = self.table
        return _capacity(keys) * entries.itemsize * entries.shape[1] + clock.nbytes

    def make_room(self) -> None:
        """Forget what means nothing any more; a table a quarter to an eighth full, or less."""
        self._keep(self._meaningful())

    def snapshot(self) -> State:
        """The table in a form that does not depend on its history: entries ordered by key."""
        kept = self._meaningful()
        kept[kept[:, _COUNTED] != self.table.clock[_ORDINAL], _COUNT] = 0
        clock = self.table.clock.copy()
        clock[_USED] = 0
        return {"entries": kept[np.argsort(kept[:, _KEY])], "clock": clock}

    def load(self, state: State) -> None:
        """Take over what `snapshot` gave."""
        self.table = HotTable(self.table.entries, state["clock"])
        self._keep(state["entries"])

    def _meaningful(self) -> Int64s:
        entries, ordinal = self.table.entries, self.table.clock[_ORDINAL]
        kept: Int64s = entries[
            (entries[:, _COUNTED] > 0) & ((entries[:, _COUNTED] == ordinal) | (entries[:, _UNTIL] >= ordinal))
        ]
        return kept

    def _keep(self, kept: Int64s) -> None:
        entries = _table(_capacity(len(kept)))
        _fill(entries, kept)
        self.table.clock[_USED] = len(kept)
        self.table = HotTable(entries, self.table.clock)
