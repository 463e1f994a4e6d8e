"""DKG of Rivetti et al. (distribution-aware key grouping): learn the frequent keys first,
then place all keys once.

Idea: the first `learning` tuples are counted in two ways. A SpaceSaving summary finds the heavy hitters, and
every tuple also counts in the one of mu*n cells that its key's hash names. After the last of these tuples, a
key is a heavy hitter if its guaranteed frequency (count - error) is at least theta*m, rounded up. Its
frequency is taken out of its cell. Then heavy hitters and cells are placed by greedy scheduling: the largest
first, each on the worker with the least load so far. From then on a heavy hitter goes to its worker, and any
other key to the worker of its cell. The mapping stays as it is, so it does not follow keys that become hot
later.

Parameters: `learning` tuples m that are counted (10,000). `theta` frequency from which a key is a heavy
hitter (1/(5n)). `precision` theta/epsilon, where the summary has 1/epsilon counters (2, as in the authors'
code). `cells` for each worker, mu (10). Measured at Zipf 0.8 with 16 workers, 2 cells are too coarse: the
imbalance is 0.018 instead of 0.004.
Differences from the published code: the authors drop the tuples of the learning phase. Here they go to F_1,
so a key may have two workers: that of its hash, and its own after learning. That is the one time at which
keys move. The hash of the cells is F_1 over mu*n places instead of a random linear function.
Decisions: ties are settled by number, cells before heavy hitters and these in the order of their hashes.
A cell in which no tuple was counted has no weight, and all such cells are placed last, on the least loaded
worker. A rescale begins to learn again, because the cells of another number of workers are others. Each of
several sources learns by itself.

Cost per tuple: O(1). Placing costs O((1/theta + mu*n) log n) once. State: 80 to 96 bytes x counters
(precision/theta), and 12 bytes x mu*n.
Paper: Rivetti et al., "Efficient Key Grouping for Near-Optimal Load Balancing in Stream Processing Systems",
DEBS 2015. The rule is that of the authors' code for Apache Storm. The text of the paper was not at hand.

After four tuples `a` is a heavy hitter, and gets a worker of its own:

    >>> create("dkg-rivetti", workers=4, learning=4, theta=0.5).assign(keys, times).tolist()
    [3, 3, 1, 3, 2, 0]
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from pydantic import Field

from evenflow.errors import ConfigError
from evenflow.keys import candidate, candidate_kernel, candidates, salts, workers_of
from evenflow.numeric.arrays import Int32s, Int64s, State
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation, Holder
from evenflow.partitioners.papers import EFFICIENT_KEY_GROUPING
from evenflow.sketches.least_loaded import raised, rebuild, tournament, winner
from evenflow.sketches.space_saving import SpaceSaving, SpaceSavingSummary, find, offer
from evenflow.text.options import Options

_MOST_COUNTERS = 1 << 24
_MOST_CELLS = 1 << 24
_NOWHERE = -1


class KeyMapping(NamedTuple):
    """What is learned of keys, and where they are placed: what kernels take as one argument."""

    summary: SpaceSavingSummary
    """SpaceSaving counts of the frequent keys while the partitioner learns."""
    placed: Int32s
    """(counters,): the worker of each entry of the summary that is a heavy hitter, or -1."""
    weights: Int64s
    """(cells,): tuples of each cell. After learning, without those of heavy hitters."""
    owners: Int32s
    """(cells,): the worker of each cell."""
    salt: np.uint64
    """The salt of F_1."""


@kernel
def _learn(block: Block, mapping: KeyMapping, workers: int) -> None:
    keys, out = block.keys, block.out
    salt, weights = mapping.salt, mapping.weights
    cells = np.uint64(weights.shape[0])
    for row in range(keys.shape[0]):
        key = keys[row]
        offer(mapping.summary, key, 1)
        weights[candidate_kernel(key, salt, cells)] += 1
        out[row] = candidate_kernel(key, salt, np.uint64(workers))


@kernel
def _route(block: Block, mapping: KeyMapping) -> None:
    keys, out = block.keys, block.out
    placed, owners, salt = mapping.placed, mapping.owners, mapping.salt
    cells, nobody = np.uint64(owners.shape[0]), np.uint32(placed.shape[0])
    for row in range(keys.shape[0]):
        key = keys[row]
        at = find(mapping.summary, key)
        worker = np.int64(_NOWHERE)
        if at != nobody:
            worker = np.int64(placed[at])
        if worker == _NOWHERE:
            worker = np.int64(owners[candidate_kernel(key, salt, cells)])
        out[row] = worker


@kernel
def _schedule(weights: Int64s, order: Int64s, loads: Int64s, tree: Int64s, chosen: Int32s) -> None:
    """Greedy scheduling: each weight, in this order, to the worker that has the least load so far."""
    rebuild(tree, loads)
    for step in range(order.shape[0]):
        at = order[step]
        worker = winner(tree)
        chosen[at] = worker
        loads[worker] += weights[at]
        raised(tree, loads, worker)


class DKGRivettiOptions(Options):
    """Options of dkg-rivetti. See the module's docstring."""

    learning: int = Field(
        10_000, ge=1, le=1 << 40, description="Tuples that are counted before keys are placed."
    )
    theta: float | None = Field(
        None,
        ge=1e-9,
        le=1,
        description="Share of the counted tuples from which a key is frequent. None = 1/(5n).",
    )
    precision: float = Field(
        2.0, ge=1, le=1000, description="The summary has precision/theta counters (theta/epsilon)."
    )
    cells: float = Field(10.0, ge=1, le=1000, description="Cells of hashed keys, for each worker (mu).")


