"""cAM (group affinity, by load): a key stays where it is. A new key goes to its least loaded candidate.

Idea: cam works as `am` does, but a key that no worker has in the window goes to the candidate among
F_1(k)..F_d(k) with the fewest tuples (the first candidate on a tie). No key is split, and the tuples are
spread more evenly than by hashing. As with `am`, HyperLogLog may split a key, and each of several sources may
have its own worker for a key. With costs the least loaded candidate is the one whose tuples cost the least
together.

Parameters: `d` candidates (2). `cardinality` exact or hll, `precision`. `window`, `window_ms`, `slide_ms`.
Cost per tuple: O(1) amortised for a key that a worker has, O(d) for a new key. With hll O(d), and no estimate
is ever computed. State: as `cm`, and n loads. A sliding window has n x slides more.
Paper: 004, Algorithm 4 (cAM-2, cAM-5). Lines 8-9 of the listing say `estimate` of L, but L is a plain
counter.

`a` stays where it is, and new keys go to workers with fewer tuples:

    >>> create("cam", workers=4).assign(keys, times).tolist()
    [3, 3, 1, 3, 0, 3]
"""

from __future__ import annotations

from evenflow.keys import Candidates
from evenflow.numeric.arrays import Int64s
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.affinity.am import Am, first_unchanged
from evenflow.partitioners.affinity.window_cardinalities import WindowCardinalities, touch_slide
from evenflow.partitioners.affinity.window_cardinalities import advance as advance_sketches
from evenflow.partitioners.affinity.window_cardinalities import touch as touch_sketch
from evenflow.partitioners.base import Block
from evenflow.partitioners.choices.pkg import least_loaded
from evenflow.sketches.hyperloglog import sketch_hash
from evenflow.sketches.window_holders import WindowHolders
from evenflow.sketches.window_loads import WindowLoads, add, due
from evenflow.sketches.window_loads import advance as advance_loads


@kernel
def _route_sketched(
    block: Block, among: Candidates, window: WindowLoads, sketches: WindowCardinalities
) -> None:
    keys, times, costs, out = block
    for row in range(keys.shape[0]):
        key, hashed = keys[row], sketch_hash(keys[row])
        if due(sketches.clock, times[row]):
            advance_loads(window, times[row])
            advance_sketches(sketches, times[row])
        best = first_unchanged(key, hashed, among, sketches.whole)
        if best >= 0:
            touch_slide(sketches, best, hashed)
        else:
            best = least_loaded(key, among, among.family.shape[0], window.loads)
            touch_sketch(sketches, best, hashed)
        add(window, best, costs[row])
        out[row] = best


class Cam(Am):
    """A key of the window stays on its worker. A new key takes its least loaded candidate."""

    @property
    def _rule(self) -> str:
        return "the least loaded"

    def _burden(self, holders: WindowHolders) -> Int64s:
        return self._loads.loads

    def _route_sketched(self, block: Block, sketches: WindowCardinalities) -> None:
        _route_sketched(block, self._among, self._loads, sketches)
