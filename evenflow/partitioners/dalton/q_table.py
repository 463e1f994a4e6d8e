"""The Q-table of a contextual bandit: for each split key, the value of every worker and the holders X(k).

A row has two halves. Its *values* mean something while the key is hot, which is until the statistics window
`expiry` has passed. Its *holders* are stored as the slide in which each worker last got the key. A worker is
a holder while that slide lies in the window, so X(k) is exact and empties by itself. When a key has cooled,
its row stays while a worker other than its home F_1(k) holds the key, because these holders still count if
the key gets hot again. After that the row is given up. A key without a row has no holder but its home.

A row remembers its best worker (highest value, home on a tie, then the lowest number) and a bound of all
other values. So reading the best worker is O(1), and the n values are scanned only when the best value falls
to the bound.

Callers `admit` no new hot key while `most` keys are hot. Theorem 3.4 of 000 allows n frequent keys of the
present statistics window and n of the last one. `most` is twice that, for windows of growing load. So there
are at most `most` rows for every two statistics windows that lie in a window (`split_keys.most_rows`), and
that takes other hot keys in each of them. In practice there are a few more rows than hot keys.

Kernels only. `split_keys.SplitKeyTable` owns the arrays and enlarges them.
Cost: O(1) to find a row (linear probing at an eighth full), O(rows * n) per slide and per statistics
window. State: 16 n + 80 bytes per row, 16 n more where rewards are deferred. There is room for 1 to 2 times
the rows that were in use at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.keys import first_slot
from evenflow.numeric.arrays import NEVER, Float64s, Int32s, Int64s, Rows, UInt64s, Whole
from evenflow.numeric.kernels import kernel

INITIAL = -2.0
COLD = -1
ROW = np.dtype([(name, np.int64) for name in ("expiry", "best", "held", "home")])
"""Last statistics window in which the key is hot (-1: cold), best worker, number of holders, home."""
META = np.dtype([(name, np.int64) for name in ("rows", "hot", "capped", "cap")])
"""Rows in use, hot rows, hot rows with at least `cap` holders, cap of holders."""


class QTable(NamedTuple):
    """The Q-table: what kernels take as one argument. The rows in use are the first rows."""

    key: UInt64s
    """(capacity,): the split key of each row."""
    slots: Int32s
    """Row of each slot of the hash table, or -1."""
    row: Rows
    """(capacity,) of ROW."""
    bound: Float64s
    """(capacity,): no value of the row but the best is above this."""
    q: Float64s
    """(capacity, n): value of each worker. Meaningless while the key is cold."""
    last: Int64s
    """(capacity, n): slide in which the worker last got the key."""
    retention: Float64s
    """(capacity, n) or empty: share of the present value that remains when deferred rewards are applied."""
    gain: Float64s
    """(capacity, n) or empty: what the deferred rewards add."""
    meta: Rows
    """One of META."""


class Home(NamedTuple):
    """The home of a key that gets a row, and when the key was last there."""

    worker: Whole
    """The worker that the key's tuples went to before it had a row."""
    slide: Whole
    """Slide of its last tuple there."""
    oldest: Whole
    """First slide of the window."""


class CommonRows(NamedTuple):
    """The hot keys of a common table: what kernels take as one argument."""

    keys: UInt64s
    """(keys,): ids of the hot keys."""
    values: Float64s
    """(keys, n): what the common table expects of each worker."""
    homes: Int32s
    """(keys,): the home of each key."""
    home_slides: Int64s
    """Slide of the last tuple of each key at its home, or NEVER."""


@kernel
def has_no_room(table: QTable) -> bool:
    """Whether the next new row needs a larger table."""
    return table.meta[()]["rows"] >= table.key.shape[0]


@kernel
def find(table: QTable, target: np.uint64) -> np.int64:
    """The key's row, or -1."""
    key, slots = table.key, table.slots
    mask = np.int64(slots.shape[0] - 1)
    at = first_slot(target, mask)
    row = np.int64(slots[at])
    while row >= 0 and key[row] != target:
        at = (at + 1) & mask
        row = np.int64(slots[at])
    return row


@kernel
def _enter(slots: Int32s, key: np.uint64, row: Whole) -> None:
    mask = np.int64(slots.shape[0] - 1)
    at = first_slot(key, mask)
    while slots[at] >= 0:
        at = (at + 1) & mask
    slots[at] = row


