"""Shares of the frequent keys of the recent stream: SpaceSaving in sets of eight counters, with forgetting.

A key belongs to one set of eight counters. Within a set the rule is SpaceSaving's: a key without a counter
takes over the least counter of its set, and keeps its count as possible error. When `2 * memory` tuples have
been counted, every count is halved. So the summary speaks of the last `memory` to `2 * memory` tuples.

Laws: count - error <= the key's (halved) occurrences <= count. So by count - error no key is thought frequent
that is not. While nothing is forgotten, the counts of a set sum to its occurrences. Hence the least count of
a set with m occurrences is at most m/8. A set fits two cache lines, so a tuple costs one visit at any
capacity.

A counter also knows how many tuples its key had in about the last window: of these, each slide takes off a
share, one in as many as there are slides. So a key that lasts has its share of the window's tuples here, and
a burst has no more tuples than it brought. The law: while the clock stands, this is at most the key's
occurrences since it got its counter.

Where tuples cost differently, a tuple is counted with its weight: its cost over the mean cost, in `FINE`
parts. `lasting` then adds up costs. Below, "tuples" and "occurrences" are such weights.

Cost per tuple: 16 comparisons, eight at once. Halving adds capacity/memory of a step, and a slide adds a
visit to each counter. State: 24 bytes per counter.
Rule: Metwally et al., ICDT 2005. Sets replace the global order, as in a set-associative cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import Int32s, Int64s, Rows, UInt64s, Whole, record
from evenflow.numeric.kernels import inlined, kernel
from evenflow.sketches.eight_wide import WIDTH, equal, lowest_bit, place_of_least, set_of

WAYS = WIDTH
PARTS = 1024
"""Parts of a tuple, or of a unit of cost, in `lasting`."""
FINE = 256
"""Parts of a tuple of mean cost in the counts, once tuples cost differently."""
META = np.dtype([("seen", np.int64), ("memory", np.int64)])
"""Tuples that were counted and not yet forgotten, and the memory in tuples."""
MAX_MEMORY = 1 << 29


class Frequent(NamedTuple):
    """The summary: what kernels take as one argument. A counter is a number set * WAYS + way."""

    key: UInt64s
    """(counters,): hash of the key that each counter counts."""
    counts: Int32s
    """(counters,): occurrences counted, at most `errors` too many. 0: the counter is free."""
    errors: Int32s
    """(counters,): occurrences that were inherited from the key before, so they may not be the key's own."""
    meta: Rows
    """One of META."""
    lasting: Int64s
    """Tuples of the counter's key in about the last window, in PARTS. So a key with less than a tuple a slide
    does not fade faster than others."""


def frequent(capacity: int, memory: int) -> Frequent:
    """An empty summary of at least `capacity` counters: a power of two, at least one set. memory: in
    counts.
    """
    counters = max(WAYS, 1 << (capacity - 1).bit_length())
    return Frequent(
        key=np.zeros(counters, np.uint64),
        counts=np.zeros(counters, np.int32),
        errors=np.zeros(counters, np.int32),
        meta=record(META, memory=min(max(1, memory), MAX_MEMORY)),
        lasting=np.zeros(counters, np.int64),
    )


@inlined
def find(s: Frequent, spot: np.uint64, wanted: np.uint64) -> np.int64:
    """The key's counter, or -1. `spot` is a hash of the key."""
    first = set_of(s.key, spot)
    ways = equal(s.key, first, wanted)
    return np.int64(first) + lowest_bit(ways) if ways != 0 else np.int64(-1)


@inlined
def least(s: Frequent, spot: np.uint64) -> np.int64:
    """The counter that a key without one may take over: the least of its set, the first of them on a tie."""
    first = set_of(s.key, spot)
    return np.int64(first) + place_of_least(s.counts, first)


