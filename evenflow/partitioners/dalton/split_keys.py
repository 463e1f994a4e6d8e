"""The keys that are split or may be: a Q-table with its growth, its snapshot and its readings.

Kernels work on `SplitKeyTable.table` by the rules of `q_table`. A kernel cannot enlarge the table. When it is
`full`, Python calls `grow` between two kernel calls. `state` has the rows by ascending key, so it does not
depend on the order in which keys got hot.
"""

from __future__ import annotations

import numpy as np

from evenflow.numeric.arrays import NEVER, Float64s, Int64s, State, record, records
from evenflow.partitioners.dalton.q_table import COLD, INITIAL, META, ROW, QTable, find, index

_LEAST_ROWS = 16
_COUNTED = ("hot", "capped", "cap")

VARIABLE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("row_key", "bound"), ("rows",)),
    **dict.fromkeys(("row", "q", "last", "kept", "gain"), ("rows", "")),
}
"""Arrays of `SplitKeyTable.state` whose size varies, as `Partitioner.variable_state` says it."""


def _arrays(workers: int, capacity: int, deferring: bool, cap: int) -> QTable:
    buffered = (capacity, workers) if deferring else (0, workers)
    return QTable(
        key=np.zeros(capacity, np.uint64),
        slots=np.full(8 * capacity, -1, np.int32),
        row=records(capacity, ROW),
        bound=np.zeros(capacity),
        q=np.full((capacity, workers), INITIAL),
        last=np.full((capacity, workers), NEVER, np.int64),
        retention=np.ones(buffered),
        gain=np.zeros(buffered),
        meta=record(META, cap=cap),
    )


def most_rows(most: int, windows: int) -> int:
    """The most rows there can be: most * ceil((windows + 2) / 2).

    `most`: keys that may be hot at once. `windows`: ceil(window / statistics window).

    A row's key was hot in the present statistics window or in one of the `windows` before it. So the key was
    made or kept hot in one of these windows or in the window before them, which are windows + 2. All keys
    that two windows in a row make hot are hot at the end of the second one, so they are no more than `most`.
    """
    return most * -(-(windows + 2) // 2)


class SplitKeyTable:
    """The table of the keys that are split or may be. `table` is what kernels take.

    `deferring`: rewards can be kept back (`defer`). `cap`: holders from which a row counts as capped.
    """

    def __init__(self, workers: int, *, deferring: bool = False, cap: int = 1 << 40) -> None:
        self.deferring = deferring
        self.table = _arrays(workers, _LEAST_ROWS, deferring, cap)

    def __len__(self) -> int:
        return int(self.table.meta["rows"])

    @property
    def hot(self) -> int:
        """Keys that are hot."""
        return int(self.table.meta["hot"])

    @property
    def cap(self) -> int:
        """Holders from which a row counts as capped."""
        return int(self.table.meta["cap"])

    @property
    def full(self) -> bool:
        """Whether a new row has no room."""
        return len(self) == len(self.table.key)

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return sum(array.nbytes for array in self.table)

    def bound(self, rows: int) -> int:
        """The most that `nbytes` can be while there are never more than `rows` rows.

        There is room for 16 rows at first, and it doubles when it is used up. So it is the least power of two
        above `rows`. A row takes 16 n + 80 bytes (32 n + 80 if deferring) with its eight slots. `meta` comes
        on top.
        """
        meta_bytes = self.table.meta.nbytes
        row_bytes = (self.nbytes - meta_bytes) // len(self.table.key)
        return max(_LEAST_ROWS, 1 << rows.bit_length()) * row_bytes + meta_bytes

    def grow(self) -> None:
        """Double the room. Rows get new numbers."""
        self.load(self.state(), capacity=2 * len(self.table.key))

    def row_of(self, key: int) -> int | None:
        """The key's row. None if it has none."""
        row = int(find(self.table, np.uint64(key)))
        return None if row < 0 else row

    def hot_rows(self) -> Int64s:
        """Row numbers of the hot keys, by ascending key."""
        rows = np.flatnonzero(self.table.row["expiry"][: len(self)] != COLD)
        return rows[np.argsort(self.table.key[rows])]

    def holders(self, oldest: int) -> dict[int, set[int]]:
        """Key -> X(key) for every key that has a row. `oldest` is the first slide of the window."""
        size = len(self)
        return {
            int(key): set(np.flatnonzero(last >= oldest).tolist())
            for key, last in zip(self.table.key[:size], self.table.last[:size], strict=True)
        }

    def values(self) -> dict[int, Float64s]:
        """Hot key -> its row of values."""
        return {int(self.table.key[r]): self.table.q[r].copy() for r in self.hot_rows()}

    def state(self) -> State:
        """The whole state, with the rows by ascending key."""
        t, size = self.table, len(self)
        order = np.argsort(t.key[:size])
        state: State = {
            "row_key": t.key[:size][order],
            "row": t.row[:size][order],
            "bound": t.bound[:size][order],
            "q": t.q[:size][order],
            "last": t.last[:size][order],
            "rows": np.array([t.meta[name] for name in _COUNTED]),
        }
        if self.deferring:
            state |= {"kept": t.retention[:size][order], "gain": t.gain[:size][order]}
        return state

    def load(self, state: State, *, capacity: int = _LEAST_ROWS) -> None:
        """Take over what `state` gave."""
        size = len(state["row_key"])
        # One row more than are in use, so that a loaded table is never full.
        while capacity < size + 1:
            capacity *= 2
        t = _arrays(self.table.q.shape[1], capacity, self.deferring, 0)
        t.meta["rows"] = size
        for name, value in zip(_COUNTED, state["rows"], strict=True):
            t.meta[name] = value
        columns = {"row": t.row, "bound": t.bound, "q": t.q, "last": t.last}
        if self.deferring:
            columns |= {"kept": t.retention, "gain": t.gain}
        for name, column in columns.items():
            column[:size] = state[name]
        t.key[:size] = state["row_key"]
        index(t)
        self.table = t
