"""Which workers hold which key within a sliding window: X(k) exactly, and C[w], the distinct keys of each.

The window is the current slide and the `slides - 1` before it, its clock that of `window_loads`. A
tumbling window, where everything is forgotten at once, is a window of one slide; a cumulative one is
never advanced.

Structure: a pool of rows, one per (key, worker) pair and one per key, in one chained hash table. A key's
row counts its holders and starts their list. Touching a pair only notes the slide. Each pair stands in
the list of *some* slide in which it was touched; when that slide expires, a pair touched since moves to
the list of its last slide and any other leaves the window. So a tuple costs O(1), amortised, and a
slide of many tuples costs no more than its new pairs.

Ask `window_loads.due` before `advance`: it saves a call per tuple.

A kernel cannot enlarge the pool. Before each tuple it asks `room` for the two rows that one may need,
and returns its position when they are not there; Python calls `grow` and the kernel again:

    row = 0
    while (row := _route(keys, row, ..., holders.pool, ...)) < len(keys):
        holders.grow()

State: 40 bytes per row of the pool, which has room for 1 to 2 times the rows that were in use at once, or
for 2 to 4 times those of a snapshot: 80 to 160 bytes per key of one worker, up to 320 after a restore, and
half of that for each further worker. `trim` gives back what a past peak took.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from evenflow.arrays import NEVER, Int32s, Int64s, State, UInt64s
from evenflow.kernels import inlined, kernel
from evenflow.keys import home_slot
from evenflow.sketches.window_loads import end_of, passed

_SALT = np.uint64(0xD6E8FEB86659FD93)
_NOW, _SLIDE, _END, _SLOT, _FREE, _ROOM = range(6)
_WORKER, _CHAIN, _TOUCHED, _LISTED, _NEXT, _BEFORE = range(6)
_KEY = 3  # of `key`: the last quarter of the row
_ROW_BYTES = 32
_HOLDERS = _BEFORE  # of a key's row
_KEY_ROW, _UNUSED = -1, -2
_LEAST_CAPACITY = 64


class HolderPool(NamedTuple):
    """The arrays of the window. A kernel unpacks them once, before its loop, in this order."""

    key: UInt64s
    """(capacity, 4): the rows of `link` seen as 64-bit words; the last of them is the key, so that a row is
    half a cache line."""
    link: Int32s
    """(capacity, 8). A pair's row: worker, next in its hash chain, slot of the slide last touched, next in
    its slide's list, next and previous holder of the key, key. A key's row: -1, next in its hash chain,
    ., ., its first holder, number of holders, key. An unused row: -2, next unused row."""
    table: Int32s
    """First row of each hash chain, or -1."""
    ring: Int32s
    """First pair in the list of each slide, or -1."""
    distinct: Int64s
    """C[w]: the keys that worker w holds."""
    clock: Int64s
    """[current slide, slide length in ms, end of the current slide in ms, its slot in `ring`, first unused
    row, number of unused rows]"""


@inlined
def _home(table: Int32s, wanted: np.uint64, worker: Any) -> np.int64:
    return home_slot(wanted ^ (np.uint64(worker + 1) * _SALT), np.int64(table.shape[0] - 1))


@inlined
def find(key: UInt64s, link: Int32s, table: Int32s, wanted: np.uint64, worker: Any) -> np.int64:
    """The row of this pair, or -1 when the worker does not hold the key."""
    row = np.int64(table[_home(table, wanted, worker)])
    while row >= 0 and (key[row, _KEY] != wanted or link[row, _WORKER] != worker):
        row = np.int64(link[row, _CHAIN])
    return row


@inlined
def holder_count(key: UInt64s, link: Int32s, table: Int32s, wanted: np.uint64) -> np.int64:
    """|X(k)|: how many workers hold the key."""
    row = find(key, link, table, wanted, _KEY_ROW)
    return np.int64(link[row, _HOLDERS]) if row >= 0 else np.int64(0)


@inlined
def first_holder(key: UInt64s, link: Int32s, table: Int32s, wanted: np.uint64) -> np.int64:
    """The row of the key's newest holder, or -1; go on with `next_holder`, read with `worker_of`."""
    row = find(key, link, table, wanted, _KEY_ROW)
    return np.int64(link[row, _NEXT]) if row >= 0 else np.int64(-1)


