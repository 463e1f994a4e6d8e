"""The way of a tuple through `evenflow`: window, summary, home, holders, and now and then a new holder.

The rule is told in `water_filling`. What cannot be predicted about a tuple
(whether its key has a counter, is hot, is split) branches as seldom as it can: each wrong guess costs as
much as a third of a tuple.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from evenflow.arrays import NEVER, Int64s, Rows, UInt64s
from evenflow.kernels import inlined, kernel
from evenflow.keys import candidate_kernel, mix64
from evenflow.partitioners.base import Block
from evenflow.partitioners.evenflow.frequent import Frequent, due, halve, offer, sure
from evenflow.partitioners.evenflow.holder_rings import (
    Rings,
    adopt,
    drop_after,
    drop_all,
    drop_unused,
    edge_to,
)
from evenflow.partitioners.evenflow.placements import Placements, crowded, move_to, put, worker_of
from evenflow.sketches.least_loaded import raised, rebuild, winner
from evenflow.sketches.window_loads import WindowLoads, end_of, passed

_LOOKS = 8
"""Holders looked at per tuple from the oldest on, and again as many in turn."""
_FEWEST, _FEWEST_OF_MANY = 8, 4
"""Occurrences from which a share is believed: by one source, and at least by one of many (8 / sqrt(sources))."""
_MARGIN = 3
"""Tuples that chance explains: a holder in use is filled up to the mean, and the next one is taken when it
is this much below; an overload up to this much buys nothing."""
_INSTANTS = 8
"""The first eighth of a slide counts as an eighth: a burst with one time says nothing about the rate."""
_REFERENCE = 0.1
"""sqrt(0.01): the price is that of a key with 1 % of the stream."""
_SIGN, _MANY = np.int64(63), np.int64(1 << 40)
DOUBTS = 64
"""A time beyond a silence of a whole window is doubted until so many more tuples say so than deny it: one wrong clock
is no silence."""
_FILLED = 128
"""As long as no window has been full, so many tuples per watched key are priced as if it were."""
_AGES = 16
"""The summary forgets half at least so many times in a window, if it knows enough for its least share."""
PROGRESS = np.dtype(
    [(name, np.int64) for name in ("since", "latest", "bucket", "tuples", "known", "full", "doubted", "aged")]
)
"""`since`: time from which the window fills; `latest` time; what a `bucket` brings in a window (once it is full: besides
the first tuple); `tuples` in the window; `known`: what a bucket brought before a rescale, believed until the window has
filled anew; `full`: tuples in the last window that was full; `doubted`: rows of doubts in use; `aged`: slide in which
the summary forgot."""
DOUBT = np.dtype([(name, np.int64) for name in ("bucket", "home", "column", "time")])
"""Bucket and home of a doubted tuple's key, where it counts in a row of the window, and its time."""


class Rule(NamedTuple):
    """What does not change between two rescales."""

    step: Int64s
    """Load that a tuple is to each worker."""
    family: UInt64s
    """Hash functions of the candidates: the home's, then those tried first as holders."""
    salt: np.uint64
    """Of the hash that finds a key's place in the summary, and its bucket."""
    windowed: bool
    """Loads are those of the window, not of all so far."""
    remembers: bool
    """Homes are remembered, not hashed."""
    unit: int
    """Load that a tuple is to a worker of mean speed."""
    watched: int
    """Keys that may be split at a time."""
    sources: int
    price: float


class Water(NamedTuple):
    """What a partitioner knows."""

    summary: Frequent
    places: Placements
    holders: Rings
    window: WindowLoads
    """A row has, per worker, load of split keys, then of whole ones; then tuples."""
    tail: Int64s
    """Load of whole keys of each worker in the window, and its credit."""
    credit: Int64s
    """What homes that a worker was given are to bring it yet."""
    progress: Rows
    """One of PROGRESS."""
    doubts: Rows
    """(DOUBTS,) of DOUBT."""


class Lowest(NamedTuple):
    """Tournaments, which follow from the loads."""

    loads: Int64s
    tail: Int64s


class _Level(NamedTuple):
    loads: Int64s
    mean: float
    margin: float
    now: Any
    """The current slide."""
    oldest: Any
    """The first slide of the window."""


class _Owner(NamedTuple):
    key: Any
    at: Any
    """Its counter in the summary, which is its ring of holders too."""
    home: Any


@kernel
def tuples_per_bucket(tail: Int64s, credit: Int64s, step: Int64s, live: Any) -> np.int64:
    """What a bucket brings its worker in a window: the mean over the live ones."""
    whole = 0.0
    for worker in range(tail.shape[0]):
        whole += (tail[worker] - credit[worker]) / step[worker]
    return np.int64(whole / max(np.int64(1), live))


