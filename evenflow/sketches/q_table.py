"""The Q-table of a contextual bandit: for each split key, the value of every worker and the holders X(k).

A row has two halves. Its *values* are alive while the key is hot, that is until the statistics window
`expiry` has passed; its *holders* are the slide in which each worker was last given the key. A worker is
a holder while that slide lies in the window, so X(k) is exact and empties by itself. A row whose key has
cooled stays while some worker other than its home F_1(k) holds the key, because those holders still
count when the key gets hot again; then the row is given up. Keys without a row have no holder but home.

The best worker of a row (highest value; home on a tie, then the lowest number) is remembered together
with a bound of all other values, so that reading it is O(1) and a change costs a scan of the n values
only when the best one falls to the bound.

`admit` refuses a new hot key while `most` are hot: n frequent keys of the present window and n of the
last one are what Theorem 3.4 of 000 allows; twice that is left for windows of growing load. So rows are
at most `most` for every two statistics windows that lie in a window (`split_keys.most_rows`), which takes other hot keys
in each of them; in practice they are a few more than are hot.

Kernels only; `split_keys.SplitKeys` owns the arrays and enlarges them.
Cost: O(1) to find a row (linear probing at an eighth full), O(rows * n) per slide and per statistics
window. State: 16 n + 80 bytes per row, 16 n more where rewards are deferred; there is room for 1 to 2 times
the rows that were in use at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenflow.arrays import NEVER, Float64s, Int32s, Int64s, UInt64s
from evenflow.kernels import kernel
from evenflow.keys import home_slot

INITIAL = -2.0
EXPIRY, _BEST, HELD, _HOME = range(4)
ROWS, HOT, CAPPED, CAP = range(4)
COLD = -1


class QTable(NamedTuple):
    """The arrays. A kernel unpacks them once, before its loop, in this order; rows are 0..meta[ROWS]-1."""

    key: UInt64s
    slots: Int32s
    """Row of each slot of the hash table, or -1."""
    row: Int64s
    """(capacity, 4): last statistics window in which the key is hot (-1: cold), best worker, number of
    holders, home."""
    bound: Float64s
    """No value but the best is above this."""
    q: Float64s
    """(capacity, n): value of each worker; meaningless while the key is cold."""
    last: Int64s
    """(capacity, n): slide in which the worker last got the key."""
    kept: Float64s
    """(capacity, n) or empty: share of the present value that remains when deferred rewards are applied."""
    gain: Float64s
    """(capacity, n) or empty: what they add."""
    meta: Int64s
    """[rows in use, hot rows, hot rows with at least `cap` holders, cap of holders]"""


@kernel
def find(key: UInt64s, slots: Int32s, wanted: np.uint64) -> np.int64:
    """The key's row, or -1."""
    mask = np.int64(slots.shape[0] - 1)
    at = home_slot(wanted, mask)
    row = np.int64(slots[at])
    while row >= 0 and key[row] != wanted:
        at = (at + 1) & mask
        row = np.int64(slots[at])
    return row


@kernel
def _enter(slots: Int32s, key: np.uint64, row: Any) -> None:
    mask = np.int64(slots.shape[0] - 1)
    at = home_slot(key, mask)
    while slots[at] >= 0:
        at = (at + 1) & mask
    slots[at] = row


@kernel
def index(key: UInt64s, slots: Int32s, meta: Int64s) -> None:
    """Enter every row into the hash table afresh."""
    for at in range(slots.shape[0]):
        slots[at] = -1
    for row in range(meta[ROWS]):
        _enter(slots, key[row], np.int64(row))


@kernel
def _scan(row: Int64s, bound: Float64s, q: Float64s, r: Any) -> None:
    """Find the best worker and the bound afresh."""
    home = row[r, _HOME]
    best = home
    for worker in range(q.shape[1]):
        if q[r, worker] > q[r, best]:
            best = np.int64(worker)
    second = -np.inf
    for worker in range(q.shape[1]):
        if worker != best:
            second = max(second, q[r, worker])
    row[r, _BEST] = best
    bound[r] = second


