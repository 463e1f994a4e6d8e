"""Shuffle (SG): round robin, whatever the key.

Idea: the tuples are balanced perfectly. The price is that every key is on every worker.
Parameters: none. Source s of S starts at worker s*n/S, so that several sources do not march in step. Costs of
tuples count in its figures, and change nothing else. Cost per tuple: one comparison. State: the next worker
(8 bytes).
Paper: the baseline "SG" of Nasir et al., ICDE 2016 (002).

The loads are level, and `a` is on three workers:

    >>> create("shuffle", workers=4).assign(keys, times).tolist()
    [0, 1, 2, 3, 0, 1]
"""

from __future__ import annotations

import numpy as np

from evenflow.numeric.arrays import Int32s, Int64s, State
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation
from evenflow.partitioners.papers import TWO_CHOICES


@kernel
def _route(turn: Int64s, workers: int, out: Int32s) -> None:
    worker = turn[0]
    for row in range(out.shape[0]):
        out[row] = worker
        worker += 1
        # A comparison, because a modulo is an integer division and slower.
        if worker == workers:
            worker = 0
    turn[0] = worker


class Shuffle(Partitioner):
    """Tuples go to the workers in turn: perfect balance, every key everywhere."""

    papers = (TWO_CHOICES,)
    takes_costs = True

    def _start(self) -> None:
        self._turn = np.array([self.source * self.workers // self.sources], np.int64)

    def _assign(self, block: Block) -> None:
        _route(self._turn, self.workers, block.out)

    def _state(self) -> State:
        return {"turn": self._turn}

    def _load_state(self, state: State) -> None:
        self._turn = state["turn"]

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        turn = int(self._turn[0])
        return Explanation(
            rule=f"workers take turns, whatever the key is: the next is worker {turn}", workers=(turn,)
        )

    def _choices(self) -> int:
        return self.workers
