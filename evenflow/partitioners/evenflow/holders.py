"""Which holder of a split key gets a tuple, and when another holder is bought.

Rules are cited by their names in docs/evenflow-partitioner.md: *Watch*, *Fill*, *Buy*, *Relieve*, *Runs*.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from evenflow.keys import GOLDEN, candidate_kernel
from evenflow.numeric.arrays import NEVER, Int64s, Whole
from evenflow.numeric.kernels import inlined, kernel
from evenflow.numeric.words import mix64
from evenflow.partitioners.evenflow.frequent import PARTS, lasts
from evenflow.partitioners.evenflow.holder_rings import Rings, adopt, drop_after, edge_to
from evenflow.partitioners.evenflow.placements import cell_of, keys_of, put
from evenflow.partitioners.evenflow.state import REFERENCE, Lowest, Rule, Water
from evenflow.sketches.least_loaded import raised, rebuild, winner

_LOOKS = 8
"""How many holders a tuple looks at from the oldest on, and then again as many in turn."""
_FEWEST, _FEWEST_OF_MANY = 8, 4
"""Certain occurrences from which a key's share is believed. One source needs 8. One of S sources needs 8 /
sqrt(S), but 4 at least."""
_INSTANTS = 8
"""Less than an eighth of a slide counts as an eighth,
because a burst at one time says nothing about the rate.
"""
_FILLED = 128
"""While no window has been full, so many tuples per watched key count as a full window."""
_COMMON_KEYS = 2
"""Tuples of so many average keys of the window are no reason to split a passing key."""
CERTAIN = 1 << 32
"""A worker that accepts so many of 2^32 keys accepts all."""
_TRIES = 32
_LONG_RUN, _SEEN, _PASSING_RUNS = 4, 4, 2
"""A stream comes in long runs if runs have so many tuples on average. That is believed from so many runs on.
A key with at most so many runs in the window is one that passes."""
_SIGN = np.int64(63)


class Level(NamedTuple):
    """How full workers are at this tuple."""

    loads: Int64s
    """(n,): load of each worker in the window."""
    mean: float
    """Mean load of a worker, this tuple included."""
    target: float
    """Load up to which holders are filled: the mean, or less if there are several sources (`below_mean`)."""
    margin: float
    """By how much (load) a worker must be below the target to become the next holder in use."""
    now: Whole
    """The current slide."""
    oldest: Whole
    """The first slide of the window."""


class Owner(NamedTuple):
    """The key of a tuple, with its counter and its home."""

    key: np.uint64
    """Hash of the key."""
    at: Whole
    """The key's counter in the summary. Its ring of holders has the same number."""
    home: Whole
    """The worker of the key's cell, or the worker that the key is hashed to."""


@kernel
def hashed_home(rule: Rule, key: np.uint64) -> np.int64:
    """F_1(key) if workers are equally fast. Else the first of F_1(key), F_1(key + c), ...
    that accepts the key.

    A worker accepts a share of the keys, as its speed is to that of the fastest one. So homes are as many as
    speeds say, and when a speed changes, only keys at that worker's border move.
    """
    workers = np.uint64(rule.accept.shape[0])
    first = candidate_kernel(key, rule.family[0], workers)
    home, tried = first, key
    for _ in range(_TRIES):
        if (mix64(tried ^ rule.salt) >> np.uint64(32)) < rule.accept[home]:
            return home
        tried += GOLDEN
        home = candidate_kernel(tried, rule.family[0], workers)
    return first


@kernel
def lowest_of(tree: Int64s, loads: Int64s) -> np.int64:
    """The least loaded worker, from a tree that is brought up to date only when it is asked.

    Between two `rebuild`s loads only grow, so the tree never remembers too high a load. So a winner whose
    remembered load is right has the least load of all. Each tuple makes at most one entry of the tree wrong,
    so there is at most one replay per tuple on average.
    """
    leaves = tree.shape[0] // 2
    worker = winner(tree)
    # A leaf is load * leaves + worker, so that the lower worker wins a tie.
    while tree[leaves + worker] != loads[worker] * leaves + worker:
        raised(tree, loads, worker)
        worker = winner(tree)
    return worker