@kernel
def best_of(row: Int64s, r: Any) -> np.int64:
    """argmax of the row's values."""
    return row[r, _BEST]


@kernel
def learn(
    row: Int64s, bound: Float64s, q: Float64s, r: Any, worker: Any, reward: float, gamma: float
) -> None:
    """Q += gamma (reward - Q) (000, eq. 5)."""
    best = row[r, _BEST]
    value = q[r, worker] + gamma * (reward - q[r, worker])
    q[r, worker] = value
    if worker == best:
        if value <= bound[r]:
            _scan(row, bound, q, r)
    elif value > q[r, best]:
        bound[r] = q[r, best]
        row[r, _BEST] = worker
    elif value == q[r, best]:
        _scan(row, bound, q, r)
    else:
        bound[r] = max(bound[r], value)


@kernel
def defer(kept: Float64s, gain: Float64s, r: Any, worker: Any, reward: float, gamma: float) -> None:
    """Note a reward to be learned later. Any number of them is one affine map Q -> kept*Q + gain."""
    kept[r, worker] *= 1.0 - gamma
    gain[r, worker] += gamma * (reward - gain[r, worker])


@kernel
def apply_deferred(
    row: Int64s, bound: Float64s, q: Float64s, kept: Float64s, gain: Float64s, meta: Int64s
) -> None:
    """Learn all deferred rewards and forget them."""
    for r in range(meta[ROWS]):
        for worker in range(q.shape[1]):
            q[r, worker] = kept[r, worker] * q[r, worker] + gain[r, worker]
            kept[r, worker] = 1.0
            gain[r, worker] = 0.0
        _scan(row, bound, q, np.int64(r))


@kernel
def hold(row: Int64s, last: Int64s, meta: Int64s, r: Any, worker: Any, slide: Any, oldest: Any) -> None:
    """The worker gets the key in this slide; `oldest` is the first slide of the window."""
    if last[r, worker] < oldest:
        row[r, HELD] += 1
        if row[r, HELD] == meta[CAP] and row[r, EXPIRY] != COLD:
            meta[CAPPED] += 1
    last[r, worker] = slide


@kernel
def nth_holder(last: Int64s, r: Any, wanted: Any, oldest: Any) -> np.int64:
    """The holder number `wanted` (from 0) in ascending order of workers."""
    left = wanted
    for worker in range(last.shape[1]):
        if last[r, worker] >= oldest:
            if left == 0:
                return np.int64(worker)
            left -= 1
    return np.int64(0)


@kernel
def count_capped(row: Int64s, meta: Int64s) -> None:
    """Count the hot rows, and those of them at or above the cap, afresh."""
    meta[HOT] = 0
    meta[CAPPED] = 0
    for r in range(meta[ROWS]):
        if row[r, EXPIRY] != COLD:
            meta[HOT] += 1
            if row[r, HELD] >= meta[CAP]:
                meta[CAPPED] += 1


@kernel
def slide_on(row: Int64s, last: Int64s, meta: Int64s, oldest: Any) -> None:
    """The window has moved: count the holders of every row afresh."""
    for r in range(meta[ROWS]):
        held = 0
        for worker in range(last.shape[1]):
            held += last[r, worker] >= oldest
        row[r, HELD] = held
    count_capped(row, meta)


@kernel
def _move(
    key: UInt64s,
    row: Int64s,
    bound: Float64s,
    q: Float64s,
    last: Int64s,
    kept: Float64s,
    gain: Float64s,
    source: Any,
    target: Any,
) -> None:
    key[target] = key[source]
    bound[target] = bound[source]
    for at in range(row.shape[1]):
        row[target, at] = row[source, at]
    for worker in range(q.shape[1]):
        q[target, worker] = q[source, worker]
        last[target, worker] = last[source, worker]
    if kept.shape[0]:
        for worker in range(q.shape[1]):
            kept[target, worker] = kept[source, worker]
            gain[target, worker] = gain[source, worker]


