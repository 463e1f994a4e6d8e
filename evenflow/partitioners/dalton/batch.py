"""Dalton for micro-batches: the same bandit, which sees a batch as a whole before it decides.

Idea: a first pass counts the keys of the batch exactly, so that the hot keys are known before the first tuple
is placed. A key is hot if its frequency is f >= |B|/n, which is true of at most n keys. (Theorem 3.4 holds
exactly, because frequencies and load are of the same batch.) It is hot in this batch and the next. A key of
one tuple is never hot. Combiners reduce each batch by itself, so X(k) begins empty with every batch. What was
learned stays.

Parameters: those of `dalton` without the statistics window. `load_scope` says which loads the reward
balances: those of the sliding window (the paper changes only X), or those of the batch, which a combiner
works through at a time.
Cost per tuple: two O(1) passes. O(n * rows) per batch. State: as `dalton`, at most 2n rows with room for n
more, and 64 to 128 bytes of working memory per distinct key of the largest batch.
Paper: Zapridou et al., PVLDB 16(3) 2022 (000), section 3.4.

`a` is hot in this batch. It stays at home until exploration finds a better worker:

    >>> create("dalton-batch", workers=4).assign_batch(keys, times).tolist()
    [3, 3, 1, 3, 0, 3]
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from evenflow.generation.draws import generator
from evenflow.keys import candidate_kernel, candidates, salts, workers_of
from evenflow.numeric.arrays import NEVER, State, UInt64s, Whole
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.dalton import split_keys
from evenflow.partitioners.dalton.bandit import BanditOptions, BanditPolicy, choose, raise_cap, reward
from evenflow.partitioners.dalton.q_table import Home, QTable, admit, find, hold, learn, purge, slide_on
from evenflow.partitioners.dalton.split_keys import SplitKeyTable
from evenflow.partitioners.dalton.tumbling_counts import Counts, TumblingCounts, is_full, slot_of
from evenflow.partitioners.explanation import Explanation
from evenflow.partitioners.papers import DALTON
from evenflow.sketches.window_loads import WindowLoads, add, advance, loads_from, window_loads


class BatchRule(NamedTuple):
    """The settings for one batch, for kernels."""

    salt: np.uint64
    """The salt of F_1."""
    batch: np.int64
    """Number of the batch. It takes the place of the statistics window and of the slide."""
    by_batch: bool
    """Loads are those of the batch, not of the window."""
    policy: BanditPolicy
    """The options of the bandit."""


@kernel
def _count_batch(keys: UInt64s, first: Whole, counts: Counts, batch: Whole) -> int:
    """Count from tuple `first` on. Returns the tuple for which there was no room, or the number of tuples."""
    for i in range(first, keys.shape[0]):
        if is_full(counts):
            return i
        counts.cells[slot_of(counts, keys[i], batch)]["count"] += 1
    return keys.shape[0]


@kernel
def _begin_batch(frequent: UInt64s, table: QTable, salt: np.uint64, batch: Whole) -> None:
    """Begin a batch: no worker holds any key, and the frequent keys are hot in this batch and the next."""
    n = table.q.shape[1]
    slide_on(table, batch)
    purge(table, batch, batch)
    for i in range(frequent.shape[0]):
        key = frequent[i]
        r = find(table, key)
        if r >= 0:
            table.row[r]["expiry"] = batch + 1
        elif table.meta[()]["hot"] < 2 * n:
            home = candidate_kernel(key, salt, np.uint64(n))
            admit(table, key, r, Home(home, NEVER, batch), batch + 1)


@kernel
def _route(block: Block, window: WindowLoads, table: QTable, rng: UInt64s, rule: BatchRule) -> None:
    keys, times, out = block.keys, block.times, block.out
    loads, row, policy, batch = window.loads, table.row, rule.policy, rule.batch
    n = np.int64(loads.shape[0])
    total = np.int64(0)
    for worker in range(n):
        if rule.by_batch:
            loads[worker] = 0
        total += loads[worker]
    for i in range(keys.shape[0]):
        if not rule.by_batch and advance(window, times[i]):
            total = np.int64(0)
            for worker in range(n):
                total += loads[worker]
        key = keys[i]
        r = find(table, key)
        hot = r >= 0
        chosen = (
            choose(table, rng, r, policy.eps, batch)
            if hot
            else candidate_kernel(key, rule.salt, np.uint64(n))
        )
        if rule.by_batch:
            loads[chosen] += 1
        else:
            add(window, chosen, 1)
        total += 1
        out[i] = chosen
        if hot:
            hold(table, r, chosen, batch, batch)
            value = reward(loads[chosen], total, row[r]["held"], n, policy)
            learn(table, r, chosen, value, policy.gamma)
            raise_cap(table, policy)


class DaltonBatchOptions(BanditOptions):
    """Options of dalton-batch. See the module's docstring."""

    load_scope: Literal["window", "batch"] = Field(
        "window", description="Tuples that count as load: those of the sliding window or of the batch."
    )


