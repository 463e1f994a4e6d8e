"""The way of a tuple through `evenflow`: window, summary, home, holders, and now and then a new holder.

The rule is told in `water_filling`, whose arrays `route` works on. What cannot be predicted about a tuple
(whether its key has a counter, is hot, is split) branches as seldom as it can: each wrong guess costs as
much as a third of a tuple.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evenflow.arrays import NEVER, Int32s, Int64s, UInt32s, UInt64s
from evenflow.kernels import inlined, kernel
from evenflow.keys import candidate_kernel, mix64
from evenflow.sketches.frequent import MEMORY, SEEN, Frequent, due, halve, offer, sure
from evenflow.sketches.holder_rings import (
    CURRENT,
    LAST,
    NEXT,
    SIZE,
    TURN,
    WORKER,
    Rings,
    adopt,
    drop_after,
    drop_all,
    drop_unused,
    edge_to,
)
from evenflow.sketches.least_loaded import raised, rebuild, winner
from evenflow.sketches.placements import LIVE, Placements, crowded, move_to, put, worker_of
from evenflow.sketches.window_loads import ROW, WindowLoads, end_of, passed

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
SINCE, LATEST, BUCKET, TUPLES, KNOWN, FULL, DOUBTED, AGED = range(8)
"""Of `progress`: time from which the window fills, latest time, what a bucket brings in a window (once it is full:
besides the first tuple), tuples in the window; what a bucket brought before a rescale, believed until the window
has filled anew; tuples in the last window that was full; rows of `doubts` in use; slide in which the summary forgot."""
DOUBTS = 64
"""A time beyond a silence of a whole window is doubted until so many more tuples say so than deny it: one wrong clock
is no silence."""
_FILLED = 128
"""As long as no window has been full, so many tuples per watched key are priced as if it were."""
_AGES = 16
"""The summary forgets half at least so many times in a window, if it knows enough for its least share."""
_SLIDE, _LENGTH, _END = range(3)
_BUCKET, _HOME, _COLUMN, _TIME = range(4)
"""Of a doubt: bucket and home of the tuple's key, where it counts in a row of the window, and its time."""


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
    gone = slides if clock[_SLIDE] == NEVER else passed(slides, clock[_SLIDE], now)
    if gone == slides:
        progress[SINCE] = time
    if gone == slides or time - progress[SINCE] >= slides * clock[_LENGTH]:
        progress[KNOWN] = 0
    kept = 0.0 if gone == slides else (1.0 - 1.0 / slides) ** gone
    for step in range(gone):
        row = (now - step) % slides
        progress[TUPLES] -= sent[row, 2 * n]
        for worker in range(n):
            loads[worker] -= sent[row, worker] + sent[row, n + worker]
            tail[worker] -= sent[row, n + worker]
        for column in range(2 * n + 1):
            sent[row, column] = 0
    for worker in range(n):
        left = np.int64(credit[worker] * kept)
        tail[worker] -= credit[worker] - left
        credit[worker] = left
    clock[_SLIDE], clock[_END], clock[ROW] = now, end_of(now, clock[_LENGTH]), now % slides


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
def _when_full(slides: Any, clock: Int64s, progress: Int64s, tuples: Any, filled: Any) -> float:
    """How many times its present `tuples` the window will hold when it has filled, at the present rate."""
    if clock[_SLIDE] == NEVER or progress[FULL] > 0:  # cumulative loads, or it is known
        return 1.0
    span = progress[LATEST] - progress[SINCE] + 1
    return max(1.0, min(slides * _INSTANTS, slides * clock[_LENGTH] / span, filled / tuples))


@kernel
def _believe(
    doubts: Int64s,
    loads: Int64s,
    tail: Int64s,
    sent: Int64s,
    clock: Int64s,
    progress: Int64s,
    step: Int64s,
    cell: UInt32s,
    place: Int64s,
    remembers: bool,
) -> None:
    """There was a silence: the tuples that were doubted are the first ones of the window that has just begun."""
    n = loads.shape[0]
    for doubt in range(progress[DOUBTED]):
        column = doubts[doubt, _COLUMN]
        worker = column % n
        if remembers:
            put(cell, place, doubts[doubt, _BUCKET], doubts[doubt, _HOME])
        loads[worker] += step[worker]
        tail[worker] += step[worker] if column >= n else 0
        sent[clock[ROW], column] += step[worker]
    sent[clock[ROW], 2 * n] += progress[DOUBTED]
    progress[TUPLES] += progress[DOUBTED]
    progress[DOUBTED] = 0


