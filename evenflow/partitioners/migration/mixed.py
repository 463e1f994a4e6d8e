"""Mixed: keys are hashed, and a bounded routing table moves those that keep the loads within a bound.

Idea: a key goes to the worker that the routing table names, and else to F_1. At the end of each slide the
table is planned anew from what the slide has shown: c(k) tuples of key k, L(d) tuples of worker d, and the
bound (1 + theta) times the average. Three steps. (1) Some entries are cleaned: their keys go back to F_1. (2)
Each worker above the bound gives keys away until it is within it. (3) Least-load fit decreasing: the heaviest
of these keys first, each to the least loaded worker if it stays within the bound. If not, a worker with
little load takes it that can give lighter keys away in exchange (see `fit`). A key is on one worker at any
moment. It moves only at the end of a slide, and then its state moves with it, of S(k) tuples. In evenflow
nothing is moved: both workers hold a part of the key until the window has passed, and the reducer merges
them. So a move costs one replica, and the key counts as one that may be split.

`plan` says how much is cleaned, and in which order keys leave. min-table: all entries, and the keys with most
load leave first, so that few entries are needed. min-mig: none, and the keys with the greatest migration
priority c(k)^beta / S(k) leave first, so that little state moves. mixed: as min-mig, but if the table gets
too large, then as many entries as there are too many are cleaned, those with the least state first, and the
steps are done again.

Parameters: `theta` by which a load may exceed the average (0.08). `plan` mixed, min-table or min-mig (mixed).
`beta` of the migration priority (1.5). `table` entries at most (100n). `counters` keys whose tuples are
counted in a slide (100n). `window_ms`, `slide_ms`: a slide is the interval between two plans, and a window is
for how long tuples are state.
Differences from the paper: c(k) is the guaranteed count of a SpaceSaving summary of the slide, so memory is
bounded, and rare keys stay at F_1. S(k) is not kept for each of the w slides of the window: it loses 1/w with
each slide, and gains c(k). That is the same for a key that comes steadily. With `beta` in halves, no result
depends on a machine's power function.
Decisions: if cleaning is repeated, it at least doubles. If cleaning all is not enough, entries with the
fewest tuples are dropped, and likewise with min-mig, whose table could grow without end. Of keys that alone
are above the bound the heaviest of each worker stays, and one that has no place goes to the least loaded
worker. (The code that was read gives up then.) Entries of keys that were not counted stay until they are
cleaned. A rescale keeps the entries whose worker is still there, and starts the slide again. Each of several
sources plans by itself.

Cost per tuple: O(1). A plan costs O(K log K) for K keys that are counted or in the table, and in the worst
case O(K (K + n log n)). State: 92 to 132 bytes x counters, 36 to 60 bytes x table, 8n.
Paper: Fang et al., "Parallel Stream Processing Against Workload Skewness and Variance", HPDC 2017. The text
of the paper was not at hand. The three steps and `beta` are those of a published implementation by others,
which takes a key's load for its state. The priority by state, min-table and min-mig are written after an
outline of the paper, and `theta` is our choice.

`a` and `b` share a worker in the first slide. Behind it, `a` is on the other one:

    >>> create("mixed", workers=2, window_ms=3, slide_ms=3, theta=0.5).assign(keys, times).tolist()
    [1, 1, 1, 0, 0, 0]
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from evenflow.keys import candidate, candidate_kernel, candidates, salts, workers_of
from evenflow.numeric.arrays import NEVER, Float64s, Int32s, Int64s, Rows, State, UInt64s, record
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.base import Block
from evenflow.partitioners.explanation import Explanation, Holder
from evenflow.partitioners.migration.fit import lists, rebalance
from evenflow.partitioners.migration.replanning import ReplanningPartitioner
from evenflow.partitioners.migration.table import NOWHERE, RoutingTable, empty_table, fill, lookup
from evenflow.partitioners.papers import SKEWNESS_AND_VARIANCE
from evenflow.partitioners.window import Lengths
from evenflow.sketches.space_saving import SpaceSaving, SpaceSavingSummary, offer
from evenflow.sketches.window_loads import CLOCK, due, end_of, passed

_MOST = 1 << 24


class RoutingState(NamedTuple):
    """What a tuple needs: what kernels take as one argument."""

    table: RoutingTable
    """The keys that have a worker of their own."""
    summary: SpaceSavingSummary
    """Of the tuples of the slide."""
    loads: Int64s
    """(n,): tuples of the slide on each worker."""
    clock: Rows
    """One of CLOCK. Its field `row` is not used."""
    salt: np.uint64
    """The salt of F_1."""


@kernel
def _route(block: Block, start: int, routing: RoutingState) -> int:
    """Route tuples from row `start` on.
    The row of the first tuple that ends the slide, or the number of rows.
    """
    keys, times, out = block.keys, block.times, block.out
    table, loads, clock, salt = routing.table, routing.loads, routing.clock, routing.salt
    workers = np.uint64(loads.shape[0])
    row = start
    while row < keys.shape[0] and not due(clock, times[row]):
        key = keys[row]
        offer(routing.summary, key, 1)
        worker = lookup(table, key)
        if worker == NOWHERE:
            worker = candidate_kernel(key, salt, workers)
        loads[worker] += 1
        out[row] = worker
        row += 1
    return row


class MixedOptions(Lengths):
    """Options of mixed. See the module's docstring."""

    theta: float = Field(
        0.08, ge=0, le=1000, description="By which share a worker's load may exceed the average."
    )
    plan: Literal["mixed", "min-table", "min-mig"] = Field(
        "mixed", description="What a plan saves: entries of the table, state that moves, or both."
    )
    beta: float = Field(
        1.5, ge=0, le=8, multiple_of=0.5, description="Exponent of the load in the migration priority."
    )
    table: int | None = Field(
        None, ge=1, le=1 << 24, description="Entries of the routing table at most. None = 100n."
    )
    counters: int | None = Field(
        None, ge=1, le=1 << 24, description="Keys whose tuples are counted in a slide. None = 100n."
    )


