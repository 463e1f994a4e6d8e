"""SpaceSaving: the most frequent keys of a stream with `capacity` counters, as a stream summary.

Laws, for N keys offered, c counters and a key of frequency f: the counts sum to N. The least count is at most
N/c (0 while counters are free). A key with a counter is *monitored*. It has f <= count <= f + error, and
error <= the least count. Every key with f > N/c is monitored. A key that is not monitored has f <= the least
count.

Structure: all entries stand in one order, ascending by count. Entries with equal counts form a *group*, which
has a count, a first and a last position, and the groups above and below. To raise an entry by one, it is
swapped with the last entry of its group, and the group's border moves. That is O(1) in the worst case, and
the most frequent keys can be read off the end in sorted order. A tuple may also raise its key by a *cost*
above one. The entry then passes the groups in between, one after the other: the last entry of each takes the
place below the group. That is O(groups that are passed). All laws then hold with the sum of a key's costs as
its frequency, and N as the sum of all costs. A chained hash table (4 to 8 slots per counter) finds a key's
entry. A new key takes over the entry at the last position of the least group. Which entry that is depends on
the order of arrival only.

Forgetting: `halve` halves all counts and N, rounded down. All laws but the sum of the counts then hold for
frequencies that are halved, rounded down, at the same moments.

Speed: measured 11 ns per key, where a simpler version with the same counters took 34. `offer` is compiled
into the loop that calls it, because a call passes seven words per array. Indices are unsigned, because numba
tests signed ones for being negative, on the critical path. Sentinels spare tests whose outcome a processor
cannot predict: entry `capacity` ends every chain and holds the wanted key, group 0 lies below all groups, and
group 1 above all.
With costs the groups that are passed tell. Costs from 1 to 50 take 22 ns more per key with 1,280 counters,
and 28 ns more with 20,000. Costs from 1 to 1,000,000, where hardly two counts are equal, take 0.7 us and 7 us
more.

State: 76 to 92 bytes per counter.
Paper: Metwally et al., ICDT 2005. Merging as in Cafaro et al. / Agarwal et al. (mergeable summaries).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.keys import GOLDEN
from evenflow.numeric.arrays import Int64s, Rows, UInt32s, UInt64s, Whole, record, records
from evenflow.numeric.kernels import inlined, kernel

_ONE = np.uint32(1)
_BOTTOM, _TOP = np.uint32(0), np.uint32(1)
MAX_CAPACITY = 1 << 26
_LARGEST = 2**63 - 1

ENTRY = np.dtype(
    {
        "names": ["key", "error", "group", "position", "chain"],
        "formats": [np.uint64, np.int64, np.uint32, np.uint32, np.uint32],
        "itemsize": 32,
    }
)
"""`chain`: the next entry with the same place in the table, or `capacity`. 32 bytes, so that an address is
made by a shift."""
GROUP = np.dtype(
    [("count", np.int64), ("first", np.uint32), ("last", np.uint32), ("up", np.uint32), ("down", np.uint32)]
)
"""`up` and `down`: the groups of the next higher and lower count. `up` also links the unused groups."""
META = np.dtype([(name, np.int64) for name in ("total", "size", "free", "floor", "shift")])
"""`total`: N, the costs of the keys offered. `size`: entries in use. `free`: first unused group. `floor`:
bound of the frequency of a key without an entry while entries are free. `shift`: by how many bits a product
is shifted to a place in the table."""


class SpaceSavingSummary(NamedTuple):
    """The summary: what kernels take as one argument. An entry is a number 0..capacity-1 that never moves."""

    entry: Rows
    """(capacity+1,) of ENTRY. The last one is a sentinel."""
    group: Rows
    """(capacity+2,) of GROUP. The first two are sentinels."""
    order: UInt32s
    """(capacity,): the entry at each position. The last `size` positions are in use, ascending by count."""
    table: UInt32s
    """The first entry of each chain, or `capacity`."""
    meta: Rows
    """One of META."""


@inlined
def find(s: SpaceSavingSummary, target: np.uint64) -> np.uint32:
    """The key's entry, or `capacity`."""
    entry, table = s.entry, s.table
    # The sentinel ends every chain, so the loop needs one test only.
    entry[entry.shape[0] - 1]["key"] = target
    at = table[(target * GOLDEN) >> np.uint64(s.meta[()]["shift"])]
    while entry[at]["key"] != target:
        at = entry[at]["chain"]
    return at


