"""Finds the rows of keys in a table: a hash table over the key column.
The bytes of keys are compared exactly.

Whoever writes keys can choose them such that all begin at one slot. So steps are counted, and too many make
the table begin anew with hashes that nobody can predict (`keyed_hashes`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.keys import hash_keys, same_bytes
from evenflow.numeric.arrays import Int32s, Int64s, UInt8s, UInt64s, Whole, viewed
from evenflow.numeric.kernels import kernel
from evenflow.numeric.keyed_hashes import NO_LIMIT, keyed_hashes, steps_for


class _HashedKeys(NamedTuple):
    """Keys and their hashes: what kernels take as one argument."""

    hashes: UInt64s
    """(keys,): the hash of each key."""
    offsets: Int64s
    """(keys + 1,): where the bytes of each key begin, and where the last ones end."""
    data: UInt8s
    """The bytes of key k are offsets[k] to offsets[k + 1]."""


@kernel
def _place(hashes: UInt64s, slots: Int32s, steps: int) -> bool:
    """Put every row into the first free slot (-1) from its hash on. False if that takes more than `steps`
    steps past slots that others have.

    The number of `slots` is a power of two and larger than the number of rows.
    """
    mask = np.uint64(slots.shape[0] - 1)
    for row in range(hashes.shape[0]):
        if steps < 0:
            return False
        # The upper half is folded into the lower, so that all 64 bits decide about the slot. `_find` does the
        # same.
        at = (hashes[row] ^ (hashes[row] >> np.uint64(32))) & mask
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
            steps -= 1
        slots[at] = row
    return steps >= 0


@kernel
def _same(index_keys: _HashedKeys, row: Whole, query: _HashedKeys, other: Whole) -> bool:
    """Whether key `row` of `index_keys` and key `other` of `query` have the same bytes."""
    begin, start = index_keys.offsets[row], query.offsets[other]
    length = query.offsets[other + 1] - start
    if index_keys.hashes[row] != query.hashes[other] or index_keys.offsets[row + 1] - begin != length:
        return False
    return same_bytes(index_keys.data, begin, query.data, start, length)


@kernel
def _find(slots: Int32s, index_keys: _HashedKeys, query: _HashedKeys, rows: Int64s, steps: int) -> bool:
    """Fill `rows`. False if that takes more than `steps` steps past slots that other keys have."""
    mask = np.uint64(slots.shape[0] - 1)
    for number in range(query.hashes.shape[0]):
        if steps < 0:
            return False
        rows[number] = -1
        key = query.hashes[number]
        at = (key ^ (key >> np.uint64(32))) & mask
        while slots[at] >= 0:
            if _same(index_keys, slots[at], query, number):
                rows[number] = slots[at]
                break
            at = (at + np.uint64(1)) & mask
            steps -= 1
    return steps >= 0


class KeyIndex:
    """Finds rows by key. Making an index takes O(keys).

    keys: one (large) binary array without nulls, each key once.
    """

    def __init__(self, keys: pa.Array) -> None:
        self._keys = _HashedKeys(hash_keys(keys), *_bytes_of(keys))
        self._keyed = False
        if not self._placed(steps_for(len(keys))):
            self._begin_anew()

    def _placed(self, steps: int) -> bool:
        """Whether that took at most so many steps."""
        # At most half of the slots are in use, so probing is short.
        slots = 1 << max(4, (2 * len(self._keys.hashes)).bit_length())
        self._slots = np.full(slots, -1, np.int32)
        return bool(_place(self._keys.hashes, self._slots, steps))

    def _begin_anew(self) -> None:
        """With hashes that nobody can predict."""
        self._keyed = True
        self._keys = self._keys._replace(hashes=keyed_hashes(self._keys.offsets, self._keys.data))
        self._placed(NO_LIMIT)

    def find(self, keys: pa.Array, hashes: UInt64s | None = None) -> Int64s:
        """The row of each of these keys, or -1 for a key that the index lacks, shape (keys,).
        O(keys asked for).

        hashes: the keys' `hash_keys`, if the caller has them.
        """
        rows = np.empty(len(keys), np.int64)
        offsets, data = _bytes_of(keys)
        if not self._keyed:
            query = _HashedKeys(hash_keys(keys) if hashes is None else hashes, offsets, data)
            if _find(self._slots, self._keys, query, rows, steps_for(len(keys))):
                return rows
            self._begin_anew()
        query = _HashedKeys(keyed_hashes(offsets, data), offsets, data)
        _find(self._slots, self._keys, query, rows, NO_LIMIT)
        return rows


def _bytes_of(keys: pa.Array) -> tuple[Int64s, UInt8s]:
    _, places, data = keys.buffers()
    wide = pa.types.is_large_binary(keys.type)
    offsets = viewed(places, np.int64 if wide else np.int32, keys.offset, len(keys) + 1)
    offsets = offsets.astype(np.int64, copy=False)
    # numba compiles a kernel once for read-only and once for writable arrays. `viewed` gives read-only ones
    # only.
    offsets.flags.writeable = False
    return offsets, viewed(data, np.uint8, 0, data.size if data is not None else 0)
