"""W-Choices: two choices for most keys, any worker for the frequent ones.

Idea: a key is *head* if a SpaceSaving summary counts at least theta of all tuples for it, and otherwise
*tail*. A tail key chooses the less loaded of F_1, F_2 as in PKG. A head key goes to the least loaded of all n
workers, the lowest number on a tie. So the frequent keys fill the hollows that the others leave. While head
keys are a fair share of the stream, the loads of one source differ by a tuple or two. The price is that each
head key is on every worker. d-choices finds how few workers would do.

Parameters: `theta` frequency from which a key is head (1/(5n)). `counters` of the summary (4/theta = 20n).
`warm_up` tuples before which no key is head (0). `window` of the loads: cumulative, sliding or tumbling.
`head`: a key is head by all tuples so far, whatever the window of the loads is (cumulative, as in the paper),
or by recent tuples (window).
Costs: loads and the frequencies of keys are sums of costs. `warm_up` counts tuples. A head key goes to the
worker with the least load before its tuple, whatever the tuple costs. Cost per tuple: O(1) for the summary
(with costs O(distinct counts that a tuple passes)), 2 candidates for the tail. The least loaded worker is
read off a tournament in O(1). Every tuple then updates the tournament in at most O(log n). State: 76 to 92
bytes x counters, 32 to 48 x n.
Paper: Nasir et al., "When Two Choices are not Enough", ICDE 2016 (002), Algorithm 1.

From the third tuple on, a key with 60 % of the tuples is head and goes to the least loaded worker:

    >>> create("w-choices", workers=4, theta=0.6, warm_up=2).assign(keys, times).tolist()
    [3, 1, 1, 0, 0, 2]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenflow.numeric.arrays import Int64s
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
from evenflow.sketches.least_loaded import raised, rebuild, tournament, winner
from evenflow.sketches.window_loads import advance, note


@kernel
def _route(block: Block, head: Head, tree: Int64s, rule: HeadRule) -> None:
    keys, times, costs, out = block
    window, loads = head.window, head.window.loads
    rebuild(tree, loads)
    for row in range(keys.shape[0]):
        key = keys[row]
        if is_older(head, times[row]):
            forget(head, times[row])
        # Loads fall only when slides leave. The tournament follows single loads, so it has to be played anew
        # then.
        if rule.windowed and advance(window, times[row]):
            rebuild(tree, loads)
        if offered_is_head(head, key, costs[row], rule):
            best = winner(tree)
            loads[best] += costs[row]
        else:
            best = send_to_one_of_two(head, key, costs[row])
        if rule.windowed:
            note(window, best, costs[row])
        raised(tree, loads, best)
        out[row] = best


class WChoices(HeadPartitioner):
    """Two choices for most keys, the least loaded of all workers for the frequent ones."""

    options_type = HeadOptions

    def _shape(self) -> None:
        super()._shape()
        self._tree = tournament(self.workers)

    def _assign(self, block: Block) -> None:
        _route(block, self._head(), self._tree, self._rule())

    def _explain_head(self, key: np.uint64, now: int | None, counted: KeyCount) -> Explanation:
        return self._explain_any(key, now, counted)

    def _choices(self) -> int:
        return self.workers

    def _more(self) -> tuple[npt.NDArray[Any], ...]:
        return (self._tree,)