@kernel
def _shift(water: Water, time: Any) -> None:
    """Move the loads to the slide of `time`: what leaves the window is taken off, credit fades."""
    tail, credit, progress = water.tail, water.credit, water.progress[()]
    loads, sent, clock = water.window.loads, water.window.ring, water.window.clock[()]
    slides, n = np.int64(sent.shape[0]), credit.shape[0]
    now = time // clock["length"]
    gone = slides if clock["slide"] == NEVER else passed(slides, clock["slide"], now)
    if gone == slides:
        progress["since"] = time
    if gone == slides or time - progress["since"] >= slides * clock["length"]:
        progress["known"] = 0
    kept = 0.0 if gone == slides else (1.0 - 1.0 / slides) ** gone
    for step in range(gone):
        row = (now - step) % slides
        progress["tuples"] -= sent[row, 2 * n]
        for worker in range(n):
            loads[worker] -= sent[row, worker] + sent[row, n + worker]
            tail[worker] -= sent[row, n + worker]
        for column in range(2 * n + 1):
            sent[row, column] = 0
    for worker in range(n):
        left = np.int64(credit[worker] * kept)
        tail[worker] -= credit[worker] - left
        credit[worker] = left
    clock["slide"], clock["end"], clock["row"] = now, end_of(now, clock["length"]), now % slides