@inlined
def next_holder(link: Int32s, row: Any) -> np.int64:
    """The row of the holder that came before this one, or -1."""
    return np.int64(link[row, _NEXT])


@inlined
def worker_of(link: Int32s, row: Any) -> np.int64:
    """The worker of a pair's row."""
    return np.int64(link[row, _WORKER])


@inlined
def room(clock: Int64s) -> np.int64:
    """Unused rows; a new pair takes one, a new key another."""
    return clock[_ROOM]


@inlined
def refresh(link: Int32s, clock: Int64s, row: Any) -> None:
    """The pair of this row has got a tuple in the current slide."""
    link[row, _TOUCHED] = clock[_SLOT]


@kernel
def _take(
    key: UInt64s, link: Int32s, table: Int32s, clock: Int64s, wanted: np.uint64, worker: Any
) -> np.int64:
    row = clock[_FREE]
    clock[_FREE] = link[row, _CHAIN]
    clock[_ROOM] -= 1
    home = _home(table, wanted, worker)
    key[row, _KEY] = wanted
    link[row, _WORKER] = worker
    link[row, _CHAIN] = table[home]
    table[home] = row
    return row


@kernel
def _give_back(key: UInt64s, link: Int32s, table: Int32s, clock: Int64s, row: Any) -> None:
    home = _home(table, key[row, _KEY], link[row, _WORKER])
    at = np.int64(table[home])
    if at == row:
        table[home] = link[row, _CHAIN]
    else:
        while link[at, _CHAIN] != row:
            at = np.int64(link[at, _CHAIN])
        link[at, _CHAIN] = link[row, _CHAIN]
    link[row, _WORKER] = _UNUSED
    link[row, _CHAIN] = clock[_FREE]
    clock[_FREE] = row
    clock[_ROOM] += 1


@kernel
def _insert(
    key: UInt64s,
    link: Int32s,
    table: Int32s,
    ring: Int32s,
    distinct: Int64s,
    clock: Int64s,
    wanted: np.uint64,
    worker: Any,
    slot: Any,
) -> None:
    """A pair that is not there yet, last touched in the slide of this slot."""
    owner = find(key, link, table, wanted, _KEY_ROW)
    if owner < 0:
        owner = _take(key, link, table, clock, wanted, _KEY_ROW)
        link[owner, _NEXT] = -1
        link[owner, _HOLDERS] = 0
    row = _take(key, link, table, clock, wanted, worker)
    after = np.int64(link[owner, _NEXT])
    if after >= 0:
        link[after, _BEFORE] = row
    link[row, _NEXT] = after
    link[row, _BEFORE] = -1
    link[owner, _NEXT] = row
    link[owner, _HOLDERS] += 1
    link[row, _TOUCHED] = slot
    link[row, _LISTED] = ring[slot]
    ring[slot] = row
    distinct[worker] += 1


@kernel
def _remove(key: UInt64s, link: Int32s, table: Int32s, distinct: Int64s, clock: Int64s, row: Any) -> None:
    """Take a pair, already in no slide's list, out of the window."""
    owner, after = find(key, link, table, key[row, _KEY], _KEY_ROW), np.int64(link[row, _NEXT])
    before = np.int64(link[row, _BEFORE])
    if after >= 0:
        link[after, _BEFORE] = before
    link[before if before >= 0 else owner, _NEXT] = after
    link[owner, _HOLDERS] -= 1
    distinct[link[row, _WORKER]] -= 1
    if link[owner, _HOLDERS] == 0:
        _give_back(key, link, table, clock, owner)
    _give_back(key, link, table, clock, row)


@inlined
def touch(
    key: UInt64s,
    link: Int32s,
    table: Int32s,
    ring: Int32s,
    distinct: Int64s,
    clock: Int64s,
    wanted: np.uint64,
    worker: Any,
) -> bool:
    """The worker gets a tuple of the key in the current slide; True when it did not hold the key."""
    row = find(key, link, table, wanted, worker)
    if row >= 0:
        link[row, _TOUCHED] = clock[_SLOT]
        return False
    _insert(key, link, table, ring, distinct, clock, wanted, worker, clock[_SLOT])
    return True


