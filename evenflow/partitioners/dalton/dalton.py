"""Dalton: keys that are frequent now are placed by a learned policy, all others are hashed.

Idea: a contextual bandit per hot key learns which workers to use from a reward that falls with the
worker's load and with the number of workers that hold the key:

    R = -(p1 * (L[a] - avg)/max(L[a], avg) + p2 * |X(k)|/n)       Q[k,a] += gamma (R - Q[k,a])

L and X are those of the sliding window, after this tuple. A new row is -2 everywhere, below every
reward, so a key stays where it is until exploration finds a better worker. A key is hot when its count
in the present statistics window reaches 1/n of the load of the last one, for this window and the next.

Parameters: `explore` uniform (the paper: with probability `eps` any worker, a key with many tuples then
ends up on all workers) or capped (the authors' code: a key with `cap` holders explores among them, the
cap starts at 2 and grows by one, up to 6, when 70 % of the hot keys have reached it). `heavy_hitters`
exact counts, or a Count-Min sketch with an error of at most 1/(4n) of the load (chosen over SpaceSaving
with 4n counters because a rare key costs it four additions, not the eviction of another, both never miss
a frequent key). `gamma`, `eps`, `p1`, `p2`. Window, slide and statistics window.

Where the paper is silent: the test counts the current tuple. No key is hot in the first statistics
window or after one without tuples, when there is no load to compare with, nor by its first tuple of a
window: one tuple cannot be split. A tie goes to F_1(k), then to the lowest worker. Rows expire when a
window begins. At most 4n keys are hot at once. While the load grows from window to window more could
reach the threshold. Each source explores with a generator (splitmix64) of its own. A rescale forgets
loads, holders and values, which are of workers. Exact counts of keys stay.

X(k) is exact for every key that is hot or was hot in the window. A key that was not can only have been
at F_1(k), and it gets hot by its second tuple of a statistics window at the earliest, so that window's
count knows whether and when F_1(k) last had it (the sketch, which does not, takes the present slide).

Cost per tuple: O(1) for hashed and amortised O(1) for hot ones, a scan of n values only when the best
worker changes. O(n) when a capped key explores. O(n * rows) per slide. State: n * slides loads, the rows
of `q_table`, 32 bytes x 2 to 4 per distinct key of a statistics window, or the sketch (44n to 87n
counters of 8 bytes, in four rows).
Paper: Zapridou et al., "Dalton: Learned Partitioning for Distributed Data Streams", PVLDB 16(3) 2022
(000), Algorithm 1, sections 3.2 and 3.3.

Before a statistics window has ended no key is hot, and all are hashed:

    >>> create("dalton", workers=4).assign(keys, times).tolist()
    [3, 3, 1, 3, 0, 3]
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from evenflow.arrays import NEVER, Int32s, Int64s, Rows, State, UInt64s, Whole, record
from evenflow.draws import generator
from evenflow.kernels import kernel
from evenflow.keys import candidate_kernel, salts
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.dalton import split_keys
from evenflow.partitioners.dalton.bandit import BanditOptions, Policy, choose, raise_cap, reward
from evenflow.partitioners.dalton.count_min import CountMin, CountMinTable, clear, increment, width_for
from evenflow.partitioners.dalton.q_table import (
    COLD,
    Home,
    QTable,
    admit,
    defer,
    find,
    has_no_room,
    hold,
    learn,
    purge,
    slide_on,
)
from evenflow.partitioners.dalton.split_keys import SplitKeys
from evenflow.partitioners.dalton.tumbling_counts import Counts, Entries, TumblingCounts, is_full, slot_of
from evenflow.sketches.window_loads import WindowLoads, add, advance, loads_from, window_loads

_REACH = 1 << 61
STATS = np.dtype([(name, np.int64) for name in ("window", "end", "length", "seen", "previous", "inside")])
"""Number, end in ms and length of the statistics window, its tuples so far, the load that the threshold is made of,
tuples in the sliding window."""


class Learned(NamedTuple):
    """All that a Dalton knows: what kernels take as one argument."""

    window: WindowLoads
    others: Int64s
    """Loads that other partitioners make."""
    stats: Rows
    """One of STATS."""
    counts: Counts
    sketch: CountMinTable
    table: QTable
    rng: UInt64s


class Rule(NamedTuple):
    """How kernels go about it."""

    salt: np.uint64
    """Of F_1."""
    exact: bool
    """Keys are counted exactly, not by the sketch."""
    manual: bool
    """Stop where a statistics window ends."""
    deferring: bool
    """Rewards are kept back instead of being learned."""
    most: int
    """Keys that may be hot at once."""
    policy: Policy


def within_reach(times: Any) -> Any:
    """One time or many: those beyond 70 million years from 1970 count as that, so the ends of windows stay within int64."""
    return np.clip(times, -_REACH, _REACH)


@kernel
def begin_window(known: Learned, time: Whole) -> None:
    """Move the statistics window to `time`. A window without tuples in between leaves no threshold."""
    stats = known.stats[()]
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
def slide_to(known: Learned, time: Whole) -> None:
    """Move the sliding window to `time`, which lies behind its current slide."""
    window, stats = known.window, known.stats[()]
    advance(window, time)
    stats["inside"] = 0
    for worker in range(window.loads.shape[0]):
        stats["inside"] += window.loads[worker]
    slide_on(known.table, window.clock[()]["slide"] - window.ring.shape[0] + 1)


@kernel
def route(block: Block, first: Whole, known: Learned, rule: Rule) -> int:
    """Route from tuple `first` on. The tuple it stopped at, or their number.

    It stops where the caller must make room, or where a statistics window ends, if the rule says so.
    """
    keys, times, out = block
    window, others, stats, table = known.window, known.others, known.stats[()], known.table
    loads, clock, cells, row = window.loads, window.clock[()], known.counts.cells, table.row
    policy = rule.policy
    workers = np.uint64(loads.shape[0])
    n = np.int64(loads.shape[0])
    slides = np.int64(window.ring.shape[0])
    oldest = clock["slide"] - slides + 1 if clock["slide"] != NEVER else clock["slide"]
    elsewhere = np.sum(others)
    for i in range(first, keys.shape[0]):
        time = times[i]
        if time >= clock["end"]:
            slide_to(known, time)
            oldest = clock["slide"] - slides + 1
        if time >= stats["end"]:
            if stats["end"] == NEVER:
                begin_window(known, time)
            elif rule.manual:
                return i
            else:
                begin_window(known, time)
                known.counts.fill[0] = 0
                if not rule.exact:
                    clear(known.sketch)
                purge(table, stats["window"], oldest)
        if is_full(known.counts) or has_no_room(table):
            return i
        key = keys[i]
        home = candidate_kernel(key, rule.salt, workers)
        slot = np.int64(0)
        home_slide = clock["slide"]
        if rule.exact:
            slot = slot_of(known.counts, key, np.int64(stats["window"]))
            cells[slot]["count"] += 1
            frequency = cells[slot]["count"]
            home_slide = cells[slot]["last"]
        else:
            frequency = increment(known.sketch, key)
        stats["seen"] += 1
        r = find(table, key)
        if frequency * n >= stats["previous"] and frequency > 1 and stats["previous"] > 0:
            expiry = stats["window"] + 1
            if r >= 0 and row[r]["expiry"] != COLD:
                row[r]["expiry"] = max(row[r]["expiry"], expiry)
            elif table.meta[()]["hot"] < rule.most:
                r = admit(table, key, r, Home(home, home_slide, oldest), expiry)
        stats["inside"] += 1
        if r < 0:
            add(window, home)
            if rule.exact:
                cells[slot]["last"] = clock["slide"]
            out[i] = home
            continue
        hot = row[r]["expiry"] != COLD
        worker = choose(table, known.rng, r, policy.eps, oldest) if hot else home
        add(window, worker)
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


_COUNTED = ("count_key", "count", "count_last")
"""Names of the entries in the state."""
_VARIABLE: dict[str, tuple[str, ...]] = {
    **split_keys.VARIABLE,
    **dict.fromkeys(_COUNTED, ("counted",)),
}


class BanditPartitioner(Partitioner):
    """What `dalton` and its cooperating form share. Not a scheme of its own."""

    options: BanditOptions
    variable_state = _VARIABLE

    @property
    def _exact(self) -> bool:
        """Whether keys are counted exactly."""
        return True

    @property
    def _gamma(self) -> float:
        """Step of learning."""
        return self.options.gamma

    @property
    def _statistics_ms(self) -> int:
        """Length of the statistics window at first."""
        return self.options.slide_ms

    def _start(self) -> None:
        self._stats = record(STATS, window=1, end=NEVER, length=self._statistics_ms)
        self._counts = TumblingCounts()
        self._rng = generator(self.seed, self.source)
        self._shape()
        self._sketch = self._new_sketch()

    def _rescale(self) -> None:
        """Counts of keys stay. Loads, holders and values are of workers and begin again."""
        self._shape()
        self._stats["inside"] = 0
        self._counts.forget_slides()
        if not self._exact:
            self._sketch = self._new_sketch()

    def _shape(self) -> None:
        options = self.options
        self._salt = salts(self.seed, 1)[0]
        self._loads = window_loads(self.workers, window_ms=options.window_ms, slide_ms=options.slide_ms)
        self._split = self._new_split()
        self._others = np.zeros(self.workers, np.int64)

    def _new_split(self) -> SplitKeys:
        return SplitKeys(self.workers, cap=self.options.first_cap)

    def _new_sketch(self) -> CountMin:
        return CountMin(2 if self._exact else width_for(1 / (4 * self.workers)), seed=self.seed)

    def _assign(self, keys: UInt64s, times: Int64s, out: Int32s) -> None:
        times, row = within_reach(times), 0
        while (row := self._route(keys, times, row, out)) < len(keys):
            self._make_room()

    def _route(
        self,
        keys: UInt64s,
        times: Int64s,
        first: int,
        out: Int32s,
        *,
        manual: bool = False,
        deferring: bool = False,
    ) -> int:
        policy, exact, most = self.options.policy(self._gamma), self._exact, 4 * self.workers
        rule = Rule(self._salt, exact, manual, deferring, most, policy)
        return int(route(Block(keys, times, out), first, self._learned(), rule))

    def _learned(self) -> Learned:
        return Learned(
            self._loads,
            self._others,
            self._stats,
            self._counts.table,
            self._sketch.table,
            self._split.table,
            self._rng,
        )

    def _make_room(self) -> None:
        if self._counts.full:
            self._counts.grow(int(self._stats["window"]))
        if self._split.full:
            self._split.grow()

    def _state(self) -> State:
        entries = self._counts.entries(int(self._stats["window"]))
        counted: State = dict(zip(_COUNTED, entries, strict=True))
        if not self._exact:
            counted = {"sketch": self._sketch.table.cells}
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
        if self._exact:
            window = int(self._stats["window"])
            self._counts.load(window, Entries(*(state[name] for name in _COUNTED)))
        else:
            self._sketch.table.cells[:] = state["sketch"]

    def _choices(self) -> int:
        return min(self._split.cap, self.workers)

    def _head_keys(self) -> int:
        return self._split.hot

    def _fixed_bytes(self) -> int:
        arrays = (*self._loads, self._others, self._stats, self._rng)
        return sum(array.nbytes for array in arrays) + self._sketch.nbytes

    def _state_bytes(self) -> int:
        return self._fixed_bytes() + self._counts.nbytes + self._split.nbytes

    def _state_bound(self, keys: int) -> int:
        counts = self._counts.bound(keys if self._exact else 0)
        return self._fixed_bytes() + counts + self._split.bound(self._most_rows(keys))

    def _most_rows(self, keys: int) -> int:
        """Rows are of keys of this statistics window, and of the last one or the window before, if that is longer."""
        rows = split_keys.most_rows(4 * self.workers, -(-self.options.window_ms // self._statistics_ms))
        return min(rows, 2 * keys) if self._exact else rows


class DaltonOptions(BanditOptions):
    """Options of dalton. See the module's docstring."""

    heavy_hitters: Literal["exact", "sketch"] = Field(
        "exact", description="Counts of keys: exact (grows with the keys of a statistics window) or a sketch."
    )
    stats_ms: int | None = Field(
        None, ge=1, description="Length of the statistics window, ms; none = one slide."
    )


class Dalton(BanditPartitioner):
    """Hot keys are split by a learned policy, all others are hashed."""

    options_type = DaltonOptions
    options: DaltonOptions

    @property
    def _exact(self) -> bool:
        return self.options.heavy_hitters == "exact"

    @property
    def _statistics_ms(self) -> int:
        return self.options.stats_ms or self.options.slide_ms
