"""SpaceSaving: the most frequent keys of a stream with `capacity` counters, as a stream summary.

Laws, with N keys offered and c counters: the counts sum to N; the least count is at most N/c (0 while
counters are free); for a monitored key f <= count <= f + error and error <= the least count; every key
with f > N/c is monitored. An unmonitored key has f <= the least count.

Structure: the entries stand in one order, ascending by count; equal counts form a *group* (its count, its
first and last position, the groups above and below). To increment an entry, swap it with the last of its
group and move the group's border: O(1) in the worst case, and the most frequent keys can be read off the
end in sorted order. A chained hash table (4 to 8 slots per counter) finds a key's entry. A new key takes
over the entry at the last position of the least group; so which one depends on the order of arrival only.

Forgetting: `halve` halves all counts and N, rounded down. All laws but the sum of the counts go on to hold,
of frequencies that were halved, rounded down, at the same moments.

Speed (measured: 11 ns per key where a first version took 34, with the same counters): `offer` is compiled
into the loop that calls it (a call hands over seven words per array), indices are unsigned (numba tests
signed ones for being negative, on the critical path), and sentinels spare tests whose outcome cannot be
predicted: entry `capacity` ends every chain and holds the wanted key, group 0 lies below all, 1 above.

State: 76 to 92 bytes per counter.
Paper: Metwally et al., ICDT 2005; merging as in Cafaro et al. / Agarwal et al. (mergeable summaries).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenflow.arrays import Int64s, Rows, UInt32s, UInt64s
from evenflow.kernels import inlined, kernel
from evenflow.keys import GOLDEN

_ONE = np.uint32(1)
_BOTTOM, _TOP = np.uint32(0), np.uint32(1)
TOTAL, SIZE, _FREE, _FLOOR, _SHIFT = 0, 1, 2, 3, 4
MAX_CAPACITY = 1 << 26
_LARGEST = 2**63 - 1

ENTRY = np.dtype(
    {
        "names": ["key", "error", "group", "position", "chain"],
        "formats": [np.uint64, np.int64, np.uint32, np.uint32, np.uint32],
        "itemsize": 32,
    }
)
"""`chain`: the next entry with the same place in the table, or `capacity`. 32 bytes: an address is a shift."""
GROUP = np.dtype(
    [("count", np.int64), ("first", np.uint32), ("last", np.uint32), ("up", np.uint32), ("down", np.uint32)]
)
"""`up` and `down`: the groups of the next higher and lower count; `up` also links the unused groups."""


class Summary(NamedTuple):
    """The arrays of a summary. An entry is a number 0..capacity-1 that never moves.

    A kernel unpacks it once, before its loop, and hands the arrays on one by one: reading a field of a
    tuple inside the loop costs numba an atomic reference count each time (measured: 8x slower).
    """

    entry: Rows
    """(capacity+1,) of ENTRY."""
    group: Rows
    """(capacity+2,) of GROUP."""
    order: UInt32s
    """Entry at each position; the used positions are the last `size` ones, ascending by count."""
    table: UInt32s
    """First entry of each chain, or `capacity`."""
    meta: Int64s
    """[keys offered, entries in use, first unused group, bound of an unseen key's count while entries are
    free, bits by which a product is shifted to a place in the table]"""


@inlined
def find(entry: Rows, table: UInt32s, meta: Int64s, wanted: np.uint64) -> np.uint32:
    """The key's entry, or `capacity`."""
    entry[entry.shape[0] - 1]["key"] = wanted  # ends the chain: the loop needs one test only
    at = table[(wanted * GOLDEN) >> np.uint64(meta[_SHIFT])]
    while entry[at]["key"] != wanted:
        at = entry[at]["chain"]
    return at


@inlined
def _chain(entry: Rows, table: UInt32s, meta: Int64s, at: Any, key: np.uint64) -> None:
    """The entry, in no chain so far, now belongs to this key."""
    home = (key * GOLDEN) >> np.uint64(meta[_SHIFT])
    entry[at]["key"] = key
    entry[at]["chain"] = table[home]
    table[home] = at


@inlined
def _unchain(entry: Rows, table: UInt32s, meta: Int64s, at: Any) -> None:
    home = (entry[at]["key"] * GOLDEN) >> np.uint64(meta[_SHIFT])
    before = table[home]
    if before == at:
        table[home] = entry[at]["chain"]
    else:
        while entry[before]["chain"] != at:
            before = entry[before]["chain"]
        entry[before]["chain"] = entry[at]["chain"]


@inlined
def _new_group(group: Rows, meta: Int64s, below: Any, count: Any, last: Any) -> np.uint32:
    """A group between `below` and the one above it; its first position is still to be set."""
    made = np.uint32(meta[_FREE])
    above = group[below]["up"]
    meta[_FREE] = np.int64(group[made]["up"])
    group[made]["count"] = count
    group[made]["last"] = last
    group[made]["up"] = above
    group[made]["down"] = below
    group[below]["up"] = made
    group[above]["down"] = made
    return made


@inlined
def _unlink(group: Rows, meta: Int64s, gone: Any) -> None:
    """The group is unused from now on."""
    above, below = group[gone]["up"], group[gone]["down"]
    group[below]["up"] = above
    group[above]["down"] = below
    group[gone]["up"] = np.uint32(meta[_FREE])
    meta[_FREE] = np.int64(gone)


@inlined
def _enter(
    entry: Rows, group: Rows, order: UInt32s, meta: Int64s, at: Any, position: Any, count: Any
) -> None:
    """Put a new entry below all others; none has a lower count."""
    lowest = group[_BOTTOM]["up"]
    if group[lowest]["count"] != count:
        lowest = _new_group(group, meta, _BOTTOM, count, position)
    group[lowest]["first"] = position
    entry[at]["group"] = lowest
    entry[at]["position"] = position
    order[position] = at


