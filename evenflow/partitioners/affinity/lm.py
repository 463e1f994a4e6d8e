"""LM (hybrid load minimisation): the candidate with the least weighted mean of tuples and distinct keys.

Idea: where a worker's effort grows with its tuples and with its keys, both are to be balanced. Each tuple
goes to the candidate among F_1(k)..F_d(k) with the least H = p L' + (1-p) C' (the first candidate on a tie).
L' is a worker's load and C' the number of its distinct keys. Both are scaled to 0..1 by the least and the
largest value over all workers. Where these two are equal, which the paper leaves undefined, the scaled value
is 0. p = 1 is PKG over the window, and p = 0 is CM. With costs a worker's load is the sum of what its tuples
cost. Its keys are counted all the same.

Parameters: `p` weight of the tuples (0.5). `d` candidates (2). `cardinality` exact or hll, `precision`.
`window`, `window_ms`, `slide_ms`.
Cost per tuple: O(d). The least and the largest value are tracked. When the last worker leaves the minimum,
that costs O(n), which is O(1) amortised while loads only grow by one. With costs that differ, it may be O(n)
for every tuple of the least loaded worker. A slide costs O(n). State: as `cam`.
Paper: 004, equations 7-9 and Algorithm 5 (LM-2, LM-2-H).

Both the tuples and the keys of a worker count, so `a` is split:

    >>> create("lm", workers=4).assign(keys, times).tolist()
    [3, 1, 1, 3, 0, 3]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from pydantic import Field

from evenflow.keys import Candidates, candidate_kernel
from evenflow.numeric.arrays import Float64s, Int64s, Rows, Whole, record
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.affinity.cardinality import CardinalityOptions, CardinalityPartitioner
from evenflow.partitioners.affinity.window_cardinalities import WindowCardinalities
from evenflow.partitioners.affinity.window_cardinalities import advance as advance_sketches
from evenflow.partitioners.affinity.window_cardinalities import touch as touch_sketch
from evenflow.partitioners.base import Block
from evenflow.sketches.hyperloglog import estimate, sketch_hash
from evenflow.sketches.window_holders import HolderPool, WindowHolders, room
from evenflow.sketches.window_holders import advance as advance_holders
from evenflow.sketches.window_holders import touch as touch_holder
from evenflow.sketches.window_loads import WindowLoads, add, due
from evenflow.sketches.window_loads import advance as advance_loads

SPREAD = np.dtype([(name, np.float64) for name in ("least", "at_least", "most", "scale")])
"""Least value, how many workers have it, largest value, 1/(largest - least) or 0."""


class Spread(NamedTuple):
    """Values of the workers and how far apart they lie: what kernels take as one argument."""

    values: Int64s | Float64s
    """Tuples or keys, or estimates. numba compiles a kernel for each."""
    spread: Rows
    """One of SPREAD."""


class Hybrid(NamedTuple):
    """The two burdens of a worker, and the weight of the first: what kernels take as one argument."""

    loads: Spread
    """Tuples of each worker."""
    keys: Spread
    """Distinct keys of each worker."""
    p: float
    """Weight of the tuples. The keys have the weight 1 - p."""


@kernel
def _measure(burden: Spread) -> None:
    values, spread = burden.values, burden.spread[()]
    least, most, many = values[0], values[0], 0
    for worker in range(values.shape[0]):
        value = values[worker]
        most = max(most, value)
        if value < least:
            least, many = value, 0
        many += value == least
    spread["least"], spread["at_least"], spread["most"] = least, many, most
    spread["scale"] = 1.0 / (most - least) if most > least else 0.0


@kernel
def _raised(burden: Spread, old: Whole | float, new: Whole | float) -> None:
    """One worker's value has grown."""
    spread = burden.spread[()]
    if old == spread["least"]:
        # `at_least` counts the workers at the minimum. All are looked at again only when the last of them has
        # left it.
        spread["at_least"] -= 1
        if spread["at_least"] == 0:
            _measure(burden)
    if new > spread["most"]:
        spread["most"] = new
        spread["scale"] = 1.0 / (new - spread["least"]) if new > spread["least"] else 0.0


