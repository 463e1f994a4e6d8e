"""AM (group affinity, by cardinality): a key stays where it is. A new one goes to the emptier candidate.

Idea: a key that a worker has in the window is not split. A key that none has goes to that of
F_1(k)..F_d(k) with the fewest distinct keys (the first on a tie). So nothing has to be merged, as with
hashing, and the keys are spread more evenly. The load of the hottest key stays where it is. With exact
sets a key is on one worker as long as it is in the window. With HyperLogLog it may be split: the first
candidate that the key would not change gets it, and that may be wrong (see `cardinality`). With many keys
per register all goes to F_1, which is hashing. All of this holds for each source by itself: of several
sources each has a worker for the key, so it may be on as many as there are sources (at most d).

Parameters: `d` candidates (2). `cardinality` exact or hll, `precision`. `window`, `window_ms`, `slide_ms`.
Cost per tuple: O(1) amortised for a key that is held, O(d) for a new one. hll O(d). State: see
`cardinality`. Paper: 004, Algorithm 3 (AM-2, AM-5, AM-2-H).

`a` stays where it is:

    >>> create("am", workers=4).assign(keys, times).tolist()
    [3, 3, 1, 3, 0, 3]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenflow.arrays import Int64s
from evenflow.kernels import inlined, kernel
from evenflow.keys import Candidates, candidate_kernel
from evenflow.partitioners.affinity.cardinality import CardinalityPartitioner, least_estimated
from evenflow.partitioners.affinity.window_cardinalities import WindowCardinalities, touch_slide
from evenflow.partitioners.affinity.window_cardinalities import advance as advance_sketches
from evenflow.partitioners.affinity.window_cardinalities import touch as touch_sketch
from evenflow.partitioners.base import Block
from evenflow.partitioners.choices.pkg import least_loaded
from evenflow.sketches.hyperloglog import Registers, sketch_hash, would_change
from evenflow.sketches.window_holders import (
    HolderPool,
    WindowHolders,
    first_holder,
    refresh,
    room,
    worker_of,
)
from evenflow.sketches.window_holders import advance as advance_holders
from evenflow.sketches.window_holders import touch as touch_holder
from evenflow.sketches.window_loads import WindowLoads, add, due
from evenflow.sketches.window_loads import advance as advance_loads


class Affine(NamedTuple):
    """Who holds which key, and the loads: what kernels take as one argument."""

    pool: HolderPool
    window: WindowLoads
    burden: Int64s
    """What decides where a new key goes: C (am) or L (cam)."""


@kernel
def route_affine(block: Block, among: Candidates, known: Affine, row: int) -> int:
    """From this row on: the key's holder (there is one at most), else its least burdened candidate.

    Stops at the row for which the pool has no room.
    """
    keys, times, out = block
    pool, window, d = known.pool, known.window, among.family.shape[0]
    while row < keys.shape[0]:
        key = keys[row]
        if due(pool.clock, times[row]):
            advance_loads(window, times[row])
            advance_holders(pool, times[row])
        if room(pool) < 2:
            return row
        held = first_holder(pool, key)
        if held >= 0:
            refresh(pool, held)
            best = worker_of(pool, held)
        else:
            best = least_loaded(key, among, d, known.burden)
            touch_holder(pool, key, best)
        add(window, best)
        out[row] = best
        row += 1
    return row


@inlined
def first_unchanged(key: np.uint64, hashed: np.uint64, among: Candidates, rows: Registers) -> np.int64:
    """The first candidate whose sketch the key would not change, so that seems to hold it. Or -1."""
    best = np.int64(-1)
    for i in range(among.family.shape[0] - 1, -1, -1):  # selects, not branches: nobody can predict which
        other = candidate_kernel(key, among.family[i], among.workers)
        best = best if would_change(rows, np.uint64(other), hashed) else other
    return best


@kernel
def _route_sketched(block: Block, among: Candidates, window: WindowCardinalities) -> None:
    keys, times, out = block
    for row in range(keys.shape[0]):
        key, hashed = keys[row], sketch_hash(keys[row])
        if due(window.clock, times[row]):
            advance_sketches(window, times[row])
        best = first_unchanged(key, hashed, among, window.whole)
        if best >= 0:
            touch_slide(window, best, hashed)
        else:
            best = least_estimated(key, among, window.whole)
            touch_sketch(window, best, hashed)
        out[row] = best


class Am(CardinalityPartitioner):
    """A key of the window stays on its worker. A new one takes its candidate with the fewest keys."""

    key_policy = "affinity"

    @property
    def _most_holders(self) -> int:
        return 1

    def _burden(self, holders: WindowHolders) -> Any:
        return holders.pool.distinct

    def _route_exact(self, block: Block, holders: WindowHolders, row: int) -> int:
        known = Affine(holders.pool, self._loads, self._burden(holders))
        return int(route_affine(block, self._among, known, row))

    def _route_sketched(self, block: Block, sketches: WindowCardinalities) -> None:
        _route_sketched(block, self._among, sketches)