@kernel
def index(table: QTable) -> None:
    """Enter every row into the hash table afresh."""
    slots = table.slots
    for at in range(slots.shape[0]):
        slots[at] = -1
    for row in range(table.meta[()]["rows"]):
        _enter(slots, table.key[row], np.int64(row))


@kernel
def _scan(row: Rows, bound: Float64s, q: Float64s, r: Whole) -> None:
    """Find the best worker of row r and the bound afresh."""
    best = row[r]["home"]
    # Starting from home and comparing with > lets home win a tie, and then the lowest worker.
    for worker in range(q.shape[1]):
        if q[r, worker] > q[r, best]:
            best = np.int64(worker)
    second = -np.inf
    for worker in range(q.shape[1]):
        if worker != best:
            second = max(second, q[r, worker])
    row[r]["best"] = best
    bound[r] = second


@kernel
def best_of(table: QTable, r: Whole) -> np.int64:
    """The worker with the largest value in row r."""
    return table.row[r]["best"]


@kernel
def learn(table: QTable, r: Whole, worker: Whole, reward: float, gamma: float) -> None:
    """Learn a reward: Q += gamma (reward - Q) (000, equation 5)."""
    row, bound, q = table.row, table.bound, table.q
    best = row[r]["best"]
    value = q[r, worker] + gamma * (reward - q[r, worker])
    q[r, worker] = value
    if worker == best:
        if value <= bound[r]:
            _scan(table.row, table.bound, table.q, r)
    elif value > q[r, best]:
        # The former best is now the largest of the others.
        bound[r] = q[r, best]
        row[r]["best"] = worker
    # A tie has an order of its own (home first), which the scan knows.
    elif value == q[r, best]:
        _scan(table.row, table.bound, table.q, r)
    else:
        bound[r] = max(bound[r], value)


@kernel
def defer(table: QTable, r: Whole, worker: Whole, reward: float, gamma: float) -> None:
    """Note a reward to be learned later. Any number of rewards is one affine map Q -> kept*Q + gain."""
    retention, gain = table.retention, table.gain
    retention[r, worker] *= 1.0 - gamma
    gain[r, worker] += gamma * (reward - gain[r, worker])


@kernel
def apply_deferred(table: QTable) -> None:
    """Learn all deferred rewards and forget them."""
    q, retention, gain = table.q, table.retention, table.gain
    for r in range(table.meta[()]["rows"]):
        for worker in range(q.shape[1]):
            q[r, worker] = retention[r, worker] * q[r, worker] + gain[r, worker]
            retention[r, worker] = 1.0
            gain[r, worker] = 0.0
        _scan(table.row, table.bound, table.q, np.int64(r))


@kernel
def hold(table: QTable, r: Whole, worker: Whole, slide: Whole, oldest: Whole) -> None:
    """The worker gets the key in this slide. `oldest` is the first slide of the window."""
    row, last, meta = table.row, table.last, table.meta[()]
    if last[r, worker] < oldest:
        row[r]["held"] += 1
        # Only the step onto the cap counts: a row above the cap has been counted before.
        if row[r]["held"] == meta["cap"] and row[r]["expiry"] != COLD:
            meta["capped"] += 1
    last[r, worker] = slide


@kernel
def nth_holder(table: QTable, r: Whole, number: Whole, oldest: Whole) -> np.int64:
    """The holder with this number (from 0) in ascending order of workers. There must be so many holders."""
    last = table.last
    left = number
    for worker in range(last.shape[1]):
        if last[r, worker] >= oldest:
            if left == 0:
                return np.int64(worker)
            left -= 1
    return np.int64(0)


@kernel
def count_capped(table: QTable) -> None:
    """Count the hot rows, and the hot rows at or above the cap, afresh."""
    row, meta = table.row, table.meta[()]
    meta["hot"] = 0
    meta["capped"] = 0
    for r in range(meta["rows"]):
        if row[r]["expiry"] != COLD:
            meta["hot"] += 1
            if row[r]["held"] >= meta["cap"]:
                meta["capped"] += 1


