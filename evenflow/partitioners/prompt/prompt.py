"""Prompt: each micro-batch is planned as a whole, so that data blocks hold equally many tuples and keys.

Idea: when a batch has ended, everything about it is known. Its keys are listed by frequency
(`accumulator`, Algorithm 1), and packed into as many data blocks as there are workers, splitting only
keys of more than the mean count (`data_blocks`, Algorithm 2). A key's tuples go to its fragments in
order of arrival. What the map tasks do with their data blocks is `reduce_buckets` (Algorithm 3).

Parameters: `order` of the list, "exact" (sorted when the batch ends) or "quasi" (kept by CountTree while
it arrives, then `budget` renewals per key, and `smoothing` of N_est and K_avg over the batches). `rest`,
which data block takes what is left of a split key ("tightest" as in the paper, "roomiest" is better: see
`data_blocks`). The batch interval ends with the greatest time of the batch.
Cost per tuple: O(1), one access to a hash table of the batch's keys, and per batch that of Algorithm 2.
State: three numbers, and room for a batch: 24 to 64 bytes per key of the one with the most (quasi: 48 to 96
more), of which most is given back when later ones are far smaller. While one is planned, 4 per tuple.
Releasing the batch 5 % early, to plan in the time so gained, is the engine's business.
Paper: Abdelhamid, PhD thesis 2021 (001), chapter 2.

`a` is large, so its tuples are cut into fragments, here for three data blocks:

    >>> create("prompt", workers=4).assign_batch(keys, times).tolist()
    [0, 2, 0, 2, 1, 1]
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from evenflow.arrays import Int32s, Int64s, State, UInt64s
from evenflow.partitioners.base import Options, Partitioner
from evenflow.partitioners.prompt.accumulator import Accumulator
from evenflow.partitioners.prompt.data_blocks import dispatch, plan_data_blocks


class PromptOptions(Options):
    """Options of prompt."""

    order: Literal["exact", "quasi"] = Field(
        "exact", description="Keys sorted by count at the end of the batch, or nearly, while it arrives."
    )
    budget: int = Field(
        8, ge=1, le=1 << 20, description="Renewals of a key's place per batch; only for order=quasi."
    )
    smoothing: float = Field(
        0.3, gt=0, le=1, description="Weight of the newest batch in the expected size; only for order=quasi."
    )
    rest: Literal["tightest", "roomiest"] = Field(
        "tightest",
        description="Data block for what is left of a large key: the one with least room for all of it (the paper),"
        " or with most room (fewer splits, more even cardinality).",
    )


class Prompt(Partitioner):
    """Each micro-batch is cut into data blocks of equal size and cardinality. Few keys are split."""

    micro_batch = True
    options_type = PromptOptions
    options: PromptOptions

    def _start(self) -> None:
        options = self.options
        self._buffer = Accumulator(order=options.order, budget=options.budget, smoothing=options.smoothing)
        self._large = 0

    def _rescale(self) -> None:
        """Nothing is known of workers between batches, and what is known of batches stays true."""

    def _assign(self, keys: UInt64s, times: Int64s, out: Int32s) -> None:
        self._buffer.add(keys, times, end_ms=int(times.max()) + 1)
        batch = self._buffer.finish()
        plan = plan_data_blocks(batch.counts, self.workers, rest=self.options.rest)
        dispatch(plan, order=batch.order, entry=batch.entry, out=out)
        self._large = plan.large

    def _state(self) -> State:
        return {"past": self._buffer.past, "large": np.array([self._large], np.int64)}

    def _load_state(self, state: State) -> None:
        self._buffer.past[()] = state["past"]
        self._large = int(state["large"][0])

    def _choices(self) -> int:
        return self.workers

    def _head_keys(self) -> int:
        """Keys above the mean count in the last batch: those that may be split."""
        return self._large

    def _state_bytes(self) -> int:
        return self._buffer.nbytes + self._buffer.past.nbytes

    def _state_bound(self, keys: int) -> int:
        return self._buffer.bound(keys) + self._buffer.past.nbytes
