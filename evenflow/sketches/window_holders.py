"""Which workers hold which key within a sliding window: X(k) exactly, and C[w],
the distinct keys of each worker.

The window is the current slide and the `slides - 1` slides before it. Its clock works as in `window_loads`. A
tumbling window, which forgets everything at once, is a window of one slide. A cumulative window is never
advanced.

Structure: a pool of rows in one chained hash table. There is one row per (key, worker) pair and one per key.
A key's row counts its holders and starts the list of them. Touching a pair only notes the slide. Each pair
stands in the list of *some* slide in which it was touched. When that slide expires, a pair that was touched
since moves to the list of its last slide, and any other pair leaves the window. So a tuple costs O(1)
amortised, and the end of a slide with many tuples costs no more than its new pairs.

Ask `window_loads.due` before `advance`, because that saves a call per tuple.

A kernel cannot enlarge the pool. Before each tuple it asks whether there is `room` for the two rows that the
tuple may need. If not, it returns its position, and Python calls `grow` and then the kernel again:

    row = 0
    while (row := _route(keys, row, ..., holders.pool, ...)) < len(keys):
        holders.grow()

State: 40 bytes per row of the pool. The pool has room for 1 to 2 times as many rows as were in use at once,
or for 2 to 4 times the rows of a snapshot. So a key on one worker takes 80 to 160 bytes, and up to 320 after
a restore. Each further worker of the key takes half of that. `trim` gives back memory after a peak.
"""

from __future__ import annotations

from typing import NamedTuple, Self, cast

import numpy as np

from evenflow.keys import first_slot
from evenflow.numeric.arrays import NEVER, Int32s, Int64s, Rows, State, UInt64s, Whole, record
from evenflow.numeric.kernels import inlined, kernel
from evenflow.sketches.window_loads import end_of, moves, passed

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
"""A row is half a cache line. There are three kinds. A pair: its worker, `chain` the next row of its hash
chain, `touched` the slot of the slide in which it was last touched, `listed` the next pair in its slide's
list, `next` and `before` the next and the previous holder of the key, and the key. A key: worker -1, `next`
its first holder, `holders` their number (in the place of `before`). An unused row: worker -2, `chain` the
next unused row."""
CLOCK = np.dtype([(name, np.int64) for name in ("slide", "length", "end", "slot", "free", "room")])
"""The current slide, the length of a slide in ms, the end of the current slide in ms, its place in `ring`.
Then the first unused row, and the number of unused rows."""
_TIMES = ("slide", "length", "end", "slot")
"""What a snapshot has of the clock. The other fields belong to the pool."""
_KEY_ROW, _UNUSED = -1, -2
_LEAST_CAPACITY = 64


class HolderPool(NamedTuple):
    """The pool, the window and its clock: what kernels take as one argument."""

    rows: Rows
    """(capacity,) of ROW."""
    table: Int32s
    """(2 * capacity,): the first row of each hash chain, or -1."""
    ring: Int32s
    """(slides,): the first pair in the list of each slide, or -1."""
    distinct: Int64s
    """(workers,): C[w], how many keys worker w holds."""
    clock: Rows
    """One of CLOCK."""


@inlined
def _place(table: Int32s, key: np.uint64, worker: Whole) -> np.int64:
    return first_slot(key ^ (np.uint64(worker + 1) * _SALT), np.int64(table.shape[0] - 1))


@inlined
def find(pool: HolderPool, key: np.uint64, worker: Whole) -> np.int64:
    """The row of this pair, or -1 if the worker does not hold the key."""
    rows, table = pool.rows, pool.table
    row = np.int64(table[_place(table, key, worker)])
    while row >= 0 and (rows[row]["key"] != key or rows[row]["worker"] != worker):
        row = np.int64(rows[row]["chain"])
    return row


@inlined
def first_holder(pool: HolderPool, key: np.uint64) -> np.int64:
    """The row of the key's newest holder, or -1.
    `next_holder` goes on from there, and `worker_of` reads the worker.
    """
    row = find(pool, key, _KEY_ROW)
    return np.int64(pool.rows[row]["next"]) if row >= 0 else np.int64(-1)


@inlined
def next_holder(pool: HolderPool, row: Whole) -> np.int64:
    """The row of the holder that the key got before this one, or -1."""
    return np.int64(pool.rows[row]["next"])


@inlined
def worker_of(pool: HolderPool, row: Whole) -> np.int64:
    """The worker of a pair's row."""
    return np.int64(pool.rows[row]["worker"])


@inlined
def room(pool: HolderPool) -> np.int64:
    """The number of unused rows. A new pair takes one, and a new key takes another."""
    return np.int64(pool.clock[()]["room"])


@inlined
def refresh(pool: HolderPool, row: Whole) -> None:
    """Note that the pair of this row has got a tuple in the current slide."""
    pool.rows[row]["touched"] = pool.clock[()]["slot"]