_VARIABLE: dict[str, tuple[str, ...]] = dict.fromkeys(("keys", "counts", "errors", "placed"), ("counters",))


class DKGRivetti(Partitioner):
    """Learns frequent keys and cells of the others, then places both once, the largest first."""

    options_type = DKGRivettiOptions
    papers = (EFFICIENT_KEY_GROUPING,)
    options: DKGRivettiOptions
    variable_state = _VARIABLE

    def _start(self) -> None:
        options, n = self.options, self.workers
        self._theta = 1 / (5 * n) if options.theta is None else options.theta
        self._counts = SpaceSaving(min(math.ceil(options.precision / self._theta), _MOST_COUNTERS))
        cells = math.ceil(options.cells * n)
        if cells > _MOST_CELLS:
            raise ConfigError(f"{cells} cells, and {_MOST_CELLS} are the most", hint="lower cells")
        self._placed = np.full(self._counts.capacity, _NOWHERE, np.int32)
        self._weights = np.zeros(cells, np.int64)
        self._owners = np.zeros(cells, np.int32)
        self._salt = salts(self.seed, 1)[0]

    @property
    def _left(self) -> int:
        """How many tuples are still to be learned from."""
        return self.options.learning - self._counts.total

    def _assign(self, block: Block) -> None:
        mapping = KeyMapping(self._counts.summary, self._placed, self._weights, self._owners, self._salt)
        learned = min(self._left, len(block.keys))
        if learned:
            _learn(block.until(learned), mapping, self.workers)
            if not self._left:
                self._place()
        if learned < len(block.keys):
            _route(block.since(learned), mapping)

    def _place(self) -> None:
        """Place the heavy hitters and the cells."""
        keys, counts, errors = self._counts.counters()
        sure = counts - errors
        entries = self._counts.summary.order[self._counts.capacity - len(keys) :]  # in the order of `keys`
        heavy = np.flatnonzero(sure >= math.ceil(self._theta * self.options.learning))
        heavy = heavy[np.argsort(keys[heavy])]
        cells = len(self._weights)
        # A heavy hitter has a place of its own, so its cell is to weigh the other keys only.
        np.subtract.at(self._weights, candidate(keys[heavy], 1, cells, self.seed), sure[heavy])
        weights = np.concatenate([self._weights, sure[heavy]])
        chosen = np.zeros(len(weights), np.int32)
        order = np.argsort(-weights, kind="stable")
        _schedule(weights, order, np.zeros(self.workers, np.int64), tournament(self.workers), chosen)
        self._owners[:] = chosen[:cells]
        self._placed[entries[heavy]] = chosen[cells:]

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        counts, left, at = self._counts, self._left, self._counts.entry_of(int(key))
        hashed, cell = (
            workers_of(int(key), candidates(self.seed, 1, many))[0]
            for many in (self.workers, len(self._weights))
        )
        heavy = not left and at is not None and int(self._placed[at]) != _NOWHERE
        if left:
            home, rule = hashed, f"learning from {left} more tuples: its hash names the worker"
        elif heavy:
            home, rule = int(self._placed[at]), "frequent when keys were placed: it has a place of its own"
        else:
            home, rule = (
                int(self._owners[cell]),
                f"not frequent when keys were placed: as its cell {cell}",
            )
        return Explanation(
            rule=rule,
            workers=(home,),
            home=home,
            holders=(Holder(worker=home),),
            share=counts.estimate(int(key)) / counts.total if at is not None else None,
        )

    def _state(self) -> State:
        keys, counts, errors = self._counts.counters()
        inside = self._counts.summary.order[self._counts.capacity - len(keys) :]  # in the order of `keys`
        return {
            "heavy": np.array([self._counts.total, self._counts.least], np.int64),
            "keys": keys,
            "counts": counts,
            "errors": errors,
            "placed": self._placed[inside],
            "weights": self._weights,
            "owners": self._owners,
        }

    def _load_state(self, state: State) -> None:
        total, least = (int(value) for value in state["heavy"])
        if not 0 <= total <= self.options.learning:
            raise ValueError(f"{total} tuples learned of {self.options.learning}")
        self._counts = SpaceSaving.from_counters(
            self._counts.capacity, state["keys"], state["counts"], state["errors"], total=total, least=least
        )
        self._placed[: len(state["placed"])] = state["placed"]
        self._weights, self._owners = state["weights"], state["owners"]

    def _head_keys(self) -> int:
        return int(np.count_nonzero(self._placed != _NOWHERE))

    def _state_bytes(self) -> int:
        arrays = (*self._counts.summary, self._placed, self._weights, self._owners)
        return sum(array.nbytes for array in arrays)
