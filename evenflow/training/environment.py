"""Gymnasium environment: one batch is one episode, and one action places one key (001, sections 4.5 and 4.6).

`evenflow/PartitionBatch-v0`. It runs the planner's own kernels, so what is trained in it is what plans
batches. An action is a number below the number of actions of its stage (`partly.actions`). Rewards are those
of `partly.reward`.

view: what is observed.

* "sums" is what the shipped policy sees (`partly.episode`): FEATURES numbers, whatever the batch is.
* "matrix" is the paper's state: the counts of the head's keys as shares of a mean data block (at most 1),
  zero padded, and the matrix of keys and data blocks, row by row. An entry is the share of the key that lies
  in the data block. The law must have one number of data blocks.

The info at the end of an episode has `cost` (of the plan, `partly.cost`) and `fragments` (for each key).
"""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from evenflow.errors import ConfigError
from evenflow.partitioners.partly.actions import STAGES, actions_of
from evenflow.partitioners.partly.cost import cost_of
from evenflow.partitioners.partly.episode import (
    ALL_TUPLES,
    AT,
    FEATURES,
    FRAGMENTS,
    HEAD,
    TUPLES,
    begin,
    observe,
)
from evenflow.partitioners.partly.planner import new_episode
from evenflow.partitioners.partly.reward import Rewards, play
from evenflow.training.batches import BatchLaw, TrainingBatch

BoxValues = npt.NDArray[np.float32]


class PartitionBatch(gymnasium.Env[BoxValues, np.int64]):
    """Plans batches of a law.

    keys_each: keys of the head for each data block. stage: of the actions, 1 to 3. partial: whether there are
    partial rewards. rewards: all about the rewards, in place of `partial`. ConfigError for a value out of
    range.
    """

    def __init__(
        self,
        *,
        law: BatchLaw | None = None,
        keys_each: int = 8,
        stage: int = len(STAGES),
        partial: bool = True,
        rewards: Rewards | None = None,
        view: Literal["sums", "matrix"] = "sums",
    ) -> None:
        self.law = law or BatchLaw()
        if keys_each < 1 or not 1 <= stage <= len(STAGES):
            raise ConfigError(f"keys_each must be at least 1, and stage from 1 to {len(STAGES)}")
        low, high = self.law.data_blocks
        if view == "matrix" and low != high:
            raise ConfigError(
                f"a matrix has one number of columns, but the law draws {low} to {high} data blocks",
                hint="give a law of one number of data blocks, or view='sums'",
            )
        self._keys_each, self._rewards = keys_each, rewards or Rewards(partial)
        self._matrix = np.zeros((keys_each * high, high), np.float32) if view == "matrix" else None
        self.action_space = Discrete(actions_of(stage))
        if self._matrix is None:
            self.observation_space = Box(0, 2, (FEATURES,), np.float32)
        else:
            self.observation_space = Box(0, 1, (keys_each * high * (1 + high),), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[BoxValues, dict[str, Any]]:
        """Begin an episode with the next batch of the law, or with `options["batch"]`, a `TrainingBatch`."""
        super().reset(seed=seed, options=options)
        batch: TrainingBatch | None = (options or {}).get("batch")
        # A named tuple is true, whatever it holds.
        counts, data_blocks = batch or self.law.draw(self.np_random)
        self._episode, self._passes = new_episode(counts, data_blocks)
        self._rest = np.zeros(len(counts), np.int32)
        begin(self._episode, self._keys_each)
        if self._matrix is not None:
            self._matrix[:] = 0
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[BoxValues, float, bool, bool, dict[str, Any]]:
        """Place the next key. The episode terminates with the last key of the head."""
        episode, facts = self._episode, self._episode.facts
        key, fragments = int(facts[AT]), int(facts[FRAGMENTS])
        reward = play(episode, self._passes, self._rest, np.int64(action), self._rewards)
        new_fragments = int(facts[FRAGMENTS]) - fragments
        if self._matrix is not None:
            self._matrix[key, episode.chosen[:new_fragments]] = (
                episode.pieces[:new_fragments] / episode.counts[key]
            )
        over = bool(facts[AT] == facts[HEAD])
        return self._observation(), float(reward), over, False, self._figures() if over else {}

    def _figures(self) -> dict[str, Any]:
        episode = self._episode
        tuples, keys = int(episode.facts[ALL_TUPLES]), len(episode.counts)
        fragments = int(episode.cardinalities.sum()) / keys
        cost = cost_of(episode.sizes, episode.cardinalities, tuples, keys, fragments - 1)
        return {"cost": cost, "fragments": fragments}

    def _observation(self) -> BoxValues:
        if self._matrix is not None:
            counts = np.zeros(len(self._matrix), np.float32)
            head = int(self._episode.facts[HEAD])
            mean = self._episode.facts[TUPLES] / len(self._episode.sizes)
            counts[:head] = np.minimum(1, self._episode.counts[:head] / mean)
            return np.concatenate([counts, self._matrix.ravel()])
        out = np.zeros(FEATURES, np.float32)
        observe(self._episode, out)
        return out
