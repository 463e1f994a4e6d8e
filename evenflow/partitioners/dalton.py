"""Dalton: keys that are frequent now are placed by a learned policy, all others are hashed.

Idea: a contextual bandit per hot key learns which workers to use from a reward that falls with the
worker's load and with the number of workers that hold the key:

    R = -(p1 * (L[a] - avg)/max(L[a], avg) + p2 * |X(k)|/n)       Q[k,a] += gamma (R - Q[k,a])

L and X are those of the sliding window, after this tuple. A new row is -2 everywhere, below every
reward, so a key stays where it is until exploration finds a better worker. A key is hot when its count
in the present statistics window reaches 1/n of the load of the last one, for this window and the next.

Parameters: `explore` uniform (the paper: with probability `eps` any worker; a key with many tuples then
ends up on all workers) or capped (the authors' code: a key with `cap` holders explores among them; the
cap starts at 2 and grows by one, up to 6, when 70 % of the hot keys have reached it); `heavy_hitters`
exact counts, or a Count-Min sketch with an error of at most 1/(4n) of the load (chosen over SpaceSaving
with 4n counters because a rare key costs it four additions, not the eviction of another; both never miss
a frequent key); `gamma`, `eps`, `p1`, `p2`; window, slide and statistics window.

Where the paper is silent: the test counts the current tuple. No key is hot in the first statistics
window or after one without tuples, when there is no load to compare with, nor by its first tuple of a
window: one tuple cannot be split. A tie goes to F_1(k), then to the lowest worker. Rows expire when a
window begins. At most 4n keys are hot at once; while the load grows from window to window more could
reach the threshold. Each source explores with a generator (splitmix64) of its own. A rescale forgets
loads, holders and values, which are of workers; exact counts of keys stay.

X(k) is exact for every key that is hot or was hot in the window. A key that was not can only have been
at F_1(k), and it gets hot by its second tuple of a statistics window at the earliest, so that window's
count knows whether and when F_1(k) last had it (the sketch, which does not, takes the present slide).

Cost per tuple: O(1) for hashed and amortised O(1) for hot ones, a scan of n values only when the best
worker changes; O(n) when a capped key explores; O(n * rows) per slide. State: n * slides loads, the rows
of `q_table`, 32 bytes x 2 to 4 per distinct key of a statistics window, or the sketch (44n to 87n
counters of 8 bytes, in four rows).
Paper: Zapridou et al., "Dalton: Learned Partitioning for Distributed Data Streams", PVLDB 16(3) 2022
(000), Algorithm 1, sections 3.2 and 3.3.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from evenflow.arrays import NEVER, Int32s, Int64s, State, UInt64s
from evenflow.draws import generator
from evenflow.kernels import kernel
from evenflow.keys import candidate_kernel, members
from evenflow.partitioners.bandit import BanditOptions, choose, raise_cap, reward
from evenflow.partitioners.base import Partitioner
from evenflow.sketches import split_keys
from evenflow.sketches.count_min import CountMin, CountMinTable, clear, increment, width_for
from evenflow.sketches.q_table import (
    COLD,
    EXPIRY,
    HELD,
    ROWS,
    QTable,
    admit,
    defer,
    find,
    hold,
    learn,
    purge,
    slide_on,
)
from evenflow.sketches.split_keys import SplitKeys
from evenflow.sketches.tumbling_counts import COUNT, LAST, TumblingCounts, limit, slot_of
from evenflow.sketches.window_loads import WindowLoads, add, advance, loads_from, window_loads

_REACH = 1 << 61
WINDOW, END, LENGTH, SEEN, PREVIOUS, INSIDE = range(6)
"""Of `stats`: number, end in ms and length of the statistics window, its tuples so far, the load that
the threshold is made of, tuples in the sliding window."""


def within_reach(times: Any) -> Any:
    """One time or many: those beyond 70 million years from 1970 count as that, so the ends of windows stay within int64."""
    return np.clip(times, -_REACH, _REACH)


@kernel
def begin_window(stats: Int64s, time: Any) -> None:
    """Move the statistics window to `time`; a window without tuples in between leaves no threshold."""
    length = stats[LENGTH]
    if stats[END] == NEVER:
        stats[END] = (time // length + 1) * length
        return
    steps = (time - stats[END]) // length + 1
    stats[PREVIOUS] = stats[SEEN] if steps == 1 else 0
    stats[SEEN] = 0
    stats[WINDOW] += steps
    stats[END] += steps * length


@kernel
def slide_to(window: WindowLoads, row: Int64s, last: Int64s, meta: Int64s, stats: Int64s, time: Any) -> None:
    """Move the sliding window to `time`, which lies behind its current slide."""
    advance(window, time)
    stats[INSIDE] = 0
    for worker in range(window.loads.shape[0]):
        stats[INSIDE] += window.loads[worker]
    slide_on(row, last, meta, window.clock[()]["slide"] - window.ring.shape[0] + 1)


@kernel
def route(
    keys: UInt64s,
    times: Int64s,
    first: Any,
    out: Int32s,
    window: WindowLoads,
    others: Int64s,
    stats: Int64s,
    cells: Int64s,
    fill: Int64s,
    sketch: CountMinTable,
    table: QTable,
    rng: UInt64s,
    member: np.uint64,
    exact: bool,
    manual: bool,
    deferring: bool,
    most: Any,
    gamma: float,
    eps: float,
    p1: float,
    p2: float,
    cap_max: Any,
    cap_growth: float,
) -> int:
    """Route from tuple `first` on; the tuple it stopped at, or their number.

    It stops where the caller must make room, or, when `manual`, where a statistics window ends.
    `deferring`: rewards are kept back instead of being learned. `others`: the loads of other partitioners.
    """
    loads, clock = window.loads, window.clock[()]
    columns, hashes = sketch
    key_of, slots, row, bound, q, last, kept, gain, meta = table
    workers = np.uint64(loads.shape[0])
    n = np.int64(loads.shape[0])
    slides = np.int64(window.ring.shape[0])
    oldest = clock["slide"] - slides + 1 if clock["slide"] != NEVER else clock["slide"]
    many = limit(cells)
    elsewhere = np.sum(others)
    capacity = np.int64(key_of.shape[0])
    for i in range(first, keys.shape[0]):
        time = times[i]
        if time >= clock["end"]:
            slide_to(window, row, last, meta, stats, time)
            oldest = clock["slide"] - slides + 1
        if time >= stats[END]:
            if stats[END] == NEVER:
                begin_window(stats, time)
            elif manual:
                return i
            else:
                begin_window(stats, time)
                fill[0] = 0
                if not exact:
                    clear(columns)
                purge(key_of, slots, row, bound, q, last, kept, gain, meta, stats[WINDOW], oldest)
        if fill[0] >= many or meta[ROWS] >= capacity:
            return i
        key = keys[i]
        home = candidate_kernel(key, member, workers)
        slot = np.int64(0)
        home_slide = clock["slide"]
        if exact:
            slot = slot_of(cells, fill, key, stats[WINDOW])
            cells[slot, COUNT] += 1
            frequency = cells[slot, COUNT]
            home_slide = cells[slot, LAST]
        else:
            frequency = increment(columns, hashes, key)
        stats[SEEN] += 1
        r = find(key_of, slots, key)
        if frequency * n >= stats[PREVIOUS] and frequency > 1 and stats[PREVIOUS] > 0:
            expiry = stats[WINDOW] + 1
            if r >= 0 and row[r, EXPIRY] != COLD:
                row[r, EXPIRY] = max(row[r, EXPIRY], expiry)
            else:
                r = admit(
                    key_of, slots, row, bound, q, last, kept, gain, meta,
                    key, r, home, home_slide, oldest, expiry, most,
                )  # fmt: skip
        stats[INSIDE] += 1
        if r < 0:
            add(window, home)
            if exact:
                cells[slot, LAST] = clock["slide"]
            out[i] = home
            continue
        hot = row[r, EXPIRY] != COLD
        worker = choose(row, last, meta, rng, r, eps, oldest) if hot else home
        add(window, worker)
        hold(row, last, meta, r, worker, clock["slide"], oldest)
        if hot:
            load = loads[worker] + others[worker]
            value = reward(load, stats[INSIDE] + elsewhere, row[r, HELD], n, p1, p2)
            if deferring:
                defer(kept, gain, r, worker, value, gamma)
            else:
                learn(row, bound, q, r, worker, value, gamma)
            raise_cap(row, meta, cap_max, cap_growth)
        out[i] = worker
    return keys.shape[0]


_VARIABLE: dict[str, tuple[str, ...]] = {
    **split_keys.VARIABLE,
    **dict.fromkeys(("count_key", "count", "count_last"), ("counted",)),
}


class BanditPartitioner(Partitioner):
    """What `dalton` and its cooperating form share; not a scheme of its own."""

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
        self._stats = np.array([1, NEVER, self._statistics_ms, 0, 0, 0], np.int64)
        self._counts = TumblingCounts()
        self._rng = generator(self.seed, self.source)
        self._shape()
        self._sketch = self._new_sketch()

    def _rescale(self) -> None:
        """Counts of keys stay; loads, holders and values are of workers and begin again."""
        self._shape()
        self._stats[INSIDE] = 0
        self._counts.forget_slides()
        if not self._exact:
            self._sketch = self._new_sketch()

    def _shape(self) -> None:
        options = self.options
        self._member = members(self.seed, 1)[0]
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
        options = self.options
        return int(
            route(
                keys,
                times,
                first,
                out,
                self._loads,
                self._others,
                self._stats,
                self._counts.cells,
                self._counts.fill,
                self._sketch.table,
                self._split.table,
                self._rng,
                self._member,
                self._exact,
                manual,
                deferring,
                4 * self.workers,
                self._gamma,
                options.eps,
                options.p1,
                options.p2,
                options.last_cap,
                options.cap_growth,
            )
        )

    def _make_room(self) -> None:
        if self._counts.full:
            self._counts.grow(int(self._stats[WINDOW]))
        if self._split.full:
            self._split.grow()

    def _state(self) -> State:
        keys, counts, last = self._counts.entries(int(self._stats[WINDOW]))
        counted: State = {"count_key": keys, "count": counts, "count_last": last}
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
            window = int(self._stats[WINDOW])
            self._counts.load(window, state["count_key"], state["count"], state["count_last"])
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
    """Options of dalton; see the module's docstring."""

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
