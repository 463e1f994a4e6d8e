"""Which workers hold which key within a sliding window: X(k) exactly, and C[w], the distinct keys of each.

The window is the current slide and the `slides - 1` before it, its clock that of `window_loads`. A
tumbling window, where everything is forgotten at once, is a window of one slide. A cumulative one is
never advanced.

Structure: a pool of rows, one per (key, worker) pair and one per key, in one chained hash table. A key's
row counts its holders and starts their list. Touching a pair only notes the slide. Each pair stands in
the list of *some* slide in which it was touched. When that slide expires, a pair touched since moves to
the list of its last slide and any other leaves the window. So a tuple costs O(1), amortised, and a
slide of many tuples costs no more than its new pairs.

Ask `window_loads.due` before `advance`: it saves a call per tuple.

A kernel cannot enlarge the pool. Before each tuple it asks `room` for the two rows that one may need,
and returns its position when they are not there. Python calls `grow` and the kernel again:

    row = 0
    while (row := _route(keys, row, ..., holders.pool, ...)) < len(keys):
        holders.grow()

State: 40 bytes per row of the pool, which has room for 1 to 2 times the rows that were in use at once, or
for 2 to 4 times those of a snapshot: 80 to 160 bytes per key of one worker, up to 320 after a restore, and
half of that for each further worker. `trim` gives back what a past peak took.
"""

from __future__ import annotations

from typing import NamedTuple, Self, cast

import numpy as np

from evenflow.arrays import NEVER, Int32s, Int64s, Rows, State, UInt64s, Whole, plain, record
from evenflow.kernels import inlined, kernel
from evenflow.keys import first_slot
from evenflow.sketches.window_loads import end_of, passed

_SALT = np.uint64(0xD6E8FEB86659FD93)
_ROW_BYTES = 32
ROW = np.dtype(
    {
        "names": ["worker", "chain", "touched", "listed", "next", "before", "holders", "key"],
        "formats": [np.int32] * 7 + [np.uint64],
        "offsets": [0, 4, 8, 12, 16, 20, 20, 24],
        "itemsize": _ROW_BYTES,
    }
)
"""A pair: worker, next row of its hash chain, slot of the slide in which it was last touched, next pair in its slide's
list, next and previous holder of the key, key. A key: worker -1, `next` its first holder, `holders` their number. An
unused row: worker -2, `chain` the next unused one. Half a cache line."""
CLOCK = np.dtype([(name, np.int64) for name in ("slide", "length", "end", "slot", "free", "room")])
"""The current slide, slide length in ms, end of the current slide in ms, its place in `ring`. First unused row, number
of unused rows."""
_TIMES = 4
"""Numbers of the clock that a snapshot has. The others are of the pool."""
_KEY_ROW, _UNUSED = -1, -2
_LEAST_CAPACITY = 64


class HolderPool(NamedTuple):
    """What kernels take as one argument."""

    rows: Rows
    """(capacity,) of ROW."""
    table: Int32s
    """First row of each hash chain, or -1."""
    ring: Int32s
    """First pair in the list of each slide, or -1."""
    distinct: Int64s
    """C[w]: the keys that worker w holds."""
    clock: Rows
    """One of CLOCK."""


@inlined
def _place(table: Int32s, wanted: np.uint64, worker: Whole) -> np.int64:
    return first_slot(wanted ^ (np.uint64(worker + 1) * _SALT), np.int64(table.shape[0] - 1))


@inlined
def find(pool: HolderPool, wanted: np.uint64, worker: Whole) -> np.int64:
    """The row of this pair, or -1 when the worker does not hold the key."""
    rows, table = pool.rows, pool.table
    row = np.int64(table[_place(table, wanted, worker)])
    while row >= 0 and (rows[row]["key"] != wanted or rows[row]["worker"] != worker):
        row = np.int64(rows[row]["chain"])
    return row


@inlined
def first_holder(pool: HolderPool, wanted: np.uint64) -> np.int64:
    """The row of the key's newest holder, or -1. Go on with `next_holder`, read with `worker_of`."""
    row = find(pool, wanted, _KEY_ROW)
    return np.int64(pool.rows[row]["next"]) if row >= 0 else np.int64(-1)


