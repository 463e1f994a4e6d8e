"""Which rows belong together: group numbers for (pane, key), by hash table with exact comparison.

Groups are numbered in the order of their first row, so the result depends on the rows alone. Two
keys with one hash stay two groups: bytes are always compared. Measured against Arrow's own group_by
on a binary key (Zipf 1.0 over 100,000 keys): see docs/measurements.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.arrays import Int32s, Int64s, UInt64s, viewed
from evenflow.kernels import kernel
from evenflow.keys import GOLDEN, hash_keys


@dataclass(frozen=True)
class Grouping:
    """`of[row]` is the row's group, `first[group]` the first row of a group, in order of appearance."""

    of: Int32s
    first: Int64s

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self.first)


@kernel
def _rehash(from_hash: Any, from_group: Any, to_hash: Any, to_group: Any) -> None:
    """Move a table into a larger one that is empty (all groups -1)."""
    mask = np.uint64(to_hash.shape[0] - 1)
    for slot in range(from_hash.shape[0]):
        if from_group[slot] >= 0:
            at = from_hash[slot] & mask
            while to_group[at] >= 0:
                at = (at + np.uint64(1)) & mask
            to_hash[at] = from_hash[slot]
            to_group[at] = from_group[slot]


@kernel
def _group(
    hashes: Any,
    panes: Any,
    offsets: Any,
    data: Any,
    of: Any,
    first: Any,
    table_hash: Any,
    table_group: Any,
    begin: int,
    count: int,
) -> tuple[int, int]:
    """Fill `of` and `first` from row `begin`, `count` groups being known, until the table is half full.

    Returns the next row (all rows: done) and the number of groups. `panes` is empty when there is no pane.
    """  # fmt: skip
    with_panes = panes.shape[0] > 0
    mask = np.uint64(table_hash.shape[0] - 1)
    limit = table_hash.shape[0] // 2
    for row in range(begin, hashes.shape[0]):
        if count >= limit:
            return row, count
        h = hashes[row]
        if with_panes:
            h = h ^ (np.uint64(panes[row]) * GOLDEN)
        h = h ^ (h >> np.uint64(32))
        start = offsets[row]
        length = offsets[row + 1] - start
        slot = h & mask
        while True:
            group = table_group[slot]
            if group < 0:
                table_hash[slot] = h
                table_group[slot] = count
                first[count] = row
                of[row] = count
                count += 1
                break
            if table_hash[slot] == h:
                other = first[group]
                other_start = offsets[other]
                same = offsets[other + 1] - other_start == length
                if with_panes and panes[other] != panes[row]:
                    same = False
                if same:
                    for byte in range(length):
                        if data[other_start + byte] != data[start + byte]:
                            same = False
                            break
                if same:
                    of[row] = group
                    break
            slot = (slot + np.uint64(1)) & mask
    return hashes.shape[0], count


def group_rows(keys: pa.Array, panes: Int64s | None = None, *, hashes: UInt64s | None = None) -> Grouping:
    """Group the rows by (pane, key), or by key alone. `keys` is one (large) binary array without nulls.

    `hashes` are those of `hash_keys`, when the caller has them already.
    """
    rows = len(keys)
    if hashes is None:
        hashes = hash_keys(keys)
    of, first = np.empty(rows, np.int32), np.empty(rows, np.int64)
    if rows == 0:
        return Grouping(of, first)
    _, offset_buffer, data_buffer = keys.buffers()
    wide = pa.types.is_large_binary(keys.type)
    offsets = viewed(offset_buffer, np.int64 if wide else np.int32, keys.offset, rows + 1)
    offsets = offsets.astype(np.int64, copy=False)  # one compiled kernel for both widths
    offsets.flags.writeable = False
    data = viewed(data_buffer, np.uint8, 0, data_buffer.size if data_buffer is not None else 0)
    columns = (hashes, viewed(None, np.int64, 0, 0) if panes is None else panes, offsets, data, of, first)
    table = _empty_table(1_024)
    row, count = _group(*columns, *table, 0, 0)
    while row < rows:
        larger = _empty_table(4 * len(table[0]))
        _rehash(*table, *larger)
        table = larger
        row, count = _group(*columns, *table, row, count)
    return Grouping(of, first[:count].copy())


def _empty_table(slots: int) -> tuple[UInt64s, Int32s]:
    """Hashes and groups of an open-addressing table; `slots` is a power of two, a group of -1 is a free slot."""
    return np.empty(slots, np.uint64), np.full(slots, -1, np.int32)
