"""How many distinct keys there are. One pass over a hash table: sorting the hashes would take ten times as
long.

Whoever writes keys can choose them such that all begin at one slot. So steps are counted, and too many make
the table begin anew with hashes that nobody can predict (`keyed_hashes`).
"""

from __future__ import annotations

import numpy as np

from evenflow.numeric.arrays import UInt64s
from evenflow.numeric.kernels import kernel
from evenflow.numeric.keyed_hashes import NO_LIMIT, keyed_hashes, steps_for
from evenflow.numeric.words import mix64


def distinct(hashes: UInt64s) -> int:
    """How many different values `hashes` has (those of `keys.hash_keys`)."""
    count = _counted(hashes, steps_for(len(hashes)))
    if count < 0:
        # Keyed hashes of 64 bits stand for the hashes. Two of them are too unlikely to be the same.
        places = np.arange(0, 8 * len(hashes) + 1, 8, dtype=np.int64)
        count = _counted(keyed_hashes(places, hashes.view(np.uint8)), NO_LIMIT)
    return count


def _counted(hashes: UInt64s, steps: int) -> int:
    """How many different values there are. -1 if that takes more than so many steps."""
    # More than twice as many slots as hashes: at most half are in use, so probing is short.
    slots = 1 << (2 * len(hashes)).bit_length()
    return int(_distinct(hashes, np.zeros(slots, np.uint64), steps))


@kernel
def _distinct(hashes: UInt64s, table: UInt64s, steps: int) -> int:
    """table: all zeros. Its length is a power of two and larger than the number of hashes. Returns -1 after
    more than `steps` slots that others have.
    """
    mask = np.uint64(len(table) - 1)
    count, zero = 0, 0
    for key in hashes:
        # The hash is mixed again, because the keys of a worker may have some bits of their hashes in common.
        at = mix64(key) & mask
        while table[at] != key and table[at] != 0:
            at = (at + np.uint64(1)) & mask
            steps -= 1
        if steps < 0:
            return -1
        if key == 0:  # 0 marks a free slot, so the hash 0 is counted apart
            zero = 1
        elif table[at] == 0:
            table[at] = key
            count += 1
    return count + zero