@inlined
def next_holder(pool: HolderPool, row: Whole) -> np.int64:
    """The row of the holder that came before this one, or -1."""
    return np.int64(pool.rows[row]["next"])


@inlined
def worker_of(pool: HolderPool, row: Whole) -> np.int64:
    """The worker of a pair's row."""
    return np.int64(pool.rows[row]["worker"])


@inlined
def room(pool: HolderPool) -> np.int64:
    """Unused rows. A new pair takes one, a new key another."""
    return np.int64(pool.clock[()]["room"])


@inlined
def refresh(pool: HolderPool, row: Whole) -> None:
    """The pair of this row has got a tuple in the current slide."""
    pool.rows[row]["touched"] = pool.clock[()]["slot"]


@kernel
def _take(pool: HolderPool, wanted: np.uint64, worker: Whole) -> np.int64:
    rows, table, clock = pool.rows, pool.table, pool.clock[()]
    row = np.int64(clock["free"])
    clock["free"] = rows[row]["chain"]
    clock["room"] -= 1
    place = _place(table, wanted, worker)
    rows[row]["key"] = wanted
    rows[row]["worker"] = worker
    rows[row]["chain"] = table[place]
    table[place] = row
    return row


@kernel
def _give_back(pool: HolderPool, row: Whole) -> None:
    rows, table, clock = pool.rows, pool.table, pool.clock[()]
    place = _place(table, rows[row]["key"], rows[row]["worker"])
    at = np.int64(table[place])
    if at == row:
        table[place] = rows[row]["chain"]
    else:
        while rows[at]["chain"] != row:
            at = np.int64(rows[at]["chain"])
        rows[at]["chain"] = rows[row]["chain"]
    # Free rows hang together by the chain that they need for nothing else.
    rows[row]["worker"] = _UNUSED
    rows[row]["chain"] = clock["free"]
    clock["free"] = row
    clock["room"] += 1


@kernel
def _insert(pool: HolderPool, wanted: np.uint64, worker: Whole, slot: Whole) -> None:
    """A pair that is not there yet, last touched in the slide of this slot."""
    rows, ring = pool.rows, pool.ring
    # Each key has a row of its own, for a worker that does not exist: it begins the list of the key's holders.
    owner = find(pool, wanted, _KEY_ROW)
    if owner < 0:
        owner = _take(pool, wanted, _KEY_ROW)
        rows[owner]["next"] = -1
        rows[owner]["holders"] = 0
    row = _take(pool, wanted, worker)
    after = np.int64(rows[owner]["next"])
    if after >= 0:
        rows[after]["before"] = row
    rows[row]["next"] = after
    rows[row]["before"] = -1
    rows[owner]["next"] = row
    rows[owner]["holders"] += 1
    rows[row]["touched"] = slot
    rows[row]["listed"] = ring[slot]
    ring[slot] = row
    pool.distinct[worker] += 1


@kernel
def _remove(pool: HolderPool, row: Whole) -> None:
    """Take a pair, already in no slide's list, out of the window."""
    rows = pool.rows
    owner, after = find(pool, rows[row]["key"], _KEY_ROW), np.int64(rows[row]["next"])
    before = np.int64(rows[row]["before"])
    if after >= 0:
        rows[after]["before"] = before
    # The first of the list hangs on the key's row.
    rows[before if before >= 0 else owner]["next"] = after
    rows[owner]["holders"] -= 1
    pool.distinct[rows[row]["worker"]] -= 1
    if rows[owner]["holders"] == 0:
        _give_back(pool, owner)
    _give_back(pool, row)


@inlined
def touch(pool: HolderPool, wanted: np.uint64, worker: Whole) -> bool:
    """The worker gets a tuple of the key in the current slide. True when it did not hold the key."""
    row = find(pool, wanted, worker)
    if row >= 0:
        refresh(pool, row)
        return False
    _insert(pool, wanted, worker, pool.clock[()]["slot"])
    return True