@kernel
def _reached(doubts: Int64s, progress: Int64s, time: Any, slides: Any, length: Any) -> Any:
    """The time that the clock gets with a tuple of `time`: it lies within a window of what was doubted before."""
    reached = time
    for doubt in range(progress[DOUBTED]):
        then = doubts[doubt, _TIME]
        if then > reached and passed(slides + 1, time // length, then // length) <= slides:
            reached = then
    return reached


@kernel
def _confirm(
    doubts: Int64s, progress: Int64s, reached: Any, cell: UInt32s, place: Int64s, remembers: bool
) -> None:
    """The clock has come to tuples that were doubted: their keys were here just now. They count where they did."""
    left = np.int64(0)
    for doubt in range(progress[DOUBTED]):
        if doubts[doubt, _TIME] > reached:
            for column in range(doubts.shape[1]):
                doubts[left, column] = doubts[doubt, column]
            left += 1
        elif remembers:
            put(cell, place, doubts[doubt, _BUCKET], doubts[doubt, _HOME])
    progress[DOUBTED] = left


@kernel
def tuples_per_bucket(tail: Int64s, credit: Int64s, step: Int64s, live: Any) -> np.int64:
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
def _forget(
    count: Int32s,
    error: Int32s,
    seen: Int64s,
    edge: Int32s,
    ring: Int32s,
    table: Int32s,
    pool: Int64s,
    watched: int,
) -> None:
    """The summary forgets half. Keys below half the threshold keep their home alone."""
    halve(count, error, seen)
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
def route(
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
    doubts: Int64s,
    step: Int64s,
    lowest: Int64s,
    lowest_tail: Int64s,
    family: UInt64s,
    salt: np.uint64,
    windowed: bool,
    remembers: bool,
    unit: int,
    watched: int,
    sources: int,
    price: float,
    first: int,
) -> int:
    """Route from row `first` on; the row before which there must be more cells (`placements.grown`), or the end."""
    key_of, count, error, seen = summary
    cell, place = places
    edge, used, ring, table, pool = holders
    loads, sent, clock = window
    n = loads.shape[0]
    workers = np.uint64(n)
    slides = np.int64(sent.shape[0])
    buckets = np.uint64(cell.shape[0] - 1)
    margin = _MARGIN * unit / math.sqrt(sources)
    fewest = max(_FEWEST_OF_MANY, math.ceil(_FEWEST / math.sqrt(sources)))
    share = unit / n
    dear = (price * _REFERENCE) ** 2
    ages: Any = max(1, slides // _AGES)
    total, fresh = progress[TUPLES], np.int64(0)
    priced = progress[FULL] * share
    now = clock[_SLIDE]
    oldest = now - slides + 1 if windowed and now != NEVER else np.int64(NEVER)
    doubted: Any = False
    rebuild(lowest, loads)
    rebuild(lowest_tail, tail)
    for row in range(first, keys.shape[0]):
        key = keys[row]
        if windowed:
            time = times[row]
            due_now = time >= clock[_END]
            silence = due_now and now != NEVER and passed(slides + 1, now, time // clock[_LENGTH]) > slides
            doubted = silence and progress[DOUBTED] < DOUBTS - 1
            if due_now and not doubted:
                time = _reached(doubts, progress, time, slides, clock[_LENGTH])
                sent[clock[ROW], 2 * n] += fresh
                progress[TUPLES] += fresh
                if time - progress[SINCE] >= slides * clock[_LENGTH] and not silence:
                    progress[FULL] = progress[TUPLES]
                    priced = progress[FULL] * share
                _next_slide(time, loads, tail, credit, sent, clock, progress)
                now = clock[_SLIDE]
                oldest = now - slides + 1
                move_to(cell, place, now)
                drop_unused(edge, used, ring, table, pool, oldest)
                if passed(slides, progress[AGED], now) >= ages and 4 * seen[SEEN] >= seen[MEMORY]:
                    _forget(count, error, seen, edge, ring, table, pool, watched)
                    progress[AGED] = now
                if silence:
                    _believe(doubts, loads, tail, sent, clock, progress, step, cell, place, remembers)
                else:
                    _confirm(doubts, progress, time, cell, place, remembers)
                total, fresh = progress[TUPLES], np.int64(0)
                full = time - progress[SINCE] >= slides * clock[_LENGTH]
                brings = tuples_per_bucket(tail, credit, step, place[LIVE]) - np.int64(full)
                progress[BUCKET] = max(brings, progress[KNOWN])
                if remembers and crowded(cell, place):
                    return row
                rebuild(lowest, loads)
                rebuild(lowest_tail, tail)
            if not doubted:
                progress[LATEST] = max(progress[LATEST], time)
                if progress[DOUBTED] > 0:
                    progress[DOUBTED] -= 1
        fresh += 1
        spot = mix64(key ^ salt)
        at, taken = offer(key_of, count, error, seen, spot, key)
        if ring[at, SIZE] > (_MANY & ~taken):  # "split and taken over", as one branch that is rarely taken
            drop_all(edge, ring, table, pool, at)
        if due(seen):
            _forget(count, error, seen, edge, ring, table, pool, watched)
            progress[AGED] = now
        if remembers:
            bucket = (spot >> np.uint64(32)) & buckets
            home = worker_of(cell, place, bucket)
            if home < 0:
                home = _lowest(lowest_tail, tail)
                credit[home] += progress[BUCKET] * step[home]
                tail[home] += progress[BUCKET] * step[home]
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
        too_rare = (certain * watched - seen[SEEN] | certain - fewest) >> _SIGN  # all bits set, or none
        weight = certain & ~too_rare  # one branch that is rarely taken, not three
        mean = priced if priced > 0 else level
        if over * abs(over) * weight > dear * seen[SEEN] * mean * mean and over > _when_full(
            slides, clock, progress, total + fresh, _FILLED * watched
        ) * mean * math.sqrt(dear * seen[SEEN] / certain):
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
        if doubted:
            doubt = progress[DOUBTED]
            doubts[doubt, _BUCKET] = (spot >> np.uint64(32)) & buckets
            doubts[doubt, _HOME], doubts[doubt, _COLUMN] = home, column
            doubts[doubt, _TIME] = times[row]
            progress[DOUBTED] += 1
    sent[clock[ROW], 2 * n] += fresh
    progress[TUPLES] += fresh
    return keys.shape[0]
