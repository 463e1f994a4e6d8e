"""Which rows belong together: numbers the groups of equal (pane, key) by a hash table.

Groups are numbered in the order of their first rows, so the result depends on the rows alone. Bytes are
always compared, so two keys with the same hash stay two groups. Whoever writes keys can choose them such that
all begin at one slot. So steps are counted, and too many make the table begin anew with hashes that nobody
can predict (`keyed_hashes`). docs/measurements.md compares this with Arrow's own group_by on a binary key
(Zipf 1.0 over 100,000 keys).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa

from evenflow.keys import GOLDEN, hash_keys, same_bytes
from evenflow.numeric.arrays import Int32s, Int64s, UInt8s, UInt64s, Whole, viewed
from evenflow.numeric.kernels import kernel
from evenflow.numeric.keyed_hashes import NO_LIMIT, keyed_hashes, steps_for


@dataclass(frozen=True)
class Grouping:
    """Which rows belong together. Groups are in order of appearance."""

    ids: Int32s
    """(rows,): the group of each row, a number from 0 to `count - 1`."""
    first: Int64s
    """(groups,): the first row of each group."""

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self.first)


class _KeyRows(NamedTuple):
    """What tells the groups of rows apart."""

    hashes: UInt64s
    """(rows,): `hash_keys` or `keyed_hashes` of each row's key."""
    panes: Int64s
    """Empty if rows are grouped by key alone."""
    offsets: Int64s
    """(rows + 1,): where the bytes of each row's key begin, and where the last ones end."""
    data: UInt8s
    """The bytes of row r's key are offsets[r] to offsets[r + 1]."""


class _Groups(NamedTuple):
    """The fields of a `Grouping` while they are written: what kernels take as one argument."""

    ids: Int32s
    """(rows,): the group of each row."""
    first: Int64s
    """(rows,): the first row of each group. Only as many entries count as there are groups."""


class _GroupTable(NamedTuple):
    """A hash table with open addressing and linear probing. The number of slots is a power of two."""

    hash: UInt64s
    """(slots,): the hash of the group in each slot."""
    group: Int32s
    """Group in each slot. -1: the slot is free."""


@kernel
def _rehash(old: _GroupTable, new: _GroupTable) -> None:
    """Copy a table into a larger one that is empty (all groups -1)."""
    mask = np.uint64(new.hash.shape[0] - 1)
    for slot in range(old.hash.shape[0]):
        if old.group[slot] >= 0:
            at = old.hash[slot] & mask
            while new.group[at] >= 0:
                at = (at + np.uint64(1)) & mask
            new.hash[at] = old.hash[slot]
            new.group[at] = old.group[slot]


@kernel
def _same_key(rows: _KeyRows, row: Whole, other: Whole) -> bool:
    """Whether two rows have the same pane and the same bytes."""
    offsets, data = rows.offsets, rows.data
    start, other_start = offsets[row], offsets[other]
    length = offsets[row + 1] - start
    if offsets[other + 1] - other_start != length:
        return False
    if rows.panes.shape[0] > 0 and rows.panes[other] != rows.panes[row]:
        return False
    return same_bytes(data, start, data, other_start, length)


@kernel
def _group(
    rows: _KeyRows, table: _GroupTable, groups: _Groups, begin: int, count: int, steps: int
) -> tuple[int, int, int]:
    """Fill `groups` from row `begin` on, until the table is half full or more than `steps` slots that others
    have were passed. `count` groups are known already.

    Returns the next row, or the number of rows if all are done, the number of groups, and how many steps are
    left, below 0 if they were too few. The caller then enlarges the table, because a kernel cannot allocate.
    """
    with_panes = rows.panes.shape[0] > 0
    mask = np.uint64(table.hash.shape[0] - 1)
    limit = table.hash.shape[0] // 2
    for row in range(begin, rows.hashes.shape[0]):
        if count >= limit or steps < 0:
            return row, count, steps
        h = rows.hashes[row]
        if with_panes:  # otherwise a key would begin at the same slot in every pane
            h = h ^ (np.uint64(rows.panes[row]) * GOLDEN)
        h = h ^ (h >> np.uint64(32))  # all 64 bits decide about the slot
        slot = h & mask
        while True:
            group = table.group[slot]
            if group < 0:
                table.hash[slot] = h
                table.group[slot] = count
                groups.first[count] = row
                groups.ids[row] = count
                count += 1
                break
            if table.hash[slot] == h and _same_key(rows, row, groups.first[group]):
                groups.ids[row] = group
                break
            slot = (slot + np.uint64(1)) & mask
            steps -= 1
    return rows.hashes.shape[0], count, steps


def group_rows(keys: pa.Array, panes: Int64s | None = None, *, hashes: UInt64s | None = None) -> Grouping:
    """Groups of the rows by (pane, key), or by key alone if `panes` is None.

    keys: one (large) binary array without nulls. hashes: the keys' `hash_keys`, if the caller has them
    already.
    """
    rows = len(keys)
    if hashes is None:
        hashes = hash_keys(keys)
    groups = _Groups(np.empty(rows, np.int32), np.empty(rows, np.int64))
    if rows == 0:
        return Grouping(*groups)
    _, offset_buffer, data_buffer = keys.buffers()
    wide = pa.types.is_large_binary(keys.type)
    offsets = viewed(offset_buffer, np.int64 if wide else np.int32, keys.offset, rows + 1)
    offsets = offsets.astype(np.int64, copy=False)  # one compiled kernel for both widths
    offsets.flags.writeable = False
    data = viewed(data_buffer, np.uint8, 0, data_buffer.size if data_buffer is not None else 0)
    columns = _KeyRows(hashes, viewed(None, np.int64, 0, 0) if panes is None else panes, offsets, data)
    count = _grouped(columns, groups, steps_for(rows))
    if count is None:
        unpredictable = columns._replace(hashes=keyed_hashes(offsets, data, panes))
        count = cast(int, _grouped(unpredictable, groups, NO_LIMIT))
    return Grouping(groups.ids, groups.first[:count].copy())


def distinct_keys(keys: Sequence[pa.Array]) -> pa.Array:
    """The different keys of these arrays, in the order in which they come first.

    Not `pc.unique`: Arrow's hash is public and has no secret, so keys can be chosen for which it takes n^2
    steps.
    """
    chunks = [chunk.cast(pa.large_binary()) for chunk in keys]
    every = pa.concat_arrays(chunks or [pa.array([], pa.large_binary())])
    return every.take(pa.array(group_rows(every).first))


def _grouped(columns: _KeyRows, groups: _Groups, steps: int) -> int | None:
    """Fill `groups`. The number of groups, or None if that takes more than so many steps."""
    table = _empty_table(1_024)
    row, count, left = _group(columns, table, groups, 0, 0, steps)
    while row < len(columns.hashes) and left >= 0:
        larger = _empty_table(4 * len(table.hash))
        _rehash(table, larger)
        table = larger
        row, count, left = _group(columns, table, groups, row, count, left)
    return None if left < 0 else count


def _empty_table(slots: int) -> _GroupTable:
    return _GroupTable(np.empty(slots, np.uint64), np.full(slots, -1, np.int32))