@kernel
def _next_slide(water: Water, rule: Rule, time: Any, silence: bool) -> None:
    """Move everything to the slide of `time`; after a silence a new window begins."""
    window, progress, known = water.window, water.progress[()], water.summary.meta[()]
    slides, clock = np.int64(window.ring.shape[0]), window.clock[()]
    time = _reached(water, time)
    if time - progress["since"] >= slides * clock["length"] and not silence:
        progress["full"] = progress["tuples"]
    _shift(water, time)
    now = clock["slide"]
    move_to(water.places, now)
    drop_unused(water.holders, now - slides + 1)
    ages: Any = max(1, slides // _AGES)
    if passed(slides, progress["aged"], now) >= ages and 4 * known["seen"] >= known["memory"]:
        _forget(water, rule)
    if silence:
        _believe(water, rule)
    else:
        _confirm(water, rule, time)
    progress["latest"] = max(progress["latest"], time)
    full = time - progress["since"] >= slides * clock["length"]
    live = water.places.meta[()]["live"]
    brings = tuples_per_bucket(water.tail, water.credit, rule.step, live) - np.int64(full)
    progress["bucket"] = max(brings, progress["known"])


@kernel
def _reached(water: Water, time: Any) -> Any:
    """The time that the clock gets with a tuple of `time`: it lies within a window of what was doubted before."""
    slides, length = np.int64(water.window.ring.shape[0]), water.window.clock[()]["length"]
    reached = time
    for doubt in range(water.progress[()]["doubted"]):
        then = water.doubts[doubt]["time"]
        if then > reached and passed(slides + 1, time // length, then // length) <= slides:
            reached = then
    return reached


@kernel
def _believe(water: Water, rule: Rule) -> None:
    """There was a silence: the tuples that were doubted are the first ones of the window that has just begun."""
    loads, sent, clock = water.window.loads, water.window.ring, water.window.clock[()]
    progress, tail, step = water.progress[()], water.tail, rule.step
    n = loads.shape[0]
    for at in range(progress["doubted"]):
        doubt = water.doubts[at]
        column = doubt["column"]
        worker = column % n
        if rule.remembers:
            put(water.places, doubt["bucket"], doubt["home"])
        loads[worker] += step[worker]
        tail[worker] += step[worker] if column >= n else 0
        sent[clock["row"], column] += step[worker]
    sent[clock["row"], 2 * n] += progress["doubted"]
    progress["tuples"] += progress["doubted"]
    progress["doubted"] = 0


@kernel
def _confirm(water: Water, rule: Rule, reached: Any) -> None:
    """The clock has come to tuples that were doubted: their keys were here just now. They count where they did."""
    doubts, progress = water.doubts, water.progress[()]
    left = np.int64(0)
    for at in range(progress["doubted"]):
        doubt, kept = doubts[at], doubts[left]
        if doubt["time"] > reached:
            kept["bucket"], kept["home"] = doubt["bucket"], doubt["home"]
            kept["column"], kept["time"] = doubt["column"], doubt["time"]
            left += 1
        elif rule.remembers:
            put(water.places, doubt["bucket"], doubt["home"])
    progress["doubted"] = left


@kernel
def _doubt(water: Water, bucket: Any, home: Any, column: Any, time: Any) -> None:
    """Remember this tuple, which may come from a wrong clock, or be the first one after a silence."""
    progress = water.progress[()]
    doubt = water.doubts[progress["doubted"]]
    doubt["bucket"], doubt["home"], doubt["column"], doubt["time"] = bucket, home, column, time
    progress["doubted"] += 1


@kernel
def _forget(water: Water, rule: Rule) -> None:
    """The summary forgets half. Keys below half the threshold keep their home alone."""
    summary, holders = water.summary, water.holders
    halve(summary)
    for owner in range(summary.key.shape[0]):
        split = holders.ring[owner]["size"] > 0
        if split and 2 * rule.watched * np.int64(sure(summary, owner)) < summary.meta[()]["seen"]:
            drop_all(holders, owner)
    water.progress[()]["aged"] = water.window.clock[()]["slide"]


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


@inlined
def _home(water: Water, rule: Rule, lowest: Lowest, key: Any, bucket: Any) -> Any:
    """Rule 1: where the bucket is; a free one goes to the worker with the least load of whole keys."""
    if rule.remembers:
        home = worker_of(water.places, bucket)
        if home < 0:
            home = _lowest(lowest.tail, water.tail)
            brings = water.progress[()]["bucket"] * rule.step[home]
            water.credit[home] += brings
            water.tail[home] += brings
        put(water.places, bucket, home)
    else:
        home = candidate_kernel(key, rule.family[0], np.uint64(rule.step.shape[0]))
    return home


@inlined
def _holder(holders: Rings, owner: _Owner, level: _Level) -> np.int64:
    """Rule 3: the holder in use up to the mean, then the first of home and the others that is below it by the margin,
    else the least loaded looked at.

    Looks at the oldest edges first, so that the younger ones fall out of use and are dropped, then at those whose turn
    it is.
    """
    edge, used, loads = holders.edge, holders.used, level.loads
    ring = holders.ring[owner.at]
    limit = level.mean
    worker = np.int64(owner.home)
    current = np.int64(ring["current"]) - 1
    if current >= 0:
        worker = np.int64(edge[current]["worker"])
    if loads[worker] > limit or (current >= 0 and used[current] < level.oldest):
        limit -= level.margin
        best, lowest = np.int64(-1), loads[owner.home]
        before = np.uint64(ring["last"])
        looks: Any = np.int64(0) if lowest <= limit else min(np.int64(ring["size"]), _LOOKS)
        turned = False
        while looks > 0:
            looks -= 1
            at = np.uint64(edge[before]["next"])
            if used[at] < level.oldest:
                drop_after(holders, owner.at, np.int64(before))
                if ring["size"] == 0:
                    break
            else:
                load = loads[np.uint64(edge[at]["worker"])]
                if load < lowest:
                    best, lowest = np.int64(at), load
                    if load <= limit:
                        break
                before = at
            if looks == 0 and not turned and ring["size"] > _LOOKS:
                turned = True
                looks = np.int64(_LOOKS)
                before = np.uint64(ring["turn"])
        if turned:
            ring["turn"] = np.int32(before)
        ring["current"] = best + 1
        current = best
        worker = np.int64(owner.home)
        if current >= 0:
            worker = np.int64(edge[current]["worker"])
    if current >= 0:
        used[current] = level.now
    return worker


@inlined
def _may_pay(water: Water, rule: Rule, over: float, certain: Any, mean: float) -> bool:
    """Rule 4 without a root, and without what `_when_full` finds: whether an overload may be above the price.

    Rule 2: only a key with at least 1/watched of the recent stream pays, of which enough occurrences are certain.
    """
    seen = water.summary.meta[()]["seen"]
    fewest = max(_FEWEST_OF_MANY, math.ceil(_FEWEST / math.sqrt(rule.sources)))
    too_rare = (certain * rule.watched - seen | certain - fewest) >> _SIGN  # all bits set, or none
    weight = certain & ~too_rare  # one branch that is rarely taken, not three
    return over * abs(over) * weight > (rule.price * _REFERENCE) ** 2 * seen * mean * mean


@kernel
def _price(water: Water, rule: Rule, certain: Any, mean: float) -> float:
    """Rule 4: price * mean * sqrt(0.01 / share), the overload that a replica of this key must save.

    `mean` is the load of a worker in the present window; it counts as what it will be when the window is full.
    """
    dear = (rule.price * _REFERENCE) ** 2
    return _when_full(water, rule) * mean * math.sqrt(dear * water.summary.meta[()]["seen"] / certain)


@kernel
def _when_full(water: Water, rule: Rule) -> float:
    """How many times its present tuples the window will hold when it has filled, at the present rate."""
    slides, clock, progress = water.window.ring.shape[0], water.window.clock[()], water.progress[()]
    if clock["slide"] == NEVER or progress["full"] > 0:  # cumulative loads, or it is known
        return 1.0
    span = progress["latest"] - progress["since"] + 1
    filled = _FILLED * rule.watched / progress["tuples"]
    return max(1.0, min(slides * _INSTANTS, slides * clock["length"] / span, filled))


@kernel
def _buy(water: Water, rule: Rule, lowest: Lowest, owner: _Owner, level: _Level) -> Any:
    """Rule 4: the least loaded worker becomes a holder, if it is below the mean; -1 if there is nothing to gain."""
    loads, holders = level.loads, water.holders
    lightest = _lowest(lowest.loads, loads)
    mine = edge_to(holders, owner.at, lightest)
    if mine >= 0:
        holders.used[mine] = level.now
        return lightest
    if loads[lightest] < level.mean and lightest != owner.home:
        other = _newcomer(rule, holders, owner, level, lightest)
        if adopt(holders, owner.at, other, level.now):
            return other
    return np.int64(-1)


@kernel
def _newcomer(rule: Rule, holders: Rings, owner: _Owner, level: _Level, lightest: Any) -> np.int64:
    """The worker to adopt: the first shared candidate below the mean that is no holder, else the least."""
    loads = level.loads
    workers = np.uint64(loads.shape[0])
    for i in range(1, rule.family.shape[0]):
        other = candidate_kernel(owner.key, rule.family[i], workers)
        if loads[other] < level.mean and other != owner.home and edge_to(holders, owner.at, other) < 0:
            return other
    return np.int64(lightest)


@kernel
def route(block: Block, first: int, water: Water, rule: Rule, lowest: Lowest) -> int:
    """Route from row `first` on; the row before which there must be more cells (`placements.grown`), or the end."""
    window, holders, tail, progress = water.window, water.holders, water.tail, water.progress[()]
    loads, sent, clock, known = window.loads, window.ring, window.clock[()], water.summary.meta[()]
    n, slides = loads.shape[0], np.int64(sent.shape[0])
    buckets = np.uint64(water.places.cell.shape[0] - 1)
    margin = _MARGIN * rule.unit / math.sqrt(rule.sources)
    share = rule.unit / n
    now = clock["slide"]
    oldest = now - slides + 1 if rule.windowed and now != NEVER else np.int64(NEVER)
    doubted: Any = False
    rebuild(lowest.loads, loads)
    rebuild(lowest.tail, tail)
    for row in range(first, block.keys.shape[0]):
        key, time = block.keys[row], block.times[row]
        if rule.windowed:
            due_now = time >= clock["end"]
            silence = due_now and now != NEVER and passed(slides + 1, now, time // clock["length"]) > slides
            doubted = silence and progress["doubted"] < DOUBTS - 1
            if due_now and not doubted:
                _next_slide(water, rule, time, bool(silence))
                now = clock["slide"]
                oldest = now - slides + 1
                if rule.remembers and crowded(water.places):
                    return row
                rebuild(lowest.loads, loads)
                rebuild(lowest.tail, tail)
            if not doubted:
                progress["latest"] = max(progress["latest"], time)
                if progress["doubted"] > 0:
                    progress["doubted"] -= 1
        progress["tuples"] += 1
        sent[clock["row"], 2 * n] += 1
        spot = mix64(key ^ rule.salt)
        at, taken = offer(water.summary, spot, key)
        if holders.ring[at]["size"] > (_MANY & ~taken):  # "split and taken over", as one branch rarely taken
            drop_all(holders, at)
        if due(water.summary):
            _forget(water, rule)
        bucket = (spot >> np.uint64(32)) & buckets
        home = _home(water, rule, lowest, key, bucket)
        worker = home
        level = _Level(loads, progress["tuples"] * share, margin, now, oldest)
        owner = _Owner(key, at, home)
        certain = np.int64(sure(water.summary, at))
        if holders.ring[at]["size"] > 0:
            if 2 * rule.watched * certain < known["seen"]:
                drop_all(holders, at)
            else:
                worker = _holder(holders, owner, level)
        over = loads[worker] - level.mean - margin
        mean = progress["full"] * share if progress["full"] > 0 else level.mean
        if _may_pay(water, rule, over, certain, mean) and over > _price(water, rule, certain, mean):
            bought = _buy(water, rule, lowest, owner, level)
            worker = bought if bought >= 0 else worker
        split = holders.ring[at]["size"] > 0
        column = worker if split else n + worker
        load = rule.step[worker]
        loads[worker] += load
        sent[clock["row"], column] += load
        tail[worker] += np.int64(0) if split else load
        block.out[row] = worker
        if doubted:
            _doubt(water, bucket, home, column, time)
    return block.keys.shape[0]
