"""The first values of each group by event time, as lists of (time, value) of bounded length.

Values of one time are ordered by value, so a list depends on the tuples alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn, stored
from evenflow.aggregates.grouping import Grouping
from evenflow.aggregates.lists import as_lists, entry_groups, places, taken
from evenflow.aggregates.multisets import present
from evenflow.aggregates.orders import order_keys
from evenflow.aggregates.picks import moment_type
from evenflow.arrays import Int64s


@dataclass(frozen=True)
class KeepEarliest:
    """Reduction from structs (time, value) to lists of at most `most` entries."""

    most: int

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The list of each group. Values that are null are left out."""
        assert column is not None
        of, values, _ = present(column.field("value"), groups)
        there = column.field("value").is_valid().to_numpy(zero_copy_only=False)
        times = column.field("time").to_numpy()[there]
        return _earliest(of, times, values, groups.count, self.most)


@dataclass(frozen=True)
class JoinEarliest:
    """Reduction from such lists to lists of at most `most` entries."""

    most: int

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The list of each group."""
        assert column is not None
        entries = column.flatten()
        of = entry_groups(column, groups)
        return _earliest(
            of, entries.field("time").to_numpy(), entries.field("value"), groups.count, self.most
        )


def earliest_column(call: Call, most: int) -> PartialColumn:
    """Partial column: the first `most` values that are not null."""
    return PartialColumn(
        name=f"first{most}_{call.column}",
        type=pa.large_list(moment_type(call.type)),
        source=call.column,
        combine=KeepEarliest(most),
        merge=JoinEarliest(most),
        timed=True,
    )


def _earliest(of: Int64s, times: Int64s, values: pa.Array, count: int, most: int) -> pa.Array:
    # `lexsort` sorts by its last key first: group, then time, then value.
    order = np.lexsort((order_keys(values), times, of))
    kept = order[places(of[order]) < most]
    entries = pa.StructArray.from_arrays(
        [pa.array(times[kept]), taken(values, kept).cast(stored(values.type))], ["time", "value"]
    )
    return as_lists(of[kept], entries, count)