@inlined
def _chain(s: SpaceSavingSummary, at: Whole, key: np.uint64) -> None:
    """Give the entry, which is in no chain, to this key."""
    entry, table = s.entry, s.table
    slot = (key * GOLDEN) >> np.uint64(s.meta[()]["shift"])
    entry[at]["key"] = key
    entry[at]["chain"] = table[slot]
    table[slot] = at


@inlined
def _unchain(s: SpaceSavingSummary, at: Whole) -> None:
    """Take the entry out of the chain of its key."""
    entry, table = s.entry, s.table
    slot = (entry[at]["key"] * GOLDEN) >> np.uint64(s.meta[()]["shift"])
    before = table[slot]
    if before == at:
        table[slot] = entry[at]["chain"]
    else:
        while entry[before]["chain"] != at:
            before = entry[before]["chain"]
        entry[before]["chain"] = entry[at]["chain"]


@inlined
def _new_group(s: SpaceSavingSummary, below: Whole, count: Whole, last: Whole) -> np.uint32:
    """Make a group between `below` and the group above it. The caller still has to set its first position."""
    group, meta = s.group, s.meta[()]
    number = np.uint32(meta["free"])
    above = group[below]["up"]
    meta["free"] = np.int64(group[number]["up"])
    group[number]["count"] = count
    group[number]["last"] = last
    group[number]["up"] = above
    group[number]["down"] = below
    group[below]["up"] = number
    group[above]["down"] = number
    return number


@inlined
def _unlink(s: SpaceSavingSummary, number: Whole) -> None:
    """Take the group out of the order. It is unused from now on."""
    group, meta = s.group, s.meta[()]
    above, below = group[number]["up"], group[number]["down"]
    group[below]["up"] = above
    group[above]["down"] = below
    group[number]["up"] = np.uint32(meta["free"])
    meta["free"] = np.int64(number)


@inlined
def _enter(s: SpaceSavingSummary, at: Whole, position: Whole, count: Whole) -> None:
    """Put a new entry below all others. No other entry may have a lower count."""
    group = s.group
    lowest = group[_BOTTOM]["up"]
    if group[lowest]["count"] != count:
        lowest = _new_group(s, _BOTTOM, count, position)
    group[lowest]["first"] = position
    s.entry[at]["group"] = lowest
    s.entry[at]["position"] = position
    s.order[position] = at


@inlined
def _raise(s: SpaceSavingSummary, at: Whole, cost: Whole) -> None:
    """Raise the entry's count by `cost`, at least one."""
    entry, group, order = s.entry, s.group, s.order
    mine = entry[at]["group"]
    last = group[mine]["last"]
    above = group[mine]["up"]
    count = group[mine]["count"] + cost
    alone = group[mine]["first"] == last
    # The commonest case of frequent keys: the entry is alone in its group, and no group has a count up to the
    # new one. Then the group itself moves up.
    if alone and group[above]["count"] > count:
        group[mine]["count"] = count
    else:
        # The last entry of the group takes the entry's place, so that the place that is free borders on the
        # next higher count.
        position = entry[at]["position"]
        other = order[last]
        order[position] = other
        entry[other]["position"] = position
        below = mine
        if alone:
            below = group[mine]["down"]
            _unlink(s, mine)
        else:
            group[mine]["last"] = np.uint32(last - _ONE)
        # Never entered if `cost` is one. The count of the sentinel above all groups ends it.
        while group[above]["count"] < count:
            top = group[above]["last"]
            other = order[top]
            order[last] = other
            entry[other]["position"] = last
            group[above]["first"] = last
            group[above]["last"] = np.uint32(top - _ONE)
            last, below, above = top, above, group[above]["up"]
        order[last] = at
        entry[at]["position"] = last
        if group[above]["count"] != count:
            above = _new_group(s, below, count, last)
        group[above]["first"] = last
        entry[at]["group"] = above


