"""SpaceSaving: the most frequent keys of a stream with `capacity` counters, as a stream summary.

Laws, with N keys offered and c counters: the counts sum to N; the least count is at most N/c (0 while
counters are free); for a monitored key f <= count <= f + error and error <= the least count; every key
with f > N/c is monitored. An unmonitored key has f <= the least count.

Structure: the entries stand in one array in ascending order of count, equal counts form a *group*
(first and last position). To increment an entry, swap it with the last of its group and move the group's
border: O(1) in the worst case, and the most frequent keys can be read off the end in sorted order. An
open-addressing table (linear probing, at most half full, deletion by shifting back) finds a key's
entry. A new key takes over an entry of the least count. Which one depends on the order of arrival only.

State: about 60 bytes per counter.
Paper: Metwally et al., ICDT 2005; merging as in Cafaro et al. / Agarwal et al. (mergeable summaries).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.kernels import inlined, kernel

UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_TOTAL, _SIZE, _FREE_GROUPS, _FLOOR = 0, 1, 2, 3
MAX_CAPACITY = 1 << 26


class Summary(NamedTuple):
    """The arrays that kernels take as one argument. An entry is a number 0..capacity-1 that never moves."""

    key: UInt64s
    error: Int64s
    group: Int32s
    position: Int32s
    order: Int32s
    """Entry at each position; the used positions are the last `size` ones, ascending by count."""
    group_count: Int64s
    group_first: Int32s
    group_last: Int32s
    free_groups: Int32s
    table: Int32s
    """Entry or -1, at a slot found by `_slot`."""
    meta: Int64s
    """[keys offered, entries in use, free groups, bound of an unseen key's count while entries are free]"""


@inlined
def _home(key: np.uint64, mask: Any) -> np.int64:
    return np.int64((key * _SPREAD) >> _HALF) & mask


@kernel
def _slot(s: Summary, key: np.uint64) -> np.int64:
    """Slot of this key, or the empty slot where it would go."""
    mask = np.int64(s.table.shape[0] - 1)
    at = _home(key, mask)
    while s.table[at] >= 0 and s.key[s.table[at]] != key:
        at = (at + 1) & mask
    return at


@kernel
def _remove(s: Summary, key: np.uint64) -> None:
    mask = np.int64(s.table.shape[0] - 1)
    hole = _slot(s, key)
    at = hole
    while True:
        at = (at + 1) & mask
        entry = s.table[at]
        if entry < 0:
            break
        home = _home(s.key[entry], mask)
        if ((at - home) & mask) >= ((at - hole) & mask):
            s.table[hole] = entry
            hole = at
    s.table[hole] = -1


@kernel
def _join(s: Summary, entry: Any, position: Any, count: Any) -> None:
    """Put the entry at `position`, just below the entries of a higher or equal count."""
    above = position + 1
    if above < s.order.shape[0] and s.group_count[s.group[s.order[above]]] == count:
        group = s.group[s.order[above]]
    else:
        s.meta[_FREE_GROUPS] -= 1
        group = s.free_groups[s.meta[_FREE_GROUPS]]
        s.group_count[group] = count
        s.group_last[group] = position
    s.group_first[group] = position
    s.group[entry] = group
    s.order[position] = entry
    s.position[entry] = position


@kernel
def _increment(s: Summary, entry: Any) -> None:
    group = s.group[entry]
    here, last = s.position[entry], s.group_last[group]
    other = s.order[last]
    s.order[here] = other
    s.position[other] = here
    count = s.group_count[group] + 1
    if s.group_first[group] == last:
        s.free_groups[s.meta[_FREE_GROUPS]] = group
        s.meta[_FREE_GROUPS] += 1
    else:
        s.group_last[group] = last - 1
    _join(s, entry, last, count)


@kernel
def offer(s: Summary, key: np.uint64) -> np.int64:
    """Count one occurrence of the key; its entry."""
    s.meta[_TOTAL] += 1
    slot = _slot(s, key)
    entry = np.int64(s.table[slot])
    if entry >= 0:
        _increment(s, entry)
        return entry
    capacity = s.key.shape[0]
    size = s.meta[_SIZE]
    if size < capacity:
        entry = size
        s.meta[_SIZE] = size + 1
        s.key[entry] = key
        s.table[slot] = entry
        s.error[entry] = s.meta[_FLOOR]
        _join(s, entry, capacity - size - 1, s.meta[_FLOOR])
        _increment(s, entry)
        return entry
    least = s.group[s.order[0]]
    entry = np.int64(s.order[s.group_last[least]])
    _remove(s, s.key[entry])
    s.key[entry] = key
    s.error[entry] = s.group_count[least]
    s.table[_slot(s, key)] = entry
    _increment(s, entry)
    return entry


@inlined
def count_of(s: Summary, entry: Any) -> np.int64:
    """The entry's count: never below the key's frequency."""
    return s.group_count[s.group[entry]]


@kernel
def _offer_all(s: Summary, keys: UInt64s) -> None:
    for row in range(keys.shape[0]):
        offer(s, keys[row])


@kernel
def _counts(s: Summary, out: Int64s) -> None:
    first = s.key.shape[0] - out.shape[0]
    for at in range(out.shape[0]):
        out[at] = count_of(s, s.order[first + at])


@kernel
def _rebuild(s: Summary, keys: UInt64s, counts: Int64s, errors: Int64s) -> None:
    """Fill an empty summary from entries in ascending order of count."""
    size, capacity = keys.shape[0], s.key.shape[0]
    for back in range(size):
        at = size - 1 - back
        s.key[at] = keys[at]
        s.error[at] = errors[at]
        s.table[_slot(s, keys[at])] = at
        _join(s, at, capacity - 1 - back, counts[at])
    s.meta[_SIZE] = size


def empty_summary(capacity: int) -> Summary:
    """Arrays of a summary that has seen nothing."""
    slots = 1 << (2 * capacity - 1).bit_length()
    return Summary(
        key=np.zeros(capacity, np.uint64),
        error=np.zeros(capacity, np.int64),
        group=np.zeros(capacity, np.int32),
        position=np.zeros(capacity, np.int32),
        order=np.zeros(capacity, np.int32),
        group_count=np.zeros(capacity + 1, np.int64),
        group_first=np.zeros(capacity + 1, np.int32),
        group_last=np.zeros(capacity + 1, np.int32),
        free_groups=np.arange(capacity + 1, dtype=np.int32),
        table=np.full(slots, -1, np.int32),
        meta=np.array([0, 0, capacity + 1, 0], np.int64),
    )


class SpaceSaving:
    """A stream summary with `capacity` counters; `summary` is what kernels take."""

    def __init__(self, capacity: int) -> None:
        if not 1 <= capacity <= MAX_CAPACITY:
            raise ValueError(f"SpaceSaving needs 1 to {MAX_CAPACITY} counters, not {capacity}")
        self.capacity = capacity
        self.summary = empty_summary(capacity)

    def __len__(self) -> int:
        return int(self.summary.meta[_SIZE])

    @property
    def total(self) -> int:
        """Keys offered so far, N."""
        return int(self.summary.meta[_TOTAL])

    @property
    def least(self) -> int:
        """Upper bound of the frequency of every key that is not monitored."""
        full = len(self) == self.capacity
        return int(self.counters()[1][0]) if full else int(self.summary.meta[_FLOOR])

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return sum(array.nbytes for array in self.summary)

    def offer(self, keys: UInt64s) -> None:
        """Count each key once, in order."""
        _offer_all(self.summary, keys)

    def estimate(self, key: int) -> int:
        """Upper bound of the key's frequency: its count, or `least` when it is not monitored."""
        slot = _slot(self.summary, np.uint64(key))
        entry = int(self.summary.table[slot])
        return self.least if entry < 0 else int(count_of(self.summary, entry))

    def counters(self) -> tuple[UInt64s, Int64s, Int64s]:
        """(keys, counts, errors) in ascending order of count; with `total` and `least` the whole state."""
        s = self.summary
        used = s.order[self.capacity - len(self) :]
        counts = np.empty(len(self), np.int64)
        _counts(s, counts)
        return s.key[used], counts, s.error[used]

    @classmethod
    def from_counters(
        cls, capacity: int, keys: UInt64s, counts: Int64s, errors: Int64s, *, total: int, least: int = 0
    ) -> SpaceSaving:
        """The summary with this state, in the order `counters` gives it.

        More entries than counters: the largest stay. `least` bounds the frequency of keys that have no
        entry; it matters while counters are free.
        """
        if not len(keys) == len(counts) == len(errors) or np.any(np.diff(counts) < 0):
            raise ValueError("counters must have equal lengths and ascend by count")
        if len(np.unique(keys)) != len(keys):
            raise ValueError("a key has two counters")
        made = cls(capacity)
        kept = slice(max(0, len(keys) - capacity), None)
        _rebuild(made.summary, keys[kept], counts[kept], errors[kept])
        made.summary.meta[_TOTAL] = total
        made.summary.meta[_FLOOR] = least
        return made

    def resized(self, capacity: int) -> SpaceSaving:
        """The same summary with another number of counters; shrinking drops the least counts."""
        return SpaceSaving.from_counters(capacity, *self.counters(), total=self.total, least=self.least)

    def merge(self, other: SpaceSaving) -> SpaceSaving:
        """Summary of both streams together, with this one's capacity.

        A key that one side does not monitor may have occurred `least` times there: that is added to its
        count and its error, so f <= count <= f + error holds; the counts may now sum to more than N.
        """
        mine, theirs = self.counters(), other.counters()
        keys, index = np.unique(np.concatenate([mine[0], theirs[0]]), return_inverse=True)
        counts, errors = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
        split = len(mine[0])
        for (_, side_counts, side_errors), at, least in (
            (mine, index[:split], self.least),
            (theirs, index[split:], other.least),
        ):
            absent = np.ones(len(keys), bool)
            absent[at] = False
            counts[at] += side_counts
            errors[at] += side_errors
            counts[absent] += least
            errors[absent] += least
        order = np.lexsort((keys, counts))
        return SpaceSaving.from_counters(
            self.capacity,
            keys[order],
            counts[order],
            errors[order],
            total=self.total + other.total,
            least=self.least + other.least,
        )