@inlined
def holder(holders: Rings, owner: Owner, level: Level) -> np.int64:
    """*Fill*: the holder that gets a tuple of a split key.

    The holder in use is taken until it has reached the target. Then the first holder that is below the target
    by the margin is taken, the home first. If there is none, the least loaded of the holders looked at is
    taken. The oldest edges are looked at first, so that younger ones fall out of use and are dropped. Then
    come the edges whose turn it is.
    """
    edge, used, loads = holders.edge, holders.used, level.loads
    ring = holders.ring[owner.at]
    limit = level.target
    worker = np.int64(owner.home)
    # 0 stands for home, so edges count from 1.
    current = np.int64(ring["current"]) - 1
    if current >= 0:
        worker = np.int64(edge[current]["worker"])
    # The holder in use is full or has left the window. The margin keeps two equal holders from taking turns.
    if loads[worker] > limit or (current >= 0 and used[current] < level.oldest):
        limit -= level.margin
        best, lowest = np.int64(-1), loads[owner.home]
        before = np.uint64(ring["last"])
        looks = np.int64(0) if lowest <= limit else np.int64(min(ring["size"], _LOOKS))
        turned = False
        while looks > 0:
            looks -= 1
            at = np.uint64(edge[before]["next"])
            if used[at] < level.oldest:
                # `before` stays: after the drop its next edge is another one.
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
            # None of the oldest has room. The edges in turn follow, from where the last look ended, so that
            # every edge is looked at in time.
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
def below_mean(sources: int) -> int:
    """Tuples below the mean at which a holder is full. None with one source, one with several.

    Tuples are whole, so a holder that is filled up to the mean ends up to a tuple above it. The sources fill
    the same holders first, so on these the sum over the sources would be above the mean by nearly a tuple of
    each.
    """
    return 1 if sources > 1 else 0


@inlined
def fewest_of(sources: int) -> int:
    """Certain occurrences from which a key's share is believed, if there are so many sources."""
    return max(_FEWEST_OF_MANY, math.ceil(_FEWEST / math.sqrt(sources)))


@inlined
def too_rare(water: Water, rule: Rule, certain: Whole) -> np.int64:
    """All bits if the key may not be split (*Watch*), because it has too little
    of the recent stream. Else none.
    """
    # The sign bit of `x | y` is set if x or y is negative. Shifted, it gives all bits or none.
    short = certain * rule.watched - water.summary.meta[()]["seen"] | certain - water.scale[()]["fewest"]
    return np.int64(short >> _SIGN)


@inlined
def may_pay(water: Water, rule: Rule, over: float, certain: Whole, mean: float) -> bool:
    """Whether the overload `over` may be above the price (*Buy*). A cheap test before `price_of`.

    The test needs no root and leaves out `_when_full`, so it may say yes where the price is higher. By
    *Watch* only a key pays that has at least 1/watched of the recent stream and enough certain occurrences.
    """
    seen = water.summary.meta[()]["seen"]
    weight = certain & ~too_rare(water, rule, certain)  # one branch that is rarely taken, not three
    # over > price * mean * sqrt(0.01 * seen / certain), squared. abs keeps the sign of an overload below 0.
    return over * abs(over) * weight > (rule.price * REFERENCE) ** 2 * seen * mean * mean


@kernel
def price_of(water: Water, rule: Rule, owner: Owner, certain: Whole, mean: float, tuples: Whole) -> float:
    """*Buy*: the overload above which another holder of this key pays.

    certain: certain occurrences of the key in the recent stream. mean: mean load of a worker in the last
    window that was full, or so far. It counts as what it will be when the window is full. tuples: those of
    the window so far.
    """
    dear = (rule.price * REFERENCE) ** 2
    filled = _when_full(water, rule, tuples)
    lasting = filled * mean * math.sqrt(dear * water.summary.meta[()]["seen"] / certain)
    # The first runs of a stream are all that its window has, so they would be taken for keys that last.
    whole = filled if in_long_runs(water) else 1.0
    passing = _passing(water, rule, owner, certain, whole * tuples) * _coarseness(
        water, rule, owner, whole * mean, tuples
    )
    return max(lasting + passing, filled * rule.level * mean * water.window.loads.shape[0])


