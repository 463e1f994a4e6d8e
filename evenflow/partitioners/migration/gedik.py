"""Gedik: frequent keys have places of their own, chosen by balance against migration,
and all others are on a ring.

Idea: a key that has a large enough share of a stretch of event time is frequent, and is mapped explicitly
from the end of the stretch on. All other keys go to the worker that consistent hashing names. The places of
frequent keys are chosen by a utility, of which less is better: the gap between the greatest and the least
load of frequent keys, as a multiple of the gap that is tolerated, and the frequency of the keys that move, as
a multiple of one worker's share of them all. Also those keys count as moved that are no longer frequent, and
are on another worker by the ring. So a key is on one worker at any moment, and moves at the end of a stretch
alone. In evenflow its tuples of a window are then on both workers, and the reducer merges them. So the key
counts as one that may be split.

`construction` says how places are chosen. scan: the most frequent key first, each on the best worker. redist:
the key and the worker that cost least per tuple of the key, again and again. readj: all keys stay where they
were, and then keys are moved or exchanged, as long as that makes the gap less, those with the greatest gain
first (see `constructions`).

Parameters: `construction` (scan). `share` of a stretch from which a key is frequent (1/(50n)). `balance` the
tolerated gap, a share of the average load (0.2). `migration` weight of the keys that move (1).
`readjustments` of a key at most, with readj (5). `replicas` points of each worker on the ring (100; fewer if
there would be more than 2^24). `plan_ms` stretch (10 s).
Differences from the paper: it balances memory, processing and communication, each with its cost per tuple, by
the cube root of the product of three gaps. evenflow counts tuples alone, so all three are one, and a key's
state is its tuples. Frequencies are the guaranteed counts of a SpaceSaving summary of each stretch.
Decisions: readj must have a gain in utility for each step, so that a high price keeps keys where they are.
Ties are settled by frequency, then by the hash of the key, and by the number of the worker. A rescale keeps
the places of frequent keys whose worker is still there, and the counts of the stretch. Each of several
sources plans by itself.

Cost per tuple: O(1). A plan with K frequent keys (share times K is at most 1) costs O(K n) with scan, O(K^2
n) with redist, and O(K^2 + K n) for each step of readj. State: 84 to 100 bytes x counters (2/share), 44 to 68
x 1/share, 16 to 20 x points.
Paper: Gedik, "Partitioning functions for stateful data parallelism in stream processing", VLDB Journal 23(4),
2014. The constructions are those of a published implementation by others. The text of the paper was not at
hand.

`a` and `b` share a worker on the ring. They are frequent from 2 to 4 ms, and then `a` has a place of its own:

    >>> create("gedik", workers=2, plan_ms=2).assign(keys, times).tolist()
    [1, 1, 1, 1, 0, 0]
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from evenflow.numeric.arrays import NEVER, Int32s, Int64s, Rows, State, UInt64s, record
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.base import Block
from evenflow.partitioners.explanation import Explanation, Holder
from evenflow.partitioners.migration.constructions import PlacementPrices, placing, readj, redist, scan
from evenflow.partitioners.migration.replanning import ReplanningPartitioner
from evenflow.partitioners.migration.ring import Ring, on_ring, ring_of, workers_on
from evenflow.partitioners.migration.table import NOWHERE, RoutingTable, empty_table, fill, lookup
from evenflow.partitioners.papers import PARTITIONING_FUNCTIONS
from evenflow.sketches.space_saving import SpaceSaving, SpaceSavingSummary, offer
from evenflow.sketches.window_loads import CLOCK, due, end_of
from evenflow.text.options import Options

_MOST = 1 << 24


class Function(NamedTuple):
    """The partitioning function, and what counts tuples for the next one: what kernels take as one
    argument.
    """

    table: RoutingTable
    """The frequent keys and their workers."""
    ring: Ring
    """Where all other keys go."""
    summary: SpaceSavingSummary
    """SpaceSaving counts from which the next function is made."""
    clock: Rows
    """One of CLOCK."""


@kernel
def _route(block: Block, start: int, function: Function) -> int:
    """Route tuples from row `start` on.
    The row of the first tuple that ends the stretch, or the number of rows.
    """
    keys, times, out = block.keys, block.times, block.out
    row = start
    while row < keys.shape[0] and not due(function.clock, times[row]):
        key = keys[row]
        offer(function.summary, key, 1)
        worker = lookup(function.table, key)
        if worker == NOWHERE:
            worker = on_ring(function.ring, key)
        out[row] = worker
        row += 1
    return row


class GedikOptions(Options):
    """Options of gedik. See the module's docstring."""

    construction: Literal["scan", "redist", "readj"] = Field(
        "scan", description="How the places of frequent keys are chosen."
    )
    share: float | None = Field(
        None, ge=1e-6, le=1, description="Share of the tuples from which a key is frequent. None = 1/(50n)."
    )
    balance: float = Field(
        0.2, gt=0, le=1000, description="Tolerated gap of the loads, a share of the average load."
    )
    migration: float = Field(1.0, ge=0, le=1e6, description="Weight of the keys that move.")
    readjustments: int = Field(5, ge=1, le=255, description="Readjustments of a key at most, with readj.")
    replicas: int = Field(100, ge=1, le=100_000, description="Points of each worker on the ring of hashes.")
    plan_ms: int = Field(
        10_000, ge=1, le=1 << 40, description="Interval between two plans of places, in ms of event time."
    )


_VARIABLE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("keys", "counts", "errors"), ("counters",)),
    **dict.fromkeys(("entries", "targets", "weights"), ("entries",)),
}