@kernel
def advance(
    key: UInt64s, link: Int32s, table: Int32s, ring: Int32s, distinct: Int64s, clock: Int64s, time: Any
) -> bool:
    """Move the window to `time`; True when pairs may have left it. The pool's arrays come first."""
    if time < clock[_END]:
        return False
    now = time // clock[_SLIDE]
    current = clock[_NOW]
    slides = ring.shape[0]
    if current != NEVER:
        for step in range(passed(slides, current, now)):  # oldest first: a pair may move into a later list
            slot = (current + 1 + step) % slides
            row = np.int64(ring[slot])
            ring[slot] = -1
            while row >= 0:
                following = np.int64(link[row, _LISTED])
                last = np.int64(link[row, _TOUCHED])
                if last == slot:
                    _remove(key, link, table, distinct, clock, row)
                else:
                    link[row, _LISTED] = ring[last]
                    ring[last] = row
                row = following
    clock[_NOW] = now
    clock[_END] = end_of(now, clock[_SLIDE])
    clock[_SLOT] = now % slides
    return True


@kernel
def _dump(key: UInt64s, link: Int32s, keys: UInt64s, workers: Int32s, slots: Int32s) -> None:
    """The pairs, those of a key together and in the order of its list."""
    at = 0
    for owner in range(key.shape[0]):
        if link[owner, _WORKER] == _KEY_ROW:
            row = np.int64(link[owner, _NEXT])
            while row >= 0:
                keys[at] = key[row, _KEY]
                workers[at] = link[row, _WORKER]
                slots[at] = link[row, _TOUCHED]
                at += 1
                row = np.int64(link[row, _NEXT])


@kernel
def _fill(
    key: UInt64s,
    link: Int32s,
    table: Int32s,
    ring: Int32s,
    distinct: Int64s,
    clock: Int64s,
    keys: UInt64s,
    workers: Int32s,
    slots: Int32s,
) -> None:
    """Insert dumped pairs; backwards, because a key's newest holder comes first."""
    for at in range(keys.shape[0] - 1, -1, -1):
        _insert(key, link, table, ring, distinct, clock, keys[at], np.int64(workers[at]), np.int64(slots[at]))


@kernel
def _rehash(key: UInt64s, link: Int32s, table: Int32s) -> None:
    for row in range(key.shape[0]):
        if link[row, _WORKER] != _UNUSED:
            home = _home(table, key[row, _KEY], np.int64(link[row, _WORKER]))
            link[row, _CHAIN] = table[home]
            table[home] = row


@kernel
def _touch(
    key: UInt64s,
    link: Int32s,
    table: Int32s,
    ring: Int32s,
    distinct: Int64s,
    clock: Int64s,
    wanted: np.uint64,
    worker: Any,
) -> bool:
    return touch(key, link, table, ring, distinct, clock, wanted, worker)


@kernel
def _holders(key: UInt64s, link: Int32s, table: Int32s, wanted: np.uint64, found: Int64s) -> int:
    count = 0
    row = first_holder(key, link, table, wanted)
    while row >= 0:
        found[count] = worker_of(link, row)
        count += 1
        row = next_holder(link, row)
    return count


def _rows(capacity: int) -> Int32s:
    """Rows that begin at a multiple of their size: none lies across two cache lines."""
    block = np.zeros((capacity + 1) * _ROW_BYTES, np.uint8)
    start = -block.ctypes.data % _ROW_BYTES
    return block[start : start + capacity * _ROW_BYTES].view(np.int32).reshape(capacity, 8)


def _capacity(rows: int) -> int:
    """Of a pool made for rows in use: half of it free, or more."""
    return max(_LEAST_CAPACITY, 1 << (2 * rows - 1).bit_length())


def _pool(workers: int, slides: int, slide_ms: int, capacity: int) -> HolderPool:
    link = _rows(capacity)
    link[:, _WORKER] = _UNUSED
    link[:-1, _CHAIN] = np.arange(1, capacity, dtype=np.int32)
    link[-1, _CHAIN] = -1
    return HolderPool(
        key=link.view(np.uint64),
        link=link,
        table=np.full(2 * capacity, -1, np.int32),
        ring=np.full(slides, -1, np.int32),
        distinct=np.zeros(workers, np.int64),
        clock=np.array([NEVER, slide_ms, NEVER, 0, 0, capacity], np.int64),
    )


VARIABLE: dict[str, tuple[str, ...]] = dict.fromkeys(("keys", "workers", "slots"), ("pairs",))
"""Arrays of `WindowHolders.snapshot` whose size varies, as `Partitioner.variable_state` says it."""