@kernel
def _take(pool: HolderPool, key: np.uint64, worker: Whole) -> np.int64:
    """Take an unused row for this pair, and enter it in the hash table. There must be room."""
    rows, table, clock = pool.rows, pool.table, pool.clock[()]
    row = np.int64(clock["free"])
    clock["free"] = rows[row]["chain"]
    clock["room"] -= 1
    place = _place(table, key, worker)
    rows[row]["key"] = key
    rows[row]["worker"] = worker
    rows[row]["chain"] = table[place]
    table[place] = row
    return row


@kernel
def _give_back(pool: HolderPool, row: Whole) -> None:
    """Take the row out of the hash table. It is unused from now on."""
    rows, table, clock = pool.rows, pool.table, pool.clock[()]
    place = _place(table, rows[row]["key"], rows[row]["worker"])
    at = np.int64(table[place])
    if at == row:
        table[place] = rows[row]["chain"]
    else:
        while rows[at]["chain"] != row:
            at = np.int64(rows[at]["chain"])
        rows[at]["chain"] = rows[row]["chain"]
    # Unused rows are linked by `chain`, which they need for nothing else.
    rows[row]["worker"] = _UNUSED
    rows[row]["chain"] = clock["free"]
    clock["free"] = row
    clock["room"] += 1


@kernel
def _insert(pool: HolderPool, key: np.uint64, worker: Whole, slot: Whole) -> None:
    """Enter a pair that is not there yet. It was last touched in the slide of this slot."""
    rows, ring = pool.rows, pool.ring
    # Each key has a row of its own, for a worker that does not exist. It begins the list of the key's
    # holders.
    owner = find(pool, key, _KEY_ROW)
    if owner < 0:
        owner = _take(pool, key, _KEY_ROW)
        rows[owner]["next"] = -1
        rows[owner]["holders"] = 0
    row = _take(pool, key, worker)
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
    # Before the first holder of the list stands the key's row.
    rows[before if before >= 0 else owner]["next"] = after
    rows[owner]["holders"] -= 1
    # Read before `_give_back`, which marks the row as unused.
    pool.distinct[rows[row]["worker"]] -= 1
    if rows[owner]["holders"] == 0:
        _give_back(pool, owner)
    _give_back(pool, row)


@inlined
def touch(pool: HolderPool, key: np.uint64, worker: Whole) -> bool:
    """Give the worker a tuple of the key in the current slide.
    Returns whether the worker did not hold the key yet.
    """
    row = find(pool, key, worker)
    if row >= 0:
        refresh(pool, row)
        return False
    _insert(pool, key, worker, pool.clock[()]["slot"])
    return True


@kernel
def advance(pool: HolderPool, time: Whole) -> bool:
    """Move the window to `time`, ms. Returns whether pairs may have left it."""
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
                # A pair that was touched after this slide moves to the list of its last touch.
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
    """Write all pairs. The pairs of a key stand together, in the order of the key's list."""
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
    """Insert dumped pairs. It goes backwards, because `_insert` puts a holder first
    and the newest must end there.
    """
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
def _touch(pool: HolderPool, key: np.uint64, worker: Whole) -> bool:
    return touch(pool, key, worker)


@kernel
def _holders(pool: HolderPool, key: np.uint64, workers: Int64s, slots: Int64s) -> int:
    count = 0
    row = first_holder(pool, key)
    while row >= 0:
        workers[count] = worker_of(pool, row)
        slots[count] = pool.rows[row]["touched"]
        count += 1
        row = next_holder(pool, row)
    return count


def _rows(capacity: int) -> Rows:
    """Rows of zeros that begin at a multiple of their size, so that no row lies across two cache lines."""
    block = np.zeros((capacity + 1) * _ROW_BYTES, np.uint8)
    start = -block.ctypes.data % _ROW_BYTES
    return cast(Rows, block[start : start + capacity * _ROW_BYTES].view(ROW))


def _capacity(rows: int) -> int:
    """The capacity of a pool that is made for so many rows in use: at least half of it is then free."""
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
"""The arrays of `WindowHolders.snapshot` whose size varies, in the form of `Partitioner.variable_state`."""


