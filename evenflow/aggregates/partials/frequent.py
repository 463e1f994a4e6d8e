"""The most frequent values of each group in bounded space: at most `capacity` counters, and their error.

This is SpaceSaving in the form that can be merged (Agarwal and others, Mergeable Summaries, PODS 2012, who
show that SpaceSaving and Misra-Gries are one). Counts are added up. If more than `capacity` values have a
count, the count that is number `capacity + 1` in size is subtracted from all of them, and added to the error.

The texts of the counters take at most `room` bytes. If they would take more, there are fewer counters: those
of the most frequent values that fit. `capacity` then stands for the least number that ever fitted.

A value with counter c occurs at least c and at most c + error times. A value without a counter occurs at most
`error` times. For n values, the error is at most n / (capacity + 1), however the values were cut into parts.
The counters depend on the cut, but these bounds do not. If a group never had more values than counters, its
counts are exact and the error is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn
from evenflow.aggregates.partials.grouping import Grouping
from evenflow.aggregates.partials.lists import ValueCounts, entry_groups, places, take_rows
from evenflow.aggregates.partials.multisets import added, as_multisets, counted, multiset_type, present
from evenflow.aggregates.size_limits import entry_bytes, sums_before
from evenflow.numeric.arrays import Int64s


@dataclass(frozen=True)
class CountFrequent:
    """Reduction from values to counters."""

    capacity: int
    """Counters that a group may have."""
    room: int
    """Bytes that the counters of a group may take."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The counters of each group."""
        value_counts = counted(*present(column, groups))
        return _bounded(value_counts, np.zeros(groups.count, np.int64), self.capacity, self.room)


@dataclass(frozen=True)
class AddFrequent:
    """Reduction from counters to counters."""

    capacity: int
    """Counters that a group may have."""
    room: int
    """Bytes that the counters of a group may take."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The counters of each group."""
        assert column is not None
        errors = np.zeros(groups.count, np.int64)
        np.add.at(errors, groups.ids, column.field("error").to_numpy())
        entries = column.field("entries")
        return _bounded(added(entries, entry_groups(entries, groups)), errors, self.capacity, self.room)


def frequent_column(call: Call, capacity: int) -> PartialColumn:
    """Partial column: counters of the values that are not null."""
    return PartialColumn(
        name=f"top{capacity}_{call.column}",
        type=pa.struct([("error", pa.int64()), ("entries", multiset_type(call.type))]),
        source=call.column,
        combine=CountFrequent(capacity, call.room.state),
        merge=AddFrequent(capacity, call.room.state),
        shares_state=True,
    )


def _bounded(value_counts: ValueCounts, errors: Int64s, capacity: int, room: int) -> pa.Array:
    """At most `capacity` counters of at most `room` bytes for each group. errors: of each group so far."""
    order = np.lexsort((-value_counts.counts, value_counts.group_ids))
    group_ids = value_counts.group_ids[order]
    sizes = entry_bytes(value_counts.values)[order]
    fit = (places(group_ids) < capacity) & (sums_before(group_ids, sizes) + sizes <= room)
    # Of each group with more values than fit, the first that does not: it is the most frequent of those.
    none = np.flatnonzero(~fit)
    beyond = order[none[np.unique(group_ids[none], return_index=True)[1]]]
    off = np.zeros(len(errors), np.int64)
    off[value_counts.group_ids[beyond]] = value_counts.counts[beyond]
    counts = value_counts.counts - off[value_counts.group_ids]
    rows = np.flatnonzero(counts > 0)
    left = ValueCounts(value_counts.group_ids[rows], take_rows(value_counts.values, rows), counts[rows])
    return pa.StructArray.from_arrays(
        [pa.array(errors + off), as_multisets(left, len(errors))], ["error", "entries"]
    )