@inlined
def offer(s: SpaceSavingSummary, key: np.uint64, cost: Whole) -> np.uint32:
    """Count one occurrence of the key, which costs so much. Returns the key's entry."""
    entry, group, order, meta = s.entry, s.group, s.order, s.meta[()]
    meta["total"] += cost
    capacity = np.uint32(order.shape[0])
    at = find(s, key)
    if at == capacity:
        if meta["size"] < order.shape[0]:
            at = np.uint32(meta["size"])
            meta["size"] += 1
            entry[at]["error"] = meta["floor"]
            # Positions are used from the last one down, so that the order always ends at the last position.
            _enter(s, at, np.uint32(capacity - at - _ONE), meta["floor"])
        else:
            # A key takes over the entry with its count, which may all belong to former keys: it is the
            # possible error.
            least = group[_BOTTOM]["up"]
            at = order[group[least]["last"]]
            entry[at]["error"] = group[least]["count"]
            _unchain(s, at)
        _chain(s, at, key)
    _raise(s, at, cost)
    return at


@inlined
def count_of(s: SpaceSavingSummary, at: Whole) -> np.int64:
    """The entry's count: never below the key's frequency."""
    return s.group[s.entry[at]["group"]]["count"]


@kernel
def _offer_all(s: SpaceSavingSummary, keys: UInt64s, costs: Int64s) -> None:
    for row in range(keys.shape[0]):
        offer(s, keys[row], costs[row])


@kernel
def _find_one(s: SpaceSavingSummary, key: np.uint64) -> np.int64:
    return np.int64(find(s, key))


@kernel
def _read_out(s: SpaceSavingSummary, keys: UInt64s, counts: Int64s, errors: Int64s) -> None:
    entry, order = s.entry, s.order
    first = order.shape[0] - keys.shape[0]
    for row in range(keys.shape[0]):
        at = order[first + row]
        keys[row] = entry[at]["key"]
        counts[row] = count_of(s, at)
        errors[row] = entry[at]["error"]


@kernel
def _rebuild(s: SpaceSavingSummary, keys: UInt64s, counts: Int64s, errors: Int64s) -> None:
    """Fill an empty summary with entries that are given in ascending order of count."""
    size, capacity = keys.shape[0], s.order.shape[0]
    # From the greatest count down, because `_enter` puts each entry below all others.
    for back in range(size):
        row = size - 1 - back
        at = np.uint32(row)
        _chain(s, at, keys[row])
        s.entry[at]["error"] = errors[row]
        _enter(s, at, np.uint32(capacity - 1 - back), counts[row])
    s.meta[()]["size"] = size