@inlined
def _increment(entry: Rows, group: Rows, order: UInt32s, meta: Int64s, at: Any) -> None:
    mine = entry[at]["group"]
    last = group[mine]["last"]
    above = group[mine]["up"]
    count = group[mine]["count"] + 1
    alone = group[mine]["first"] == last
    joins = group[above]["count"] == count
    if alone and not joins:
        group[mine]["count"] = count
    else:
        here = entry[at]["position"]
        other = order[last]
        order[here] = other
        entry[other]["position"] = here
        order[last] = at
        entry[at]["position"] = last
        if alone:
            _unlink(group, meta, mine)
        else:
            group[mine]["last"] = np.uint32(last - _ONE)
            if not joins:
                above = _new_group(group, meta, mine, count, last)
        group[above]["first"] = last
        entry[at]["group"] = above


@inlined
def offer(
    entry: Rows, group: Rows, order: UInt32s, table: UInt32s, meta: Int64s, key: np.uint64
) -> np.uint32:
    """Count one occurrence of the key; its entry. The first arguments are a `Summary`."""
    meta[TOTAL] += 1
    capacity = np.uint32(order.shape[0])
    at = find(entry, table, meta, key)
    if at == capacity:
        if meta[SIZE] < order.shape[0]:
            at = np.uint32(meta[SIZE])
            meta[SIZE] += 1
            entry[at]["error"] = meta[_FLOOR]
            _enter(entry, group, order, meta, at, np.uint32(capacity - at - _ONE), meta[_FLOOR])
        else:
            least = group[_BOTTOM]["up"]
            at = order[group[least]["last"]]
            entry[at]["error"] = group[least]["count"]
            _unchain(entry, table, meta, at)
        _chain(entry, table, meta, at, key)
    _increment(entry, group, order, meta, at)
    return at


@inlined
def count_of(entry: Rows, group: Rows, at: Any) -> np.int64:
    """The entry's count: never below the key's frequency."""
    return group[entry[at]["group"]]["count"]


@kernel
def _offer_all(s: Summary, keys: UInt64s) -> None:
    entry, group, order, table, meta = s
    for row in range(keys.shape[0]):
        offer(entry, group, order, table, meta, keys[row])


@kernel
def _find_one(s: Summary, key: np.uint64) -> np.int64:
    return np.int64(find(s.entry, s.table, s.meta, key))


@kernel
def _read_out(s: Summary, keys: UInt64s, counts: Int64s, errors: Int64s) -> None:
    entry, group, order, _, _ = s
    first = order.shape[0] - keys.shape[0]
    for row in range(keys.shape[0]):
        at = order[first + row]
        keys[row] = entry[at]["key"]
        counts[row] = count_of(entry, group, at)
        errors[row] = entry[at]["error"]


@kernel
def _rebuild(s: Summary, keys: UInt64s, counts: Int64s, errors: Int64s) -> None:
    """Fill an empty summary from entries in ascending order of count."""
    entry, group, order, table, meta = s
    size, capacity = keys.shape[0], order.shape[0]
    for back in range(size):
        row = size - 1 - back
        at = np.uint32(row)
        _chain(entry, table, meta, at, keys[row])
        entry[at]["error"] = errors[row]
        _enter(entry, group, order, meta, at, np.uint32(capacity - 1 - back), counts[row])
    meta[SIZE] = size


@kernel
def halve(s: Summary) -> None:
    """Forget half of what was counted; the entries keep their order."""
    entry, group, order, _, meta = s
    meta[TOTAL] //= 2
    meta[_FLOOR] //= 2
    below, at = _BOTTOM, group[_BOTTOM]["up"]
    while at != _TOP:
        above = group[at]["up"]
        count = group[at]["count"] // 2
        if group[below]["count"] == count:  # 2k and 2k + 1 are one group now
            for position in range(group[at]["first"], group[at]["last"] + 1):
                entry[order[position]]["group"] = below
            group[below]["last"] = group[at]["last"]
            _unlink(group, meta, at)
        else:
            group[at]["count"] = count
            below = at
        at = above
    for one in range(meta[SIZE]):
        error = entry[one]["error"]
        entry[one]["error"] = min(count_of(entry, group, one), (error + 1) // 2)


def empty_summary(capacity: int) -> Summary:
    """Arrays of a summary that has seen nothing."""
    group = np.zeros(capacity + 2, GROUP)
    group["up"] = np.arange(1, capacity + 3)
    group[_BOTTOM] = (-1, 0, 0, _TOP, 0)
    group[_TOP] = (_LARGEST, 0, 0, 0, _BOTTOM)
    bits = (4 * capacity - 1).bit_length()
    return Summary(
        entry=np.zeros(capacity + 1, ENTRY),
        group=group,
        order=np.zeros(capacity, np.uint32),
        table=np.full(1 << bits, capacity, np.uint32),
        meta=np.array([0, 0, 2, 0, 64 - bits], np.int64),
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
        group, full = self.summary.group, len(self) == self.capacity
        return int(group["count"][group["up"][_BOTTOM]] if full else self.summary.meta[_FLOOR])

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return sum(array.nbytes for array in self.summary)

    def offer(self, keys: UInt64s) -> None:
        """Count each key once, in order."""
        _offer_all(self.summary, keys)

    def halve(self) -> None:
        """Forget half of what was counted."""
        halve(self.summary)

    def estimate(self, key: int) -> int:
        """Upper bound of the key's frequency: its count, or `least` when it is not monitored."""
        at = _find_one(self.summary, np.uint64(key))
        rows = self.summary
        return self.least if at == self.capacity else int(rows.group["count"][rows.entry["group"][at]])

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
