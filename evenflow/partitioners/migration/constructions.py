"""Three ways to place frequent keys by utility: scan, redist and readj (Gedik).

The cost of a placement is gap * n / (balance * placed) + price * moved * n / all. `gap` is the difference of
the greatest and the least load, `placed` the sum of the loads, `moved` the frequency of keys that are not
where they were, and `all` that of all keys that are or were frequent. So both parts are shares: of the
average load that is tolerated, and of the load of one worker. Less is better. Loads are those of the placed
keys alone.

Frequencies and loads are whole numbers, and each part is one division. So every machine decides alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import Int32s, Int64s, Rows, UInt8s, record
from evenflow.numeric.kernels import inlined, kernel

_NONE = -1
_LARGEST = np.int64(2**63 - 1)
META = np.dtype([(name, np.int64) for name in ("moved", "all")])


class PlacementPrices(NamedTuple):
    """What a placement costs, for kernels."""

    balance: float
    """The gap that is tolerated, as a share of the average load."""
    migration: float
    """The price of a worker's load that moves."""


class KeysToPlace(NamedTuple):
    """The keys that are placed: what kernels take as one argument.
    A key is its number, the most frequent first.
    """

    weight: Int64s
    """(keys,): frequency of each key."""
    former: Int32s
    """(keys,): the worker of each key before."""
    place: Int32s
    """(keys,): the worker of each key, or -1."""
    loads: Int64s
    """(n,): load of each worker so far."""
    times: UInt8s
    """(keys,): how often the key was readjusted."""
    meta: Rows
    """One of META."""


def placing(weight: Int64s, former: Int32s, workers: int, *, moved: int, everything: int) -> KeysToPlace:
    """No key is placed. moved: of keys that are no longer frequent. everything: the frequency of all keys."""
    return KeysToPlace(
        weight=weight,
        former=former,
        place=np.full(len(weight), _NONE, np.int32),
        loads=np.zeros(workers, np.int64),
        times=np.zeros(len(weight), np.uint8),
        meta=record(META, moved=moved, all=everything),
    )


@inlined
def _cost(gap: int, placed: int, moved: int, p: KeysToPlace, prices: PlacementPrices) -> float:
    n = p.loads.shape[0]
    return (gap * n) / (prices.balance * placed) + prices.migration * ((moved * n) / p.meta[()]["all"])


@kernel
def _best(p: KeysToPlace, key: int, placed: int, prices: PlacementPrices) -> tuple[int, float]:
    """The worker on which the key costs least, the first on a tie, and the cost."""
    loads, weight, moved = p.loads, p.weight[key], p.meta[()]["moved"]
    highest, least, second = np.int64(0), _LARGEST, _LARGEST
    for worker in range(loads.shape[0]):
        load = loads[worker]
        highest = max(highest, load)
        if load < least:
            least, second = load, least
        elif load < second:
            second = load
    best, lowest = -1, np.inf
    for worker in range(loads.shape[0]):
        load = loads[worker] + weight
        # Of several workers with the least load, another one keeps it.
        floor = min(load, second if loads[worker] == least else least)
        moves = moved + (weight if worker != p.former[key] else 0)
        cost = _cost(max(highest, load) - floor, placed + weight, moves, p, prices)
        if cost < lowest:
            best, lowest = worker, cost
    return best, lowest


@kernel
def _put(p: KeysToPlace, key: int, worker: int) -> None:
    p.place[key] = worker
    p.loads[worker] += p.weight[key]
    if worker != p.former[key]:
        p.meta[()]["moved"] += p.weight[key]


@kernel
def scan(p: KeysToPlace, prices: PlacementPrices) -> None:
    """Place each key, the most frequent first, on the worker on which it costs least."""
    placed = 0
    for key in range(p.weight.shape[0]):
        _put(p, key, _best(p, key, placed, prices)[0])
        placed += p.weight[key]


@kernel
def redist(p: KeysToPlace, prices: PlacementPrices) -> None:
    """Place the key and the worker that cost least per tuple of the key, again and again.
    The first key on a tie.
    """
    placed = 0
    for _ in range(p.weight.shape[0]):
        chosen, target, lowest = -1, -1, np.inf
        for key in range(p.weight.shape[0]):
            if p.place[key] == _NONE:
                worker, cost = _best(p, key, placed, prices)
                if cost / p.weight[key] < lowest:
                    chosen, target, lowest = key, worker, cost / p.weight[key]
        _put(p, chosen, target)
        placed += p.weight[chosen]


