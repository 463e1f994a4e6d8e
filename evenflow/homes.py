"""Homes of keys: which worker may finish the windows of a key by itself, and what is announced to it.

The home of a key is its first candidate F_1 among the workers of a plan. So every instance that follows the plan
knows the same home, whatever its partitioner is. A worker may finish a window of a key by itself if no other worker can
hold tuples of the key in that window. So who sends a tuple anywhere but to the home of its key *announces* the pane and
the key to that home (rule "forwarding is announced").

An announcement names a key by its hash. Another key with the same hash then goes through a reducer as well, which changes
no result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.arrays import Int32s, Int64s, UInt64s
from evenflow.keys import candidate


class Announcements(NamedTuple):
    """Pairs (pane, hash of a key) and the homes of these keys, sorted by home. Each has shape (announcements,)."""

    homes: Int32s
    panes: Int64s
    hashes: UInt64s


def home_of(hashes: UInt64s, workers: int, seed: int) -> Int32s:
    """The home of every key among the workers 0..workers-1, shape (keys,). seed: that of the query's hash family."""
    return candidate(hashes, 1, workers, seed)


def announced(hashes: UInt64s, panes: Int64s, assigned: Int32s, *, workers: int, seed: int) -> Announcements:
    """What the home of each key must hear of these tuples, each pair once.

    hashes, panes, assigned: of each tuple the hash of its key, its pane, and the worker that it goes to, shape (tuples,).
    workers, seed: as in `home_of`, those of the plan that assigned the tuples.
    """
    homes = home_of(hashes, workers, seed)
    away = np.flatnonzero(homes != assigned)
    homes, panes, hashes = homes[away], panes[away], hashes[away]
    order = np.lexsort((hashes, panes, homes))
    homes, panes, hashes = homes[order], panes[order], hashes[order]
    first = np.ones(len(order), np.bool_)
    # Equal hashes have equal homes, so a pair that comes again is the neighbour of its first.
    first[1:] = (hashes[1:] != hashes[:-1]) | (panes[1:] != panes[:-1])
    return Announcements(homes[first], panes[first], hashes[first])
