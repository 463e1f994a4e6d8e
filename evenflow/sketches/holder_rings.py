"""Holders of split keys beyond the home of each: a ring per owner, cut from one bounded pool.

An owner is a number 0..owners-1 (a counter of a summary). Its ring keeps the order of adoption. All rings
share a pool of `edges` (owner, worker) pairs, so state is bounded whatever the stream does; a hash table
tells in O(1) whether an owner has a worker already.

Cost: O(1) to adopt, to ask, and to drop one edge; O(ring) to drop a ring. State: 48 to 56 bytes per edge
and 20 per owner.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenflow.arrays import Int32s, Int64s
from evenflow.kernels import kernel

WORKER, NEXT, _OWNER, _CHAIN, _FREE = range(5)
FIRST, LAST, TURN, SIZE, CURRENT = range(5)
_SPREAD = 0x9E3779B1
EDGES, SPLIT = 0, 1


class Rings(NamedTuple):
    """A kernel unpacks this once, before its loop."""

    edge: Int32s
    """(edges, 8): worker, next of the ring, owner, next of the hash chain, stack of free edges, nothing
    (eight make a row's address a shift)."""
    used: Int64s
    """Slide in which each edge was last used."""
    ring: Int32s
    """(owners, 5): first (oldest) edge, last edge, the edge before the one whose turn it is, edges,
    the edge in use + 1 (0: none, the caller's to set)."""
    table: Int32s
    """First edge of each hash chain, or -1."""
    meta: Int64s
    """[edges in use, owners with edges]"""


def rings(owners: int, edges: int) -> Rings:
    """Empty rings."""
    edge = np.zeros((edges, 8), np.int32)
    edge[:, _FREE] = np.arange(edges)
    return Rings(
        edge=edge,
        used=np.zeros(edges, np.int64),
        ring=np.zeros((owners, 5), np.int32),
        table=np.full(1 << (2 * edges - 1).bit_length(), -1, np.int32),
        meta=np.zeros(2, np.int64),
    )


@kernel
def _home(table: Int32s, owner: Any, worker: Any) -> np.int64:
    return ((np.int64(owner) * _SPREAD + np.int64(worker)) * _SPREAD >> 16) & (table.shape[0] - 1)


@kernel
def edge_to(edge: Int32s, table: Int32s, owner: Any, worker: Any) -> np.int64:
    """The owner's edge to this worker, or -1."""
    at = np.int64(table[_home(table, owner, worker)])
    while at >= 0 and (edge[at, _OWNER] != owner or edge[at, WORKER] != worker):
        at = np.int64(edge[at, _CHAIN])
    return at


@kernel
def adopt(
    edge: Int32s, used: Int64s, ring: Int32s, table: Int32s, meta: Int64s, owner: Any, worker: Any, now: Any
) -> bool:
    """Give the owner one more worker, one it does not have; False when the pool is empty."""
    if meta[EDGES] == edge.shape[0]:
        return False
    at = np.int64(edge[meta[EDGES], _FREE])
    meta[EDGES] += 1
    home = _home(table, owner, worker)
    edge[at, WORKER], edge[at, _OWNER], edge[at, _CHAIN] = worker, owner, table[home]
    table[home] = at
    used[at] = now
    if ring[owner, SIZE] == 0:
        meta[SPLIT] += 1
        edge[at, NEXT] = at
        ring[owner, FIRST] = ring[owner, TURN] = at
        ring[owner, CURRENT] = 0
    else:
        edge[at, NEXT] = ring[owner, FIRST]
        edge[ring[owner, LAST], NEXT] = at
    ring[owner, LAST] = at
    ring[owner, SIZE] += 1
    return True


@kernel
def _give_back(edge: Int32s, table: Int32s, meta: Int64s, at: Any) -> None:
    home = _home(table, edge[at, _OWNER], edge[at, WORKER])
    other = np.int64(table[home])
    if other == at:
        table[home] = edge[at, _CHAIN]
    else:
        while edge[other, _CHAIN] != at:
            other = np.int64(edge[other, _CHAIN])
        edge[other, _CHAIN] = edge[at, _CHAIN]
    meta[EDGES] -= 1
    edge[meta[EDGES], _FREE] = at


@kernel
def drop_after(edge: Int32s, ring: Int32s, table: Int32s, meta: Int64s, owner: Any, before: Any) -> None:
    """Take the edge after `before` out of the owner's ring."""
    at = np.int64(edge[before, NEXT])
    ring[owner, SIZE] -= 1
    if ring[owner, SIZE] == 0:
        meta[SPLIT] -= 1
    else:
        edge[before, NEXT] = edge[at, NEXT]
        if ring[owner, FIRST] == at:
            ring[owner, FIRST] = edge[at, NEXT]
        if ring[owner, LAST] == at:
            ring[owner, LAST] = before
        if ring[owner, TURN] == at:
            ring[owner, TURN] = before
        if ring[owner, CURRENT] == at + 1:
            ring[owner, CURRENT] = 0
    _give_back(edge, table, meta, at)


@kernel
def drop_unused(edge: Int32s, used: Int64s, ring: Int32s, table: Int32s, meta: Int64s, oldest: Any) -> None:
    """Take out every edge that was last used before the slide `oldest`."""
    for owner in range(ring.shape[0]):
        before = np.int64(ring[owner, LAST])
        for _ in range(ring[owner, SIZE]):
            at = np.int64(edge[before, NEXT])
            if used[at] < oldest:
                drop_after(edge, ring, table, meta, owner, before)
            else:
                before = at


@kernel
def drop_all(edge: Int32s, ring: Int32s, table: Int32s, meta: Int64s, owner: Any) -> None:
    """The owner's key is split no more."""
    if ring[owner, SIZE] == 0:
        return
    at = np.int64(ring[owner, FIRST])
    for _ in range(ring[owner, SIZE]):
        following = np.int64(edge[at, NEXT])
        _give_back(edge, table, meta, at)
        at = following
    ring[owner, SIZE] = 0
    meta[SPLIT] -= 1