@kernel
def advance(pool: HolderPool, time: Whole) -> bool:
    """Move the window to `time`. True when pairs may have left it."""
    rows, ring, clock = pool.rows, pool.ring, pool.clock[()]
    if time < clock["end"]:
        return False
    now = time // clock["length"]
    current = clock["slide"]
    slides = ring.shape[0]
    if current != NEVER:
        for step in range(passed(slides, current, now)):  # oldest first: a pair may move into a later list
            slot = (current + 1 + step) % slides
            row = np.int64(ring[slot])
            ring[slot] = -1
            while row >= 0:
                following = np.int64(rows[row]["listed"])
                last = np.int64(rows[row]["touched"])
                # A pair is listed where it was touched first. When that slide leaves, it moves to the one of its last touch.
                if last == slot:
                    _remove(pool, row)
                else:
                    rows[row]["listed"] = ring[last]
                    ring[last] = row
                row = following
    clock["slide"] = now
    clock["end"] = end_of(now, clock["length"])
    clock["slot"] = now % slides
    return True


@kernel
def _dump(rows: Rows, keys: UInt64s, workers: Int32s, slots: Int32s) -> None:
    """The pairs, those of a key together and in the order of its list."""
    at = 0
    for owner in range(rows.shape[0]):
        if rows[owner]["worker"] == _KEY_ROW:
            row = np.int64(rows[owner]["next"])
            while row >= 0:
                keys[at] = rows[row]["key"]
                workers[at] = rows[row]["worker"]
                slots[at] = rows[row]["touched"]
                at += 1
                row = np.int64(rows[row]["next"])


@kernel
def _fill(pool: HolderPool, keys: UInt64s, workers: Int32s, slots: Int32s) -> None:
    """Insert dumped pairs. Backwards, because a key's newest holder comes first."""
    for at in range(keys.shape[0] - 1, -1, -1):
        _insert(pool, keys[at], np.int64(workers[at]), np.int64(slots[at]))


@kernel
def _rehash(rows: Rows, table: Int32s) -> None:
    for row in range(rows.shape[0]):
        if rows[row]["worker"] != _UNUSED:
            place = _place(table, rows[row]["key"], np.int64(rows[row]["worker"]))
            rows[row]["chain"] = table[place]
            table[place] = row


@kernel
def _touch(pool: HolderPool, wanted: np.uint64, worker: Whole) -> bool:
    return touch(pool, wanted, worker)


@kernel
def _holders(pool: HolderPool, wanted: np.uint64, found: Int64s) -> int:
    count = 0
    row = first_holder(pool, wanted)
    while row >= 0:
        found[count] = worker_of(pool, row)
        count += 1
        row = next_holder(pool, row)
    return count


def _rows(capacity: int) -> Rows:
    """Rows that begin at a multiple of their size: none lies across two cache lines."""
    block = np.zeros((capacity + 1) * _ROW_BYTES, np.uint8)
    start = -block.ctypes.data % _ROW_BYTES
    return cast(Rows, block[start : start + capacity * _ROW_BYTES].view(ROW))


def _capacity(rows: int) -> int:
    """Of a pool made for rows in use: half of it free, or more."""
    return max(_LEAST_CAPACITY, 1 << (2 * rows - 1).bit_length())


def _pool(workers: int, slides: int, slide_ms: int, capacity: int) -> HolderPool:
    rows = _rows(capacity)
    rows["worker"] = _UNUSED
    rows["chain"] = np.arange(1, capacity + 1)
    rows["chain"][-1] = -1
    return HolderPool(
        rows=rows,
        table=np.full(2 * capacity, -1, np.int32),
        ring=np.full(slides, -1, np.int32),
        distinct=np.zeros(workers, np.int64),
        clock=record(CLOCK, slide=NEVER, length=slide_ms, end=NEVER, room=capacity),
    )


VARIABLE: dict[str, tuple[str, ...]] = dict.fromkeys(("keys", "workers", "slots"), ("pairs",))
"""Arrays of `WindowHolders.snapshot` whose size varies, as `Partitioner.variable_state` says it."""


