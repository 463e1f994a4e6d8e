"""The most frequent values of each group in bounded space: at most `capacity` counters, and their error.

SpaceSaving in the form that can be merged (Agarwal and others, Mergeable Summaries, PODS 2012, who show that it and
Misra-Gries are one): counts are added up. Where there are more than `capacity` values, the count of the next one is
taken off all of them, and added to the error. A value with counter c occurs at least c and at most c + error times, one
without a counter at most `error` times, and the error is at most n / (capacity + 1) of n values, however they were cut
into parts. What the counters are depends on the cut. These bounds do not. Of a group that never had more values than
counters everything is exact, and the error is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn
from evenflow.aggregates.grouping import Grouping
from evenflow.aggregates.lists import Counted, entry_groups, places, taken
from evenflow.aggregates.multisets import added, as_multisets, counted, multiset_type, present
from evenflow.arrays import Int64s


@dataclass(frozen=True)
class CountFrequent:
    """Values to counters."""

    capacity: int

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The counters of each group."""
        found = counted(*present(column, groups))
        return _bounded(found, np.zeros(groups.count, np.int64), self.capacity)


@dataclass(frozen=True)
class AddFrequent:
    """Counters to counters."""

    capacity: int

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The counters of each group."""
        assert column is not None
        errors = np.zeros(groups.count, np.int64)
        np.add.at(errors, groups.of, column.field("error").to_numpy())
        entries = column.field("entries")
        return _bounded(added(entries, entry_groups(entries, groups)), errors, self.capacity)


def frequent_column(call: Call, capacity: int) -> PartialColumn:
    """Counters of the values that were not null."""
    return PartialColumn(
        name=f"top{capacity}_{call.column}",
        type=pa.struct([("error", pa.int64()), ("entries", multiset_type(call.type))]),
        source=call.column,
        combine=CountFrequent(capacity),
        merge=AddFrequent(capacity),
    )


def _bounded(found: Counted, errors: Int64s, capacity: int) -> pa.Array:
    order = np.lexsort((-found.counts, found.of))
    beyond = order[
        places(found.of[order]) == capacity
    ]  # the first value without a counter, in groups that have one
    off = np.zeros(len(errors), np.int64)
    off[found.of[beyond]] = found.counts[beyond]
    counts = found.counts - off[found.of]
    kept = np.flatnonzero(counts > 0)
    left = Counted(found.of[kept], taken(found.values, kept), counts[kept])
    return pa.StructArray.from_arrays(
        [pa.array(errors + off), as_multisets(left, len(errors))], ["error", "entries"]
    )
