"""Hashing (key grouping, KG): every key has one worker, F_1(key).

Idea: no key is ever split, so nothing has to be merged. The price is that the loads are as uneven as the
keys.
Parameters: none. Costs of tuples count in its figures, and change nothing else. Cost per tuple: one mix and
one modulo. State: none.
Paper: the baseline "KG" of Nasir et al., ICDE 2016 (002). 004 calls it "FLD".

Each key has one worker, so all tuples of `a` go to worker 3:

    >>> create("hashing", workers=4).assign(keys, times).tolist()
    [3, 3, 1, 3, 0, 3]
"""

from __future__ import annotations

import numpy as np

from evenflow.keys import candidate_kernel, candidates, salts, workers_of
from evenflow.numeric.arrays import Int32s, State, UInt64s
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation, Holder
from evenflow.partitioners.papers import TWO_CHOICES


@kernel
def _route(keys: UInt64s, salt: np.uint64, workers: np.uint64, out: Int32s) -> None:
    for row in range(keys.shape[0]):
        out[row] = candidate_kernel(keys[row], salt, workers)


class Hashing(Partitioner):
    """Each key always goes to one worker: nothing to merge, and no protection against skew."""

    papers = (TWO_CHOICES,)
    key_policy = "hashing"
    hashed_homes = True
    takes_costs = True

    def _start(self) -> None:
        self._salt = salts(self.seed, 1)[0]

    def _assign(self, block: Block) -> None:
        _route(block.keys, self._salt, np.uint64(self.workers), block.out)

    def _state(self) -> State:
        return {}

    def _load_state(self, state: State) -> None:
        pass

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        (home,) = workers_of(int(key), candidates(self.seed, 1, self.workers))
        return Explanation(
            rule="its hash names the worker", workers=(home,), home=home, holders=(Holder(worker=home),)
        )
