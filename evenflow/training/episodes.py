"""Many episodes side by side, stepped by one call of a kernel.
A step takes about a microsecond for each episode.

When an episode ends, the next one begins in its place at once, as Gymnasium's and Stable-Baselines3's vectors
do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.numeric.arrays import Bools, Float64s, Int32s, Int64s
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.partly.episode import AT, FACTS, FEATURES, HEAD, Episode, Float32s, begin, observe
from evenflow.partitioners.partly.rest import Passes
from evenflow.partitioners.partly.reward import Rewards, play
from evenflow.sketches.least_loaded import tournament
from evenflow.training.batches import BatchLaw


class _Many(NamedTuple):
    """The fields of `Episode` and `Passes` with one row for each episode, each as wide as the widest
    needs.
    """

    keys: Int64s
    """(episodes,): keys of each batch."""
    data_blocks: Int64s
    """(episodes,): data blocks of each batch."""
    tree: Int64s
    """(episodes,): places in the tournament of so many data blocks."""
    counts: Int64s
    """(episodes, most keys): `Episode.counts`."""
    sizes: Int64s
    """(episodes, most data blocks): `Episode.sizes`."""
    cardinalities: Int64s
    """(episodes, most data blocks): `Episode.cardinalities`."""
    facts: Int64s
    """(episodes, FACTS): `Episode.facts`."""
    chosen: Int64s
    """(episodes, most data blocks): `Episode.chosen`."""
    pieces: Int64s
    """(episodes, most data blocks): `Episode.pieces`."""
    scores: Float64s
    """(episodes, most data blocks): `Episode.scores`."""
    order: Int64s
    """(episodes, most data blocks): `Passes.order`."""
    trees: Int64s
    """(episodes, most places): `Passes.tree`."""
    data_block: Int32s
    """(episodes, most keys): room for the data blocks of the rest (`reward.play`)."""


@kernel
def _episode(many: _Many, row: int) -> Episode:
    """The arrays of one episode: views of its row, as long as its keys and data blocks are many."""
    keys, data_blocks = many.keys[row], many.data_blocks[row]
    return Episode(
        many.counts[row, :keys],
        many.sizes[row, :data_blocks],
        many.cardinalities[row, :data_blocks],
        many.facts[row],
        many.chosen[row, :data_blocks],
        many.pieces[row, :data_blocks],
        many.scores[row, :data_blocks],
    )


@kernel
def _begin(many: _Many, row: int, keys_each: int, observations: Float32s) -> None:
    episode = _episode(many, row)
    begin(episode, keys_each)
    observe(episode, observations[row])


@kernel
def _step(
    many: _Many, actions: Int64s, rule: Rewards, observations: Float32s, rewards: Float32s, ended: Bools
) -> None:
    for row in range(actions.shape[0]):
        keys, data_blocks = many.keys[row], many.data_blocks[row]
        episode = _episode(many, row)
        passes = Passes(many.order[row, :data_blocks], many.trees[row, : many.tree[row]])
        rewards[row] = play(episode, passes, many.data_block[row, :keys], actions[row], rule)
        ended[row] = episode.facts[AT] == episode.facts[HEAD]
        observe(episode, observations[row])


@dataclass(frozen=True, eq=False)
class StepOutcome:
    """What a step has brought, one row for each episode."""

    observations: Float32s
    """(episodes, FEATURES): observations.
    Of an episode that has ended it is the first one of the next episode.
    """
    rewards: Float32s
    """(episodes,): reward of the action."""
    ended: Bools
    """(episodes,): whether the action was the last one of its episode."""


class Episodes:
    """`number` episodes over batches of a law. `rewards` may be changed between two steps."""

    def __init__(
        self, number: int, law: BatchLaw, *, keys_each: int, rewards: Rewards, rng: np.random.Generator
    ) -> None:
        self.number, self._ended = number, 0
        self.rewards = rewards
        self._law, self._keys_each, self._rng = law, keys_each, rng
        keys, data_blocks = law.keys[1], law.data_blocks[1]

        def wide(width: int) -> Int64s:
            return np.zeros((number, width), np.int64)

        self._many = _Many(
            keys=np.zeros(number, np.int64),
            data_blocks=np.zeros(number, np.int64),
            tree=np.zeros(number, np.int64),
            counts=wide(keys),
            sizes=wide(data_blocks),
            cardinalities=wide(data_blocks),
            facts=wide(FACTS),
            chosen=wide(data_blocks),
            pieces=wide(data_blocks),
            scores=np.zeros((number, data_blocks)),
            order=wide(data_blocks),
            trees=wide(len(tournament(data_blocks))),
            data_block=np.zeros((number, keys), np.int32),
        )
        self._observations: npt.NDArray[np.float32] = np.zeros((number, FEATURES), np.float32)

    def reset(self) -> Float32s:
        """Begin every episode. The observations, shape (episodes, FEATURES)."""
        for row in range(self.number):
            self._begin(row)
        return self._observations.copy()

    def step(self, actions: Int64s) -> StepOutcome:
        """Play an action in each episode, each below ACTIONS."""
        rewards, ended = np.empty(self.number, np.float32), np.empty(self.number, np.bool_)
        _step(self._many, actions, self.rewards, self._observations, rewards, ended)
        for row in np.flatnonzero(ended):
            self._begin(int(row))
            self._ended += 1
        return StepOutcome(self._observations.copy(), rewards, ended)

    def take_ended(self) -> int:
        """How many episodes have ended since the last call."""
        ended, self._ended = self._ended, 0
        return ended

    def _begin(self, row: int) -> None:
        many = self._many
        counts, data_blocks = self._law.draw(self._rng)
        many.keys[row], many.data_blocks[row] = len(counts), data_blocks
        many.tree[row] = len(tournament(data_blocks))
        many.counts[row, : len(counts)] = counts
        _begin(many, row, self._keys_each, self._observations)