@kernel
def halve(s: SpaceSavingSummary) -> None:
    """Halve all counts, rounded down. The entries keep their order."""
    entry, group, order, meta = s.entry, s.group, s.order, s.meta[()]
    meta["total"] //= 2
    meta["floor"] //= 2
    below, at = _BOTTOM, group[_BOTTOM]["up"]
    while at != _TOP:
        above = group[at]["up"]
        count = group[at]["count"] // 2
        if group[below]["count"] == count:  # the groups of 2k and of 2k + 1 become one
            for position in range(group[at]["first"], group[at]["last"] + 1):
                entry[order[position]]["group"] = below
            group[below]["last"] = group[at]["last"]
            _unlink(s, at)
        else:
            group[at]["count"] = count
            below = at
        at = above
    for row in range(meta["size"]):
        error = entry[row]["error"]
        # Rounded up, so that f <= count <= f + error still holds for the half that is kept.
        entry[row]["error"] = min(count_of(s, row), (error + 1) // 2)


def empty_summary(capacity: int) -> SpaceSavingSummary:
    """A summary that has seen nothing."""
    group = records(capacity + 2, GROUP)
    group["up"] = np.arange(1, capacity + 3)
    # Two sentinels that no count equals, so that no link is ever missing.
    group[_BOTTOM] = (-1, 0, 0, _TOP, 0)
    group[_TOP] = (_LARGEST, 0, 0, 0, _BOTTOM)
    # At least four slots per entry keep chains short. The number is a power of two, so that a shift finds the
    # slot.
    bits = (4 * capacity - 1).bit_length()
    return SpaceSavingSummary(
        entry=records(capacity + 1, ENTRY),
        group=group,
        order=np.zeros(capacity, np.uint32),
        table=np.full(1 << bits, capacity, np.uint32),
        meta=record(META, free=2, shift=64 - bits),
    )


class SpaceSaving:
    """A stream summary with `capacity` counters. `summary` is what kernels take."""

    def __init__(self, capacity: int) -> None:
        if not 1 <= capacity <= MAX_CAPACITY:
            raise ValueError(f"SpaceSaving needs 1 to {MAX_CAPACITY} counters, not {capacity}")
        self.capacity = capacity
        self.summary = empty_summary(capacity)

    def __len__(self) -> int:
        return int(self.summary.meta["size"])

    @property
    def total(self) -> int:
        """N: the costs of the keys offered so far."""
        return int(self.summary.meta["total"])

    @property
    def least(self) -> int:
        """An upper bound of the frequency of every key that is not monitored."""
        group, full = self.summary.group, len(self) == self.capacity
        return int(group["count"][group["up"][_BOTTOM]] if full else self.summary.meta["floor"])

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes."""
        return sum(array.nbytes for array in self.summary)

    def offer(self, keys: UInt64s, costs: Int64s | None = None) -> None:
        """Count each key once, in order. costs: by how much each raises its count, at least 1. None: by 1."""
        _offer_all(self.summary, keys, np.ones(len(keys), np.int64) if costs is None else costs)

    def halve(self) -> None:
        """Forget half of the counts. See the module."""
        halve(self.summary)

    def entry_of(self, key: int) -> int | None:
        """The number of the key's entry. None if the key is not monitored."""
        at = int(_find_one(self.summary, np.uint64(key)))
        return None if at == self.capacity else at

    def estimate(self, key: int) -> int:
        """An upper bound of the key's frequency: its count, or `least` if the key is not monitored."""
        at, rows = self.entry_of(key), self.summary
        return self.least if at is None else int(rows.group["count"][rows.entry["group"][at]])

    def counters(self) -> tuple[UInt64s, Int64s, Int64s]:
        """(keys, counts, errors) in ascending order of count, shape (len(self),) each.

        Together with `total` and `least` they are the whole state.
        """
        size = len(self)
        keys, counts, errors = np.empty(size, np.uint64), np.empty(size, np.int64), np.empty(size, np.int64)
        _read_out(self.summary, keys, counts, errors)
        return keys, counts, errors

    @classmethod
    def from_counters(
        cls, capacity: int, keys: UInt64s, counts: Int64s, errors: Int64s, *, total: int, least: int = 0
    ) -> SpaceSaving:
        """The summary with this state, in the order in which `counters` gives it.

        If there are more entries than counters, the largest stay. `least` bounds the frequency of keys
        without an entry. It matters only while counters are free. ValueError for arrays of different lengths,
        counts that do not ascend, or a key that occurs twice.
        """
        if not len(keys) == len(counts) == len(errors) or np.any(np.diff(counts) < 0):
            raise ValueError("counters must have equal lengths and ascend by count")
        if len(np.unique(keys)) != len(keys):
            raise ValueError("a key has two counters")
        sketch = cls(capacity)
        largest = slice(max(0, len(keys) - capacity), None)
        _rebuild(sketch.summary, keys[largest].copy(), counts[largest].copy(), errors[largest].copy())
        sketch.summary.meta["total"] = total
        sketch.summary.meta["floor"] = least
        return sketch

    def resized(self, capacity: int) -> SpaceSaving:
        """The same summary with another number of counters. Shrinking drops the least counts."""
        return SpaceSaving.from_counters(capacity, *self.counters(), total=self.total, least=self.least)

    def merge(self, other: SpaceSaving) -> SpaceSaving:
        """The summary of both streams together, with the capacity of this summary.

        A key that one side does not monitor may have occurred up to `least` times there. So that side's
        `least` is added to its count and its error, and f <= count <= f + error holds. The counts may then
        sum to more than N.
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
        # Equal counts in the order of keys, so that the result does not depend on which side is merged into
        # which.
        order = np.lexsort((keys, counts))
        return SpaceSaving.from_counters(
            self.capacity,
            keys[order],
            counts[order],
            errors[order],
            total=self.total + other.total,
            least=self.least + other.least,
        )
