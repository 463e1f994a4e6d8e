"""Dalton: keys that are frequent now are placed by a learned policy, all other keys are hashed.

Idea: a contextual bandit per hot key learns which workers to use. Its reward falls with the worker's load
and with the number of workers that hold the key:

    R = -(p1 * (L[a] - avg)/max(L[a], avg) + p2 * |X(k)|/n)       Q[k,a] += gamma (R - Q[k,a])

L and X are the loads and holders of the sliding window, after this tuple. The values of a new row are -2
everywhere, below every reward, so a key stays where it is until exploration finds a better worker. A key
becomes hot when its count in the present statistics window reaches 1/n of the load of the last statistics
window. It is then hot in this window and the next.

Parameters: `explore` uniform or capped. With uniform, as in the paper, any worker is drawn with probability
`eps`, and a key with many tuples ends up on all workers. With capped, as in the authors' code, a key with
`cap` holders explores among these. The cap starts at 2 and grows by one, up to 6, when 70 % of the hot keys
have reached it. `heavy_hitters` exact counts, or a Count-Min sketch with an error of at most a quarter of the
threshold, or hybrid, which takes one of the two for each statistics window. (SpaceSaving with 4n counters
would never miss a frequent key either. But in it a rare key evicts another key, and the sketch only makes
four additions.) `gamma`, `eps`, `p1`, `p2`. Window, slide and statistics window.

`theta` is the threshold: the share of the load from which a key is hot. It is 1/n by default, as in
definition 3.3. With 0 every key is hot from its first tuple on, while the sliding window has it. That is the
paper's *non-hybrid* variant, which shows what tracking of hot keys spares (section 5.3). It has a row of
values for each key of a window, and takes 2 to 63 times as long for a tuple (docs/reproducing.md, figure 11).

With hybrid, a statistics window is counted by the sketch if the last one had at least `sketch_from` distinct
keys, and exactly otherwise. A map of that many keys no longer fits the cache, and the sketch always does
(section 5.3). While the sketch counts, a HyperLogLog of 4 KB tells how many keys there are, with a standard
error of 1.6 %. The paper says that the statistics of the last window decide, and not which ones or where the
border lies. The authors' code has 10,000 keys, and so has `sketch_from`: both ways cost the same there. The
first window, and one behind a window without tuples, are counted exactly.

Where the paper is silent: the test for a hot key counts the current tuple. No key is hot in the first
statistics window, or after a window without tuples, because there is no load to compare with. No key becomes
hot by its first tuple of a window, because one tuple cannot be split. A tie goes to F_1(k), then to the
lowest worker. Rows expire when a window begins. At most 4n keys (4/theta) are hot at once. (While the load
grows from window to window, more keys could reach the threshold.) Each source explores with a generator
(splitmix64) of its own. A rescale forgets loads, holders and values, because they belong to workers. Exact
counts of keys stay.

With costs, loads, the counts of keys and the load of a statistics window are sums of costs. The test for a
hot key then asks whether the key has more than the cost of its present tuple, which means a second tuple in
the window. A tuple of a hot key is rewarded once, whatever it costs, and `eps` is a share of tuples.
`dalton-cooperative` counts tuples alone: its messages have whole tuples, of which a common hot key needs two.

X(k) is exact for every key that is hot or was hot in the window. Any other key can only have been at F_1(k).
It gets hot by its second tuple of a statistics window at the earliest. So the exact counts of that window
know whether and when F_1(k) last had the key. (The sketch does not know it, and takes the present slide.)

Cost per tuple: O(1) for a hashed key and O(1) amortised for a hot key: its n values are scanned only when the
best worker changes. O(n) when a capped key explores. O(n * rows) per slide. State: n * slides loads, the rows
of `q_table`, and 32 bytes x 2 to 4 per distinct key of a statistics window, or the sketch (44n to 87n
counters of 8 bytes, in four rows). Hybrid: both, but the counts of keys only for windows that are counted
exactly.
Paper: Zapridou et al., "Dalton: Learned Partitioning for Distributed Data Streams", PVLDB 16(3) 2022
(000), Algorithm 1, sections 3.2, 3.3, 5 and 5.3.

Before a statistics window has ended, no key is hot and all keys are hashed:

    >>> create("dalton", workers=4).assign(keys, times).tolist()
    [3, 3, 1, 3, 0, 3]
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from evenflow.generation.draws import generator
from evenflow.keys import candidate_kernel, candidates, salts, workers_of
from evenflow.numeric.arrays import NEVER, Int64s, Rows, State, UInt64s, Whole, record
from evenflow.numeric.kernels import inlined, kernel
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.dalton import split_keys
from evenflow.partitioners.dalton.bandit import BanditOptions, BanditPolicy, choose, raise_cap, reward
from evenflow.partitioners.dalton.count_min import CountMin, CountMinTable, clear, increment, width_for
from evenflow.partitioners.dalton.q_table import (
    COLD,
    Home,
    QTable,
    admit,
    apply_deferred,
    defer,
    find,
    has_no_room,
    hold,
    learn,
    purge,
    slide_on,
)
from evenflow.partitioners.dalton.split_keys import SplitKeyTable
from evenflow.partitioners.dalton.tumbling_counts import Counts, Entries, TumblingCounts, is_full, slot_of
from evenflow.partitioners.explanation import Explanation, Holder
from evenflow.partitioners.papers import DALTON
from evenflow.sketches import hyperloglog
from evenflow.sketches.hyperloglog import MIN_PRECISION, Registers, registers, sketch_hash
from evenflow.sketches.window_loads import WindowLoads, add, advance, loads_from, moves, window_loads

_REACH = 1 << 61
_UNLIMITED = 1 << 40  # more keys than can be hot
_LEAST_THETA = 1e-6
SKETCH_FROM = 10_000
"""Distinct keys of a statistics window from which hybrid counts the next one
by the sketch: see docs/measurements.md.
"""
STATS = np.dtype([(name, np.int64) for name in ("window", "end", "length", "seen", "previous", "inside")])
"""`window`: number of the statistics window. `end` and `length` of it, ms. `seen`: the costs of its tuples so
far. `previous`: the load that a key's count is compared with.
`inside`: the costs of the tuples in the sliding window."""


class DaltonState(NamedTuple):
    """All that an instance of Dalton knows: what kernels take as one argument."""

    window: WindowLoads
    """The loads of the workers in the sliding window."""
    others: Int64s
    """(n,): tuples that other instances sent to each worker. Zeros where they are not told."""
    stats: Rows
    """One of STATS."""
    counts: Counts
    """Exact counts of the keys of the statistics window. Used with `DaltonRule.exact`."""
    sketch: CountMinTable
    """Estimated counts of the keys of the statistics window, where they are not exact."""
    distinct: Registers
    """The keys of a statistics window that the sketch counts. Used with `DaltonRule.noting`."""
    table: QTable
    """What has been learned of each split key."""
    rng: UInt64s
    """State of the random numbers that exploring draws."""


class DaltonRule(NamedTuple):
    """The settings of Dalton, for kernels."""

    salt: np.uint64
    """The salt of F_1."""
    exact: bool
    """Keys are counted exactly, not by the sketch."""
    noting: bool
    """Where the sketch counts, its distinct keys are noted in `DaltonState.distinct`."""
    manual: bool
    """The kernel stops where a statistics window ends, and the caller begins the next one."""
    deferring: bool
    """Rewards are kept back instead of being learned."""
    most: int
    """Keys that may be hot at once."""
    times: float
    """A key is hot if its count, so many times, is the load of the last statistics window or more."""
    every: bool
    """Every key is hot."""
    lasting: int
    """Statistics windows for which a key stays hot after the one that made it hot."""
    policy: BanditPolicy
    """The options of the bandit."""


def within_reach(times: Any) -> Any:
    """One time or many, in ms, cut to 70 million years around 1970. So the ends of windows stay within
    int64.
    """
    return np.clip(times, -_REACH, _REACH)


@kernel
def begin_window(learned: DaltonState, time: Whole) -> None:
    """Move the statistics window to `time`.
    If windows without tuples lie in between, there is no load to compare with.
    """
    stats = learned.stats[()]
    length = stats["length"]
    if stats["end"] == NEVER:
        stats["end"] = (time // length + 1) * length
        return
    steps = (time - stats["end"]) // length + 1
    stats["previous"] = stats["seen"] if steps == 1 else 0
    stats["seen"] = 0
    stats["window"] += steps
    stats["end"] += steps * length


@kernel
def slide_to(learned: DaltonState, time: Whole) -> None:
    """Move the sliding window to `time`, which lies after the end of its current slide."""
    window, stats = learned.window, learned.stats[()]
    advance(window, time)
    stats["inside"] = 0
    for worker in range(window.loads.shape[0]):
        stats["inside"] += window.loads[worker]
    slide_on(learned.table, window.clock[()]["slide"] - window.ring.shape[0] + 1)


@kernel
def end_interval(learned: DaltonState, rule: DaltonRule, time: Whole, oldest: Whole) -> None:
    """End the statistics window and begin that of `time`. Rewards that were kept back are learned."""
    if rule.deferring:
        apply_deferred(learned.table)
        # What others told in the last round is old by now.
        learned.others[:] = 0
    begin_window(learned, time)
    learned.counts.fill[0] = 0
    if not rule.exact:
        clear(learned.sketch)
    purge(learned.table, learned.stats[()]["window"], oldest)


@kernel
def move_to(learned: DaltonState, rule: DaltonRule, time: Whole) -> None:
    """Begin the statistics window of `time`, and the slide of `time` if it is a new one."""
    window = learned.window
    clock = window.clock[()]
    if time >= clock["end"]:
        slide_to(learned, time)
    end_interval(learned, rule, time, clock["slide"] - window.ring.shape[0] + 1)


@inlined
def _counted(
    learned: DaltonState, rule: DaltonRule, key: np.uint64, cost: np.int64
) -> tuple[np.int64, np.int64, np.int64]:
    """Count a tuple of this key and cost.

    Returns (the key's count in the statistics window, its place, when F_1(k) last had it). The place is that
    among the exact counts. It is 0 with the sketch, which knows no slide and gives the present one.
    """
    learned.stats[()]["seen"] += cost
    place, had = np.int64(0), learned.window.clock[()]["slide"]
    if rule.exact:
        cells = learned.counts.cells
        place = slot_of(learned.counts, key, np.int64(learned.stats[()]["window"]))
        cells[place]["count"] += cost
        count, had = cells[place]["count"], cells[place]["last"]
    else:
        count = increment(learned.sketch, key, cost)
        if rule.noting:
            hyperloglog.add(learned.distinct, 0, sketch_hash(key))
    return count, place, had


@inlined
def _row_of(
    learned: DaltonState, rule: DaltonRule, key: np.uint64, cost: np.int64, count: Whole, home: Home
) -> np.int64:
    """The key's row, or -1. A key whose count has reached the threshold is hot in this statistics window and
    the next (`DaltonRule.lasting`).

    `count` includes the present tuple, which costs `cost`. If the two are equal, it is the key's first in the
    window.
    """
    stats, table = learned.stats[()], learned.table
    r = find(table, key)
    # count >= previous * theta, without a division.
    if rule.every or (count * rule.times >= stats["previous"] and count > cost and stats["previous"] > 0):
        expiry = stats["window"] + rule.lasting
        if r >= 0 and table.row[r]["expiry"] != COLD:
            table.row[r]["expiry"] = max(table.row[r]["expiry"], expiry)
        elif table.meta[()]["hot"] < rule.most:
            r = admit(table, key, r, home, expiry)
    return r


@kernel
def route(block: Block, first: Whole, learned: DaltonState, rule: DaltonRule) -> int:
    """Route from tuple `first` on. Returns the tuple at which it stopped, or the number of tuples.

    It stops where the caller must make room, and with `rule.manual` where a statistics window ends.
    """
    keys, costs, out = block.keys, block.costs, block.out
    window, others, stats, table = learned.window, learned.others, learned.stats[()], learned.table
    loads, clock, cells, row = window.loads, window.clock[()], learned.counts.cells, table.row
    policy = rule.policy
    workers = np.uint64(loads.shape[0])
    n = np.int64(loads.shape[0])
    slides = np.int64(window.ring.shape[0])
    oldest = clock["slide"] - slides + 1 if clock["slide"] != NEVER else clock["slide"]
    elsewhere = np.sum(others)
    for i in range(first, keys.shape[0]):
        time = block.times[i]
        if time >= clock["end"]:
            slide_to(learned, time)
            oldest = clock["slide"] - slides + 1
        if time >= stats["end"]:
            # The first window of all has nothing to close, so the kernel begins it even if `manual`.
            if stats["end"] == NEVER:
                begin_window(learned, time)
            elif rule.manual:
                return i
            else:
                end_interval(learned, rule, time, oldest)
                elsewhere = np.sum(others)
        # Before anything of this tuple is counted: the caller makes room and comes back with the same tuple.
        if is_full(learned.counts) or has_no_room(table):
            return i
        key, cost = keys[i], costs[i]
        home = candidate_kernel(key, rule.salt, workers)
        count, place, had = _counted(learned, rule, key, cost)
        # A new row takes over when F_1(k) last had the key.
        r = _row_of(learned, rule, key, cost, count, Home(home, had, oldest))
        stats["inside"] += cost
        # The usual way: the key is not hot, and only its home can hold it.
        if r < 0:
            add(window, home, cost)
            if rule.exact:
                cells[place]["last"] = clock["slide"]
            out[i] = home
            continue
        # A row without heat is kept for its holders only: its key is hashed.
        hot = row[r]["expiry"] != COLD
        worker = choose(table, learned.rng, r, policy.eps, oldest) if hot else home
        add(window, worker, cost)
        hold(table, r, worker, clock["slide"], oldest)
        if hot:
            load, inside = loads[worker] + others[worker], stats["inside"] + elsewhere
            value = reward(load, inside, row[r]["held"], n, policy)
            if rule.deferring:
                defer(table, r, worker, value, policy.gamma)
            else:
                learn(table, r, worker, value, policy.gamma)
            raise_cap(table, policy)
        out[i] = worker
    return keys.shape[0]


Counting = Literal["exact", "sketch", "hybrid"]
_PRECISION = 12
"""Of the estimate of the distinct keys that a sketch has counted: 2^12 registers of one byte."""
_COUNTED = ("count_key", "count", "count_last")
"""Names of the counted entries in a snapshot's state."""
_VARIABLE: dict[str, tuple[str, ...]] = {
    **split_keys.VARIABLE,
    **dict.fromkeys(_COUNTED, ("counted",)),
}


class BanditPartitioner(Partitioner):
    """What `dalton` and `dalton-cooperative` share. Not an algorithm of its own."""

    papers = (DALTON,)
    options: BanditOptions
    variable_state = _VARIABLE
    hashed_homes = True

    @property
    def _counting(self) -> Counting:
        """How keys are counted."""
        return "exact"

    @property
    def _exact(self) -> bool:
        """Whether the keys of this statistics window are counted exactly."""
        return not self._by_sketch[0]

    @property
    def _gamma(self) -> float:
        """Step of learning."""
        return self.options.gamma

    @property
    def _theta(self) -> float | None:
        """Share of the load from which a key is hot. None = 1/n."""
        return None

    @property
    def _times(self) -> float:
        """1/theta: how often the threshold goes into the load. Infinite if every key is hot."""
        theta = self._theta
        if theta is None:
            return float(self.workers)
        return 1 / theta if theta else math.inf

    @property
    def _most(self) -> int:
        """Keys that may be hot at once."""
        # Theorem 3.4 allows 1/theta in the present statistics window and as many in the last one.
        return 4 * math.ceil(self._times) if math.isfinite(self._times) else _UNLIMITED

    @property
    def _statistics_ms(self) -> int:
        """Length of the statistics window at first, ms."""
        return self.options.slide_ms

    def _start(self) -> None:
        self._stats = record(STATS, window=1, end=NEVER, length=self._statistics_ms)
        self._counts = TumblingCounts()
        self._by_sketch = np.array([self._counting == "sketch"])
        self._distinct = registers(1, _PRECISION if self._counting == "hybrid" else MIN_PRECISION)
        self._rng = generator(self.seed, self.source)
        self._policy = self.options.policy(self._gamma)
        self._shape()
        self._sketch = self._new_sketch()

    def _rescale(self) -> None:
        """Keep the counts of keys. Loads, holders and values belong to workers and begin again."""
        self._shape()
        self._stats["inside"] = 0
        self._counts.forget_slides()
        if self._counting != "exact":
            self._sketch = self._new_sketch()

    def _shape(self) -> None:
        options = self.options
        self._salt = salts(self.seed, 1)[0]
        self._loads = window_loads(self.workers, window_ms=options.window_ms, slide_ms=options.slide_ms)
        self._split = self._new_split()
        self._others = np.zeros(self.workers, np.int64)

    def _new_split(self) -> SplitKeyTable:
        return SplitKeyTable(self.workers, cap=self.options.first_cap)

    def _new_sketch(self) -> CountMin:
        # With exact counts the sketch is not used, but a kernel cannot take None: it is as small as can be.
        # Where every key is hot, no count is asked for.
        exact = self._counting == "exact" or math.isinf(self._times)
        width = 2 if exact else width_for(1 / (4 * self._times))
        return CountMin(width, seed=self.seed)

    def _assign(self, block: Block) -> None:
        block, row = block._replace(times=within_reach(block.times)), 0
        while (row := self._route(block, row)) < len(block.keys):
            self._make_room()

    def _route(self, block: Block, first: int, *, manual: bool = False, deferring: bool = False) -> int:
        rule = self._rule(manual=manual, deferring=deferring)
        return int(route(block, first, self._learned(), rule))

    def _rule(self, *, manual: bool, deferring: bool) -> DaltonRule:
        every = math.isinf(self._times)
        return DaltonRule(
            salt=self._salt,
            exact=self._exact,
            noting=self._counting == "hybrid",
            manual=manual,
            deferring=deferring,
            most=self._most,
            times=self._times,
            every=every,
            # As long as the sliding window has the key: then its holders are known from its first tuple on.
            lasting=self._windows_inside if every else 1,
            policy=self._policy,
        )

    @property
    def _windows_inside(self) -> int:
        """Statistics windows as long as a sliding window, rounded up."""
        return -(-self.options.window_ms // self._statistics_ms)

    def _learned(self) -> DaltonState:
        return DaltonState(
            self._loads,
            self._others,
            self._stats,
            self._counts.table,
            self._sketch.table,
            self._distinct,
            self._split.table,
            self._rng,
        )

    def _make_room(self) -> None:
        if self._counts.full:
            self._counts.grow(int(self._stats["window"]))
        if self._split.full:
            self._split.grow()

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        at = None if now is None else int(within_reach(now))
        (home,) = workers_of(int(key), candidates(self.seed, 1, self.workers))
        stats, table, row = self._stats, self._split.table, self._split.row_of(int(key))
        window, window_total = int(stats["window"]), int(stats["seen"])
        count = self._counts.count(int(key), window)
        if not self._exact:
            count = int(self._sketch.estimates(np.array([key]))[0])
        ends = at is not None and int(stats["end"]) != NEVER and at >= int(stats["end"])
        if at is not None and ends:
            window += (at - int(stats["end"])) // int(stats["length"]) + 1
        hot = row is not None and int(table.row["expiry"][row]) >= window
        # One tuple makes no key hot, so none becomes hot by the first tuple of a statistics window.
        enough = not ends and count >= 1 and (count + 1) * self._times >= int(stats["previous"]) > 0
        becomes = (enough or math.isinf(self._times)) and not hot and self._split.hot < self._most
        holders = () if row is None else self._row_holders(row, at)
        share = count / window_total if window_total else None
        if not hot and not becomes:
            rule = f"not hot (below 1/{self._times:g} of a statistics window): its hash names the worker"
            return Explanation(rule=rule, workers=(home,), home=home, holders=holders, share=share)
        best = int(table.row["best"][row]) if hot else home
        capped = row is not None and len(holders) >= self._split.cap
        explored = "its holders" if capped else "all workers"
        rule = (
            f"hot: worker {best} by its values, and {self.options.eps:.3g}"
            f" of its tuples explore among {explored}"
        )
        # When a slide or a statistics window ends, holders leave, and values that were kept back are learned.
        sure = not ends and not moves(self._loads.clock, at)
        next_workers: tuple[int, ...] | None = None
        if sure and self.options.eps == 0:
            next_workers = (best,)
        elif sure and capped:
            next_workers = tuple(dict.fromkeys((best, *(holder.worker for holder in holders))))
        values = tuple(table.q[row].tolist()) if hot else None
        if becomes:
            rule = f"becomes hot with its next tuple, then {rule.removeprefix('hot: ')}"
        return Explanation(
            rule=rule, workers=next_workers, home=home, holders=holders, values=values, share=share
        )

    def _row_holders(self, row: int, now: int | None) -> tuple[Holder, ...]:
        """The workers that hold the key of this row in the window, the one that got it last first."""
        clock, last = self._loads.clock, self._split.table.last[row]
        length = int(clock["length"])
        slide = now // length if now is not None and moves(clock, now) else int(clock["slide"])
        holders = np.flatnonzero(last >= slide - len(self._loads.ring) + 1)
        holders = holders[np.argsort(-last[holders], kind="stable")]
        return tuple(
            Holder(worker=int(w), load=float(self._loads.loads[w]), last=int(last[w]) * length)
            for w in holders
        )

    def _state(self) -> State:
        entries = self._counts.entries(int(self._stats["window"]))
        counted: State = dict(zip(_COUNTED, entries, strict=True)) if self._counting != "sketch" else {}
        if self._counting != "exact":
            counted["sketch"] = self._sketch.table.cells
        if self._counting == "hybrid":
            counted |= {"by_sketch": self._by_sketch, "distinct": self._distinct.values}
        return {
            **self._loads._asdict(),
            **self._split.state(),
            **counted,
            "stats": self._stats,
            "rng": self._rng,
        }

    def _load_state(self, state: State) -> None:
        self._loads = loads_from(state)
        self._split.load(state)
        self._stats = state["stats"]
        self._rng = state["rng"]
        if self._counting != "sketch":
            window = int(self._stats["window"])
            self._counts.load(window, Entries(*(state[name] for name in _COUNTED)))
        if self._counting != "exact":
            self._sketch.table.cells[:] = state["sketch"]
        if self._counting == "hybrid":
            self._by_sketch = state["by_sketch"]
            hyperloglog.clear(self._distinct)
            self._distinct.values[:] = state["distinct"]

    def _choices(self) -> int:
        return min(self._split.cap, self.workers)

    def _head_keys(self) -> int:
        return self._split.hot

    def _fixed_bytes(self) -> int:
        arrays = (*self._loads, *self._distinct, self._others, self._stats, self._by_sketch, self._rng)
        return sum(array.nbytes for array in arrays) + self._sketch.nbytes

    def _state_bytes(self) -> int:
        return self._fixed_bytes() + self._counts.nbytes + self._split.nbytes

    def _state_bound(self, keys: int) -> int:
        counts = self._counts.bound(0 if self._counting == "sketch" else keys)
        return self._fixed_bytes() + counts + self._split.bound(self._most_rows(keys))

    def _most_rows(self, keys: int) -> int:
        """The most rows there can be while neither kind of window has more than `keys` keys.

        A row's key was in the present statistics window, or in the last one or the sliding window, whichever
        is longer.
        """
        if math.isinf(self._times):
            # Keys of the present statistics window, and of a sliding and a statistics window before it.
            return 3 * keys
        rows = split_keys.most_rows(self._most, self._windows_inside)
        return min(rows, 2 * keys) if self._counting == "exact" else rows


class DaltonOptions(BanditOptions):
    """Options of dalton. See the module's docstring."""

    heavy_hitters: Counting = Field(
        "exact",
        description=(
            "Counts of keys: exact (memory grows with the keys of a statistics window), a sketch, or hybrid: "
            "a sketch after a statistics window with many keys."
        ),
    )
    sketch_from: int = Field(
        SKETCH_FROM,
        ge=1,
        le=1 << 40,
        description=(
            "Distinct keys of a statistics window from which the next one is counted by the sketch,"
            " for heavy_hitters=hybrid."
        ),
    )
    stats_ms: int | None = Field(
        None, ge=1, description="Length of the statistics window, ms. None = one slide."
    )
    theta: float | None = Field(
        None,
        ge=0,
        le=1,
        description=(
            "Share of the last statistics window's load from which a key is hot, at least 0.000001. None ="
            " 1/n. 0 = every key is hot, which takes a row of values for each key of a window."
        ),
    )

    @field_validator("theta")
    @classmethod
    def _no_share_below_what_can_be_counted(cls, theta: float | None) -> float | None:
        if theta is not None and 0 < theta < _LEAST_THETA:
            raise ValueError(f"theta is at least {_LEAST_THETA:f}, or 0 for every key")
        return theta


class Dalton(BanditPartitioner):
    """Hot keys are split by a learned policy, all other keys are hashed."""

    takes_costs = True
    options_type = DaltonOptions
    options: DaltonOptions

    @property
    def _counting(self) -> Counting:
        return self.options.heavy_hitters

    @property
    def _theta(self) -> float | None:
        return self.options.theta

    @property
    def _statistics_ms(self) -> int:
        return self.options.stats_ms or self.options.slide_ms

    def _assign(self, block: Block) -> None:
        if self._counting != "hybrid":
            super()._assign(block)
            return
        block, row = block._replace(times=within_reach(block.times)), 0
        # The kernel stops where a statistics window ends, because what counts the next one is decided here.
        while (row := self._route(block, row, manual=True)) < len(block.keys):
            if block.times[row] >= self._stats["end"]:
                self._end_window(int(block.times[row]))
            else:
                self._make_room()

    def _end_window(self, time: int) -> None:
        """End the statistics window and begin that of `time`,
        counted as the keys of the window that ends suggest.
        """
        window, keys = int(self._stats["window"]), self._distinct_keys()
        move_to(self._learned(), self._rule(manual=True, deferring=False), time)
        hyperloglog.clear(self._distinct)
        follows = int(self._stats["window"]) == window + 1
        self._by_sketch[0] = follows and keys >= self.options.sketch_from
        if not self._exact:
            # Gives the memory back. The next window that is counted exactly begins with a small table.
            self._counts = TumblingCounts()

    def _distinct_keys(self) -> float:
        """Distinct keys of this statistics window so far: exact, or about, where the sketch counts."""
        return float(self._counts.table.fill[0]) if self._exact else hyperloglog.estimate(self._distinct, 0)