@kernel
def slide_on(table: QTable, oldest: Whole) -> None:
    """The window has moved: count the holders of every row afresh."""
    row, last = table.row, table.last
    for r in range(table.meta[()]["rows"]):
        holder_count = 0
        for worker in range(last.shape[1]):
            holder_count += last[r, worker] >= oldest
        row[r]["held"] = holder_count
    count_capped(table)


@kernel
def _move(table: QTable, old: Whole, new: Whole) -> None:
    q, last, retention, gain = table.q, table.last, table.retention, table.gain
    table.key[new] = table.key[old]
    table.bound[new] = table.bound[old]
    table.row[new] = table.row[old]
    for worker in range(q.shape[1]):
        q[new, worker] = q[old, worker]
        last[new, worker] = last[old, worker]
    if retention.shape[0]:
        for worker in range(q.shape[1]):
            retention[new, worker] = retention[old, worker]
            gain[new, worker] = gain[old, worker]


@kernel
def purge(table: QTable, window: Whole, oldest: Whole) -> None:
    """Begin a statistics window: cool the rows that have expired,
    and give up those without a holder besides home.
    """
    row, last, meta = table.row, table.last, table.meta[()]
    rows = 0
    for r in range(meta["rows"]):
        if row[r]["expiry"] < window:
            row[r]["expiry"] = COLD
            at_home = last[r, row[r]["home"]] >= oldest
            # A bool counts as 0 or 1: no worker holds the key, or home alone does.
            if row[r]["held"] == at_home:
                continue
        if rows < r:
            _move(table, r, rows)
        rows += 1
    meta["rows"] = rows
    # Rows have moved and keys have gone. Linear probing cannot delete, so all slots are made anew.
    index(table)
    count_capped(table)


@kernel
def admit(table: QTable, key: np.uint64, r: Whole, home: Home, expiry: Whole) -> np.int64:
    """Make the key hot until the end of the statistics window `expiry`. Returns its row.

    `r` is the key's row, or -1 if it has none. In a new row home is a holder if the key's last tuple there
    lies in the window. There must be room for a row.
    """
    row, q, last, meta = table.row, table.q, table.last, table.meta[()]
    if r < 0:
        r = meta["rows"]
        meta["rows"] += 1
        table.key[r] = key
        _enter(table.slots, key, r)
        for worker in range(q.shape[1]):
            last[r, worker] = NEVER
        row[r]["held"] = 0
        row[r]["home"] = home.worker
        if home.slide >= home.oldest:
            last[r, home.worker] = home.slide
            row[r]["held"] = 1
    for worker in range(q.shape[1]):
        q[r, worker] = INITIAL
    if table.retention.shape[0]:
        for worker in range(q.shape[1]):
            table.retention[r, worker] = 1.0
            table.gain[r, worker] = 0.0
    # All values are equal, so home is the best. Without a second worker nothing bounds it.
    row[r]["best"] = home.worker
    table.bound[r] = INITIAL if q.shape[1] > 1 else -np.inf
    row[r]["expiry"] = expiry
    meta["hot"] += 1
    if row[r]["held"] >= meta["cap"]:
        meta["capped"] += 1
    return np.int64(r)


@kernel
def adopt(table: QTable, hot_keys: CommonRows, oldest: Whole, window: Whole) -> None:
    """Make exactly the told keys hot, with their values, in this statistics window and the next.

    Deferred rewards of these keys are learned on top. Those of other keys are dropped with their rows. There
    must be room for the keys.
    """
    row, q, retention, gain, meta = table.row, table.q, table.retention, table.gain, table.meta[()]
    many = hot_keys.keys.shape[0]
    for old in range(meta["rows"]):
        row[old]["expiry"] = COLD
    meta["hot"] = 0
    for at in range(many):
        r = find(table, hot_keys.keys[at])
        if r < 0:
            home = Home(np.int64(hot_keys.homes[at]), hot_keys.home_slides[at], oldest)
            r = admit(table, hot_keys.keys[at], r, home, window + 1)
        row[r]["expiry"] = window + 1
        for worker in range(q.shape[1]):
            q[r, worker] = retention[r, worker] * hot_keys.values[at, worker] + gain[r, worker]
        _scan(table.row, table.bound, table.q, r)
    for every in range(meta["rows"]):
        for worker in range(q.shape[1]):
            retention[every, worker] = 1.0
            gain[every, worker] = 0.0
    purge(table, window, oldest)
