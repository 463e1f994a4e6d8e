"""How often each value occurs, exactly, as lists of (value, count) in the order of the values.

Text is ordered by its bytes. The state of a key has one entry for each different value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn, stored
from evenflow.aggregates.grouping import Grouping
from evenflow.aggregates.lists import Counted, as_lists, bounds, entry_groups, null_if, places, taken
from evenflow.aggregates.orders import order_keys, plain
from evenflow.aggregates.room import entry_bytes, group_sums
from evenflow.arrays import Bools, Int64s


def multiset_type(value: pa.DataType) -> pa.DataType:
    """Arrow type of a list of different values of this type with their counts."""
    return pa.large_list(pa.struct([("value", stored(value)), ("count", pa.int64())]))


def multiset_column(call: Call) -> PartialColumn:
    """Partial column: every value that is not null, with its count. Null if they take more than their room."""
    return PartialColumn(
        name=f"all_{call.column}",
        type=multiset_type(call.type),
        source=call.column,
        combine=CountValues(call.room.state),
        merge=AddUp(call.room.state),
        shares_state=True,
    )


@dataclass(frozen=True)
class CountValues:
    """Reduction from values to multisets of at most `room` bytes. A larger one is null."""

    room: int

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The multiset of each group."""
        return bounded(counted(*present(column, groups)), groups.count, self.room)


@dataclass(frozen=True)
class AddUp:
    """Reduction from multisets to multisets of at most `room` bytes. Counts of equal values are added up.

    A multiset that is null was too large. So is whatever is merged with it.
    """

    room: int

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The multiset of each group."""
        assert column is not None
        found = added(column, entry_groups(column, groups))
        return bounded(found, groups.count, self.room, gone=lost(column, groups))


def lost(column: pa.Array, groups: Grouping) -> Bools:
    """Which groups have a list that is null. Shape (groups,)."""
    found = np.zeros(groups.count, np.bool_)
    if column.null_count:
        found[groups.of[column.is_null().to_numpy(zero_copy_only=False)]] = True
    return found


def bounded(found: Counted, count: int, room: int, *, gone: Bools | None = None) -> pa.Array:
    """As `as_multisets`, with null for groups whose entries take more than `room` bytes, and for those in `gone`."""
    left, large = within(found, count, room, gone=gone)
    return null_if(as_multisets(left, count), large)


def within(found: Counted, count: int, room: int, *, gone: Bools | None = None) -> tuple[Counted, Bools]:
    """The values of the groups that have room for them, and which groups have not. gone: groups that lost theirs before."""
    large = group_sums(found.of, entry_bytes(found.values), count) > room
    if gone is not None:
        large |= gone
    if not large.any():
        return found, large
    kept = np.flatnonzero(~large[found.of])
    return Counted(found.of[kept], taken(found.values, kept), found.counts[kept]), large


def present(column: pa.Array | None, groups: Grouping) -> tuple[Int64s, pa.Array, Int64s]:
    """(group, value, count 1) of each value that is not null, as three arrays of shape (values,)."""
    assert column is not None
    values = plain(column)
    of = groups.of.astype(np.int64)
    if column.null_count:
        of = of[column.is_valid().to_numpy(zero_copy_only=False)]
    return of, values, np.ones(len(of), np.int64)


def added(column: pa.Array, of: Int64s) -> Counted:
    """The entries of a column of multisets. Entries of one value and group become one, with the sum of their counts."""
    entries = column.flatten()
    return counted(of, entries.field("value"), entries.field("count").to_numpy())


def counted(of: Int64s, values: pa.Array, counts: Int64s) -> Counted:
    """The different values of each group, each with the sum of its counts. of, values, counts: shape (n,), in any order."""
    values = values.cast(stored(values.type))
    if not len(values):
        return Counted(of, values, counts)
    keys = order_keys(values)
    order = _order(of, keys)
    of, keys = of[order], keys[order]
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(of) != 0) | (keys[1:] != keys[:-1])]))
    return Counted(of[starts], taken(values, order[starts]), np.add.reduceat(counts[order], starts))


def _order(of: Int64s, keys: Int64s) -> Int64s:
    """Order of the rows by group, then by key. Equal rows are in any order.

    If group and key fit into one int64, these numbers are sorted, which is twice as fast.
    """
    least = int(keys.min())
    span = int(keys.max()) - least + 1
    if span * (int(of.max()) + 1) >= 2**63:
        return np.lexsort((keys, of))
    return np.argsort(of * span + (keys - least))


def as_multisets(found: Counted, count: int) -> pa.Array:
    """One list of (value, count) for each of `count` groups."""
    entries = pa.StructArray.from_arrays([found.values, pa.array(found.counts)], ["value", "count"])
    return as_lists(found.of, entries, count)


def largest(found: Counted, k: int) -> Counted:
    """The k most frequent values of each group, the most frequent first. Ties keep the order of the values."""
    order = np.lexsort((-found.counts, found.of))  # a stable sort, and `found` is ordered by value
    kept = order[places(found.of[order]) < k]
    return Counted(found.of[kept], taken(found.values, kept), found.counts[kept])


def ranked(found: Counted, q: float, count: int) -> tuple[Int64s, Int64s]:
    """(number of the entry with the value of rank ceil(q n), n) of each of `count` groups. Two arrays of shape (count,).

    n is the number of values of the group. The least value has rank 1. If n is 0, the entry means nothing.
    """
    # before[i]: how many values entries 0 to i - 1 stand for, over all groups.
    before = np.concatenate([[0], np.cumsum(found.counts)])
    ends = before[bounds(found.of, count)]
    sizes = np.diff(ends)
    rank = np.clip(np.ceil(q * sizes), 1, np.maximum(sizes, 1)).astype(np.int64)
    return np.searchsorted(before[1:], ends[:-1] + rank), sizes