_VARIABLE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("keys", "counts", "errors"), ("counters",)),
    **dict.fromkeys(("entries", "targets"), ("entries",)),
    **dict.fromkeys(("sized", "sizes"), ("sized",)),
}


class Mixed(ReplanningPartitioner):
    """Keys are hashed, and a bounded table moves some at the end of a slide,
    so that loads stay within a bound.
    """

    options_type = MixedOptions
    papers = (SKEWNESS_AND_VARIANCE,)
    hashed_homes = True
    options: MixedOptions
    variable_state = _VARIABLE

    def _start(self) -> None:
        self._clock = record(CLOCK, slide=NEVER, length=self.options.slide_ms, end=NEVER)
        self._sized, self._sizes = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._shape()

    def _rescale(self) -> None:
        entries, targets = self._entries, self._targets
        self._shape()
        in_range = (targets < self.workers) & (targets != self._homes(entries))
        self._set_table(entries[in_range], targets[in_range], self._sizes_of(entries[in_range]))

    def _shape(self) -> None:
        """Everything but what is known of keys, for the present number of workers. The slide starts again."""
        n, options = self.workers, self.options
        few = min(100 * n, _MOST)
        self._most, self._capacity = options.table or few, options.counters or few
        self._loads = np.zeros(n, np.int64)
        self._counts = SpaceSaving(self._capacity)
        self._salt = salts(self.seed, 1)[0]
        self._table = empty_table(self._most)
        self._entries, self._targets = np.zeros(0, np.uint64), np.zeros(0, np.int32)
        self._keep_largest()

    def _route(self, block: Block, row: int) -> int:
        routing = RoutingState(self._table, self._counts.summary, self._loads, self._clock, self._salt)
        return _route(block, row, routing)

    def _begin(self, time: int) -> None:
        clock, window = self._clock, self.options.window_ms // self.options.slide_ms
        now = time // self.options.slide_ms
        if int(clock["slide"]) != NEVER:
            keys, counts, errors = self._counts.counters()
            self._age(1, keys, counts - errors)
            if self._counts.total:
                self._plan(keys, counts - errors)
            self._age(int(passed(window + 1, int(clock["slide"]), now)) - 1, keys[:0], counts[:0])
            self._counts = SpaceSaving(self._capacity)
            self._loads[:] = 0
        clock["slide"], clock["end"] = now, end_of(now, self.options.slide_ms)

    def _age(self, slides: int, keys: UInt64s, counts: Int64s) -> None:
        """Sizes of states lose their share of so many slides, and gain these tuples."""
        window = self.options.window_ms // self.options.slide_ms
        slides = min(slides, window)
        # Rounded up, so that every size shrinks and in the end reaches 0.
        left = self._sizes - (self._sizes * slides + window - 1) // window
        self._sized, at = np.unique(np.concatenate([self._sized, keys]), return_inverse=True)
        self._sizes = np.zeros(len(self._sized), np.int64)
        np.add.at(self._sizes, at, np.concatenate([left, counts]))
        self._keep_largest()

    def _keep_largest(self) -> None:
        """Keep the sizes of as many keys as there are counters, the largest."""
        largest = np.lexsort((self._sized, -self._sizes))[: self._capacity]
        rows = np.sort(largest[self._sizes[largest] > 0])
        self._sized, self._sizes = self._sized[rows], self._sizes[rows]

    def _sizes_of(self, keys: UInt64s) -> Int64s:
        """S(k) of each key. 0 if it is not known."""
        sizes = np.zeros(len(keys), np.int64)
        if len(self._sized):
            at = np.minimum(np.searchsorted(self._sized, keys), len(self._sized) - 1)
            sizes = np.where(self._sized[at] == keys, self._sizes[at], 0)
        return sizes

    def _homes(self, keys: UInt64s) -> Int32s:
        return candidate(keys, 1, self.workers, self.seed)

    def _plan(self, keys: UInt64s, counts: Int64s) -> None:
        """Plan the table from the tuples of these keys in the slide that ends."""
        options = self.options
        all_keys = np.union1d(keys, self._entries)
        weight, start = np.zeros(len(all_keys), np.int64), self._homes(all_keys)
        weight[np.searchsorted(all_keys, keys)] = counts
        start[np.searchsorted(all_keys, self._entries)] = self._targets
        size = self._sizes_of(all_keys)
        # Keys are numbered in the order in which they leave a worker.
        order = np.lexsort((all_keys, -_priority(weight, size, options)))
        all_keys, weight, size, start = all_keys[order], weight[order], size[order], start[order]
        homes, heaviest = self._homes(all_keys), np.argsort(-weight, kind="stable")
        bound = math.floor((1 + options.theta) * self._counts.total / self.workers)
        entries = np.flatnonzero(start != homes)
        entries = entries[np.lexsort((all_keys[entries], size[entries]))]
        cleaned = len(entries) if options.plan == "min-table" else 0
        while True:
            place, loads, back = start.copy(), self._loads.copy(), entries[:cleaned]
            np.subtract.at(loads, place[back], weight[back])
            place[back] = homes[back]
            np.add.at(loads, place[back], weight[back])
            rebalance(lists(weight, place, loads), bound, heaviest)
            moved = place != homes
            excess = int(np.count_nonzero(moved)) - self._most
            if excess <= 0 or cleaned == len(entries) or options.plan == "min-mig":
                break
            # At least twice as many each time, so that a few rounds suffice.
            cleaned = min(len(entries), max(cleaned + excess, 2 * cleaned))
        self._set_table(all_keys[moved], place[moved], weight[moved])

    def _set_table(self, keys: UInt64s, workers: Int32s, weight: Int64s) -> None:
        """Make these the entries of the table. If there are too many, the lightest are dropped."""
        rows = np.lexsort((keys, -weight))[: self._most]
        rows = rows[np.argsort(keys[rows])]
        self._entries, self._targets = keys[rows], workers[rows]
        fill(self._table, self._entries, self._targets)

    def _explain_now(self, key: np.uint64) -> Explanation:
        counts, at = self._counts, self._counts.entry_of(int(key))
        home = workers_of(int(key), candidates(self.seed, 1, self.workers))[0]
        entry = np.flatnonzero(self._entries == key)
        worker = int(self._targets[entry[0]]) if len(entry) else home
        return Explanation(
            rule="in the routing table, so that loads stay level"
            if len(entry)
            else "not in the routing table: its hash names the worker",
            workers=(worker,),
            home=home,
            holders=(Holder(worker=worker, load=float(self._loads[worker])),),
            share=counts.estimate(int(key)) / counts.total if at is not None else None,
        )

    def _state(self) -> State:
        keys, counts, errors = self._counts.counters()
        return {
            "clock": self._clock,
            "loads": self._loads,
            "heavy": np.array([self._counts.total, self._counts.least], np.int64),
            "keys": keys,
            "counts": counts,
            "errors": errors,
            "entries": self._entries,
            "targets": self._targets,
            "sized": self._sized,
            "sizes": self._sizes,
        }

    def _load_state(self, state: State) -> None:
        total, least = (int(value) for value in state["heavy"])
        entries, targets, sized = state["entries"], state["targets"], state["sized"]
        if len(entries) > self._most or len(sized) > self._capacity:
            raise ValueError(f"{len(entries)} entries and {len(sized)} sizes are too many")
        if len(targets) and not 0 <= targets.min() <= targets.max() < self.workers:
            raise ValueError("an entry names a worker that does not exist")
        self._counts = SpaceSaving.from_counters(
            self._capacity, state["keys"], state["counts"], state["errors"], total=total, least=least
        )
        self._clock, self._loads = state["clock"], state["loads"]
        self._sized, self._sizes = sized, state["sizes"]
        self._set_table(entries, targets, np.zeros(len(entries), np.int64))

    def _head_keys(self) -> int:
        return len(self._entries)

    def _fixed_bytes(self) -> int:
        arrays = (*self._counts.summary, *self._table, self._clock, self._loads)
        return sum(array.nbytes for array in arrays)

    def _state_bytes(self) -> int:
        grown = (self._entries, self._targets, self._sized, self._sizes)
        return self._fixed_bytes() + sum(array.nbytes for array in grown)

    def _state_bound(self, keys: int) -> int:
        return self._fixed_bytes() + 12 * self._most + 16 * self._capacity


def _priority(weight: Int64s, size: Int64s, options: MixedOptions) -> Float64s:
    """How early each key leaves its worker. Products and roots alone, which every machine computes alike."""
    if options.plan == "min-table":
        return weight.astype(np.float64)
    power = np.ones(len(weight))
    for _ in range(int(options.beta)):
        power = power * weight
    if options.beta % 1:
        power = power * np.sqrt(weight.astype(np.float64))
    return power / np.maximum(size, 1)
