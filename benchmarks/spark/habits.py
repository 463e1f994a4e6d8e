"""How keys are placed where nobody balances them, as partitioners: only the placement differs then.

The pipeline routes by them like by any partitioner, under the name `benchmarks.spark.habits:Class`.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from evenflow.keys import candidate_kernel, salts
from evenflow.numeric.arrays import Int32s, Int64s, State, UInt64s
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation
from evenflow.text.options import Options


@kernel
def _route_groups(keys: UInt64s, salt: np.uint64, groups: np.uint64, workers: int, out: Int32s) -> None:
    for row in range(keys.shape[0]):
        group = candidate_kernel(keys[row], salt, groups)
        out[row] = group * workers // np.int64(groups)


@kernel
def _route_salted(keys: UInt64s, family: UInt64s, turn: Int64s, workers: np.uint64, out: Int32s) -> None:
    number = turn[0]
    for row in range(keys.shape[0]):
        out[row] = candidate_kernel(keys[row], family[number], workers)
        number = (number + 1) % family.shape[0]
    turn[0] = number


class KeyGroupsOptions(Options):
    """Options of `KeyGroups`."""

    groups: int = Field(default=128, ge=1, description="Key groups (Flink's maximum parallelism).")


class KeyGroups(Partitioner):
    """Flink's `keyBy`: a hash names one of 128 key groups, and each worker has a range of the groups."""

    options_type = KeyGroupsOptions
    options: KeyGroupsOptions
    key_policy = "hashing"

    def _start(self) -> None:
        self._salt = salts(self.seed, 1)[0]

    def _assign(self, block: Block) -> None:
        _route_groups(block.keys, self._salt, np.uint64(self.options.groups), self.workers, block.out)

    def _state(self) -> State:
        return {}

    def _load_state(self, state: State) -> None:
        pass

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        out = np.empty(1, np.int32)
        _route_groups(
            np.array([key], np.uint64), self._salt, np.uint64(self.options.groups), self.workers, out
        )
        return Explanation(rule="its key group names the worker", workers=(int(out[0]),))


class SaltedOptions(Options):
    """Options of `Salting`."""

    salts: int = Field(default=8, ge=1, description="Salts that the tuples of a key get in turn.")


class Salting(Partitioner):
    """Salting by hand: key and salt are hashed together, and each tuple gets the next of 8 salts."""

    options_type = SaltedOptions
    options: SaltedOptions

    def _start(self) -> None:
        self._family = salts(self.seed, self.options.salts)
        self._turn = np.zeros(1, np.int64)

    def _assign(self, block: Block) -> None:
        _route_salted(block.keys, self._family, self._turn, np.uint64(self.workers), block.out)

    def _state(self) -> State:
        return {"turn": self._turn}

    def _load_state(self, state: State) -> None:
        self._turn = state["turn"]

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        out = np.empty(1, np.int32)
        _route_salted(
            np.array([key], np.uint64), self._family, self._turn.copy(), np.uint64(self.workers), out
        )
        return Explanation(rule="its hash with the next salt names the worker", workers=(int(out[0]),))
