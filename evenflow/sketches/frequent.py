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
import numpy.typing as npt

from evenflow.kernels import inlined, kernel

UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

WAYS = 8
SEEN, MEMORY = 0, 1
MAX_MEMORY = 1 << 29


class Frequent(NamedTuple):
    """A counter is a number set * WAYS + way. A kernel unpacks this once, before its loop."""

    key: UInt64s
    count: Int32s
    error: Int32s
    meta: Int64s
    """[tuples counted and not yet forgotten, memory]"""


def frequent(capacity: int, memory: int) -> Frequent:
    """An empty summary of at least `capacity` counters: a power of two, at least one set."""
    counters = max(WAYS, 1 << (capacity - 1).bit_length())
    return Frequent(
        key=np.zeros(counters, np.uint64),
        count=np.zeros(counters, np.int32),
        error=np.zeros(counters, np.int32),
        meta=np.array([0, min(max(1, memory), MAX_MEMORY)], np.int64),
    )


@kernel
def find(key: UInt64s, count: Int32s, spot: np.uint64, wanted: np.uint64) -> np.int64:
    """The key's counter, or -1 - c, where c is the counter it may take over; `spot` is a hash of the key.

    `replace` or `count_one` comes next; between them the caller may let go of what belonged to c.
    """
    sets = np.uint64(key.shape[0] // WAYS)
    first = np.int64(spot & (sets - np.uint64(1))) * WAYS
    least = first
    for at in range(first, first + WAYS):
        if key[at] == wanted:
            return at
        if count[at] < count[least]:
            least = at
    return -1 - least


@kernel
def replace(key: UInt64s, count: Int32s, error: Int32s, at: Any, fresh: np.uint64) -> None:
    """The counter now belongs to the key `fresh`."""
    key[at] = fresh
    error[at] = count[at]


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
        if old.count[at] == 0:
            continue
        to = find(key, count, spots[at], old.key[at])
        if to < 0:
            to = -1 - to
        if count[to] < old.count[at]:
            key[to] = old.key[at]
            count[to] = old.count[at]
            error[to] = old.error[at]
    meta[SEEN] = old.meta[SEEN]
    while meta[SEEN] >= 2 * meta[MEMORY]:
        halve(count, error, meta)
