"""evenflow (priced water-filling): split few keys, the hottest, and let them level everybody's load.

Idea: almost every key stays whole. It has a *home*: keys are hashed into buckets, a bucket that no window
remembers is given to the worker with the least unsplit load, and stays there for as long as one of its
keys is in the window. Only a *watched* key (certainly at least 1/(watch*n) of the recent stream) may have
more holders. Its tuple takes the first of its holders, home first and then in order of adoption, that is
below the mean load, and stays with it until it is full. When all it looked at are above the mean by more
than 4 tuples (which chance explains) and

    price * mean * sqrt(0.01 / share of the key)

and the least loaded of all workers is below the mean, that worker becomes a holder. So replicas are bought
where they carry most: the hottest keys absorb everybody's imbalance. A holder that is not needed for a
window is released, and so are all holders of a key that cools below half the threshold.

Parameters: `price` of a replica (the knob between imbalance and replication; very large = never split);
`watch` how rare a split key may be; `buckets` that remember homes; `tail` whether homes are remembered or
hashed (F_1: several sources must agree on the home of a rare key, so `auto` = remember for one source);
`weights` relative speed of the workers; `load` windowed (default) or cumulative. While the first window
fills, the price counts as if it were full already, so that noise of small loads buys nothing. When workers
are added, the share of the homes that they are to carry is given up and placed anew: those keys are split
once, within the window of the rescale, which is the price of new workers that work.

Cost per tuple: one counter, one bucket, at most 16 holders looked at; O(log n), amortised, to find the
least loaded worker when it is asked for; O(n) per slide. State: 4 bytes x buckets, 192 to 344 x watch x n,
2n loads (windowed: x slides more). At most watch*n replicas are held at a time. Argument and figures:
docs/evenflow-partitioner.md. Paper: none, this is our own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, field_validator

from evenflow.arrays import NEVER, Float64s, Int32s, Int64s, State, UInt64s
from evenflow.errors import ConfigError
from evenflow.kernels import inlined, kernel
from evenflow.keys import candidate_kernel, members, mix64
from evenflow.partitioners.base import Partitioner
from evenflow.partitioners.exchange import Exchange
from evenflow.partitioners.load_options import LoadOptions
from evenflow.sketches.frequent import SEEN, Frequent, due, frequent, halve, move_all, offer, sure
from evenflow.sketches.holder_rings import (
    CURRENT,
    LAST,
    NEXT,
    SIZE,
    SPLIT,
    TURN,
    WORKER,
    Rings,
    adopt,
    drop_after,
    drop_all,
    edge_to,
    rings,
)
from evenflow.sketches.least_loaded import raised, rebuild, tournament, winner
from evenflow.sketches.placements import (
    LIVE,
    Placements,
    buckets_of,
    move_to,
    placements,
    put,
    release,
    without_workers_from,
    worker_of,
)
from evenflow.sketches.window_loads import ROW, WindowLoads, loads_from

_LOOKS = 8
"""Holders looked at per tuple from the oldest on, and again as many in turn."""
_FEWEST = 8
"""Occurrences from which a share is believed."""
_MARGIN = 4
"""Tuples that chance explains: a holder in use is filled up to the mean, and the next one is taken when it
is this much below; an overload up to this much buys nothing."""
_SHARED = 8
"""Candidates F_2, F_3, ... that several sources try first, so that they buy the same replicas."""
_FINE = 1024
"""Units of load per tuple of a worker of mean speed, when speeds differ."""
_INSTANTS = 8
"""The first eighth of a slide counts as an eighth: a burst with one time says nothing about the rate."""
_REFERENCE = 0.1
"""sqrt(0.01): the price is that of a key with 1 % of the stream."""
_SIGN, _MANY = np.int64(63), np.int64(1 << 40)
_SINCE, _LATEST, _BUCKET, _TUPLES, _KNOWN = range(5)
"""Of `progress`: time from which the window fills, latest time, what a bucket brings in a window, tuples in
the window; what a bucket brought before a rescale, believed until the window has filled anew."""
_SLIDE, _LENGTH, _END = range(3)


@kernel
def _next_slide(
    time: Any,
    loads: Int64s,
    tail: Int64s,
    credit: Int64s,
    sent: Int64s,
    clock: Int64s,
    progress: Int64s,
) -> None:
    """Move the window to `time`: what leaves it is taken off, credit fades; a gap begins a new window."""
    slides, n = np.int64(sent.shape[0]), credit.shape[0]
    now = time // clock[_LENGTH]
    passed = slides if clock[_SLIDE] == NEVER else min(slides, now - clock[_SLIDE])
    if passed == slides:
        progress[_SINCE] = time
    if passed == slides or time - progress[_SINCE] >= slides * clock[_LENGTH]:
        progress[_KNOWN] = 0
    kept = 0.0 if passed == slides else (1.0 - 1.0 / slides) ** passed
    for step in range(passed):
        row = (now - step) % slides
        progress[_TUPLES] -= sent[row, 2 * n]
        for worker in range(n):
            loads[worker] -= sent[row, worker] + sent[row, n + worker]
            tail[worker] -= sent[row, n + worker]
        for column in range(2 * n + 1):
            sent[row, column] = 0
    for worker in range(n):
        left = np.int64(credit[worker] * kept)
        tail[worker] -= credit[worker] - left
        credit[worker] = left
    clock[_SLIDE], clock[_END], clock[ROW] = now, (now + 1) * clock[_LENGTH], now % slides


@kernel
def _lowest(tree: Int64s, loads: Int64s) -> np.int64:
    """The least loaded worker, of a tree that is played again only when somebody asks.

    Loads only grow between two `rebuild`s, so what the tree remembers is never too high: the winner is
    right when what the tree remembers of it is. Each tuple can spoil one entry, so one replay per tuple
    is the most this comes to.
    """
    leaves = tree.shape[0] // 2
    worker = winner(tree)
    while tree[leaves + worker] != loads[worker] * leaves + worker:
        raised(tree, loads, worker)
        worker = winner(tree)
    return worker


@kernel
def _when_full(slides: Any, clock: Int64s, progress: Int64s) -> float:
    """How many times its present load the window will hold when it has filled, at the present rate."""
    if clock[_SLIDE] == NEVER:  # cumulative loads
        return 1.0
    span = progress[_LATEST] - progress[_SINCE] + 1
    return min(float(slides * _INSTANTS), max(1.0, slides * clock[_LENGTH] / span))


@kernel
def _tuples_per_bucket(tail: Int64s, credit: Int64s, step: Int64s, live: Any) -> np.int64:
    """What a bucket brings its worker in a window: the mean over the live ones."""
    whole = 0.0
    for worker in range(tail.shape[0]):
        whole += (tail[worker] - credit[worker]) / step[worker]
    return np.int64(whole / max(np.int64(1), live))


@inlined
def _holder(
    edge: Int32s,
    used: Int64s,
    ring: Int32s,
    table: Int32s,
    meta: Int64s,
    owner: Any,
    home: Any,
    loads: Int64s,
    limit: float,
    margin: float,
    now: Any,
    oldest: Any,
) -> np.int64:
    """First of home and the ring with a load within `limit`, else the least loaded looked at.

    Looks at the oldest edges first, so that the younger ones fall out of use and are dropped (`oldest` is
    the first slide of the window), then at those whose turn it is.
    """
    worker = np.int64(home)
    current = np.int64(ring[owner, CURRENT]) - 1
    if current >= 0:
        worker = np.int64(edge[current, WORKER])
    if loads[worker] > limit or (current >= 0 and used[current] < oldest):
        limit -= margin
        best, lowest = np.int64(-1), loads[home]
        before = np.uint64(ring[owner, LAST])
        looks: Any = np.int64(0) if lowest <= limit else min(np.int64(ring[owner, SIZE]), _LOOKS)
        turned = False
        while looks > 0:
            looks -= 1
            at = np.uint64(edge[before, NEXT])
            if used[at] < oldest:
                drop_after(edge, ring, table, meta, owner, np.int64(before))
                if ring[owner, SIZE] == 0:
                    break
            else:
                load = loads[np.uint64(edge[at, WORKER])]
                if load < lowest:
                    best, lowest = np.int64(at), load
                    if load <= limit:
                        break
                before = at
            if looks == 0 and not turned and ring[owner, SIZE] > _LOOKS:
                turned = True
                looks = np.int64(_LOOKS)
                before = np.uint64(ring[owner, TURN])
        if turned:
            ring[owner, TURN] = np.int32(before)
        ring[owner, CURRENT] = best + 1
        current = best
        worker = np.int64(home)
        if current >= 0:
            worker = np.int64(edge[current, WORKER])
    if current >= 0:
        used[current] = now
    return worker


@kernel
def _drop_cooled(
    count: Int32s,
    error: Int32s,
    seen: Int64s,
    edge: Int32s,
    ring: Int32s,
    table: Int32s,
    pool: Int64s,
    watched: int,
) -> None:
    """Keys below half the threshold keep their home alone."""
    for owner in range(count.shape[0]):
        if ring[owner, SIZE] > 0 and 2 * watched * np.int64(sure(count, error, owner)) < seen[SEEN]:
            drop_all(edge, ring, table, pool, owner)


@kernel
def _newcomer(
    key: np.uint64,
    family: UInt64s,
    edge: Int32s,
    table: Int32s,
    owner: Any,
    home: Any,
    loads: Int64s,
    level: float,
    lightest: Any,
) -> np.int64:
    """The worker to adopt: the first shared candidate below the mean that is no holder, else the least."""
    workers = np.uint64(loads.shape[0])
    for i in range(1, family.shape[0]):
        other = candidate_kernel(key, family[i], workers)
        if loads[other] < level and other != home and edge_to(edge, table, owner, other) < 0:
            return other
    return np.int64(lightest)


@kernel
def _route(
    keys: UInt64s,
    times: Int64s,
    out: Int32s,
    summary: Frequent,
    places: Placements,
    holders: Rings,
    window: WindowLoads,
    tail: Int64s,
    credit: Int64s,
    progress: Int64s,
    step: Int64s,
    lowest: Int64s,
    lowest_tail: Int64s,
    family: UInt64s,
    salt: np.uint64,
    windowed: bool,
    remembers: bool,
    unit: int,
    watched: int,
    price: float,
) -> None:
    key_of, count, error, seen = summary
    cell, place = places
    edge, used, ring, table, pool = holders
    loads, sent, clock = window
    n = loads.shape[0]
    workers = np.uint64(n)
    slides = np.int64(sent.shape[0])
    buckets = np.uint64(cell.shape[0] - 1)
    margin = float(_MARGIN * unit)
    share = unit / n
    dear = (price * _REFERENCE) ** 2
    total, fresh = progress[_TUPLES], np.int64(0)
    now = clock[_SLIDE]
    oldest = now - slides + 1 if windowed and now != NEVER else np.int64(NEVER)
    rebuild(lowest, loads)
    rebuild(lowest_tail, tail)
    for row in range(keys.shape[0]):
        key = keys[row]
        if windowed:
            time = times[row]
            if time >= clock[_END]:
                sent[clock[ROW], 2 * n] += fresh
                progress[_TUPLES] += fresh
                _next_slide(time, loads, tail, credit, sent, clock, progress)
                total, fresh = progress[_TUPLES], np.int64(0)
                now = clock[_SLIDE]
                oldest = now - slides + 1
                move_to(cell, place, now)
                measured = _tuples_per_bucket(tail, credit, step, place[LIVE])
                progress[_BUCKET] = max(measured, progress[_KNOWN])
                rebuild(lowest, loads)
                rebuild(lowest_tail, tail)
            progress[_LATEST] = max(progress[_LATEST], time)
        fresh += 1
        spot = mix64(key ^ salt)
        at, taken = offer(key_of, count, error, seen, spot, key)
        if ring[at, SIZE] > (_MANY & ~taken):  # "split and taken over", as one branch that is rarely taken
            drop_all(edge, ring, table, pool, at)
        if due(seen):
            halve(count, error, seen)
            _drop_cooled(count, error, seen, edge, ring, table, pool, watched)
        if remembers:
            bucket = (spot >> np.uint64(32)) & buckets
            home = worker_of(cell, place, bucket)
            if home < 0:
                home = _lowest(lowest_tail, tail)
                credit[home] += progress[_BUCKET] * step[home]
                tail[home] += progress[_BUCKET] * step[home]
            put(cell, place, bucket, home)
        else:
            home = candidate_kernel(key, family[0], workers)
        worker = home
        level = (total + fresh) * share
        certain = np.int64(sure(count, error, at))
        split = ring[at, SIZE] > 0
        if split:
            if 2 * watched * certain < seen[SEEN]:
                drop_all(edge, ring, table, pool, at)
            else:
                worker = _holder(edge, used, ring, table, pool, at, home, loads, level, margin, now, oldest)
        over = loads[worker] - level - margin
        too_rare = (certain * watched - seen[SEEN] | certain - _FEWEST) >> _SIGN  # all bits set, or none
        weight = certain & ~too_rare  # one branch that is rarely taken, not three
        if over * abs(over) * weight > dear * seen[SEEN] * level * level and over > _when_full(
            slides, clock, progress
        ) * level * math.sqrt(dear * seen[SEEN] / certain):
            lightest = _lowest(lowest, loads)
            mine = edge_to(edge, table, at, lightest)
            if mine >= 0:
                worker = lightest
                used[mine] = now
            elif loads[lightest] < level and lightest != home:
                other = _newcomer(key, family, edge, table, at, home, loads, level, lightest)
                if adopt(edge, used, ring, table, pool, at, other, now):
                    worker = other
        split = ring[at, SIZE] > 0
        column = worker if split else n + worker
        load = step[worker]
        loads[worker] += load
        sent[clock[ROW], column] += load
        tail[worker] += np.int64(0) if split else load
        out[row] = worker
    sent[clock[ROW], 2 * n] += fresh
    progress[_TUPLES] += fresh


class EvenflowOptions(LoadOptions):
    """Options of evenflow; see the module's docstring."""

    load: Literal["cumulative", "windowed"] = Field(
        "windowed", description="Tuples that count as load: all so far, or those of the window."
    )
    price: float = Field(
        5e-4,
        ge=0,
        le=1e12,
        description="Overload, as share of the mean load, that another holder of a key with 1 % of the "
        "stream must save; dearer for rarer keys. Higher: fewer replicas, more imbalance.",
    )
    watch: int = Field(
        8, ge=1, le=10_000, description="Only keys with at least 1/(watch*n) of the stream may be split."
    )
    buckets: int = Field(
        1 << 17, ge=1, le=1 << 28, description="Buckets that remember the home of keys; a power of two."
    )
    tail: Literal["auto", "remember", "hash"] = Field(
        "auto", description="Home of a key: remembered, or F_1; auto = remembered when there is one source."
    )
    weights: tuple[float, ...] = Field(
        (), description="Relative speed of worker 0, 1, ...; workers without one count as 1."
    )

    @field_validator("buckets")
    @classmethod
    def _is_a_power_of_two(cls, value: int) -> int:
        if value & (value - 1):
            raise ValueError(f"buckets ({value}) must be a power of two")
        return value

    @field_validator("weights")
    @classmethod
    def _are_speeds(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 1e-3 <= value <= 1e3 for value in values):
            raise ValueError("every weight must be between 0.001 and 1000")
        return values