class DaltonBatch(Partitioner):
    """Micro-batches: the batch's frequent keys are split by a learned policy, all other keys are hashed."""

    papers = (DALTON,)
    micro_batch = True
    hashed_homes = True
    options_type = DaltonBatchOptions
    options: DaltonBatchOptions
    variable_state = split_keys.VARIABLE

    def _start(self) -> None:
        self._batch = np.zeros(1, np.int64)
        self._counts = TumblingCounts()
        self._rng = generator(self.seed, self.source)
        self._rescale()

    def _rescale(self) -> None:
        options = self.options
        self._salt = salts(self.seed, 1)[0]
        self._loads = window_loads(self.workers, window_ms=options.window_ms, slide_ms=options.slide_ms)
        self._split = SplitKeyTable(self.workers, cap=options.first_cap)

    def _assign(self, block: Block) -> None:
        options = self.options
        self._batch += 1
        batch = np.int64(self._batch[0])
        frequent = self._frequent(block.keys, batch)
        while len(self._split.table.key) < len(self._split) + len(frequent):
            self._split.grow()
        _begin_batch(frequent, self._split.table, self._salt, batch)
        rule = BatchRule(self._salt, batch, options.load_scope == "batch", options.policy(options.gamma))
        _route(block, self._loads, self._split.table, self._rng, rule)

    def _frequent(self, keys: UInt64s, batch: np.int64) -> UInt64s:
        """The keys that are hot by their frequency in this batch, ascending."""
        self._counts.begin()
        row = 0
        while (row := _count_batch(keys, row, self._counts.table, batch)) < len(keys):
            self._counts.grow(int(batch))
        # -(-m // n) rounds m/n up. A key of one tuple is never hot.
        return self._counts.frequent(int(batch), max(2, -(-len(keys) // self.workers)))

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        (home,) = workers_of(int(key), candidates(self.seed, 1, self.workers))
        row = self._split.row_of(int(key))
        hot = row is not None and int(self._split.table.row["expiry"][row]) > int(self._batch[0])
        least = f"at least 1/{self.workers} of its batch"
        return Explanation(
            rule=(
                f"decided batch by batch: with {least} by learned values, otherwise its hash names the worker"
            ),
            workers=None,
            home=home,
            values=tuple(self._split.table.q[row].tolist()) if hot else None,
        )

    def _state(self) -> State:
        return {
            **self._loads._asdict(),
            **self._split.state(),
            "batch": self._batch,
            "rng": self._rng,
        }

    def _load_state(self, state: State) -> None:
        self._loads = loads_from(state)
        self._split.load(state)
        self._batch = state["batch"]
        self._rng = state["rng"]

    def _choices(self) -> int:
        return min(self._split.cap, self.workers)

    def _head_keys(self) -> int:
        return self._split.hot

    def _state_bytes(self) -> int:
        return self._fixed_bytes() + self._counts.nbytes + self._split.nbytes

    def _state_bound(self, keys: int) -> int:
        """As `state_bound`. Before a batch there are at most 2n rows,
        and room is made for n keys that may be new.
        """
        return self._fixed_bytes() + self._counts.bound(keys) + self._split.bound(3 * self.workers - 1)

    def _fixed_bytes(self) -> int:
        return sum(array.nbytes for array in (*self._loads, self._batch, self._rng))
