"""How often each value occurs, exactly, as lists of (value, count) in the order of the values.

Text is ordered by its bytes. The state of a key has one entry for each different value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn, stored
from evenflow.aggregates.partials.grouping import Grouping
from evenflow.aggregates.partials.lists import (
    ValueCounts,
    as_lists,
    bounds,
    entry_groups,
    null_if,
    places,
    take_rows,
)
from evenflow.aggregates.partials.orders import order_keys, plain
from evenflow.aggregates.size_limits import entry_bytes, group_sums
from evenflow.numeric.arrays import Bools, Int64s


def multiset_type(value: pa.DataType) -> pa.DataType:
    """Arrow type of a list of different values of this type with their counts."""
    return pa.large_list(pa.struct([("value", stored(value)), ("count", pa.int64())]))


def multiset_column(call: Call) -> PartialColumn:
    """Partial column: every value that is not null, with its count. Null if they take more than their
    room.
    """
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
    """Bytes that the multiset of a group may take."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The multiset of each group."""
        return bounded(counted(*present(column, groups)), groups.count, self.room)


@dataclass(frozen=True)
class AddUp:
    """Reduction from multisets to multisets of at most `room` bytes. Counts of equal values are added up.

    A multiset that is null was too large. So is whatever is merged with it.
    """

    room: int
    """Bytes that the multiset of a group may take."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The multiset of each group."""
        assert column is not None
        value_counts = added(column, entry_groups(column, groups))
        return bounded(value_counts, groups.count, self.room, lost_groups=lost(column, groups))


def lost(column: pa.Array, groups: Grouping) -> Bools:
    """Which groups have a list that is null. Shape (groups,)."""
    is_lost = np.zeros(groups.count, np.bool_)
    if column.null_count:
        is_lost[groups.ids[column.is_null().to_numpy(zero_copy_only=False)]] = True
    return is_lost


def bounded(
    value_counts: ValueCounts, count: int, room: int, *, lost_groups: Bools | None = None
) -> pa.Array:
    """As `as_multisets`, with null for groups whose entries take more than `room` bytes,
    and for those in `lost_groups`.
    """
    left, large = within(value_counts, count, room, lost_groups=lost_groups)
    return null_if(as_multisets(left, count), large)


def within(
    value_counts: ValueCounts, count: int, room: int, *, lost_groups: Bools | None = None
) -> tuple[ValueCounts, Bools]:
    """The values of the groups that have room for them, and which groups have not.
    lost_groups: lost theirs before.
    """
    large = group_sums(value_counts.group_ids, entry_bytes(value_counts.values), count) > room
    if lost_groups is not None:
        large |= lost_groups
    if not large.any():
        return value_counts, large
    rows = np.flatnonzero(~large[value_counts.group_ids])
    return ValueCounts(
        value_counts.group_ids[rows], take_rows(value_counts.values, rows), value_counts.counts[rows]
    ), large


def present(column: pa.Array | None, groups: Grouping) -> tuple[Int64s, pa.Array, Int64s]:
    """(group, value, count 1) of each value that is not null, as three arrays of shape (values,)."""
    assert column is not None
    values = plain(column)
    group_ids = groups.ids.astype(np.int64)
    if column.null_count:
        group_ids = group_ids[column.is_valid().to_numpy(zero_copy_only=False)]
    return group_ids, values, np.ones(len(group_ids), np.int64)


def added(column: pa.Array, group_ids: Int64s) -> ValueCounts:
    """The entries of a column of multisets.
    Entries of one value and group become one, with the sum of their counts.
    """
    entries = column.flatten()
    return counted(group_ids, entries.field("value"), entries.field("count").to_numpy())


def counted(group_ids: Int64s, values: pa.Array, counts: Int64s) -> ValueCounts:
    """The different values of each group, each with the sum of its counts.
    All three have shape (n,), in any order.
    """
    values = values.cast(stored(values.type))
    if not len(values):
        return ValueCounts(group_ids, values, counts)
    keys = order_keys(values)
    order = _order(group_ids, keys)
    group_ids, keys = group_ids[order], keys[order]
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(group_ids) != 0) | (keys[1:] != keys[:-1])]))
    return ValueCounts(
        group_ids[starts], take_rows(values, order[starts]), np.add.reduceat(counts[order], starts)
    )


def _order(group_ids: Int64s, keys: Int64s) -> Int64s:
    """Order of the rows by group, then by key. Equal rows are in any order.

    If group and key fit into one int64, these numbers are sorted, which is twice as fast.
    """
    least = int(keys.min())
    span = int(keys.max()) - least + 1
    if span * (int(group_ids.max()) + 1) >= 2**63:
        return np.lexsort((keys, group_ids))
    return np.argsort(group_ids * span + (keys - least))


def as_multisets(value_counts: ValueCounts, count: int) -> pa.Array:
    """One list of (value, count) for each of `count` groups."""
    entries = pa.StructArray.from_arrays(
        [value_counts.values, pa.array(value_counts.counts)], ["value", "count"]
    )
    return as_lists(value_counts.group_ids, entries, count)


def largest(value_counts: ValueCounts, k: int) -> ValueCounts:
    """The k most frequent values of each group, the most frequent first. Ties keep the order of the
    values.
    """
    # `lexsort` is stable, and the entries are ordered by value already.
    order = np.lexsort((-value_counts.counts, value_counts.group_ids))
    rows = order[places(value_counts.group_ids[order]) < k]
    return ValueCounts(
        value_counts.group_ids[rows], take_rows(value_counts.values, rows), value_counts.counts[rows]
    )


def ranked(value_counts: ValueCounts, q: float, count: int) -> tuple[Int64s, Int64s]:
    """(number of the entry with the value of rank ceil(q n), n) of each of `count` groups.
    Two arrays of shape (count,).

    n is the number of values of the group. The least value has rank 1. If n is 0, the entry means nothing.
    """
    # before[i]: how many values entries 0 to i - 1 stand for, over all groups.
    before = np.concatenate([[0], np.cumsum(value_counts.counts)])
    ends = before[bounds(value_counts.group_ids, count)]
    sizes = np.diff(ends)
    rank = np.clip(np.ceil(q * sizes), 1, np.maximum(sizes, 1)).astype(np.int64)
    return np.searchsorted(before[1:], ends[:-1] + rank), sizes
