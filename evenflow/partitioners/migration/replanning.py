"""What schemes share that plan anew where keys go whenever a stretch of event time has ended."""

from __future__ import annotations

from abc import abstractmethod
from copy import deepcopy

import numpy as np

from evenflow.numeric.arrays import Rows
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation
from evenflow.sketches.window_loads import moves


class ReplanningPartitioner(Partitioner):
    """Routes tuples until a stretch ends, then plans. A subclass implements the three methods below."""

    _clock: Rows
    """One of CLOCK. The stretch is its slide, and its field `row` is not used."""

    @abstractmethod
    def _route(self, block: Block, row: int) -> int:
        """Route tuples from this row on.
        The row of the first one that ends the stretch, or the number of rows.
        """

    @abstractmethod
    def _begin(self, time: int) -> None:
        """Plan, if the stretch had tuples, and begin the stretch of this time."""

    @abstractmethod
    def _explain_now(self, key: np.uint64) -> Explanation:
        """Explain a key whose next tuple ends no stretch."""

    def _assign(self, block: Block) -> None:
        row = 0
        while True:
            row = self._route(block, row)
            if row == len(block.keys):
                break
            self._begin(int(block.times[row]))

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        if now is None or not moves(self._clock, now):
            return self._explain_now(key)
        after = deepcopy(self)
        after._begin(now)
        return after._explain_now(key)