class Gedik(ReplanningPartitioner):
    """Frequent keys are mapped explicitly by balance against migration, all others by consistent hashing."""

    options_type = GedikOptions
    papers = (PARTITIONING_FUNCTIONS,)
    options: GedikOptions
    variable_state = _VARIABLE

    def _start(self) -> None:
        self._clock = record(CLOCK, slide=NEVER, length=self.options.plan_ms, end=NEVER)
        self._shape()
        self._counts = SpaceSaving(self._capacity)
        self._set_table(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int64))

    def _rescale(self) -> None:
        self._shape()
        self._counts = self._counts.resized(self._capacity)
        in_range = self._targets < self.workers
        heaviest = np.lexsort((self._entries, -self._weights))
        rows = np.sort(heaviest[in_range[heaviest]][: self._most])
        self._set_table(self._entries[rows], self._targets[rows], self._weights[rows])

    def _shape(self) -> None:
        """What follows from the present number of workers alone."""
        share = self.options.share or 1 / (50 * self.workers)
        self._share, self._capacity = share, min(math.ceil(2 / share), _MOST)
        self._most = min(math.floor(1 / share) + 1, _MOST)
        self._ring = ring_of(self.workers, self.options.replicas, self.seed)
        self._table = empty_table(self._most)

    def _route(self, block: Block, row: int) -> int:
        return _route(block, row, Function(self._table, self._ring, self._counts.summary, self._clock))

    def _begin(self, time: int) -> None:
        clock, now = self._clock, time // self.options.plan_ms
        if int(clock["slide"]) != NEVER and self._counts.total:
            self._plan()
            self._counts = SpaceSaving(self._capacity)
        clock["slide"], clock["end"] = now, end_of(now, self.options.plan_ms)

    def _plan(self) -> None:
        """Choose the places of the keys that were frequent in the stretch."""
        options, n = self.options, self.workers
        keys, counts, errors = self._counts.counters()
        weights = counts - errors
        frequent = weights >= max(1, math.ceil(self._share * self._counts.total))
        keys, weights = keys[frequent], weights[frequent]
        order = np.lexsort((keys, -weights))
        keys, weights = keys[order], weights[order]
        infrequent = ~np.isin(self._entries, keys)
        # Keys without an entry go back to the ring. Only those whose worker differs there move.
        back = infrequent & (self._targets != workers_on(self._ring, self._entries))
        placement = placing(
            weights,
            self._places(keys),
            n,
            moved=int(self._weights[back].sum()),
            everything=int(self._weights[infrequent].sum() + weights.sum()),
        )
        prices = PlacementPrices(options.balance, options.migration)
        if options.construction == "readj":
            readj(placement, prices, options.readjustments, np.zeros(6, np.int64))
        else:
            (scan if options.construction == "scan" else redist)(placement, prices)
        self._set_table(keys, placement.place, weights)

    def _places(self, keys: UInt64s) -> Int32s:
        """The worker of each key now."""
        places = workers_on(self._ring, keys)
        _, mine, theirs = np.intersect1d(keys, self._entries, assume_unique=True, return_indices=True)
        places[mine] = self._targets[theirs]
        return places

    def _set_table(self, keys: UInt64s, workers: Int32s, weights: Int64s) -> None:
        """Make these the entries of the table."""
        self._entries, self._targets, self._weights = keys, workers, weights
        fill(self._table, keys, workers)

    def _explain_now(self, key: np.uint64) -> Explanation:
        counts, at = self._counts, self._counts.entry_of(int(key))
        home, worker = (
            int(places[0])
            for places in (workers_on(self._ring, np.array([key])), self._places(np.array([key])))
        )
        frequent = bool(np.isin(key, self._entries))
        return Explanation(
            rule="frequent: it has a place of its own"
            if frequent
            else "not frequent: the next worker on the ring",
            workers=(worker,),
            home=home,
            holders=(Holder(worker=worker),),
            share=counts.estimate(int(key)) / counts.total if at is not None else None,
        )

    def _state(self) -> State:
        keys, counts, errors = self._counts.counters()
        return {
            "clock": self._clock,
            "heavy": np.array([self._counts.total, self._counts.least], np.int64),
            "keys": keys,
            "counts": counts,
            "errors": errors,
            "entries": self._entries,
            "targets": self._targets,
            "weights": self._weights,
        }

    def _load_state(self, state: State) -> None:
        total, least = (int(value) for value in state["heavy"])
        entries, targets = state["entries"], state["targets"]
        if len(entries) > self._most:
            raise ValueError(f"{len(entries)} entries are too many")
        if len(targets) and not 0 <= targets.min() <= targets.max() < self.workers:
            raise ValueError("an entry names a worker that does not exist")
        self._counts = SpaceSaving.from_counters(
            self._capacity, state["keys"], state["counts"], state["errors"], total=total, least=least
        )
        self._clock = state["clock"]
        self._set_table(entries, targets, state["weights"])

    def _head_keys(self) -> int:
        return len(self._entries)

    def _fixed_bytes(self) -> int:
        ring = self._ring
        arrays = (*self._counts.summary, *self._table, ring.points, ring.workers, ring.begins, self._clock)
        return sum(array.nbytes for array in arrays)

    def _state_bytes(self) -> int:
        return self._fixed_bytes() + sum(a.nbytes for a in (self._entries, self._targets, self._weights))

    def _state_bound(self, keys: int) -> int:
        return self._fixed_bytes() + 20 * self._most
