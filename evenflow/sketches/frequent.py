"""Shares of the frequent keys of the recent stream: SpaceSaving in sets of eight counters, with forgetting.

A key belongs to one set of eight counters; within it the rule is SpaceSaving's: a key without counter
takes over the least one and remembers its count as its possible error. When `2 * memory` tuples have been
counted, every count is halved, so the summary speaks of the last `memory` to `2 * memory` tuples.

Laws: count - error <= the key's (halved) occurrences <= count, so a key is never thought frequent that is
not; the counts of a set sum to its occurrences while nothing is forgotten; hence the least of a set of m
occurrences is at most m/8. A set fits two cache lines, so one tuple costs one visit, whatever the capacity.

Cost per tuple: at most 8 comparisons; halving adds capacity/memory of a step. State: 16 bytes per counter.
Rule: Metwally et al., ICDT 2005. Sets in place of a global order: as caches do it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenflow.arrays import Int32s, Int64s, UInt64s
from evenflow.kernels import inlined, kernel

WAYS = 8
_WAYS = np.uint64(WAYS)
SEEN, MEMORY = 0, 1
MAX_MEMORY = 1 << 29


class Frequent(NamedTuple):
    """A counter is a number set * WAYS + way. A kernel unpacks this once, before its loop."""

    key: UInt64s
    counts: Int32s
    errors: Int32s
    meta: Int64s
    """[tuples counted and not yet forgotten, memory]"""


def frequent(capacity: int, memory: int) -> Frequent:
    """An empty summary of at least `capacity` counters: a power of two, at least one set."""
    counters = max(WAYS, 1 << (capacity - 1).bit_length())
    return Frequent(
        key=np.zeros(counters, np.uint64),
        counts=np.zeros(counters, np.int32),
        errors=np.zeros(counters, np.int32),
        meta=np.array([0, min(max(1, memory), MAX_MEMORY)], np.int64),
    )


@inlined
def find(key: UInt64s, spot: np.uint64, wanted: np.uint64) -> np.int64:
    """The key's counter, or -1; `spot` is a hash of the key."""
    first = (spot & np.uint64(key.shape[0] // WAYS - 1)) * _WAYS
    found = np.int64(-1)
    for way in range(WAYS):  # no way out halfway: eight selects cost less than one mispredicted branch
        at = first + np.uint64(way)
        found = np.int64(at) if key[at] == wanted else found
    return found


@inlined
def least(count: Int32s, spot: np.uint64) -> np.int64:
    """The counter that a key without one may take over: the first of the least of its set."""
    first = (spot & np.uint64(count.shape[0] // WAYS - 1)) * _WAYS
    best, fewest = first, count[first]
    for way in range(1, WAYS):
        at = first + np.uint64(way)
        fewer = count[at] < fewest
        best = at if fewer else best
        fewest = min(fewest, count[at])
    return np.int64(best)


@inlined
def sure(count: Int32s, error: Int32s, at: Any) -> np.int64:
    """Occurrences that the counter's key certainly has, of `meta[SEEN]`."""
    return np.int64(count[at] - error[at])


@kernel
def halve(count: Int32s, error: Int32s, meta: Int64s) -> None:
    """Forget half; call it when `meta[SEEN]` reaches twice `meta[MEMORY]`."""
    meta[SEEN] //= 2
    for at in range(count.shape[0]):
        count[at] //= 2
        error[at] = min(count[at], (error[at] + 1) // 2)


@kernel
def move_all(old: Frequent, new: Frequent, spots: UInt64s) -> None:
    """Fill the empty summary `new` from `old`; where a set has no room, the larger counts stay.

    `spots[c]` is the hash of old counter c's key.
    """
    key, count, error, meta = new
    for at in range(old.key.shape[0]):
        if old.counts[at] == 0:
            continue
        to = find(key, spots[at], old.key[at])
        if to < 0:
            to = least(count, spots[at])
        if count[to] < old.counts[at]:
            key[to] = old.key[at]
            count[to] = old.counts[at]
            error[to] = old.errors[at]
    meta[SEEN] = old.meta[SEEN]
    while meta[SEEN] >= 2 * meta[MEMORY]:
        halve(count, error, meta)