@kernel
def _least_hybrid(key: np.uint64, among: Candidates, hybrid: Hybrid) -> np.int64:
    loads, keys = hybrid.loads, hybrid.keys
    # Tuples and keys can be added because both are scaled to 0 .. 1 by the least and the most of all workers.
    by_load = hybrid.p * loads.spread[()]["scale"]
    by_keys = (1.0 - hybrid.p) * keys.spread[()]["scale"]
    least_load, fewest_keys = loads.spread[()]["least"], keys.spread[()]["least"]
    best, least = np.int64(-1), 0.0
    for i in range(among.family.shape[0]):
        other = candidate_kernel(key, among.family[i], among.workers)
        burden = by_load * (loads.values[other] - least_load) + by_keys * (keys.values[other] - fewest_keys)
        if best < 0 or burden < least:
            best, least = other, burden
    return best


@kernel
def _route_exact(
    block: Block, among: Candidates, window: WindowLoads, pool: HolderPool, hybrid: Hybrid
) -> int:
    """Route until the pool has no room. Returns how many tuples were routed."""
    keys, times, costs, out = block
    loads, distinct = window.loads, pool.distinct
    _measure(hybrid.loads)
    _measure(hybrid.keys)
    row = 0
    while row < keys.shape[0]:
        if due(pool.clock, times[row]):
            advance_loads(window, times[row])
            advance_holders(pool, times[row])
            _measure(hybrid.loads)
            _measure(hybrid.keys)
        # One tuple may need two rows: one for the pair, and one for a key that is new.
        if room(pool) < 2:
            return row
        best = _least_hybrid(keys[row], among, hybrid)
        if touch_holder(pool, keys[row], best):
            _raised(hybrid.keys, distinct[best] - 1, distinct[best])
        add(window, best, costs[row])
        _raised(hybrid.loads, loads[best] - costs[row], loads[best])
        out[row] = best
        row += 1
    return row


@kernel
def _route_sketched(
    block: Block, among: Candidates, window: WindowLoads, sketches: WindowCardinalities, hybrid: Hybrid
) -> None:
    keys, times, costs, out = block
    loads, estimates = window.loads, sketches.whole.estimates
    _measure(hybrid.loads)
    unknown = True
    for row in range(keys.shape[0]):
        hashed = sketch_hash(keys[row])
        if due(sketches.clock, times[row]):
            advance_loads(window, times[row])
            advance_sketches(sketches, times[row])
            _measure(hybrid.loads)
            unknown = True
        # `estimates` holds -1 where nobody has asked yet, so every worker is asked before the values are
        # compared.
        if unknown:
            for worker in range(loads.shape[0]):
                estimate(sketches.whole, worker)
            _measure(hybrid.keys)
            unknown = False
        best = _least_hybrid(keys[row], among, hybrid)
        before = estimates[best]
        if touch_sketch(sketches, best, hashed):
            after = estimate(sketches.whole, best)
            if after > before:
                _raised(hybrid.keys, before, after)
        add(window, best, costs[row])
        _raised(hybrid.loads, loads[best] - costs[row], loads[best])
        out[row] = best


class LmOptions(CardinalityOptions):
    """Options of lm."""

    p: float = Field(0.5, ge=0, le=1, description="Weight of tuples. Distinct keys have the weight 1 - p.")


class Lm(CardinalityPartitioner):
    """Each key has d candidates. Every tuple takes the candidate with the least mean of tuples and keys."""

    options_type = LmOptions
    options: LmOptions

    def _start(self) -> None:
        super()._start()
        self._spreads = record(SPREAD), record(SPREAD)

    @property
    def _rule(self) -> str:
        return "the one with the least weighted mean of tuples and distinct keys"

    def _hybrid(self, keys: Int64s | Float64s) -> Hybrid:
        by_load, by_keys = self._spreads
        return Hybrid(Spread(self._loads.loads, by_load), Spread(keys, by_keys), self.options.p)

    def _route_exact(self, block: Block, holders: WindowHolders, row: int) -> int:
        pool, left = holders.pool, block.since(row)
        return row + int(_route_exact(left, self._among, self._loads, pool, self._hybrid(pool.distinct)))

    def _route_sketched(self, block: Block, sketches: WindowCardinalities) -> None:
        hybrid = self._hybrid(sketches.whole.estimates)
        _route_sketched(block, self._among, self._loads, sketches, hybrid)