class WindowHolders:
    """The window and its growth. Kernels work on `pool`, which `grow` and `trim` replace."""

    def __init__(self, workers: int, *, window_ms: int, slide_ms: int) -> None:
        """An empty window. `window_ms` is a multiple of `slide_ms`, and equal to it for a tumbling one."""
        self.pool = _pool(workers, window_ms // slide_ms, slide_ms, _LEAST_CAPACITY)

    @property
    def pairs(self) -> int:
        """Gamma: how many (key, worker) pairs the window has."""
        return int(self.pool.distinct.sum())

    @property
    def nbytes(self) -> int:
        """Memory of the pool."""
        return sum(array.nbytes for array in self.pool)

    def bound(self, keys: int, holders: int) -> int:
        """The most that `nbytes` can be while no window has more than `keys` keys,
        and no key more than `holders` holders.

        There are then at most r = keys (1 + holders) rows in use. The capacity is at most 2^ceil(log2 2r),
        and at least 64: `load` takes that much, and `grow` doubles only a pool of at most r + 1 rows. A row
        takes 40 bytes with its places in the table. 4 bytes per slide, 8 per worker, and the clock come on
        top.
        """
        in_rows = self.pool.rows.nbytes + self.pool.table.nbytes
        row_bytes = in_rows // len(self.pool.rows)
        return _capacity(keys * (1 + holders)) * row_bytes + self.nbytes - in_rows

    def advance(self, time: int) -> None:
        """Move the window to this time, ms."""
        advance(self.pool, time)

    def touch(self, key: int, worker: int) -> bool:
        """Give this worker a tuple of the key now. Returns whether it did not hold the key.
        Kernels use `touch`.
        """
        if self.pool.clock["room"] < 2:
            self.grow()
        return bool(_touch(self.pool, np.uint64(key), worker))

    def holders(self, key: int) -> list[int]:
        """X(k), the newest holder first."""
        return list(self.last_slides(key))

    def last_slides(self, key: int) -> dict[int, int]:
        """X(k), the newest holder first: worker -> the slide in which it last got the key.
        NEVER before any slide.
        """
        pool = self.pool
        holder_workers, slots = np.empty((2, len(pool.distinct)), np.int64)
        count = _holders(pool, np.uint64(key), holder_workers, slots)
        slide, slot, slides = int(pool.clock["slide"]), int(pool.clock["slot"]), len(pool.ring)
        ago = (slot - slots[:count]) % slides if slide != NEVER else np.zeros(count, np.int64)
        workers: list[int] = holder_workers[:count].tolist()
        return dict(zip(workers, (slide - ago).tolist(), strict=True))

    def held_at(self, key: int, now: int | None) -> dict[int, int]:
        """As `last_slides`, of the pairs that are still in the window at `now`, ms.
        None: at its present slide.
        """
        last, clock = self.last_slides(key), self.pool.clock
        if not moves(clock, now):
            return last
        assert now is not None  # time moves on only to a time
        oldest = now // int(clock["length"]) - len(self.pool.ring) + 1
        return {worker: slide for worker, slide in last.items() if slide >= oldest}

    def grow(self) -> None:
        """Double the pool. Rows keep their numbers."""
        old = self.pool
        half = len(old.rows)
        new = _pool(len(old.distinct), len(old.ring), int(old.clock["length"]), 2 * half)
        new.rows[:half] = old.rows
        new.clock[()] = old.clock
        new.ring[:] = old.ring
        new.distinct[:] = old.distinct
        # The chain of unused rows: the new half first, then what was left of the old one.
        new.rows[2 * half - 1]["chain"] = old.clock["free"]
        new.clock["free"] = half
        new.clock["room"] += half
        _rehash(new.rows, new.table)
        self.pool = new

    def trim(self) -> None:
        """Make the pool smaller if less than an eighth of it is in use. Call it once per block."""
        capacity = len(self.pool.rows)
        if capacity > _LEAST_CAPACITY and 8 * (capacity - int(self.pool.clock["room"])) < capacity:
            self.load(self.snapshot())

    def snapshot(self) -> State:
        """The window in a form that does not depend on the pool's history, with the pairs ordered by key."""
        pool = self.pool
        keys = np.empty(self.pairs, np.uint64)
        workers, slots = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
        _dump(pool.rows, keys, workers, slots)
        order = np.argsort(keys, kind="stable")
        clock = np.array([pool.clock[name] for name in _TIMES], np.int64)
        return {"keys": keys[order], "workers": workers[order], "slots": slots[order], "clock": clock}

    def load(self, state: State) -> None:
        """Take over what `snapshot` gave."""
        keys, workers, slots = state["keys"], state["workers"], state["slots"]
        capacity = _capacity(len(keys) + len(np.unique(keys)))
        slides, n = len(self.pool.ring), len(self.pool.distinct)
        pool = _pool(n, slides, int(self.pool.clock["length"]), capacity)
        for name, value in zip(_TIMES, state["clock"], strict=True):
            pool.clock[name] = value
        _fill(pool, keys, workers, slots)
        self.pool = pool

    @classmethod
    def restored(cls, state: State, workers: int, *, window_ms: int, slide_ms: int) -> Self:
        """The window that gave this snapshot."""
        window = cls(workers, window_ms=window_ms, slide_ms=slide_ms)
        window.load(state)
        return window
