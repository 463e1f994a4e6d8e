"""cAM (group affinity, by load): a key stays where it is. A new one goes to the less loaded candidate.

Idea: as `am`, but a key that no worker has in the window goes to that of F_1(k)..F_d(k) with the fewest
tuples (the first on a tie): no key is split, and the tuples are spread more evenly than by hashing. With
HyperLogLog a key may be split, and with several sources it may be on one worker of each, as with `am`.

Parameters: `d` candidates (2). `cardinality` exact or hll, `precision`. `window`, `window_ms`, `slide_ms`.
Cost per tuple: O(1) amortised for a key that is held, O(d) for a new one. hll O(d), and no estimate is
ever computed. State: see `cardinality`; n loads, sliding n x slides more.
Paper: 004, Algorithm 4 (cAM-2, cAM-5). Lines 8-9 there say `estimate` of L, which is a counter.

`a` stays where it is, and new keys go where fewer tuples are:

    >>> create("cam", workers=4).assign(keys, times).tolist()
    [3, 3, 1, 3, 0, 3]
"""

from __future__ import annotations

from typing import Any

from evenflow.kernels import kernel
from evenflow.keys import Candidates
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
    keys, times, out = block
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
        add(window, best)
        out[row] = best


class Cam(Am):
    """A key of the window stays on its worker. A new one takes its less loaded candidate."""

    def _burden(self, holders: WindowHolders) -> Any:
        return self._loads.loads

    def _route_sketched(self, block: Block, sketches: WindowCardinalities) -> None:
        _route_sketched(block, self._among, self._loads, sketches)
