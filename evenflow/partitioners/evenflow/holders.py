"""Which holder of a split key gets a tuple, and when another one is bought (rules 3 and 4)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from evenflow.arrays import NEVER, Int64s, Whole
from evenflow.kernels import inlined, kernel
from evenflow.keys import candidate_kernel
from evenflow.partitioners.evenflow.holder_rings import Rings, adopt, drop_after, edge_to
from evenflow.partitioners.evenflow.state import Lowest, Rule, Water
from evenflow.sketches.least_loaded import raised, winner

_LOOKS = 8
"""Holders looked at per tuple from the oldest on, and again as many in turn."""
_FEWEST, _FEWEST_OF_MANY = 8, 4
"""Occurrences from which a share is believed: by one source, and at least by one of many (8 / sqrt(sources))."""
_INSTANTS = 8
"""The first eighth of a slide counts as an eighth: a burst with one time says nothing about the rate."""
_REFERENCE = 0.1
"""sqrt(0.01): the price is that of a key with 1 % of the stream."""
_FILLED = 128
"""As long as no window has been full, so many tuples per watched key are priced as if it were."""
_SIGN = np.int64(63)


class Level(NamedTuple):
    """How full workers are at this tuple."""

    loads: Int64s
    mean: float
    margin: float
    now: Any
    """The current slide."""
    oldest: Any
    """The first slide of the window."""


class Owner(NamedTuple):
    """Whose tuple it is."""

    key: Any
    at: Any
    """Its counter in the summary, which is its ring of holders too."""
    home: Any


@kernel
def lowest_of(tree: Int64s, loads: Int64s) -> np.int64:
    """The least loaded worker, of a tree that is played again only when somebody asks.

    Loads only grow between two `rebuild`s, so what the tree remembers is never too high: the winner is
    right when what the tree remembers of it is. Each tuple can spoil one entry, so one replay per tuple
    is the most this comes to.
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
    """Rule 3: the holder in use up to the mean, then the first of home and the others that is below it by the margin,
    else the least loaded looked at.

    Looks at the oldest edges first, so that the younger ones fall out of use and are dropped, then at those whose turn
    it is.
    """
    edge, used, loads = holders.edge, holders.used, level.loads
    ring = holders.ring[owner.at]
    limit = level.mean
    worker = np.int64(owner.home)
    # 0 stands for home, so edges count from 1.
    current = np.int64(ring["current"]) - 1
    if current >= 0:
        worker = np.int64(edge[current]["worker"])
    # The holder in use is full, or has left the window meanwhile. The margin keeps two equal holders from taking turns.
    if loads[worker] > limit or (current >= 0 and used[current] < level.oldest):
        limit -= level.margin
        best, lowest = np.int64(-1), loads[owner.home]
        before = np.uint64(ring["last"])
        # Any: numba wants one type for what numpy and Python give here.
        looks: Any = np.int64(0) if lowest <= limit else min(np.int64(ring["size"]), _LOOKS)
        turned = False
        while looks > 0:
            looks -= 1
            at = np.uint64(edge[before]["next"])
            if used[at] < level.oldest:
                # Dropping while looking costs nothing more, and `before` then has another next one.
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
            # None of the oldest has room. Those in turn follow, from where the last look ended: all are seen in time.
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
def may_pay(water: Water, rule: Rule, over: float, certain: Whole, mean: float) -> bool:
    """Rule 4 without a root, and without what `_when_full` finds: whether an overload may be above the price.

    Rule 2: only a key with at least 1/watched of the recent stream pays, of which enough occurrences are certain.
    """
    seen = water.summary.meta[()]["seen"]
    fewest = max(_FEWEST_OF_MANY, math.ceil(_FEWEST / math.sqrt(rule.sources)))
    too_rare = (certain * rule.watched - seen | certain - fewest) >> _SIGN  # all bits set, or none
    weight = certain & ~too_rare  # one branch that is rarely taken, not three
    # over > price * mean * sqrt(0.01 * seen / certain), squared. abs keeps the sign of an overload below 0.
    return over * abs(over) * weight > (rule.price * _REFERENCE) ** 2 * seen * mean * mean


@kernel
def price_of(water: Water, rule: Rule, certain: Whole, mean: float, tuples: Whole) -> float:
    """Rule 4: price * mean * sqrt(0.01 / share), the overload that a replica of this key must save.

    `mean` is the load of a worker in the present window, which has so many tuples. It counts as what it will be when the
    window is full.
    """
    dear = (rule.price * _REFERENCE) ** 2
    return _when_full(water, rule, tuples) * mean * math.sqrt(dear * water.summary.meta[()]["seen"] / certain)


@kernel
def _when_full(water: Water, rule: Rule, tuples: Whole) -> float:
    """How many times its present tuples the window will hold when it has filled, at the present rate."""
    slides, clock, progress = water.window.ring.shape[0], water.window.clock[()], water.progress[()]
    if clock["slide"] == NEVER or progress["full"] > 0:  # cumulative loads, or it is known
        return 1.0
    # The first tuple alone would promise an endless window, so three bounds hold: the time gone by, instants, and tuples.
    span = progress["latest"] - progress["since"] + 1
    filled = _FILLED * rule.watched / tuples
    return max(1.0, min(slides * _INSTANTS, slides * clock["length"] / span, filled))


@kernel
def buy(water: Water, rule: Rule, lowest: Lowest, owner: Owner, level: Level) -> Any:
    """Rule 4: the least loaded worker becomes a holder, if it is below the mean. -1 if there is nothing to gain."""
    loads, holders = level.loads, water.holders
    lightest = lowest_of(lowest.loads, loads)
    mine = edge_to(holders, owner.at, lightest)
    # The key has this holder already. It was not among those looked at.
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
    """The worker to adopt: the first shared candidate below the mean that is no holder, else the least."""
    loads = level.loads
    workers = np.uint64(loads.shape[0])
    for i in range(1, rule.family.shape[0]):
        other = candidate_kernel(owner.key, rule.family[i], workers)
        if loads[other] < level.mean and other != owner.home and edge_to(holders, owner.at, other) < 0:
            return other
    return np.int64(lightest)
