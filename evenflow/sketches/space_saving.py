"""SpaceSaving: the most frequent keys of a stream with `capacity` counters, as a stream summary.

Laws, with N keys offered and c counters: the counts sum to N; the least count is at most N/c (0 while
counters are free); for a monitored key f <= count <= f + error and error <= the least count; every key
with f > N/c is monitored. An unmonitored key has f <= the least count.

Structure: the entries stand in one array in ascending order of count, equal counts form a *group*
(first and last position). To increment an entry, swap it with the last of its group and move the group's
border: O(1) in the worst case, and the most frequent keys can be read off the end in sorted order. A
chained hash table (4 to 8 slots per counter; measured a quarter faster than linear
probing, whose deletion shifts) finds a key's entry. A new key takes over an entry of the least count;
which one depends on the order of arrival only.

State: 75 to 95 bytes per counter.
Paper: Metwally et al., ICDT 2005; merging as in Cafaro et al. / Agarwal et al. (mergeable summaries).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.kernels import kernel

UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
TOTAL, SIZE, _FREE_GROUPS, _FLOOR = 0, 1, 2, 3
_GROUP, _POSITION, _ORDER, _FIRST, _LAST, _FREE, _CHAIN = range(7)
_COUNT, _ERROR = 0, 1
MAX_CAPACITY = 1 << 26


class Summary(NamedTuple):
    """The arrays of a summary. An entry is a number 0..capacity-1 that never moves.

    A kernel unpacks it once, before its loop, and hands the arrays on one by one: reading a field of a
    tuple inside the loop costs numba an atomic reference count each time (measured: 8x slower).
    """

    key: UInt64s
    """Key of each entry."""
    value: npt.NDArray[np.int64]
    """(capacity+1, 2): count of a group, error of an entry."""
    link: npt.NDArray[np.int32]
    """(capacity+1, 8): group and position of an entry, entry at a position, first and last position of a
    group, stack of free groups, next entry of a chain, nothing (eight make a row's address a shift). The
    used positions are the last `size` ones, ascending by count."""
    table: Int32s
    """First entry of each chain, or -1."""
    meta: Int64s
    """[keys offered, entries in use, free groups, bound of an unseen key's count while entries are free]"""


@kernel
def _home(key: np.uint64, mask: Any) -> np.int64:
    return np.int64((key * _SPREAD) >> _HALF) & mask


@kernel
def _find(key: UInt64s, link: Int32s, table: Int32s, wanted: np.uint64) -> np.int64:
    """The key's entry, or -1."""
    entry = np.int64(table[_home(wanted, np.int64(table.shape[0] - 1))])
    while entry >= 0 and key[entry] != wanted:
        entry = np.int64(link[entry, _CHAIN])
    return entry


@kernel
def _chain(key: UInt64s, link: Int32s, table: Int32s, entry: Any, fresh: np.uint64) -> None:
    """The entry, in no chain so far, now belongs to the key `fresh`."""
    home = _home(fresh, np.int64(table.shape[0] - 1))
    key[entry] = fresh
    link[entry, _CHAIN] = table[home]
    table[home] = entry


@kernel
def _unchain(key: UInt64s, link: Int32s, table: Int32s, entry: Any) -> None:
    home = _home(key[entry], np.int64(table.shape[0] - 1))
    at = np.int64(table[home])
    if at == entry:
        table[home] = link[entry, _CHAIN]
        return
    while link[at, _CHAIN] != entry:
        at = np.int64(link[at, _CHAIN])
    link[at, _CHAIN] = link[entry, _CHAIN]


@kernel
def _meets(count: Int64s, link: Int32s, position: Any, value: Any) -> bool:
    """Whether the group above this position has this count."""
    if position + 2 >= link.shape[0]:
        return False
    return count[link[link[position + 1, _ORDER], _GROUP], _COUNT] == value


@kernel
def _join(count: Int64s, link: Int32s, meta: Int64s, entry: Any, position: Any, value: Any) -> None:
    """Put the entry at `position`, just below the entries of a higher or equal count."""
    if _meets(count, link, position, value):
        group = np.int64(link[link[position + 1, _ORDER], _GROUP])
    else:
        meta[_FREE_GROUPS] -= 1
        group = np.int64(link[meta[_FREE_GROUPS], _FREE])
        count[group, _COUNT] = value
        link[group, _LAST] = position
    link[group, _FIRST] = position
    link[entry, _GROUP] = group
    link[position, _ORDER] = entry
    link[entry, _POSITION] = position


@kernel
def _increment(count: Int64s, link: Int32s, meta: Int64s, entry: Any) -> None:
    group = np.int64(link[entry, _GROUP])
    last = np.int64(link[group, _LAST])
    if link[group, _FIRST] == last and not _meets(count, link, last, count[group, _COUNT] + 1):
        count[group, _COUNT] += 1
        return
    here = np.int64(link[entry, _POSITION])
    other = np.int64(link[last, _ORDER])
    link[here, _ORDER] = other
    link[other, _POSITION] = here
    value = count[group, _COUNT] + 1
    if link[group, _FIRST] == last:
        link[meta[_FREE_GROUPS], _FREE] = group
        meta[_FREE_GROUPS] += 1
    else:
        link[group, _LAST] = last - 1
    _join(count, link, meta, entry, last, value)


@kernel
def offer(
    key: UInt64s, count: Int64s, link: Int32s, table: Int32s, meta: Int64s, seen: np.uint64
) -> np.int64:
    """Count one occurrence of the key `seen`; its entry. The first arguments are a `Summary`."""
    meta[TOTAL] += 1
    entry = _find(key, link, table, seen)
    if entry < 0:
        capacity = np.int64(key.shape[0])
        size = meta[SIZE]
        if size < capacity:
            entry = size
            meta[SIZE] = size + 1
            count[entry, _ERROR] = meta[_FLOOR]
            _join(count, link, meta, entry, capacity - size - 1, meta[_FLOOR])
            _chain(key, link, table, entry, seen)
        else:
            least = np.int64(link[link[0, _ORDER], _GROUP])
            entry = np.int64(link[link[least, _LAST], _ORDER])
            _unchain(key, link, table, entry)
            _chain(key, link, table, entry, seen)
            count[entry, _ERROR] = count[least, _COUNT]
    _increment(count, link, meta, entry)
    return entry


@kernel
def count_of(count: Int64s, link: Int32s, entry: Any) -> np.int64:
    """The entry's count: never below the key's frequency."""
    return count[link[entry, _GROUP], _COUNT]


@kernel
def entry_at(link: Int32s, position: Any) -> np.int64:
    """The entry at this position; position capacity-1 holds the highest count."""
    return np.int64(link[position, _ORDER])


@kernel
def _offer_all(s: Summary, keys: UInt64s) -> None:
    key, count, link, table, meta = s
    for row in range(keys.shape[0]):
        offer(key, count, link, table, meta, keys[row])


@kernel
def _read_out(s: Summary, keys: UInt64s, counts: Int64s, errors: Int64s) -> None:
    key, count, link, _, _ = s
    first = key.shape[0] - keys.shape[0]
    for at in range(keys.shape[0]):
        entry = entry_at(link, first + at)
        keys[at] = key[entry]
        counts[at] = count_of(count, link, entry)
        errors[at] = count[entry, _ERROR]


@kernel
def _rebuild(s: Summary, keys: UInt64s, counts: Int64s, errors: Int64s) -> None:
    """Fill an empty summary from entries in ascending order of count."""
    key, count, link, table, meta = s
    size, capacity = keys.shape[0], key.shape[0]
    for back in range(size):
        at = size - 1 - back
        _chain(key, link, table, at, keys[at])
        count[at, _ERROR] = errors[at]
        _join(count, link, meta, at, capacity - 1 - back, counts[at])
    meta[SIZE] = size


def empty_summary(capacity: int) -> Summary:
    """Arrays of a summary that has seen nothing."""
    link = np.zeros((capacity + 1, 8), np.int32)
    link[:, _FREE] = np.arange(capacity + 1)
    return Summary(
        key=np.zeros(capacity, np.uint64),
        value=np.zeros((capacity + 1, 2), np.int64),
        link=link,
        table=np.full(1 << (4 * capacity - 1).bit_length(), -1, np.int32),
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
        return int(self.summary.meta[SIZE])

    @property
    def total(self) -> int:
        """Keys offered so far, N."""
        return int(self.summary.meta[TOTAL])

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
        s = self.summary
        entry = int(_find(s.key, s.link, s.table, np.uint64(key)))
        return self.least if entry < 0 else int(count_of(s.value, s.link, entry))

    def counters(self) -> tuple[UInt64s, Int64s, Int64s]:
        """(keys, counts, errors) in ascending order of count; with `total` and `least` the whole state."""
        size = len(self)
        keys, counts, errors = np.empty(size, np.uint64), np.empty(size, np.int64), np.empty(size, np.int64)
        _read_out(self.summary, keys, counts, errors)
        return keys, counts, errors

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
        _rebuild(made.summary, keys[kept].copy(), counts[kept].copy(), errors[kept].copy())
        made.summary.meta[TOTAL] = total
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