@inlined
def _passing(water: Water, rule: Rule, owner: Owner, certain: Whole, tuples: float) -> float:
    """How much of a passing key this is: near 0 for a key that has been as hot for a window or two,
    1 for a burst.

    A holder of a key that lasts is of use for as long as the key is hot. A holder of a burst is of use for a
    moment, and then a replica in the window for nothing. Several sources remember so much of the stream that
    a run would seem to last. There a key with a run or two in the window is one that passes.
    tuples: those of the window, or of the window when it is full.
    """
    if rule.sources > 1 and not rule.remembers and in_long_runs(water):
        run = length_of_runs(water) * water.scale[()]["mean"]
        if water.summary.lasting[owner.at] <= float(PARTS) * _PASSING_RUNS * run:
            return 1.0
    summary = water.summary
    # The key's share of the window, in shares of the recent stream that it has now.
    lasted = summary.lasting[owner.at] * float(summary.meta[()]["seen"]) / (float(PARTS) * tuples * certain)
    return max(0.0, 1.0 - lasted) ** 2


@inlined
def _coarseness(water: Water, rule: Rule, owner: Owner, mean: float, tuples: Whole) -> float:
    """The overload that is no reason to split a passing key: what whole keys leave,
    however well they are placed.

    That is the key's own tuples, up to _COMMON_KEYS average keys of the window (where homes are hashed, it is
    that much). A key that has more is no common key, so it is less again, the more the key has. It is at most
    half of a worker's load, and less where an average key has more than a worker's load, because whole keys
    cannot be level then.
    """
    average = rule.unit * tuples / max(1.0, keys_of(water.places))
    own = max(1.0, rule.unit * water.summary.lasting[owner.at] / PARTS)
    most = min(1.0, math.sqrt(mean / average)) * mean / 2
    common = _COMMON_KEYS * average
    if not rule.remembers:
        # A home that is hashed is above the mean for what others left there, not only for the key's own
        # tuples.
        return min(common, common**2 / own, most)
    return min(own, common**2 / own, most)


@inlined
def settled(water: Water, rule: Rule, owner: Owner, certain: Whole, tuples: Whole) -> bool:
    """Whether the key is split and lasts, judged by what the window will have when it is full.

    tuples: those of the window so far, of which the first runs of a stream have all.
    """
    if water.holders.ring[owner.at]["size"] == 0:
        return False
    whole = np.int64(_when_full(water, rule, tuples) * tuples)
    return bool(lasts(water.summary, owner.at, certain, whole))


@inlined
def in_long_runs(water: Water) -> bool:
    """Whether the tuples of a key come in a row, in runs of `_LONG_RUN` or more on average."""
    whole = water.in_runs[0]
    begun = whole - water.in_runs[1]
    return bool(begun >= _SEEN * np.int64(water.scale[()]["mean"]) and begun * _LONG_RUN <= whole)


@inlined
def length_of_runs(water: Water) -> float:
    """The mean length of a run, in tuples."""
    whole = water.in_runs[0]
    return float(whole) / max(1.0, float(whole - water.in_runs[1]))


@kernel
def move_home(water: Water, rule: Rule, lowest: Lowest, cell: Whole, home: Whole) -> np.int64:
    """*Relieve*: give the cell to the worker with the least load of whole keys. Returns that worker.

    What the cell will bring is credited to that worker, and taken off the worker that it leaves. So no more
    cells move than have to, although the tuples that came so far stay in the window.
    """
    to = lowest_of(lowest.tail, water.tail)
    if to == home:
        return np.int64(home)
    brings = max(water.scale[()]["mean"], water.progress[()]["cell"])
    for worker, tuples in ((home, -brings), (to, brings)):
        water.credit[worker] += tuples * rule.step[worker]
        water.tail[worker] += tuples * rule.step[worker]
    water.relieved[home] += brings * rule.step[home]
    # The tree is right only while loads grow.
    rebuild(lowest.tail, water.tail)
    _give(water, cell, to)
    return np.int64(to)


