"""Hot keys by exact counts in tumbling windows: hot now, and for one window more.

A key becomes hot as soon as it has more tuples in the present window, the current tuple included, than
`share` x the tuples of the window before, and more than one. (One tuple cannot be split, and in windows of
few tuples it would make every key hot.) A hot key stays hot until the end of the next window. No key becomes
hot in the first window. After a pause (windows without tuples) no key is hot, and the last window that had
tuples counts as the window before. At most 1/share keys become hot per window, times the growth of the window
over the window before.

With costs, what the tuples of a key and of a window cost takes the place of their number. A key that has had
one tuple in the window is not hot all the same, whatever the tuple costs.

Structure: a hash table with linear probing. An entry says in which window its count was made. So the end of a
window costs nothing, and nothing is ever deleted. When the table is three quarters full, the kernel stops
(`crowded`) and Python keeps the entries that still mean something (`make_room`). Cost: O(1) per tuple,
amortised. State: 43 to 256 bytes per distinct key of a window and the window before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.keys import first_slot
from evenflow.numeric.arrays import NEVER, Rows, State, Whole, record, records
from evenflow.numeric.kernels import inlined, kernel
from evenflow.sketches.window_loads import end_of

CLOCK = np.dtype(
    [
        (name, np.int64)
        for name in ("window", "length", "end", "ordinal", "seen", "before", "used", "hot", "fresh")
    ]
)
"""The present window: its number, its length in ms, its end in ms, its ordinal, the costs of its tuples so
far. Those of the window before.
Entries in use, keys that are hot now, keys that are hot in the next window too."""
ENTRY = np.dtype([(name, np.int64) for name in ("key", "count", "counted", "until")])
"""The key's bits, its count, ordinal of the window of that count (0: no entry), ordinal of the last window in
which it is hot."""
_LEAST_CAPACITY = 64


class HotTable(NamedTuple):
    """The table of hot keys: what kernels take as one argument."""

    entries: Rows
    """(capacity,) of ENTRY."""
    clock: Rows
    """One of CLOCK."""


def _capacity(entries: int) -> int:
    """The capacity of a table that is made for so many entries: an eighth to a quarter of it is then in
    use.
    """
    return max(_LEAST_CAPACITY, 4 << (entries - 1).bit_length())


@inlined
def crowded(table: HotTable) -> bool:
    """Whether there may be no place for one more key."""
    return bool(4 * table.clock[()]["used"] >= 3 * table.entries.shape[0])


@kernel
def roll(table: HotTable, time: Whole) -> None:
    """Begin the window of `time`, ms, if it is later than the present one. Ask `window_loads.due` first."""
    clock = table.clock[()]
    if time < clock["end"]:
        return
    now = time // clock["length"]
    if now == clock["window"] and now != NEVER:  # the last window that int64 can hold: its end is cut short
        return
    follows = now == clock["window"] + 1 and clock["window"] != NEVER
    # `until` is the ordinal after the one in which a key became hot. After a pause a step of 2 passes all of
    # these.
    clock["ordinal"] += 1 if follows else 2
    clock["hot"] = clock["fresh"] if follows else 0
    clock["fresh"] = 0
    clock["before"] = clock["seen"]
    clock["seen"] = 0
    clock["window"] = now
    clock["end"] = end_of(now, clock["length"])


@inlined
def _entry(entries: Rows, target: np.int64) -> np.int64:
    """The key's entry, or the free entry where the key belongs."""
    mask = np.int64(entries.shape[0] - 1)
    at = first_slot(np.uint64(target), mask)
    while entries[at]["counted"] != 0 and entries[at]["key"] != target:
        at = (at + 1) & mask
    return at


