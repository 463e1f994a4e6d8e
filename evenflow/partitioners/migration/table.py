"""Routing table: the keys that have a worker of their own. All other keys go where a hash function says.

A hash table with open addressing, at least twice as large as it has entries, so that a search ends soon. It
is filled anew whenever keys are placed anew. So its order in memory never decides about a result.

State: 24 to 48 bytes for each entry that it can have.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.keys import first_slot
from evenflow.numeric.arrays import Int32s, UInt64s
from evenflow.numeric.kernels import inlined, kernel

NOWHERE = -1
"""The worker of a key that the table does not have."""


class RoutingTable(NamedTuple):
    """The routing table: what kernels take as one argument."""

    keys: UInt64s
    """The key in each slot of the hash table."""
    workers: Int32s
    """The worker of the key in this slot, or NOWHERE if the slot is empty."""


def empty_table(most: int) -> RoutingTable:
    """A table for so many entries."""
    slots = 1 << (2 * most - 1).bit_length()
    return RoutingTable(np.zeros(slots, np.uint64), np.full(slots, NOWHERE, np.int32))


@inlined
def lookup(table: RoutingTable, key: np.uint64) -> np.int64:
    """The worker of the key, or NOWHERE."""
    keys, workers = table.keys, table.workers
    mask = np.int64(keys.shape[0] - 1)
    at = first_slot(key, mask)
    while workers[at] != NOWHERE and keys[at] != key:
        at = (at + 1) & mask
    return np.int64(workers[at])


@kernel
def fill(table: RoutingTable, keys: UInt64s, workers: Int32s) -> None:
    """Replace all entries by these."""
    slots, owners = table.keys, table.workers
    mask = np.int64(slots.shape[0] - 1)
    owners[:] = NOWHERE
    for row in range(keys.shape[0]):
        at = first_slot(keys[row], mask)
        while owners[at] != NOWHERE:
            at = (at + 1) & mask
        slots[at] = keys[row]
        owners[at] = workers[row]
