"""Least-load fit decreasing: keys leave workers that have too much,
and find places within a bound of load (Mixed).

Two steps. First, each worker above the bound gives keys away, in the order in which keys are given here,
until it is within the bound. Then these keys are placed, the heaviest first: on the least loaded worker, if
it stays within the bound. If not, workers are tried in the order of their loads. A worker takes the key if it
can give away lighter keys, again in the order given, so that it stays within the bound. Those have to find
another place then. Each of them is lighter than the key for which it left, so every key is placed once at
most after the last time that it left, and one pass ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import Int32s, Int64s, UInt8s, Whole
from evenflow.numeric.kernels import inlined, kernel
from evenflow.sketches.least_loaded import raised, rebuild, tournament, winner

_END = -1
_TRIED = 1 << 41
"""Shown as the load of a worker that was tried in vain. No load is as large, and it fits into a
tournament.
"""


class Lists(NamedTuple):
    """Who has which keys: what kernels take as one argument.
    A key is its number, in the order in which keys leave.
    """

    weight: Int64s
    """(keys,): load of each key."""
    place: Int32s
    """(keys,): worker of each key."""
    loads: Int64s
    """(n,): load of each worker, with that of keys that are not listed."""
    first: Int64s
    """(n,): the first key of each worker, or -1."""
    following: Int64s
    """(keys,): the next key of the same worker, or -1."""
    leaving: UInt8s
    """(keys,): 1 for a key that has no place."""
    tree: Int64s
    """The tournament of `shown`."""
    shown: Int64s
    """(n,): the loads, or _TRIED."""
    tried: Int64s
    """(n,): the workers that were tried in vain."""


def lists(weight: Int64s, place: Int32s, loads: Int64s) -> Lists:
    """Lists for these keys and workers. `place` and `loads` are changed by `rebalance`."""
    n, many = len(loads), len(weight)
    return Lists(
        weight=weight,
        place=place,
        loads=loads,
        first=np.full(n, _END, np.int64),
        following=np.full(many, _END, np.int64),
        leaving=np.zeros(many, np.uint8),
        tree=tournament(n),
        shown=loads.copy(),
        tried=np.zeros(n, np.int64),
    )


@inlined
def _show(who: Lists, worker: Whole) -> None:
    """Make the tournament know the load of this worker."""
    who.shown[worker] = who.loads[worker]
    raised(who.tree, who.shown, worker)


@kernel
def _enter(who: Lists, key: int, worker: int) -> None:
    """Place the key on this worker."""
    first, following = who.first, who.following
    if first[worker] == _END or first[worker] > key:
        following[key] = first[worker]
        first[worker] = key
    else:
        before = first[worker]
        while following[before] != _END and following[before] < key:
            before = following[before]
        following[key] = following[before]
        following[before] = key
    who.place[key] = worker
    who.loads[worker] += who.weight[key]
    who.leaving[key] = 0
    _show(who, worker)


@kernel
def _give_away(who: Lists, worker: int, most: int, lighter: int, anchor: int) -> None:
    """The worker gives away keys lighter than `lighter`, but for `anchor`, until its load is at most
    `most`.
    """
    weight, loads, first, following = who.weight, who.loads, who.first, who.following
    before, key = np.int64(_END), first[worker]
    while key != _END and loads[worker] > most:
        after = following[key]
        if weight[key] < lighter and key != anchor and weight[key] > 0:
            who.leaving[key] = 1
            loads[worker] -= weight[key]
            if before == _END:
                first[worker] = after
            else:
                following[before] = after
        else:
            before = key
        key = after
    _show(who, worker)


@kernel
def _can_give(who: Lists, worker: int, most: int, lighter: int) -> bool:
    """Whether keys lighter than `lighter` suffice to bring the worker's load to `most`."""
    left, key = who.loads[worker] - most, who.first[worker]
    while key != _END and left > 0:
        if who.weight[key] < lighter:
            left -= who.weight[key]
        key = who.following[key]
    return bool(left <= 0)


@kernel
def _exchanged(who: Lists, key: int, bound: int) -> bool:
    """Place a key that no worker has room for, if a worker can give lighter keys away for it."""
    most, success, tries = bound - who.weight[key], False, 0
    if most >= 0:
        while tries < who.loads.shape[0]:
            worker = int(winner(who.tree))
            if _can_give(who, worker, most, int(who.weight[key])):
                success = True
                break
            who.tried[tries] = worker
            tries += 1
            who.shown[worker] = _TRIED
            raised(who.tree, who.shown, worker)
        for at in range(tries):
            _show(who, who.tried[at])
        if success:
            _give_away(who, worker, int(most), int(who.weight[key]), _END)
            _enter(who, key, worker)
    return success


@kernel
def rebalance(who: Lists, bound: int, heaviest: Int64s) -> None:
    """Bring the workers within the bound, as far as that is possible.

    heaviest: all keys, the heaviest first. Of the keys that alone are above the bound, the heaviest of each
    worker stays where it is, because moving it would help nobody. A key that finds no place goes to the least
    loaded worker.
    """
    weight, first = who.weight, who.first
    # Backwards, so that each list ends up in ascending order of keys, as `_enter` needs it.
    for key in range(weight.shape[0] - 1, -1, -1):
        who.following[key] = first[who.place[key]]
        first[who.place[key]] = key
    rebuild(who.tree, who.shown)
    for worker in range(first.shape[0]):
        if who.loads[worker] > bound:
            anchor, at = np.int64(_END), first[worker]
            while at != _END:
                if weight[at] > bound and (anchor == _END or weight[at] > weight[anchor]):
                    anchor = at
                at = who.following[at]
            _give_away(who, worker, bound, _TRIED, int(anchor))
    for row in range(heaviest.shape[0]):
        key = int(heaviest[row])
        if who.leaving[key]:
            worker = int(winner(who.tree))
            if who.loads[worker] + weight[key] <= bound or not _exchanged(who, key, bound):
                _enter(who, key, worker)
