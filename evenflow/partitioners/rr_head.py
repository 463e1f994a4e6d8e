"""RR: two choices for most keys, round robin for the frequent ones.

Idea: the cheapest way to spread the head (see `head`) over all workers: its tuples take turns. The tail
sees the loads including the head's tuples and balances around them, but the head does not look at loads
and so does not fill the hollows that the tail leaves: 002 has it as the baseline for W-Choices.

Parameters: `theta` frequency from which a key is head (1/(5n)); `counters` of the summary (4/theta = 20n);
`warm_up` tuples before which no key is head (0); `load` cumulative or windowed, for the tail; `head`
cumulative, of all tuples so far whatever the load, as in the paper, or of the recent ones.
Source s of S starts its turns at worker s*n/S, as in shuffle, so that several sources do not march in
step (the paper does not say; one source starts at worker 0).
Cost per tuple: O(1) for the summary; 2 candidates for the tail, one comparison for the head. State: 76 to
92 bytes x counters, 2n loads, the next worker.
Paper: Nasir et al., "When Two Choices are not Enough", ICDE 2016 (002), section III ("Round-Robin").
"""

from __future__ import annotations

import numpy as np

from evenflow.arrays import Int32s, Int64s, State, UInt64s
from evenflow.kernels import kernel
from evenflow.partitioners.head import HeadOptions, HeadPartitioner, forget, is_older, offered_is_head
from evenflow.partitioners.pkg import sent_to_one_of_two
from evenflow.sketches.space_saving import Summary
from evenflow.sketches.window_loads import WindowLoads, advance, note


@kernel
def _route(
    keys: UInt64s,
    times: Int64s,
    out: Int32s,
    summary: Summary,
    ages: Int64s,
    window: WindowLoads,
    turn: Int64s,
    family: UInt64s,
    windowed: bool,
    theta: float,
    warm_up: int,
) -> None:
    loads = window.loads
    n = loads.shape[0]
    workers = np.uint64(n)
    one, two = family[0], family[1]
    for row in range(keys.shape[0]):
        if is_older(ages, times[row]):
            forget(summary, ages, times[row])
        if windowed:
            advance(window, times[row])
        if offered_is_head(summary, keys[row], theta, warm_up):
            best = turn[0]
            turn[0] = best + 1 if best + 1 < n else 0
            loads[best] += 1
        else:
            best = sent_to_one_of_two(keys[row], one, two, workers, loads)
        if windowed:
            note(window, best)
        out[row] = best


class RRHead(HeadPartitioner):
    """Two choices for most keys, all workers in turn for the frequent ones."""

    options_type = HeadOptions

    def _shape(self) -> None:
        super()._shape()
        self._turn = np.array([self.source * self.workers // self.sources], np.int64)

    def _assign(self, keys: UInt64s, times: Int64s, out: Int32s) -> None:
        self._route_by(_route, keys, times, out, self._turn)

    def _state(self) -> State:
        return {**super()._state(), "turn": self._turn}

    def _load_state(self, state: State) -> None:
        super()._load_state(state)
        self._turn = state["turn"]

    def _choices(self) -> int:
        return self.workers
