"""PartLy: a policy that was trained by reinforcement learning plans each micro-batch,
in place of Prompt's rules.

Idea: as with Prompt, everything about a batch is known when it has ended. The policy takes its most frequent
keys, one after the other, and says into how many data blocks each is cut and which ones (`actions`). A rule
places all other keys whole (`rest`). The policy was trained on simulated batches against a cost that counts
what Prompt counts: data blocks above the mean in tuples, in keys, and split keys (`cost`). So its data blocks
hold equally many keys, and it splits far fewer keys than Prompt. They differ by some tuples, which Prompt's
do not.

Parameters: `policy` names a file that `evenflow train partly` has written. Without it the policy that ships
with evenflow is used, which serves any number of data blocks. A policy that was trained for one number serves
that number only. After a rescale to another one, Prompt plans. `fallback`: each batch is planned by Prompt
too, and Prompt's plan is used where it costs less. The snapshot counts the batches that Prompt planned
(`by_prompt`).

Deviations from the paper, with the reasons: `actions` (data blocks by their order, not their number),
`episode` (what is observed of the matrix of keys and data blocks), `cost` and `reward`. So one small network
serves batches of any size over any number of data blocks.

Cost per tuple: O(1), one access to a hash table of the batch's keys. A batch over P data blocks costs a sort
of its K keys, O(P) and the network for each of 8 P keys, and O(K). `fallback` adds what Prompt's plan costs.
State: three numbers, and room for a batch as in `prompt`: 24 to 64 bytes per key of the batch with the most
keys.
Paper: Abdelhamid, PhD thesis 2021 (001), chapter 4.

The tuples of `a` are cut into three data blocks:

    >>> create("partly", workers=4).assign_batch(keys, times).tolist()
    [0, 0, 3, 1, 1, 2]
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from pydantic import Field

from evenflow.numeric.arrays import Int64s, State
from evenflow.partitioners.explanation import Explanation
from evenflow.partitioners.papers import MICRO_BATCHES
from evenflow.partitioners.partly.network import TrainedPolicy, load_policy
from evenflow.partitioners.partly.planner import plan_batch, plan_cost
from evenflow.partitioners.prompt.accumulator import Accumulator
from evenflow.partitioners.prompt.buffered import BufferedPartitioner
from evenflow.partitioners.prompt.data_blocks import KeyPlacement, plan_data_blocks
from evenflow.text.options import Options


@cache
def shipped_policy() -> TrainedPolicy:
    """The policy that ships with evenflow."""
    return load_policy(Path(__file__).with_name("policy.evenflow"))


class PartLyOptions(Options):
    """Options of partly."""

    policy: str | None = Field(
        None,
        description="File of a policy (`evenflow train partly`). None = the policy that ships with evenflow.",
    )
    fallback: bool = Field(
        True, description="Prompt plans too, and its plan is used for a batch where it costs less."
    )


class PartLy(BufferedPartitioner):
    """A trained policy cuts each micro-batch into data blocks. Very few keys are split."""

    options_type = PartLyOptions
    papers = (MICRO_BATCHES,)
    options: PartLyOptions

    def _start(self) -> None:
        path = self.options.policy
        self._policy = shipped_policy() if path is None else load_policy(Path(path))
        self._policy.check_serves(self.workers)
        self._buffer = Accumulator()
        self._head = 0
        self.by_prompt = 0
        """Batches that Prompt planned."""

    @property
    def by_fallback(self) -> int | None:
        """Batches that Prompt planned, of which the snapshot knows."""
        return self.by_prompt

    def _plan(self, counts: Int64s) -> KeyPlacement:
        serves = self._policy.serves(self.workers)
        if serves:
            plan = plan_batch(counts, self.workers, self._policy)
            self._head = plan.head
            if not self.options.fallback:
                return plan
        by_prompt = plan_data_blocks(counts, self.workers)
        if serves and plan_cost(counts, plan, self.workers) <= plan_cost(counts, by_prompt, self.workers):
            return plan
        self._head = by_prompt.large
        self.by_prompt += 1
        return by_prompt

    def _state(self) -> State:
        numbers = {"head": self._head, "by_prompt": self.by_prompt}
        return {"past": self._buffer.past, **{name: np.array([n], np.int64) for name, n in numbers.items()}}

    def _load_state(self, state: State) -> None:
        self._buffer.past[()] = state["past"]
        self._head = int(state["head"][0])
        self.by_prompt = int(state["by_prompt"][0])

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        return Explanation(
            rule=(
                "decided batch by batch: a trained policy may split the most"
                " frequent keys of the batch over data blocks"
            ),
            workers=None,
        )

    def _head_keys(self) -> int:
        """Keys of the last batch that its plan might split: those that the policy decided about, or
        Prompt's large keys.
        """
        return self._head
