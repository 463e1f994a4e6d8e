"""Holders of split keys besides the home of each key: a ring per owner, cut from one bounded pool.

An owner is a number 0..owners-1 (a counter of a summary). Its ring keeps its holders in order of adoption. An
*edge* is a pair (owner, worker). All rings share a pool of edges, so state is bounded whatever the stream
does. A hash table tells in O(1) whether an owner has a worker already.

Cost: O(1) to adopt, to ask, and to drop one edge. O(ring) to drop a ring. State: 48 to 56 bytes per edge, and
20 per owner.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import Int32s, Int64s, Rows, Whole, record, records
from evenflow.numeric.kernels import kernel

_SPREAD = 0x9E3779B1  # 2^32 / the golden ratio, made a prime: spreads small numbers over the table

EDGE = np.dtype(
    {"names": ["worker", "next", "owner", "chain", "free"], "formats": [np.int32] * 5, "itemsize": 32}
)
"""`next`: the next edge of the ring. `chain`: the next edge of the hash chain. `free`: one entry of the stack
of free edges. 32 bytes, so that an address is made by a shift."""
RING = np.dtype([(name, np.int32) for name in ("first", "last", "turn", "size", "current")])
"""`first` and `last`: the oldest and the newest edge. `turn`: the edge before the edge whose turn it is.
`size`: number of edges. `current`: the edge in use + 1, or 0 for none. The caller sets `current`."""
POOL = np.dtype([("edges", np.int64), ("split", np.int64)])
"""How many edges are in use, and how many owners have edges."""


class Rings(NamedTuple):
    """The rings of all owners and their pool: what kernels take as one argument."""

    edge: Rows
    """(edges,) of EDGE."""
    used: Int64s
    """Slide in which each edge was last used."""
    ring: Rows
    """(owners,) of RING."""
    table: Int32s
    """First edge of each hash chain, or -1."""
    meta: Rows
    """One of POOL."""


def rings(owners: int, edges: int) -> Rings:
    """Empty rings."""
    edge = records(edges, EDGE)
    edge["free"] = np.arange(edges)
    return Rings(
        edge=edge,
        used=np.zeros(edges, np.int64),
        ring=records(owners, RING),
        table=np.full(1 << (2 * edges - 1).bit_length(), -1, np.int32),
        meta=record(POOL),
    )


@kernel
def _place(table: Int32s, owner: Whole, worker: Whole) -> np.int64:
    return ((np.int64(owner) * _SPREAD + np.int64(worker)) * _SPREAD >> 16) & (table.shape[0] - 1)


@kernel
def edge_to(rings: Rings, owner: Whole, worker: Whole) -> np.int64:
    """The owner's edge to this worker, or -1."""
    edge = rings.edge
    at = np.int64(rings.table[_place(rings.table, owner, worker)])
    while at >= 0 and (edge[at]["owner"] != owner or edge[at]["worker"] != worker):
        at = np.int64(edge[at]["chain"])
    return at


@kernel
def adopt(rings: Rings, owner: Whole, worker: Whole, now: Whole) -> bool:
    """Give the owner one more worker, which it must not have yet. False if the pool has no free edge."""
    edge, ring, pool = rings.edge, rings.ring, rings.meta[()]
    if pool["edges"] == edge.shape[0]:
        return False
    # The numbers of free edges are a stack, kept in the column `free`. While n edges are in use, its top is
    # at row n.
    at = np.int64(edge[pool["edges"]]["free"])
    pool["edges"] += 1
    place = _place(rings.table, owner, worker)
    edge[at]["worker"], edge[at]["owner"], edge[at]["chain"] = worker, owner, rings.table[place]
    rings.table[place] = at
    rings.used[at] = now
    if ring[owner]["size"] == 0:
        pool["split"] += 1
        edge[at]["next"] = at
        ring[owner]["first"] = ring[owner]["turn"] = at
        ring[owner]["current"] = 0
    else:
        edge[at]["next"] = ring[owner]["first"]
        edge[ring[owner]["last"]]["next"] = at
    ring[owner]["last"] = at
    ring[owner]["size"] += 1
    return True


@kernel
def _give_back(rings: Rings, at: Whole) -> None:
    edge, table, pool = rings.edge, rings.table, rings.meta[()]
    place = _place(table, edge[at]["owner"], edge[at]["worker"])
    other = np.int64(table[place])
    if other == at:
        table[place] = edge[at]["chain"]
    else:
        while edge[other]["chain"] != at:
            other = np.int64(edge[other]["chain"])
        edge[other]["chain"] = edge[at]["chain"]
    pool["edges"] -= 1
    edge[pool["edges"]]["free"] = at


@kernel
def drop_after(rings: Rings, owner: Whole, before: Whole) -> None:
    """Take the edge after `before` out of the owner's ring."""
    edge, ring = rings.edge, rings.ring
    at = np.int64(edge[before]["next"])
    ring[owner]["size"] -= 1
    if ring[owner]["size"] == 0:
        rings.meta[()]["split"] -= 1
    else:
        edge[before]["next"] = edge[at]["next"]
        if ring[owner]["first"] == at:
            ring[owner]["first"] = edge[at]["next"]
        if ring[owner]["last"] == at:
            ring[owner]["last"] = before
        if ring[owner]["turn"] == at:
            ring[owner]["turn"] = before
        # `current` counts from 1, as 0 stands for the owner's home.
        if ring[owner]["current"] == at + 1:
            ring[owner]["current"] = 0
    _give_back(rings, at)


@kernel
def drop_unused(rings: Rings, oldest: Whole) -> None:
    """Take out every edge that was last used before the slide `oldest`."""
    for owner in range(rings.ring.shape[0]):
        # In a ring the first edge follows the last.
        before = np.int64(rings.ring[owner]["last"])
        for _ in range(rings.ring[owner]["size"]):
            at = np.int64(rings.edge[before]["next"])
            if rings.used[at] < oldest:
                drop_after(rings, owner, before)
            else:
                before = at


@kernel
def drop_all(rings: Rings, owner: Whole) -> None:
    """Take out all edges of the owner: its key is split no more."""
    ring = rings.ring
    if ring[owner]["size"] == 0:
        return
    at = np.int64(ring[owner]["first"])
    for _ in range(ring[owner]["size"]):
        following = np.int64(rings.edge[at]["next"])
        _give_back(rings, at)
        at = following
    ring[owner]["size"] = 0
    rings.meta[()]["split"] -= 1
