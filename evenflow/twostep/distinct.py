"""How many distinct keys there are, exactly. One pass over a hash table: sorting the hashes would take ten
times as long.
"""

from __future__ import annotations

import numpy as np

from evenflow.numeric.arrays import UInt64s
from evenflow.numeric.kernels import kernel
from evenflow.numeric.words import mix64


def distinct(hashes: UInt64s) -> int:
    """How many different values `hashes` has (those of `keys.hash_keys`)."""
    # More than twice as many slots as hashes: at most half are in use, so probing is short.
    slots = 1 << (2 * len(hashes)).bit_length()
    return int(_distinct(hashes, np.zeros(slots, np.uint64)))


@kernel
def _distinct(hashes: UInt64s, table: UInt64s) -> int:
    """table: all zeros. Its length is a power of two and larger than the number of hashes."""
    mask = np.uint64(len(table) - 1)
    count, zero = 0, 0
    for key in hashes:
        # The hash is mixed again, because the keys of a worker may have some bits of their hashes in common.
        at = mix64(key) & mask
        while table[at] != key and table[at] != 0:
            at = (at + np.uint64(1)) & mask
        if key == 0:  # 0 marks a free slot, so the hash 0 is counted apart
            zero = 1
        elif table[at] == 0:
            table[at] = key
            count += 1
    return count + zero
