"""AM (group affinity, by cardinality): a key stays where it is. A new key goes to its emptiest candidate.

Idea: a key that some worker has in the window is not split. A key that no worker has goes to the candidate
among F_1(k)..F_d(k) with the fewest distinct keys (the first candidate on a tie). As with hashing, nothing
has to be merged, and the keys are spread more evenly. The load of the hottest key stays on one worker.

With exact sets a key is on one worker as long as it is in the window. With HyperLogLog a key may be split: it
goes to the first candidate whose sketch it would not change, and that may be the wrong candidate. With many
keys per register every key goes to F_1, which is hashing. All of this holds for each source by itself. Each
of several sources has its own worker for a key, so the key may be on as many workers as there are sources,
and on d at most.

Costs of tuples count in its figures, and change nothing else.
Parameters: `d` candidates (2). `cardinality` exact or hll, `precision`. `window`, `window_ms`, `slide_ms`.
Cost per tuple: O(1) amortised for a key that a worker has, O(d) for a new key. With hll O(d). State: as `cm`.
Paper: 004, Algorithm 3 (AM-2, AM-5, AM-2-H).

`a` stays where it is:

    >>> create("am", workers=4).assign(keys, times).tolist()
    [3, 3, 1, 3, 0, 3]
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenflow.keys import Candidates, candidate_kernel
from evenflow.numeric.arrays import Int64s
from evenflow.numeric.kernels import inlined, kernel
from evenflow.partitioners.affinity.cardinality import CardinalityPartitioner, least_estimated
from evenflow.partitioners.affinity.window_cardinalities import WindowCardinalities, touch_slide
from evenflow.partitioners.affinity.window_cardinalities import advance as advance_sketches
from evenflow.partitioners.affinity.window_cardinalities import touch as touch_sketch
from evenflow.partitioners.base import Block
from evenflow.partitioners.choices.pkg import least_loaded
from evenflow.partitioners.explanation import Explanation
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
    """The holders of each key and the loads: what kernels take as one argument."""

    pool: HolderPool
    """The holders of each key."""
    window: WindowLoads
    """The loads of the workers in the window."""
    burden: Int64s
    """By what a new key chooses its worker: the distinct keys C (am) or the load L (cam) of each worker."""


@kernel
def route_affine(block: Block, among: Candidates, state: Affine, row: int) -> int:
    """Route from row `row` on. A tuple goes to its key's holder,
    or to the least burdened candidate of a new key.

    A key has at most one holder. Returns the row for which the pool has no room, or the number of rows.
    """
    keys, times, costs, out = block
    pool, window, d = state.pool, state.window, among.family.shape[0]
    while row < keys.shape[0]:
        key = keys[row]
        if due(pool.clock, times[row]):
            advance_loads(window, times[row])
            advance_holders(pool, times[row])
        # A new key may need two rows: one for the pair, and one for the key itself.
        if room(pool) < 2:
            return row
        holder = first_holder(pool, key)
        if holder >= 0:
            refresh(pool, holder)
            best = worker_of(pool, holder)
        else:
            best = least_loaded(key, among, d, state.burden)
            touch_holder(pool, key, best)
        add(window, best, costs[row])
        out[row] = best
        row += 1
    return row


@inlined
def first_unchanged(key: np.uint64, hashed: np.uint64, among: Candidates, rows: Registers) -> np.int64:
    """The first candidate that seems to hold the key, because the key would not change its sketch.
    -1 if none does.
    """
    best = np.int64(-1)
    # From the last candidate to the first, so that the first one wins without leaving the loop. The compiler
    # makes a select of this, not a branch, because no processor can predict which candidate holds a key.
    for i in range(among.family.shape[0] - 1, -1, -1):
        other = candidate_kernel(key, among.family[i], among.workers)
        best = best if would_change(rows, np.uint64(other), hashed) else other
    return best


@kernel
def _route_sketched(block: Block, among: Candidates, window: WindowCardinalities) -> None:
    keys, times, out = block.keys, block.times, block.out
    for row in range(keys.shape[0]):
        key, hashed = keys[row], sketch_hash(keys[row])
        if due(window.clock, times[row]):
            advance_sketches(window, times[row])
        best = first_unchanged(key, hashed, among, window.whole)
        if best >= 0:
            # The key changes nothing in the whole window, so only the present slide has to note it.
            touch_slide(window, best, hashed)
        else:
            best = least_estimated(key, among, window.whole)
            touch_sketch(window, best, hashed)
        out[row] = best


class Am(CardinalityPartitioner):
    """A key of the window stays on its worker. A new key takes its candidate with the fewest keys."""

    key_policy = "affinity"

    @property
    def _most_holders(self) -> int:
        return 1

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        holders = self._known_holders(key, now)
        if holders:
            home = holders[0].worker
            return Explanation(
                rule="in the window, so it stays where it is", workers=(home,), home=home, holders=holders
            )
        if self._sketches is not None:
            return replace(
                super()._explain(key, now),
                rule=f"stays at the first candidate whose sketch has it. If none has: {self._rule}",
                home=None,
            )
        new = super()._explain(key, now)
        return replace(new, rule=f"new in the window: {new.rule}", home=None)

    def _burden(self, holders: WindowHolders) -> Int64s:
        return holders.pool.distinct

    def _route_exact(self, block: Block, holders: WindowHolders, row: int) -> int:
        state = Affine(holders.pool, self._loads, self._burden(holders))
        return int(route_affine(block, self._among, state, row))

    def _route_sketched(self, block: Block, sketches: WindowCardinalities) -> None:
        _route_sketched(block, self._among, sketches)
