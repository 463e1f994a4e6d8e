"""What cm, am, cam and lm share: the distinct keys C[w] and the load L[w] of each worker w in a window.

A load is the number of a worker's tuples, or with costs the sum of what they cost.

C is exact or estimated. Exact sets (`sketches.window_holders`) cost O(1) amortised, and their memory grows
with the distinct keys of the window. A HyperLogLog per worker (`window_cardinalities`) takes 2^precision
bytes per worker, and slides + 2 times as much in a sliding window.

HyperLogLog cannot say for certain whether a worker has a key. 004 answers yes when adding the key would
change no register. For a worker that has the key this answer is never wrong. A key that the worker does not
have is taken for an old key with probability 1 - sum(2^-M)/m. With few keys per worker that is rare, and with
25 keys per register it is 97 %. (004 compares rounded estimates, which errs more often.)

By default the window slides, and old tuples are forgotten exactly. `tumbling` is the window of 004. A rescale
begins a new window, because keys then have other candidates.
Paper: Katsipoulakis et al., "A Holistic View of Stream Partitioning Costs", VLDB 2017 (004), Alg. 1.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import numpy as np
from pydantic import Field

from evenflow.keys import Candidates, candidate_kernel, candidates, workers_of
from evenflow.numeric.arrays import NEVER, State
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.affinity import window_cardinalities
from evenflow.partitioners.affinity.window_cardinalities import WindowCardinalities
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation, Holder
from evenflow.partitioners.papers import HOLISTIC_VIEW
from evenflow.partitioners.window import SlidingWindow
from evenflow.sketches import window_holders
from evenflow.sketches.hyperloglog import Registers, estimate
from evenflow.sketches.window_holders import WindowHolders
from evenflow.sketches.window_loads import WindowLoads


@kernel
def least_estimated(key: np.uint64, among: Candidates, rows: Registers) -> np.int64:
    """The candidate with the fewest distinct keys by estimate. The first candidate on a tie."""
    family, workers = among.family, among.workers
    best = candidate_kernel(key, family[0], workers)
    if family.shape[0] > 1:
        least = estimate(rows, best)
        for i in range(1, family.shape[0]):
            other = candidate_kernel(key, family[i], workers)
            cardinality = estimate(rows, other)
            if cardinality < least:
                best, least = other, cardinality
    return best


class CardinalityOptions(SlidingWindow):
    """Options of cm, am and cam."""

    d: int = Field(2, ge=1, le=1024, description="Candidates of each key.")
    cardinality: Literal["exact", "hll"] = Field(
        "exact", description="How distinct keys per worker are known: exact sets, or HyperLogLog sketches."
    )
    precision: int = Field(
        12, ge=4, le=16, description="2^precision registers per worker and slide. Only for cardinality=hll."
    )


_VARIABLE: dict[str, tuple[str, ...]] = {
    f"key_{name}": sizes for name, sizes in window_holders.VARIABLE.items()
}


class CardinalityPartitioner(Partitioner):
    """Keeps the state of the window. A subclass implements the two ways to route: exact and sketched."""

    options_type = CardinalityOptions
    papers = (HOLISTIC_VIEW,)
    takes_costs = True
    options: CardinalityOptions
    variable_state = _VARIABLE

    @property
    def _most_holders(self) -> int:
        """On how many workers a key of the window can be at most."""
        return self._choices()

    def _start(self) -> None:
        options = self.options
        self._among = candidates(self.seed, options.d, self.workers)
        self._loads = options.new_loads(self.workers)
        self._holders: WindowHolders | None = None
        self._sketches: WindowCardinalities | None = None
        if options.cardinality == "exact":
            self._holders = options.new_holders(self.workers)
        else:
            self._sketches = window_cardinalities.window_cardinalities(
                self.workers, options.precision, **options.lengths
            )
            options.hold(self._sketches.clock)

    def _assign(self, block: Block) -> None:
        if self._sketches is not None:
            self._route_sketched(block, self._sketches)
        elif self._holders is not None:
            row = 0
            # A kernel cannot allocate, so it stops when the pool is full and goes on after `grow`.
            while (row := self._route_exact(block, self._holders, row)) < len(block.keys):
                self._holders.grow()
            self._holders.trim()

    @abstractmethod
    def _route_exact(self, block: Block, holders: WindowHolders, row: int) -> int:
        """Route from row `row` on. Returns the row for which the pool has no room, or the number of rows."""

    @abstractmethod
    def _route_sketched(self, block: Block, sketches: WindowCardinalities) -> None:
        """Route the block."""

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        among = workers_of(int(key), self._among)
        return Explanation(
            rule=f"{self._rule} of its {self.options.d} candidates",
            workers=tuple(dict.fromkeys(among)),
            home=among[0],
            holders=self._known_holders(key, now) or tuple(map(self._holder, dict.fromkeys(among))),
        )

    @property
    def _rule(self) -> str:
        """Which of the candidates is taken, in words."""
        return "the one with the fewest distinct keys"

    def _holder(self, worker: int, slide: int = NEVER) -> Holder:
        """The worker with the distinct keys that it has. slide: the one in which it last got the key."""
        keys: float | None = None
        if self._holders is not None:
            keys = float(self._holders.pool.distinct[worker])
        elif self._sketches is not None:
            keys = float(estimate(self._sketches.whole, worker))
        begin = None if slide == NEVER else slide * self.options.lengths["slide_ms"]
        return Holder(worker=worker, load=keys, last=begin)

    def _known_holders(self, key: np.uint64, now: int | None) -> tuple[Holder, ...]:
        """The workers that hold the key in the window.
        None with sketches, which do not know that for certain.
        """
        holder_slides = {} if self._holders is None else self._holders.held_at(int(key), now)
        return tuple(self._holder(worker, slide) for worker, slide in holder_slides.items())

    def _state(self) -> State:
        arrays: State = {}
        if self._holders is not None:
            arrays = self._holders.snapshot()
        elif self._sketches is not None:
            arrays = self._sketches.state
        return {
            **{f"load_{name}": array for name, array in self._loads._asdict().items()},
            **{f"key_{name}": array for name, array in arrays.items()},
        }

    def _load_state(self, state: State) -> None:
        self._loads = WindowLoads(**_part(state, "load_"))
        if self._holders is not None:
            self._holders.load(_part(state, "key_"))
        else:
            self._sketches = window_cardinalities.restored(_part(state, "key_"))

    def _choices(self) -> int:
        return min(self.options.d, self.workers)

    def _state_bytes(self) -> int:
        size = 0
        if self._holders is not None:
            size = self._holders.nbytes
        elif self._sketches is not None:
            size = self._sketches.nbytes
        return size + sum(array.nbytes for array in self._loads)

    def _state_bound(self, keys: int) -> int:
        if self._holders is None:
            return self._state_bytes()
        return self._holders.bound(keys, self._most_holders) + sum(array.nbytes for array in self._loads)


def _part(state: State, prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): state[name] for name in state if name.startswith(prefix)}
