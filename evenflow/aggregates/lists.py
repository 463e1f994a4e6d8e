"""Lists of a partial column as flat arrays: entry i belongs to group `of[i]`. The entries of a group are consecutive."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.grouping import Grouping
from evenflow.arrays import Bools, Int64s


class Counted(NamedTuple):
    """The different values of several groups with their counts, by group, then by value, each once."""

    of: Int64s
    values: pa.Array
    counts: Int64s


def lengths(column: pa.Array) -> Int64s:
    """Number of entries of each list, 0 for a list that is null. Shape (rows,)."""
    found = pc.fill_null(pc.list_value_length(column), 0)
    return found.cast(pa.int64()).to_numpy(zero_copy_only=False)


def entry_groups(column: pa.Array, groups: Grouping) -> Int64s:
    """The group of each entry of a column of lists, if list i belongs to group `groups.of[i]`. Shape (entries,)."""
    return np.repeat(groups.of.astype(np.int64), lengths(column))


def entry_groups_of_rows(column: pa.Array) -> Int64s:
    """The row of each entry of a column of lists. Shape (entries,)."""
    return np.repeat(np.arange(len(column)), lengths(column))


def bounds(of: Int64s, count: int) -> Int64s:
    """Where the entries of each of `count` groups begin, and where the last group ends. Shape (count + 1,). `of` ascends."""
    return np.searchsorted(of, np.arange(count + 1))


def places(of: Int64s) -> Int64s:
    """The place of each entry within its group, from 0. `of` ascends."""
    if not len(of):
        return np.empty(0, np.int64)
    # `of[0] - 1` differs from `of[0]`, so the first entry always counts as a start.
    starts = np.flatnonzero(np.diff(of, prepend=of[0] - 1))
    return np.arange(len(of)) - np.repeat(starts, np.diff(starts, append=len(of)))


def as_lists(of: Int64s, entries: pa.Array, count: int) -> pa.Array:
    """One list for each of `count` groups, empty for a group without entries. `of` ascends."""
    return pa.LargeListArray.from_arrays(pa.array(bounds(of, count)), entries)


def taken(array: pa.Array, rows: npt.NDArray[np.integer]) -> pa.Array:
    """These rows of the array."""
    return array.take(pa.array(rows))


def null_if(column: pa.Array, gone: Bools) -> pa.Array:
    """The column with null where `gone` is true."""
    return pc.if_else(pa.array(gone), pa.scalar(None, column.type), column) if gone.any() else column
