"""Lists of a partial column as flat arrays: entry i is of group `group_ids[i]`.
The entries of a group are consecutive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.partials.grouping import Grouping
from evenflow.numeric.arrays import Bools, Int64s


class ValueCounts(NamedTuple):
    """The different values of several groups with their counts, by group, then by value, each once."""

    group_ids: Int64s
    """(entries,): the group that each value is of."""
    values: pa.Array
    """The values, ascending in each group."""
    counts: Int64s
    """(entries,): how often the group has the value."""


def lengths(column: pa.Array) -> Int64s:
    """Number of entries of each list, 0 for a list that is null. Shape (rows,)."""
    sizes = pc.fill_null(pc.list_value_length(column), 0)
    return sizes.cast(pa.int64()).to_numpy(zero_copy_only=False)


def entry_groups(column: pa.Array, groups: Grouping) -> Int64s:
    """The group of each entry of a column of lists, if list i belongs
    to group `groups.ids[i]`. Shape (entries,).
    """
    return np.repeat(groups.ids.astype(np.int64), lengths(column))


def entry_groups_of_rows(column: pa.Array) -> Int64s:
    """The row of each entry of a column of lists. Shape (entries,)."""
    return np.repeat(np.arange(len(column)), lengths(column))


def bounds(group_ids: Int64s, count: int) -> Int64s:
    """Where the entries of each of `count` groups begin, and the last ends.
    Shape (count + 1,). `group_ids` ascends.
    """
    return np.searchsorted(group_ids, np.arange(count + 1))


def places(group_ids: Int64s) -> Int64s:
    """The place of each entry within its group, from 0. `group_ids` ascends."""
    if not len(group_ids):
        return np.empty(0, np.int64)
    # `of[0] - 1` differs from `of[0]`, so the first entry always counts as a start.
    starts = np.flatnonzero(np.diff(group_ids, prepend=group_ids[0] - 1))
    return np.arange(len(group_ids)) - np.repeat(starts, np.diff(starts, append=len(group_ids)))


def as_lists(group_ids: Int64s, entries: pa.Array, count: int) -> pa.Array:
    """One list for each of `count` groups, empty for a group without entries. `group_ids` ascends."""
    return pa.LargeListArray.from_arrays(pa.array(bounds(group_ids, count)), entries)


def take_rows(array: pa.Array, rows: npt.NDArray[np.integer]) -> pa.Array:
    """These rows of the array."""
    return array.take(pa.array(rows))


def null_if(column: pa.Array, mask: Bools) -> pa.Array:
    """The column with null where `mask` is true."""
    return pc.if_else(pa.array(mask), pa.scalar(None, column.type), column) if mask.any() else column
