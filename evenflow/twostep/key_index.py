"""Where keys lie in a table: a hash table over its key column, with exact comparison of their bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.arrays import Int64s, UInt8s, UInt64s, viewed
from evenflow.kernels import kernel
from evenflow.keys import hash_keys


@kernel
def _place(hashes: Any, slots: Any) -> None:
    """Put every row into the first free slot (-1) from its hash on; `slots` are a power of two, more than rows."""
    mask = np.uint64(slots.shape[0] - 1)
    for row in range(hashes.shape[0]):
        at = (hashes[row] ^ (hashes[row] >> np.uint64(32))) & mask
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = row


@kernel
def _find(
    slots: Any, known: Any, offsets: Any, data: Any, hashes: Any, ours: Any, bytes_: Any, rows: Any
) -> None:
    mask = np.uint64(slots.shape[0] - 1)
    for asked in range(hashes.shape[0]):
        rows[asked] = -1
        begin, length = ours[asked], ours[asked + 1] - ours[asked]
        at = (hashes[asked] ^ (hashes[asked] >> np.uint64(32))) & mask
        while slots[at] >= 0:
            row = slots[at]
            if known[row] == hashes[asked] and offsets[row + 1] - offsets[row] == length:
                same = True
                for byte in range(length):
                    if data[offsets[row] + byte] != bytes_[begin + byte]:
                        same = False
                        break
                if same:
                    rows[asked] = row
                    break
            at = (at + np.uint64(1)) & mask


class KeyIndex:
    """Finds rows by key. keys: one (large) binary array without nulls, each key once; O(keys) to make, once."""

    def __init__(self, keys: pa.Array) -> None:
        self._hashes = hash_keys(keys)
        self._offsets, self._data = _bytes_of(keys)
        slots = 1 << max(4, (2 * len(keys)).bit_length())
        self._slots = np.full(slots, -1, np.int32)
        _place(self._hashes, self._slots)

    def find(self, keys: pa.Array, hashes: UInt64s | None = None) -> Int64s:
        """The row of each of these keys, -1 for one that is not there; O(`keys`). hashes: their `hash_keys`, if known."""
        rows = np.empty(len(keys), np.int64)
        asked = hash_keys(keys) if hashes is None else hashes
        _find(self._slots, self._hashes, self._offsets, self._data, asked, *_bytes_of(keys), rows)
        return rows


def _bytes_of(keys: pa.Array) -> tuple[Int64s, UInt8s]:
    _, places, data = keys.buffers()
    wide = pa.types.is_large_binary(keys.type)
    offsets = viewed(places, np.int64 if wide else np.int32, keys.offset, len(keys) + 1)
    offsets = offsets.astype(np.int64, copy=False)
    offsets.flags.writeable = False
    return offsets, viewed(data, np.uint8, 0, data.size if data is not None else 0)