@inlined
def offer(
    s: Frequent, spot: np.uint64, key_hash: np.uint64, weight: Whole, cost: Whole
) -> tuple[np.uint64, np.int64]:
    """Count one occurrence of this weight and cost. Returns (the key's counter, taken over).

    The second is -1 if the counter was just taken over from another key, else 0. Call `halve` afterwards if
    it is `due`. A processor cannot predict whether a key has a counter, so nothing branches on it: both
    answers are looked up, and masks choose between them (measured: 6 ns per key instead of 11).
    """
    key, counts, errors, lasting = s.key, s.counts, s.errors, s.lasting
    first = set_of(key, spot)
    ways = equal(key, first, key_hash)
    # All bits are set if no way has the key, else none: only 0 - 1 is negative.
    takeover = (ways - np.int64(1)) >> np.int64(63)
    # One bit more, so that there is a lowest bit even if no way has the key.
    way = lowest_bit(ways | np.int64(1 << WAYS))
    at = first + np.uint64(way ^ ((way ^ place_of_least(counts, first)) & takeover))
    count, error = np.int64(counts[at]), np.int64(errors[at])
    key[at] = key_hash
    # If the counter was taken over, its whole count may belong to former keys.
    errors[at] = error ^ ((error ^ count) & takeover)
    counts[at] = count + weight
    lasting[at] = (lasting[at] & ~takeover) + PARTS * cost
    s.meta[()]["seen"] += weight
    return at, takeover


@inlined
def due(s: Frequent) -> bool:
    """Whether it is time to forget half."""
    meta = s.meta[()]
    return bool(meta["seen"] >= 2 * meta["memory"])


@inlined
def sure(s: Frequent, at: Whole) -> np.int64:
    """How many of the tuples `seen` certainly have the counter's key."""
    return np.int64(s.counts[at] - s.errors[at])


@kernel
def halve(s: Frequent) -> None:
    """Forget half. Call it when that is `due`."""
    count, error = s.counts, s.errors
    s.meta[()]["seen"] //= 2
    for at in range(count.shape[0]):
        count[at] //= 2
        # Rounded up, so that count - error is never more than the half of the key's occurrences.
        error[at] = min(count[at], (error[at] + 1) // 2)


@kernel
def change_unit(s: Frequent, old: Whole, new: Whole) -> None:
    """Count in units of `new` from now on. They were units of `old`."""
    count, error, meta = s.counts, s.errors, s.meta[()]
    # Counts are int32. What is forgotten here would be forgotten with the next tuple.
    while meta["seen"] * old // new >= 2 * meta["memory"]:
        halve(s)
    meta["seen"] = meta["seen"] * old // new
    for at in range(count.shape[0]):
        scaled = np.int64(count[at]) * old // new
        count[at] = scaled
        # Rounded up, so that count - error is never more than the key's occurrences.
        error[at] = min(scaled, (np.int64(error[at]) * old + new - 1) // new)


@kernel
def count_finely(s: Frequent) -> None:
    """Count in `FINE` parts of a tuple from now on. They were whole tuples."""
    meta = s.meta[()]
    meta["memory"] = min(meta["memory"] * FINE, MAX_MEMORY)
    change_unit(s, FINE, 1)


@inlined
def lasts(s: Frequent, at: Whole, certain: Whole, tuples: Whole) -> bool:
    """Whether the key's share of the window is at least half of its share of the recent stream.

    certain: the key's certain occurrences in the recent stream. tuples: those of the window.
    """
    return bool(2.0 * s.lasting[at] * s.meta[()]["seen"] >= float(PARTS) * certain * tuples)


@kernel
def fade(s: Frequent, slides: Whole, passed: Whole) -> None:
    """`passed` slides leave the window, which has so many `slides`."""
    lasting = s.lasting
    for at in range(lasting.shape[0]):
        tuples = np.int64(lasting[at])
        for _ in range(passed if passed < slides else 0):
            if tuples == 0:
                break
            # Rounded up, so that the last part goes too.
            tuples -= (tuples + slides - 1) // slides
        lasting[at] = tuples if passed < slides else 0


@kernel
def move_all(old: Frequent, new: Frequent, spots: UInt64s) -> None:
    """Fill the empty summary `new` from `old`. If a set has no room, the larger counts stay.

    `spots[c]` is the hash of the key of old counter c.
    """
    key, count, error = new.key, new.counts, new.errors
    for at in range(old.key.shape[0]):
        if old.counts[at] == 0:
            continue
        to = find(new, spots[at], old.key[at])
        if to < 0:
            to = least(new, spots[at])
        if count[to] < old.counts[at]:
            key[to] = old.key[at]
            count[to] = old.counts[at]
            error[to] = old.errors[at]
            new.lasting[to] = old.lasting[at]
    new.meta[()]["seen"] = old.meta[()]["seen"]
    while due(new):
        halve(new)
