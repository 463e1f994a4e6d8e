"""The first values of each group by event time, as lists of (time, value) of bounded length.

Values of one time are ordered by value, so a list depends on the tuples alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn, stored
from evenflow.aggregates.partials.grouping import Grouping
from evenflow.aggregates.partials.lists import as_lists, entry_groups, places, take_rows
from evenflow.aggregates.partials.multisets import present
from evenflow.aggregates.partials.orders import order_keys
from evenflow.aggregates.partials.picks import moment_type
from evenflow.aggregates.size_limits import cut_texts, entry_bytes, sums_before
from evenflow.numeric.arrays import Int64s


@dataclass(frozen=True)
class KeepEarliest:
    """Reduction from structs (time, value) to lists of at most `most` entries."""

    most: int
    """Entries that the list of a group may have."""
    room: int
    """Bytes that the list of a group may take."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The list of each group. Values that are null are left out."""
        assert column is not None
        group_ids, values, _ = present(column.field("value"), groups)
        valid = column.field("value").is_valid().to_numpy(zero_copy_only=False)
        times = column.field("time").to_numpy()[valid]
        return _earliest(group_ids, times, cut_texts(values, self.room), groups.count, (self.most, self.room))


@dataclass(frozen=True)
class JoinEarliest:
    """Reduction from such lists to lists of at most `most` entries."""

    most: int
    """Entries that the list of a group may have."""
    room: int
    """Bytes that the list of a group may take."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The list of each group."""
        assert column is not None
        entries = column.flatten()
        group_ids = entry_groups(column, groups)
        return _earliest(
            group_ids,
            entries.field("time").to_numpy(),
            entries.field("value"),
            groups.count,
            (self.most, self.room),
        )


def earliest_column(call: Call, most: int) -> PartialColumn:
    """Partial column: the first `most` values that are not null."""
    return PartialColumn(
        name=f"first{most}_{call.column}",
        type=pa.large_list(moment_type(call.type)),
        source=call.column,
        combine=KeepEarliest(most, call.room.result),
        merge=JoinEarliest(most, call.room.result),
        timed=True,
    )


def _earliest(
    group_ids: Int64s, times: Int64s, values: pa.Array, count: int, most: tuple[int, int]
) -> pa.Array:
    """most: entries of a list, and the bytes after which it has no more of them."""
    entries_most, room = most
    # `lexsort` sorts by its last key first: group, then time, then value.
    order = np.lexsort((order_keys(values), times, group_ids))
    rows = order[places(group_ids[order]) < entries_most]
    # The first entry that does not fit stays: it says that the list is too large (size_limits.py).
    rows = rows[sums_before(group_ids[rows], entry_bytes(take_rows(values, rows))) <= room]
    entries = pa.StructArray.from_arrays(
        [pa.array(times[rows]), take_rows(values, rows).cast(stored(values.type))], ["time", "value"]
    )
    return as_lists(group_ids[rows], entries, count)
