"""Consistent hashing: workers have many points on a ring of hashes,
and a key goes to the worker of the next point.

If workers come or go, only the keys that lie before their points move. A key is found by the leading bits of
its hash: they name the first point that may be the one. There are as many beginnings as points at least, so
few points are passed over.

State: 12 bytes for each point, and 4 to 8 for the beginnings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.keys import GOLDEN, salts
from evenflow.numeric.arrays import Int32s, UInt32s, UInt64s
from evenflow.numeric.kernels import inlined, kernel
from evenflow.numeric.words import mix64

_SALT = 1 << 41
_MOST_POINTS = 1 << 24


class Ring(NamedTuple):
    """The ring: what kernels take as one argument."""

    points: UInt64s
    """Hashes at which the workers' points lie, ascending."""
    workers: Int32s
    """The worker of each point."""
    begins: UInt32s
    """For the leading bits of a hash: the first point that is not below all hashes with these bits."""
    salt: np.uint64
    """Salt of the hash function of keys."""
    shift: np.uint64
    """By how many bits a hash is shifted to its leading bits."""


@inlined
def on_ring(ring: Ring, key: np.uint64) -> np.int64:
    """The worker whose point is next to the key's hash."""
    points, many = ring.points, ring.points.shape[0]
    hashed = mix64(key ^ ring.salt)
    at = np.int64(ring.begins[hashed >> ring.shift])
    while at < many and points[at] < hashed:
        at += 1
    return np.int64(ring.workers[at if at < many else 0])


@kernel
def _points(salt: np.uint64, points: UInt64s, each: int) -> None:
    for at in range(points.shape[0]):
        worker, number = np.uint64(at // each), np.uint64(at % each)
        points[at] = mix64(mix64(salt + (worker + np.uint64(1)) * GOLDEN) + (number + np.uint64(1)) * GOLDEN)


@kernel
def _workers_on(ring: Ring, keys: UInt64s, out: Int32s) -> None:
    for row in range(keys.shape[0]):
        out[row] = on_ring(ring, keys[row])


def ring_of(workers: int, each: int, seed: int) -> Ring:
    """A ring with so many points for each worker. They are fewer if there would be more than 2^24."""
    each = min(each, max(1, _MOST_POINTS // workers))
    salt = salts(seed, 1, first=_SALT)[0]
    points = np.empty(workers * each, np.uint64)
    _points(salt, points, each)
    order = np.argsort(points, kind="stable")  # of equal points, that of the lower worker is first
    points, owners = points[order], (order // each).astype(np.int32)
    bits = max(1, (len(points) - 1).bit_length())
    edges = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    begins = np.searchsorted(points, edges).astype(np.uint32)
    return Ring(points, owners, begins, salt, np.uint64(64 - bits))


def workers_on(ring: Ring, keys: UInt64s) -> Int32s:
    """The worker of each key, shape (n,)."""
    out = np.empty(len(keys), np.int32)
    _workers_on(ring, keys, out)
    return out