@kernel
def purge(
    key: UInt64s,
    slots: Int32s,
    row: Int64s,
    bound: Float64s,
    q: Float64s,
    last: Int64s,
    kept: Float64s,
    gain: Float64s,
    meta: Int64s,
    window: Any,
    oldest: Any,
) -> None:
    """A statistics window begins: cool the rows that have expired, give up those that hold nothing."""
    rows = 0
    for r in range(meta[ROWS]):
        if row[r, EXPIRY] < window:
            row[r, EXPIRY] = COLD
            at_home = last[r, row[r, _HOME]] >= oldest
            if row[r, HELD] == at_home:
                continue
        if rows < r:
            _move(key, row, bound, q, last, kept, gain, r, rows)
        rows += 1
    meta[ROWS] = rows
    index(key, slots, meta)
    count_capped(row, meta)


@kernel
def admit(
    key: UInt64s,
    slots: Int32s,
    row: Int64s,
    bound: Float64s,
    q: Float64s,
    last: Int64s,
    kept: Float64s,
    gain: Float64s,
    meta: Int64s,
    fresh: np.uint64,
    r: Any,
    home: Any,
    home_slide: Any,
    oldest: Any,
    expiry: Any,
    most: Any,
) -> np.int64:
    """Make the key hot until `expiry`; its row, or `r` unchanged while `most` keys are hot.

    `r` is its row or -1; a new row starts with home as holder when `home_slide`, the slide of its last
    tuple there, lies in the window. There must be room for a row.
    """
    if meta[HOT] >= most:
        return r
    if r < 0:
        r = meta[ROWS]
        meta[ROWS] += 1
        key[r] = fresh
        _enter(slots, fresh, r)
        for worker in range(q.shape[1]):
            last[r, worker] = NEVER
        row[r, HELD] = 0
        row[r, _HOME] = home
        if home_slide >= oldest:
            last[r, home] = home_slide
            row[r, HELD] = 1
    for worker in range(q.shape[1]):
        q[r, worker] = INITIAL
    if kept.shape[0]:
        for worker in range(q.shape[1]):
            kept[r, worker] = 1.0
            gain[r, worker] = 0.0
    row[r, _BEST] = home
    bound[r] = INITIAL if q.shape[1] > 1 else -np.inf
    row[r, EXPIRY] = expiry
    meta[HOT] += 1
    if row[r, HELD] >= meta[CAP]:
        meta[CAPPED] += 1
    return r


@kernel
def adopt(
    key: UInt64s,
    slots: Int32s,
    row: Int64s,
    bound: Float64s,
    q: Float64s,
    last: Int64s,
    kept: Float64s,
    gain: Float64s,
    meta: Int64s,
    keys: UInt64s,
    values: Float64s,
    homes: Int32s,
    home_slides: Int64s,
    oldest: Any,
    window: Any,
    expiry: Any,
) -> None:
    """These keys with these values are the hot ones now, and no others; deferred rewards are learned.

    There must be room for `keys`. Rewards deferred for other keys are dropped with their rows.
    """
    for old in range(meta[ROWS]):
        row[old, EXPIRY] = COLD
    meta[HOT] = 0
    for at in range(keys.shape[0]):
        r = find(key, slots, keys[at])
        if r < 0:
            r = admit(
                key, slots, row, bound, q, last, kept, gain, meta,
                keys[at], r, np.int64(homes[at]), home_slides[at], oldest, expiry, keys.shape[0],
            )  # fmt: skip
        row[r, EXPIRY] = expiry
        for worker in range(q.shape[1]):
            q[r, worker] = kept[r, worker] * values[at, worker] + gain[r, worker]
        _scan(row, bound, q, r)
    for every in range(meta[ROWS]):
        for worker in range(q.shape[1]):
            kept[every, worker] = 1.0
            gain[every, worker] = 0.0
    purge(key, slots, row, bound, q, last, kept, gain, meta, window, oldest)
