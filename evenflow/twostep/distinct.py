"""How many distinct keys there are, exactly: in one pass, where sorting them takes ten times as long."""

from __future__ import annotations

import numpy as np

from evenflow.arrays import UInt64s
from evenflow.kernels import kernel
from evenflow.keys import mix64


def distinct(hashes: UInt64s) -> int:
    """Of these keys (`keys.hash_keys`)."""
    slots = 1 << (2 * len(hashes)).bit_length()
    return int(_distinct(hashes, np.zeros(slots, np.uint64)))


@kernel
def _distinct(hashes: UInt64s, table: UInt64s) -> int:
    """table: zeros, a power of two of them, and more than there are hashes."""
    mask = np.uint64(len(table) - 1)
    found, zero = 0, 0
    for key in hashes:
        # A worker's keys may have some bits of their hashes in common.
        at = mix64(key) & mask
        while table[at] != key and table[at] != 0:
            at = (at + np.uint64(1)) & mask
        if key == 0:
            zero = 1
        elif table[at] == 0:
            table[at] = key
            found += 1
    return found + zero