class WindowHolders:
    """The window and its growth. Kernels work on `pool`, which `grow` and `trim` replace."""

    def __init__(self, workers: int, *, window_ms: int, slide_ms: int) -> None:
        """An empty window. `window_ms` is a multiple of `slide_ms`, and equal to it for a tumbling one."""
        self.pool = _pool(workers, window_ms // slide_ms, slide_ms, _LEAST_CAPACITY)

    @property
    def pairs(self) -> int:
        """Gamma: the (key, worker) pairs of the window."""
        return int(self.pool.distinct.sum())

    @property
    def nbytes(self) -> int:
        """Memory of the pool."""
        return sum(array.nbytes for array in self.pool)

    def bound(self, keys: int, holders: int) -> int:
        """The most that `nbytes` can be while no window has more keys, nor any of them more holders.

        With r = keys (1 + holders) rows in use the capacity is at most 2^ceil(log2 2r), and at least 64: `load`
        takes that much, and `grow` doubles only a pool of at most r + 1 rows. A row takes 40 bytes with
        its places in the table. To that come 4 bytes per slide, 8 per worker, and the clock.
        """
        in_rows = self.pool.rows.nbytes + self.pool.table.nbytes
        row_bytes = in_rows // len(self.pool.rows)
        return _capacity(keys * (1 + holders)) * row_bytes + self.nbytes - in_rows

    def advance(self, time: int) -> None:
        """Move the window to this time, ms."""
        advance(self.pool, time)

    def touch(self, key: int, worker: int) -> bool:
        """A tuple of the key for this worker now. True when it did not hold the key. Kernels use `touch`."""
        if self.pool.clock["room"] < 2:
            self.grow()
        return bool(_touch(self.pool, np.uint64(key), worker))

    def holders(self, key: int) -> list[int]:
        """X(k), the newest holder first."""
        pool = self.pool
        found = np.empty(len(pool.distinct), np.int64)
        count = _holders(pool, np.uint64(key), found)
        workers: list[int] = found[:count].tolist()
        return workers

    def grow(self) -> None:
        """Double the pool. Rows keep their numbers."""
        old = self.pool
        half = len(old.rows)
        new = _pool(len(old.distinct), len(old.ring), int(old.clock["length"]), 2 * half)
        new.rows[:half] = old.rows
        new.clock[()] = old.clock
        new.ring[:] = old.ring
        new.distinct[:] = old.distinct
        # the chain of unused rows: the new half, then what was left of the old one
        new.rows[2 * half - 1]["chain"] = old.clock["free"]
        new.clock["free"] = half
        new.clock["room"] += half
        _rehash(new.rows, new.table)
        self.pool = new

    def trim(self) -> None:
        """Make the pool smaller when less than an eighth of it is in use. Call it once per block."""
        capacity = len(self.pool.rows)
        if capacity > _LEAST_CAPACITY and 8 * (capacity - int(self.pool.clock["room"])) < capacity:
            self.load(self.snapshot())

    def snapshot(self) -> State:
        """The window in a form that does not depend on the pool's history: pairs ordered by key."""
        pool = self.pool
        keys = np.empty(self.pairs, np.uint64)
        workers, slots = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
        _dump(pool.rows, keys, workers, slots)
        order = np.argsort(keys, kind="stable")
        clock = plain(pool.clock)[:_TIMES].copy()
        return {"keys": keys[order], "workers": workers[order], "slots": slots[order], "clock": clock}

    def load(self, state: State) -> None:
        """Take over what `snapshot` gave."""
        keys, workers, slots = state["keys"], state["workers"], state["slots"]
        capacity = _capacity(len(keys) + len(np.unique(keys)))
        slides, n = len(self.pool.ring), len(self.pool.distinct)
        pool = _pool(n, slides, int(self.pool.clock["length"]), capacity)
        plain(pool.clock)[:_TIMES] = state["clock"]
        _fill(pool, keys, workers, slots)
        self.pool = pool

    @classmethod
    def restored(cls, state: State, workers: int, *, window_ms: int, slide_ms: int) -> Self:
        """The window that gave this snapshot."""
        window = cls(workers, window_ms=window_ms, slide_ms=slide_ms)
        window.load(state)
        return window
