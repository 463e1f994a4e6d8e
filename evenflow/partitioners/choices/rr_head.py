"""RR: two choices for most keys, round robin for the frequent ones.

Idea: a key is *head* if a SpaceSaving summary counts at least theta of all tuples for it, and otherwise
*tail*. The cheapest way to spread the head over all workers is to let its tuples take turns. A tail key
chooses the less loaded of F_1, F_2 as in PKG. The tail sees loads that include the head's tuples, and
balances around them. The head does not look at loads, so it does not fill the hollows that the tail leaves.
002 has this scheme as the baseline for W-Choices.

Parameters: `theta` frequency from which a key is head (1/(5n)). `counters` of the summary (4/theta = 20n).
`warm_up` tuples before which no key is head (0). `window` of the loads that the tail sees: cumulative,
sliding or tumbling. `head`: a key is head by all tuples so far, whatever the window of the loads is
(cumulative, as in the paper), or by recent tuples (window).
Source s of S starts its turns at worker s*n/S, as in shuffle, so that several sources do not march in step.
(The paper says nothing about sources. A single source starts at worker 0.)
Costs: the loads that the tail sees and the frequencies of keys are sums of costs. `warm_up` counts tuples,
and a turn is a tuple, whatever it costs. Cost per tuple: O(1) for the summary (with costs O(distinct counts
that a tuple passes)), 2 candidates for the tail, one comparison for the head. State: 76 to 92 bytes x
counters, 2n loads, the next worker.
Paper: Nasir et al., "When Two Choices are not Enough", ICDE 2016 (002), section III ("Round-Robin").

From the third tuple on, a key with 60 % of the tuples is head and takes turns:

    >>> create("rr-head", workers=4, theta=0.6, warm_up=2).assign(keys, times).tolist()
    [3, 1, 1, 0, 0, 1]
"""

from __future__ import annotations

import numpy as np

from evenflow.numeric.arrays import Int64s, State
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.base import Block
from evenflow.partitioners.choices.head import (
    Head,
    HeadOptions,
    HeadPartitioner,
    HeadRule,
    KeyCount,
    forget,
    is_older,
    offered_is_head,
    send_to_one_of_two,
)
from evenflow.partitioners.explanation import Explanation
from evenflow.sketches.window_loads import advance, note


@kernel
def _route(block: Block, head: Head, turn: Int64s, rule: HeadRule) -> None:
    keys, times, costs, out = block
    window, loads = head.window, head.window.loads
    n = loads.shape[0]
    for row in range(keys.shape[0]):
        key = keys[row]
        if is_older(head, times[row]):
            forget(head, times[row])
        if rule.windowed:
            advance(window, times[row])
        if offered_is_head(head, key, costs[row], rule):
            best = turn[0]
            turn[0] = best + 1 if best + 1 < n else 0
            loads[best] += costs[row]
        else:
            best = send_to_one_of_two(head, key, costs[row])
        if rule.windowed:
            note(window, best, costs[row])
        out[row] = best


class RRHead(HeadPartitioner):
    """Two choices for most keys, all workers in turn for the frequent ones."""

    options_type = HeadOptions

    def _shape(self) -> None:
        super()._shape()
        self._turn = np.array([self.source * self.workers // self.sources], np.int64)

    def _assign(self, block: Block) -> None:
        _route(block, self._head(), self._turn, self._rule())

    def _state(self) -> State:
        return {**super()._state(), "turn": self._turn}

    def _load_state(self, state: State) -> None:
        super()._load_state(state)
        self._turn = state["turn"]

    def _explain_head(self, key: np.uint64, now: int | None, counted: KeyCount) -> Explanation:
        turn = int(self._turn[0])
        return Explanation(
            rule=f"frequent: all workers take turns, the next is worker {turn}",
            workers=(turn,),
            share=counted.count / counted.total,
        )

    def _choices(self) -> int:
        return self.workers