@kernel
def move_run(water: Water, rule: Rule, lowest: Lowest, owner: Owner, cell: Whole, level: Level) -> np.int64:
    """*Runs*: give the cell of a run that begins to another worker. Returns that worker.

    Where homes are remembered it is the worker with the least load. The run is over before another cell
    moves, so the load itself says where to. Credit for what the cell brings later stays. Where homes are
    hashed, the cell says where the run goes on until another run begins.
    """
    to = lowest_of(lowest.loads, water.window.loads) if rule.remembers else _shared(rule, owner, level)
    _give(water, cell, to)
    return np.int64(to)


@inlined
def _shared(rule: Rule, owner: Owner, level: Level) -> np.int64:
    """The first shared candidate below the mean, so that sources that see the same run agree.

    If there is none, it is the least loaded of the candidates and of the home.
    """
    loads = level.loads
    workers = np.uint64(loads.shape[0])
    to = np.int64(owner.home)
    for i in range(1, rule.family.shape[0]):
        other = candidate_kernel(owner.key, rule.family[i], workers)
        if loads[other] < loads[to]:
            to = np.int64(other)
        if loads[other] < level.mean:
            break
    return to


@kernel
def _give(water: Water, cell: Whole, to: Whole) -> None:
    put(water.places, cell, to)
    for at in range(water.progress[()]["doubted"]):
        # A doubted tuple of the cell that turns out to be right must not take the cell back.
        if cell_of(water.places, water.doubts[at]["high"]) == cell:
            water.doubts[at]["home"] = to


@kernel
def _when_full(water: Water, rule: Rule, tuples: Whole) -> float:
    """The factor, at least 1, by which the tuples of the window will grow until it is full,
    at the present rate.
    """
    slides, clock, progress = water.window.ring.shape[0], water.window.clock[()], water.progress[()]
    if clock["slide"] == NEVER or progress["full"] > 0:  # cumulative loads, or it is known
        return 1.0
    # The first tuple alone would promise an endless window. So the factor is bounded by the time that has
    # passed, by `_INSTANTS` and by `_FILLED`.
    span = progress["latest"] - progress["since"] + 1
    filled = _FILLED * rule.watched * water.scale[()]["mean"] / tuples
    return max(1.0, min(slides * _INSTANTS, slides * clock["length"] / span, filled))


@kernel
def buy(water: Water, rule: Rule, lowest: Lowest, owner: Owner, level: Level) -> np.int64:
    """*Buy*: the least loaded worker becomes a holder if it is below the mean. Returns the new holder.

    -1 if there is nothing to gain, or no edge is free.
    """
    loads, holders = level.loads, water.holders
    lightest = lowest_of(lowest.loads, loads)
    mine = edge_to(holders, owner.at, lightest)
    # The key has this holder already, but it was not among those looked at. It costs no replica.
    if mine >= 0:
        holders.used[mine] = level.now
        return lightest
    if loads[lightest] < level.mean and lightest != owner.home:
        other = _newcomer(rule, holders, owner, level, lightest)
        if adopt(holders, owner.at, other, level.now):
            return other
    return np.int64(-1)


@kernel
def _newcomer(rule: Rule, holders: Rings, owner: Owner, level: Level, lightest: Whole) -> np.int64:
    """The worker to adopt: the first shared candidate below the mean that is no holder,
    else the least loaded.
    """
    loads = level.loads
    workers = np.uint64(loads.shape[0])
    for i in range(1, rule.family.shape[0]):
        other = candidate_kernel(owner.key, rule.family[i], workers)
        if loads[other] < level.mean and other != owner.home and edge_to(holders, owner.at, other) < 0:
            return other
    return np.int64(lightest)
