"""How often each value occurs, exactly: lists of (value, count) in the order of the values.

Text is ordered by its bytes. State: an entry for each different value of a key.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn, stored
from evenflow.aggregates.grouping import Grouping
from evenflow.aggregates.lists import Counted, as_lists, bounds, entry_groups, places, taken
from evenflow.aggregates.orders import order_keys, plain
from evenflow.arrays import Int64s


def multiset_type(value: pa.DataType) -> pa.DataType:
    """Lists of different values with their counts."""
    return pa.large_list(pa.struct([("value", stored(value)), ("count", pa.int64())]))


def multiset_column(call: Call) -> PartialColumn:
    """Every value that was not null with its count."""
    return PartialColumn(
        name=f"all_{call.column}",
        type=multiset_type(call.type),
        source=call.column,
        combine=count_values,
        merge=add_up,
    )


def count_values(column: pa.Array | None, groups: Grouping) -> pa.Array:
    """Values to multisets."""
    return as_multisets(counted(*present(column, groups)), groups.count)


def add_up(column: pa.Array | None, groups: Grouping) -> pa.Array:
    """Multisets to multisets."""
    assert column is not None
    return as_multisets(added(column, entry_groups(column, groups)), groups.count)


def present(column: pa.Array | None, groups: Grouping) -> tuple[Int64s, pa.Array, Int64s]:
    """Group, value and count (1) of each value that is not null."""
    assert column is not None
    values = plain(column)
    of = groups.of.astype(np.int64)
    if column.null_count:
        of = of[column.is_valid().to_numpy(zero_copy_only=False)]
    return of, values, np.ones(len(of), np.int64)


def added(column: pa.Array, of: Int64s) -> Counted:
    """The entries of a column of multisets, those of one value and group made one."""
    entries = column.flatten()
    return counted(of, entries.field("value"), entries.field("count").to_numpy())


def counted(of: Int64s, values: pa.Array, counts: Int64s) -> Counted:
    """The different values of each group with the sum of their counts."""
    values = values.cast(stored(values.type))
    if not len(values):
        return Counted(of, values, counts)
    keys = order_keys(values)
    order = _order(of, keys)
    of, keys = of[order], keys[order]
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(of) != 0) | (keys[1:] != keys[:-1])]))
    return Counted(of[starts], taken(values, order[starts]), np.add.reduceat(counts[order], starts))


def _order(of: Int64s, keys: Int64s) -> Int64s:
    """Rows by group, then by key. Equal ones in any order. Where both fit into one number, that is sorted: twice as fast."""
    least = int(keys.min())
    span = int(keys.max()) - least + 1
    if span * (int(of.max()) + 1) >= 2**63:
        return np.lexsort((keys, of))
    return np.argsort(of * span + (keys - least))


def as_multisets(found: Counted, count: int) -> pa.Array:
    """One list for each group."""
    entries = pa.StructArray.from_arrays([found.values, pa.array(found.counts)], ["value", "count"])
    return as_lists(found.of, entries, count)


def largest(found: Counted, k: int) -> Counted:
    """The k values of each group that occur most, most frequent first. Those that occur equally often in their order."""
    order = np.lexsort((-found.counts, found.of))
    kept = order[places(found.of[order]) < k]
    return Counted(found.of[kept], taken(found.values, kept), found.counts[kept])


def ranked(found: Counted, q: float, count: int) -> tuple[Int64s, Int64s]:
    """Entry of each group that holds its value of rank ceil(q n), the least having rank 1, and n, the values of each group.

    The entry means nothing where n is 0.
    """
    before = np.concatenate([[0], np.cumsum(found.counts)])
    ends = before[bounds(found.of, count)]
    sizes = np.diff(ends)
    rank = np.clip(np.ceil(q * sizes), 1, np.maximum(sizes, 1)).astype(np.int64)
    return np.searchsorted(before[1:], ends[:-1] + rank), sizes