@inlined
def _away(p: KeysToPlace, key: int, worker: int) -> np.int64:
    """The frequency that is moved because of this key, if it is on this worker."""
    return p.weight[key] if p.former[key] != worker else np.int64(0)


@kernel
def _extremes(loads: Int64s, ranked: Int64s) -> None:
    """The workers with the three greatest loads, then those with the three least, the first on a tie.
    -1 for none.
    """
    ranked[:] = _NONE
    for worker in range(loads.shape[0]):
        load = loads[worker]
        for at in range(3):
            if ranked[at] == _NONE or load > loads[ranked[at]]:
                for later in range(2, at, -1):
                    ranked[later] = ranked[later - 1]
                ranked[at] = worker
                break
        for at in range(3, 6):
            if ranked[at] == _NONE or load < loads[ranked[at]]:
                for later in range(5, at, -1):
                    ranked[later] = ranked[later - 1]
                ranked[at] = worker
                break


@kernel
def _gap_after(loads: Int64s, ranked: Int64s, giver: int, taker: int, weight: int) -> int:
    """The gap once the giver has given so much to the taker."""
    giver_load, taker_load = loads[giver] - weight, loads[taker] + weight
    highest, least = max(giver_load, taker_load), min(giver_load, taker_load)
    for at in range(3):
        if ranked[at] != _NONE and ranked[at] != giver and ranked[at] != taker:
            highest = max(highest, loads[ranked[at]])
        other = ranked[at + 3]
        if other != _NONE and other != giver and other != taker:
            least = min(least, loads[other])
    return int(highest - least)


@kernel
def readj(p: KeysToPlace, prices: PlacementPrices, most: int, ranked: Int64s) -> None:
    """Leave all keys where they were, and readjust: move a key, or exchange two,
    as long as that makes the gap less.

    The readjustment with the greatest gain, in cost per tuple that changes its worker by it, comes first, and
    it must have a gain. A key is readjusted `most` times at most. On a tie the more frequent key comes first,
    a move before an exchange, and the lower number before the higher one. ranked: shape (6,), scratch space.
    """
    weight, place, loads, times, meta = p.weight, p.place, p.loads, p.times, p.meta[()]
    many, n = weight.shape[0], loads.shape[0]
    placed = 0
    for key in range(many):
        _put(p, key, p.former[key])
        placed += weight[key]
    going = many > 0
    while going:
        _extremes(loads, ranked)
        top, bottom = ranked[0], ranked[3]
        gap = loads[top] - loads[bottom]
        now = _cost(gap, placed, meta["moved"], p, prices)
        first, second, target, gain = -1, -1, -1, 0.0
        for key in range(many):
            giver = place[key]
            if times[key] < most:
                # With a giver and a taker in between, neither the greatest nor the least load would change.
                for taker in range(n):
                    if taker != giver and (giver == top or taker == bottom):
                        after = _gap_after(loads, ranked, giver, taker, weight[key])
                        moved = meta["moved"] - _away(p, key, giver) + _away(p, key, taker)
                        if after < gap:
                            rate = (now - _cost(after, placed, moved, p, prices)) / weight[key]
                            if rate > gain:
                                first, second, target, gain = key, -1, taker, rate
                for other in range(key + 1, many):
                    taker, change = place[other], weight[key] - weight[other]
                    if (
                        change > 0
                        and taker != giver
                        and times[other] < most
                        and (giver == top or taker == bottom)
                    ):
                        after = _gap_after(loads, ranked, giver, taker, change)
                        moved = meta["moved"] - _away(p, key, giver) + _away(p, key, taker)
                        moved += _away(p, other, giver) - _away(p, other, taker)
                        if after < gap:
                            rate = (now - _cost(after, placed, moved, p, prices)) / change
                            if rate > gain:
                                first, second, target, gain = key, other, taker, rate
        going = first != -1
        if going:
            giver = place[first]
            meta["moved"] += _away(p, first, target) - _away(p, first, giver)
            loads[giver] -= weight[first]
            loads[target] += weight[first]
            place[first] = target
            times[first] += 1
            if second != -1:
                meta["moved"] += _away(p, second, giver) - _away(p, second, target)
                loads[target] -= weight[second]
                loads[giver] += weight[second]
                place[second] = giver
                times[second] += 1