class Evenflow(Partitioner):
    """Whole keys at remembered homes; the hottest ones are split, at a price, to level the load."""

    options_type = EvenflowOptions
    options: EvenflowOptions

    def _start(self) -> None:
        options = self.options
        self._salt = members(self.seed, 1, first=1 << 40)[0]
        self._remembers = options.tail == "remember" or (options.tail == "auto" and self.sources == 1)
        slides = options.window_ms // options.slide_ms if options.windowed else 0
        self._places = placements(options.buckets if self._remembers else 1, slides)
        self._shape()
        self._window = self._no_loads()
        self._progress = np.array([NEVER, NEVER, 0, 0, 0], np.int64)

    def _rescale(self) -> None:
        """What is known of keys is kept, and homes too, but for those that added workers need.

        A home moves only when its worker goes, or for growth: of each worker's live buckets the share that
        the added workers are to carry is freed. Their keys are split once, between the old and the new
        home, within the window of the rescale: without that price keys that are never silent would leave
        new workers idle for ever. Holders are bought anew.
        """
        known, clock, before = self._summary, self._window.clock, len(self._tail)
        brings = _tuples_per_bucket(self._tail, self._credit, self._step, self._places.meta[LIVE])
        brings = max(brings, self._progress[_KNOWN])  # soon after another rescale the window is not full
        self._shape()
        spots = np.empty(len(known.key), np.uint64)
        _spots(known.key, self._salt, spots)
        move_all(known, self._summary, spots)
        if self._remembers:
            without_workers_from(self.workers, self._places)
            weights = self._weights
            if self.workers > before:
                mark = members(self.seed, 1, first=(1 << 41) + self.workers)[0]
                release(weights[before:].sum() / weights.sum(), mark, self._places)
        self._window = self._no_loads()
        self._window.clock[:] = clock
        self._progress[:] = self._progress[_LATEST], self._progress[_LATEST], 0, 0, 0
        if self._remembers and self.options.windowed:  # kept homes count like those just placed
            self._progress[[_BUCKET, _KNOWN]] = brings
            self._credit[:] = brings * self._step * buckets_of(self.workers, self._places)
            self._tail[:] = self._credit

    def _shape(self) -> None:
        """Everything but homes and loads, for the present number of workers."""
        n, options = self.workers, self.options
        self._watched = options.watch * n
        self._summary = frequent(4 * self._watched, 64 * self._watched)
        self._rings = rings(len(self._summary.key), self._watched)
        self._credit, self._tail = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._others = np.zeros(n, np.int64)
        self._lowest, self._lowest_tail = tournament(n), tournament(n)
        self._family = members(self.seed, 1 if self.sources == 1 else 1 + _SHARED)
        weights = np.array([*options.weights[:n], *[1.0] * (n - len(options.weights))])
        self._weights = weights
        even = np.all(weights == weights[0])
        self._unit = 1 if even else _FINE
        self._step = np.maximum(1, np.rint(self._unit * weights.mean() / weights)).astype(np.int64)

    def _no_loads(self) -> WindowLoads:
        """Empty loads; a row of the ring has, per worker, load of split keys, then of whole ones; then tuples."""
        loads, ring, clock = self.options.new_loads(2 * self.workers + 1)
        return WindowLoads(loads[: self.workers].copy(), ring, clock)

    def _assign(self, keys: UInt64s, times: Int64s, out: Int32s) -> None:
        _route(
            keys,
            times,
            out,
            self._summary,
            self._places,
            self._rings,
            self._window,
            self._tail,
            self._credit,
            self._progress,
            self._step,
            self._lowest,
            self._lowest_tail,
            self._family,
            self._salt,
            self.options.windowed,
            self._remembers,
            self._unit,
            self._watched,
            self.options.price,
        )

    def window_tuples(self) -> Int64s:
        """Tuples that this source sent each worker within the window: what the others `hear`."""
        return (self._window.loads - self._others) // self._step

    def hear(self, others: Int64s | None) -> None:
        """Take on a share of the imbalance of all sources; `others`: the sum of their `window_tuples()`.

        From here on this source levels as if 1/sources of the imbalance of all were its own: when every
        source does, they make up for all of it together and do not overshoot; a source whose keys cannot be
        split leaves its share to the next round. Holds until the next call; None = alone again.
        """
        if others is not None and others.shape != (self.workers,):
            raise ConfigError(f"loads of {self.workers} workers are needed, not of shape {others.shape}")
        heard = np.zeros(self.workers, np.int64)
        if others is not None:
            mine = self._off_level(self.window_tuples())
            heard = np.rint((mine + self._off_level(others)) / self.sources - mine).astype(np.int64)
        self._window.loads[:] += heard - self._others
        self._others = heard

    @classmethod
    def exchange(cls, parts: Sequence[Self], slide_ms: int) -> Exchange:
        """Every slide each hears the loads of the others."""

        def tell(now: int) -> None:
            loads = [part.window_tuples() for part in parts]
            for part, own in zip(parts, loads, strict=True):
                part.hear(np.sum(loads, axis=0) - own)

        return Exchange(slide_ms, tell)

    def _off_level(self, tuples: Int64s) -> Float64s:
        """In units of load: how far each worker is from where its speed says it should be."""
        return tuples * self._step - tuples.sum() * self._unit / self.workers

    def _state(self) -> State:
        parts = (("summary", self._summary), ("places", self._places), ("rings", self._rings))
        return {
            **self._window._asdict(),
            **{f"{name}.{field}": array for name, part in parts for field, array in part._asdict().items()},
            "tail": self._tail,
            "credit": self._credit,
            "progress": self._progress,
            "others": self._others,
        }

    def _load_state(self, state: State) -> None:
        def part(name: str, kind: type[Any]) -> Any:
            return kind(**{field: state[f"{name}.{field}"] for field in kind._fields})

        self._window = loads_from(state)
        self._summary, self._places = part("summary", Frequent), part("places", Placements)
        self._rings = part("rings", Rings)
        self._tail, self._credit = state["tail"], state["credit"]
        self._progress, self._others = state["progress"], state["others"]

    def _choices(self) -> int:
        return self.workers

    def _head_keys(self) -> int:
        return int(self._rings.meta[SPLIT])

    def _state_bytes(self) -> int:
        arrays = (*self._state().values(), self._lowest, self._lowest_tail, self._step, self._family)
        return sum(array.nbytes for array in arrays)


@kernel
def _spots(keys: UInt64s, salt: np.uint64, spots: UInt64s) -> None:
    for at in range(keys.shape[0]):
        spots[at] = mix64(keys[at] ^ salt)
