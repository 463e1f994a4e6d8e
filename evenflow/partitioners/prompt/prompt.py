"""Prompt: each micro-batch is planned as a whole, so that data blocks hold equally many tuples and keys.

Idea: when a batch has ended, everything about it is known. Its keys are listed by frequency (`accumulator`,
Algorithm 1). Then they are packed into as many data blocks as there are workers. Only keys of more than the
mean count may be split (`data_blocks`, Algorithm 2). A key's tuples go to its fragments in order of arrival.
`reduce_buckets` (Algorithm 3) is what the map tasks do with their data blocks.

Parameters: `order` of the list: "exact" (sorted when the batch ends) or "quasi" (kept in order by CountTree
while the batch arrives). With "quasi", `budget` is the number of renewals per key, and `smoothing` is the
weight of the newest batch in N_est and K_avg, the expected tuples and keys. `rest` says which data block
takes what is left of a split key: "tightest" as in the paper, or "roomiest", which is better (see
`data_blocks`). Unless the caller says when the batch interval ends, it ends with the greatest time of the
batch.
Cost per tuple: O(1), one access to a hash table of the batch's keys. A batch costs what Algorithm 2 costs.
State: three numbers, and room for a batch: 24 to 64 bytes per key (quasi: 48 to 96 more) of the batch with
the most keys. Most of the room is given back when later batches are far smaller. While a batch fills, 4 bytes
per tuple. The paper releases a batch 5 % early and plans it in the time gained. The partitioner service does
so.
Paper: Abdelhamid, PhD thesis 2021 (001), chapter 2.

`a` is large, so its tuples are cut into fragments for three data blocks:

    >>> create("prompt", workers=4).assign_batch(keys, times).tolist()
    [0, 2, 0, 2, 1, 1]
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from evenflow.numeric.arrays import Int64s, State
from evenflow.partitioners.explanation import Explanation
from evenflow.partitioners.papers import MICRO_BATCHES
from evenflow.partitioners.prompt.accumulator import Accumulator
from evenflow.partitioners.prompt.buffered import BufferedPartitioner
from evenflow.partitioners.prompt.data_blocks import DataBlockPlan, plan_data_blocks
from evenflow.text.options import Options


class PromptOptions(Options):
    """Options of prompt."""

    order: Literal["exact", "quasi"] = Field(
        "exact",
        description="Keys are sorted by count at the end of the batch, or nearly so while it arrives.",
    )
    budget: int = Field(
        8, ge=1, le=1 << 20, description="Renewals of a key's place per batch. Only for order=quasi."
    )
    smoothing: float = Field(
        0.3, gt=0, le=1, description="Weight of the newest batch in the expected size. Only for order=quasi."
    )
    rest: Literal["tightest", "roomiest"] = Field(
        "tightest",
        description=(
            "Data block for what is left of a large key: the one with the least room that holds all of it"
            " (the paper), or the one with the most room (fewer splits, more even cardinality)."
        ),
    )


class Prompt(BufferedPartitioner):
    """Each micro-batch is cut into data blocks of equal size and cardinality. Few keys are split."""

    options_type = PromptOptions
    papers = (MICRO_BATCHES,)
    options: PromptOptions

    def _start(self) -> None:
        options = self.options
        self._buffer = Accumulator(order=options.order, budget=options.budget, smoothing=options.smoothing)
        self._large = 0

    def _plan(self, counts: Int64s) -> DataBlockPlan:
        plan = plan_data_blocks(counts, self.workers, rest=self.options.rest)
        self._large = plan.large
        return plan

    def _state(self) -> State:
        return {"past": self._buffer.past, "large": np.array([self._large], np.int64)}

    def _load_state(self, state: State) -> None:
        self._buffer.past[()] = state["past"]
        self._large = int(state["large"][0])

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        return Explanation(
            rule=(
                "decided batch by batch: a key of more than the mean count of"
                " its batch may be split over data blocks"
            ),
            workers=None,
        )

    def _head_keys(self) -> int:
        """Keys above the mean count in the last batch. Only these may be split."""
        return self._large
