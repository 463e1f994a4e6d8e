"""CM (cardinality imbalance minimisation): the candidate with the fewest distinct keys.

Idea: where a worker's effort grows with its keys and not with its tuples, the keys are what to balance. Each
tuple goes to the candidate among F_1(k)..F_d(k) that has the fewest distinct keys in the window (the first
candidate on a tie). So a key is on at most d workers. Once all keys have been seen, the numbers stand still,
and from then on every key goes to the same candidate. The imbalance of tuples may then exceed PKG's by far,
and it depends on the seed.

Costs of tuples count in its figures, and change nothing else.
Parameters: `d` candidates (2). `cardinality` exact or hll, `precision`. `window`, `window_ms`, `slide_ms`.
Cost per tuple: O(d), and O(1) amortised for the window. State: exact sets grow with the distinct keys of the
window. hll takes 2^precision bytes per worker, and slides + 2 times as much if the window slides.
Paper: 004, Algorithm 2 (CM-2, CM-2-H).

A worker's load is the number of its keys, and `a` may be on two workers:

    >>> create("cm", workers=4).assign(keys, times).tolist()
    [3, 1, 1, 3, 0, 3]
"""

from __future__ import annotations

from evenflow.keys import Candidates
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.affinity.cardinality import CardinalityPartitioner, least_estimated
from evenflow.partitioners.affinity.window_cardinalities import WindowCardinalities
from evenflow.partitioners.affinity.window_cardinalities import advance as advance_sketches
from evenflow.partitioners.affinity.window_cardinalities import touch as touch_sketch
from evenflow.partitioners.base import Block
from evenflow.partitioners.choices.pkg import least_loaded
from evenflow.sketches.hyperloglog import sketch_hash
from evenflow.sketches.window_holders import HolderPool, WindowHolders, room
from evenflow.sketches.window_holders import advance as advance_holders
from evenflow.sketches.window_holders import touch as touch_holder
from evenflow.sketches.window_loads import due


@kernel
def _route_exact(block: Block, among: Candidates, pool: HolderPool, row: int) -> int:
    keys, times, out = block.keys, block.times, block.out
    while row < keys.shape[0]:
        if due(pool.clock, times[row]):
            advance_holders(pool, times[row])
        # One tuple may need two rows: one for the pair, and one for a key that is new.
        if room(pool) < 2:
            return row
        best = least_loaded(keys[row], among, among.family.shape[0], pool.distinct)
        touch_holder(pool, keys[row], best)
        out[row] = best
        row += 1
    return row


@kernel
def _route_sketched(block: Block, among: Candidates, window: WindowCardinalities) -> None:
    keys, times, out = block.keys, block.times, block.out
    for row in range(keys.shape[0]):
        if due(window.clock, times[row]):
            advance_sketches(window, times[row])
        best = least_estimated(keys[row], among, window.whole)
        touch_sketch(window, best, sketch_hash(keys[row]))
        out[row] = best


class Cm(CardinalityPartitioner):
    """Each key has d candidates. Every tuple takes the candidate with the fewest distinct keys."""

    def _route_exact(self, block: Block, holders: WindowHolders, row: int) -> int:
        return int(_route_exact(block, self._among, holders.pool, row))

    def _route_sketched(self, block: Block, sketches: WindowCardinalities) -> None:
        _route_sketched(block, self._among, sketches)