class WindowHolders:
    """The window and its growth; kernels work on `pool`, which `grow` and `trim` replace."""

    def __init__(self, workers: int, *, window_ms: int, slide_ms: int) -> None:
        """An empty window; `window_ms` is a multiple of `slide_ms`, and equal to it for a tumbling one."""
        self.pool = _pool(workers, window_ms // slide_ms, slide_ms, _LEAST_CAPACITY)

    @property
    def pairs(self) -> int:
        """Gamma: the (key, worker) pairs of the window."""
        return int(self.pool.distinct.sum())

    @property
    def nbytes(self) -> int:
        """Memory of the pool."""
        return sum(array.nbytes for array in self.pool[1:])  # `key` is `link`

    def bound(self, keys: int, holders: int) -> int:
        """The most that `nbytes` can be while no window has more keys, nor any of them more holders.

        With r = keys (1 + holders) rows in use the capacity is at most 2^ceil(log2 2r), and at least 64: `load`
        takes that much, and `grow` doubles only a pool of at most r + 1 rows. A row takes 40 bytes with
        its places in the table; to that come 4 bytes per slide, 8 per worker, and the clock.
        """
        in_rows = self.pool.link.nbytes + self.pool.table.nbytes
        row_bytes = in_rows // len(self.pool.link)
        return _capacity(keys * (1 + holders)) * row_bytes + self.nbytes - in_rows

    def advance(self, time: int) -> None:
        """Move the window to this time, ms."""
        advance(*self.pool, time)

    def touch(self, key: int, worker: int) -> bool:
        """A tuple of the key for this worker now; True when it did not hold the key. Kernels use `touch`."""
        if self.pool.clock[_ROOM] < 2:
            self.grow()
        return bool(_touch(*self.pool, np.uint64(key), worker))

    def holders(self, key: int) -> list[int]:
        """X(k), the newest holder first."""
        pool = self.pool
        found = np.empty(len(pool.distinct), np.int64)
        count = _holders(pool.key, pool.link, pool.table, np.uint64(key), found)
        workers: list[int] = found[:count].tolist()
        return workers

    def grow(self) -> None:
        """Double the pool; rows keep their numbers."""
        old = self.pool
        half = len(old.key)
        new = _pool(len(old.distinct), len(old.ring), int(old.clock[_SLIDE]), 2 * half)
        new.link[:half] = old.link
        new.clock[:] = old.clock
        new.ring[:] = old.ring
        new.distinct[:] = old.distinct
        # the chain of unused rows: the new half, then what was left of the old one
        new.link[2 * half - 1, _CHAIN] = old.clock[_FREE]
        new.clock[_FREE] = half
        new.clock[_ROOM] += half
        _rehash(new.key, new.link, new.table)
        self.pool = new

    def trim(self) -> None:
        """Make the pool smaller when less than an eighth of it is in use; call it once per block."""
        capacity = len(self.pool.key)
        if capacity > _LEAST_CAPACITY and 8 * (capacity - int(self.pool.clock[_ROOM])) < capacity:
            self.load(self.snapshot())

    def snapshot(self) -> State:
        """The window in a form that does not depend on the pool's history: pairs ordered by key."""
        pool = self.pool
        keys = np.empty(self.pairs, np.uint64)
        workers, slots = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
        _dump(pool.key, pool.link, keys, workers, slots)
        order = np.argsort(keys, kind="stable")
        clock = pool.clock[: _SLOT + 1].copy()
        return {"keys": keys[order], "workers": workers[order], "slots": slots[order], "clock": clock}

    def load(self, state: State) -> None:
        """Take over what `snapshot` gave."""
        keys, workers, slots = state["keys"], state["workers"], state["slots"]
        capacity = _capacity(len(keys) + len(np.unique(keys)))
        slides, n = len(self.pool.ring), len(self.pool.distinct)
        pool = _pool(n, slides, int(self.pool.clock[_SLIDE]), capacity)
        pool.clock[: _SLOT + 1] = state["clock"]
        _fill(*pool, keys, workers, slots)
        self.pool = pool

    @classmethod
    def restored(cls, state: State, workers: int, *, window_ms: int, slide_ms: int) -> Self:
        """The window that gave this snapshot."""
        window = cls(workers, window_ms=window_ms, slide_ms=slide_ms)
        window.load(state)
        return window