@kernel
def count(table: HotTable, share: float, key: np.uint64, cost: np.int64) -> bool:
    """Count a tuple of this key and cost in the present window. Returns whether the key is hot."""
    # int64: the fields of an entry have one type, so that `arrays.plain` can view them as numbers.
    target, entries, clock = np.int64(key), table.entries, table.clock[()]
    entry = entries[_entry(entries, target)]
    ordinal = clock["ordinal"]
    clock["seen"] += cost
    if entry["counted"] != ordinal:
        clock["used"] += entry["counted"] == 0
        entry["key"] = target
        entry["counted"] = ordinal
        entry["count"] = 0
    entry["count"] += cost
    # If the count is this tuple's cost, the key had no tuple in the window before it.
    enough = max(np.float64(cost), share * clock["before"])
    if entry["until"] <= ordinal and clock["before"] > 0 and entry["count"] > enough:
        clock["hot"] += entry["until"] < ordinal
        clock["fresh"] += 1
        entry["until"] = ordinal + 1
    return entry["until"] >= ordinal


@kernel
def _fill(entries: Rows, rows: Rows) -> None:
    for row in range(rows.shape[0]):
        at = _entry(entries, rows[row]["key"])
        entries[at] = rows[row]


class HotKeys:
    """The table and its growth. Kernels work on `table`, which `make_room` replaces."""

    def __init__(self, *, window_ms: int) -> None:
        clock = record(CLOCK, window=NEVER, length=window_ms, end=NEVER)
        self.table = HotTable(records(_LEAST_CAPACITY, ENTRY), clock)

    @property
    def hot(self) -> int:
        """How many keys are hot now."""
        return int(self.table.clock["hot"])

    @property
    def nbytes(self) -> int:
        """Memory of the table."""
        return sum(array.nbytes for array in self.table)

    def bound(self, keys: int) -> int:
        """The most that `nbytes` can be while any two windows in a row have at most `keys` keys together.

        Entries that mean something are of the present window or the window before. So the table has at most
        4 x 2^ceil(log2 keys) entries, and at least 64. An entry takes 32 bytes. The clock comes on top.
        """
        return _capacity(keys) * self.table.entries.itemsize + self.table.clock.nbytes

    def after_next(self, key: int, share: float, now: int | None) -> tuple[bool, float | None]:
        """Whether the key is hot once its next tuple, at `now`, has been counted,
        and its share of the present window.

        Nothing is counted: this is done on a table of this key alone. None: no window ends before the tuple.
        """
        entries, clock = self.table.entries, self.table.clock
        mine = entries[(entries["counted"] > 0) & (entries["key"] == np.uint64(key).astype(np.int64))]
        alone = HotTable(records(_LEAST_CAPACITY, ENTRY), clock.copy())
        _fill(alone.entries, mine)
        total = int(clock["seen"])
        counted = int(mine["count"][0]) if len(mine) and mine["counted"][0] == clock["ordinal"] else 0
        if now is not None and now >= int(clock["end"]):
            roll(alone, now)
        return bool(count(alone, share, np.uint64(key), np.int64(1))), counted / total if total else None

    def make_room(self) -> None:
        """Drop the entries that mean nothing any more. The new table is at most a quarter full."""
        self._keep(self._meaningful())

    def snapshot(self) -> State:
        """The table in a form that does not depend on its history: entries ordered by key."""
        rows = self._meaningful()
        # Counts of earlier windows are never read again. As zeros they make equal states equal bytes.
        rows["count"][rows["counted"] != self.table.clock["ordinal"]] = 0
        clock = self.table.clock.copy()
        # `load` counts the used entries anew.
        clock["used"] = 0
        return {"entries": rows[np.argsort(rows["key"])], "clock": clock}

    def load(self, state: State) -> None:
        """Take over what `snapshot` gave."""
        self.table = HotTable(self.table.entries, state["clock"])
        self._keep(state["entries"])

    def _meaningful(self) -> Rows:
        entries, ordinal = self.table.entries, self.table.clock["ordinal"]
        present = (entries["counted"] == ordinal) | (entries["until"] >= ordinal)
        return entries[(entries["counted"] > 0) & present]

    def _keep(self, rows: Rows) -> None:
        entries = records(_capacity(len(rows)), ENTRY)
        _fill(entries, rows)
        self.table.clock["used"] = len(rows)
        self.table = HotTable(entries, self.table.clock)
