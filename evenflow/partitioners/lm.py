"""LM (hybrid load minimisation): the candidate with the least weighted mean of tuples and distinct keys.

Idea: where a worker's effort grows with its tuples and with its keys, balance both: each tuple goes to
that of F_1(k)..F_d(k) with the least H = p L' + (1-p) C' (the first on a tie), where L' and C' are the
loads and the numbers of distinct keys scaled to 0..1 by the least and the largest over all workers
(0 when these are equal, which the paper leaves undefined). p = 1 is PKG of the window, p = 0 is CM.

Parameters: `p` weight of the tuples (0.5); `d` candidates (2); `cardinality` exact or hll, `precision`;
`mode`, `window_ms`, `slide_ms`.
Cost per tuple: O(d); the extremes are tracked, O(n) when the last worker leaves the minimum, which is
O(1) amortised while loads only grow, and O(n) per slide. State: see `cardinality`; loads as in `cam`.
Paper: 004, equations 7-9 and Algorithm 5 (LM-2, LM-2-H).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from evenflow.arrays import Float64s, Int32s, Int64s, UInt64s
from evenflow.kernels import kernel
from evenflow.keys import candidate_kernel
from evenflow.partitioners.cardinality import CardinalityOptions, CardinalityPartitioner
from evenflow.sketches.hyperloglog import estimate, sketch_hash
from evenflow.sketches.window_cardinalities import WindowCardinalities
from evenflow.sketches.window_cardinalities import advance as advance_sketches
from evenflow.sketches.window_cardinalities import touch as touch_sketch
from evenflow.sketches.window_holders import HolderPool, WindowHolders, room
from evenflow.sketches.window_holders import advance as advance_holders
from evenflow.sketches.window_holders import touch as touch_holder
from evenflow.sketches.window_loads import WindowLoads, add, due
from evenflow.sketches.window_loads import advance as advance_loads

_LEAST, _AT_LEAST, _MOST, _SCALE = range(4)
"""A spread: least value, how many workers have it, largest value, 1/(largest - least) or 0."""


@kernel
def _measure(values: Any, spread: Float64s) -> None:
    least, most, many = values[0], values[0], 0
    for worker in range(values.shape[0]):
        value = values[worker]
        most = max(most, value)
        if value < least:
            least, many = value, 0
        many += value == least
    spread[_LEAST], spread[_AT_LEAST], spread[_MOST] = least, many, most
    spread[_SCALE] = 1.0 / (most - least) if most > least else 0.0


@kernel
def _raised(values: Any, spread: Float64s, old: Any, new: Any) -> None:
    """One worker's value has grown."""
    if old == spread[_LEAST]:
        spread[_AT_LEAST] -= 1
        if spread[_AT_LEAST] == 0:
            _measure(values, spread)
    if new > spread[_MOST]:
        spread[_MOST] = new
        spread[_SCALE] = 1.0 / (new - spread[_LEAST]) if new > spread[_LEAST] else 0.0


@kernel
def _least_hybrid(
    key: np.uint64,
    family: UInt64s,
    workers: np.uint64,
    p: float,
    loads: Int64s,
    load_spread: Float64s,
    cardinalities: Any,
    spread: Float64s,
) -> np.int64:
    best, least = np.int64(-1), 0.0
    by_load, by_keys = p * load_spread[_SCALE], (1.0 - p) * spread[_SCALE]
    for i in range(family.shape[0]):
        other = candidate_kernel(key, family[i], workers)
        hybrid = by_load * (loads[other] - load_spread[_LEAST]) + by_keys * (
            cardinalities[other] - spread[_LEAST]
        )
        if best < 0 or hybrid < least:
            best, least = other, hybrid
    return best


@kernel
def _route_exact(
    keys: UInt64s,
    times: Int64s,
    family: UInt64s,
    workers: np.uint64,
    p: float,
    window: WindowLoads,
    pool: HolderPool,
    load_spread: Float64s,
    spread: Float64s,
    row: int,
    out: Int32s,
) -> int:
    distinct = pool.distinct
    loads = window.loads
    _measure(loads, load_spread)
    _measure(distinct, spread)
    while row < keys.shape[0]:
        if due(pool.clock, times[row]):
            advance_loads(window, times[row])
            advance_holders(pool, times[row])
            _measure(loads, load_spread)
            _measure(distinct, spread)
        if room(pool) < 2:
            return row
        best = _least_hybrid(keys[row], family, workers, p, loads, load_spread, distinct, spread)
        if touch_holder(pool, keys[row], best):
            _raised(distinct, spread, distinct[best] - 1, distinct[best])
        add(window, best)
        _raised(loads, load_spread, loads[best] - 1, loads[best])
        out[row] = best
        row += 1
    return row


@kernel
def _route_sketched(
    keys: UInt64s,
    times: Int64s,
    family: UInt64s,
    workers: np.uint64,
    p: float,
    window: WindowLoads,
    sketches: WindowCardinalities,
    load_spread: Float64s,
    spread: Float64s,
    out: Int32s,
) -> None:
    loads = window.loads
    estimates = sketches.whole.estimates
    _measure(loads, load_spread)
    unknown = True
    for row in range(keys.shape[0]):
        hashed = sketch_hash(keys[row])
        if due(sketches.clock, times[row]):
            advance_loads(window, times[row])
            advance_sketches(sketches, times[row])
            _measure(loads, load_spread)
            unknown = True
        if unknown:
            for worker in range(loads.shape[0]):
                estimate(sketches.whole, worker)
            _measure(estimates, spread)
            unknown = False
        best = _least_hybrid(keys[row], family, workers, p, loads, load_spread, estimates, spread)
        before = estimates[best]
        if touch_sketch(sketches, best, hashed):
            after = estimate(sketches.whole, best)
            if after > before:
                _raised(estimates, spread, before, after)
        add(window, best)
        _raised(loads, load_spread, loads[best] - 1, loads[best])
        out[row] = best


class LmOptions(CardinalityOptions):
    """Options of lm."""

    p: float = Field(0.5, ge=0, le=1, description="Weight of tuples; that of distinct keys is 1 - p.")


class Lm(CardinalityPartitioner):
    """Each key has d candidates; every tuple takes the one with the least mean of tuples and keys."""

    options_type = LmOptions
    options: LmOptions

    def _start(self) -> None:
        super()._start()
        self._spreads = np.zeros(4), np.zeros(4)

    def _route_exact(
        self, keys: UInt64s, times: Int64s, out: Int32s, holders: WindowHolders, row: int
    ) -> int:
        family, workers, p = self._family, np.uint64(self.workers), self.options.p
        return int(
            _route_exact(keys, times, family, workers, p, self._loads, holders.pool, *self._spreads, row, out)
        )

    def _route_sketched(
        self, keys: UInt64s, times: Int64s, out: Int32s, sketches: WindowCardinalities
    ) -> None:
        family, workers, p = self._family, np.uint64(self.workers), self.options.p
        _route_sketched(keys, times, family, workers, p, self._loads, sketches, *self._spreads, out)
