"""What `evenflow` says about one key: its home, its holders, and whether it may get another one."""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from evenflow.keys import Candidates, workers_of
from evenflow.numeric.arrays import NEVER, UInt64s
from evenflow.numeric.kernels import kernel
from evenflow.numeric.words import mix64
from evenflow.partitioners.base import Block
from evenflow.partitioners.costs import ones
from evenflow.partitioners.evenflow.frequent import FINE, find
from evenflow.partitioners.evenflow.holders import below_mean, hashed_home
from evenflow.partitioners.evenflow.placements import home_of
from evenflow.partitioners.evenflow.route import route
from evenflow.partitioners.evenflow.state import Lowest, Rule, Water
from evenflow.partitioners.explanation import Explanation, Holder
from evenflow.sketches.least_loaded import tournament
from evenflow.sketches.window_loads import moves

_HALVES = 4
"""Occurrences by which two halvings may round a key's certain share up."""


def explain(water: Water, rule: Rule, key: np.uint64, now: int | None) -> Explanation:
    """As `Partitioner.explain`."""
    n, clock, loads = len(rule.step), water.window.clock, water.window.loads
    ends = rule.windowed and moves(clock, now)
    found = np.zeros(2, np.uint64)
    _look_up(water, rule, key, found)
    at, high = int(found[0].astype(np.int64)), int(found[1])
    home = _home(water, rule, key, high, now if ends else None)
    tuple_count = int(water.summary.meta["seen"])
    certain = 0 if at < 0 else int(water.summary.counts[at] - water.summary.errors[at])
    ring = [] if at < 0 else _ring(water, at)
    holders = tuple(_holder(water, edge) for edge in ring)
    slack = _HALVES if ends else 0
    weighed = bool(water.scale["weighed"])
    # What the tuple will cost is not known. The words are for one of mean cost.
    weight = FINE if weighed else 1
    watched = (
        certain + weight
    ) * rule.watched + slack >= tuple_count + weight and certain + weight >= water.scale["fewest"]
    next_workers: list[int] | None = None if home is None else [home, *(holder.worker for holder in holders)]
    if (watched or weighed) and next_workers is not None:
        # It may buy one of these: a candidate that several sources share, or the least loaded worker.
        shared = workers_of(int(key), Candidates(rule.family, np.uint64(n)))[1:]
        next_workers = None if ends else [*next_workers, *shared, int(np.argmin(loads))]
        if weighed and next_workers is not None:
            next_workers = [*next_workers, int(np.argmin(water.tail))]
    if next_workers is not None:
        # It may move away from its home (*Relieve* and *Runs*), or be in a run that has moved.
        next_worker = _routed(water, rule, key, now)
        next_workers = None if next_worker is None else [*next_workers, next_worker]
    return Explanation(
        rule=_words(home, at, holders, water, watched=watched, below=below_mean(rule.sources)),
        workers=None if next_workers is None else tuple(dict.fromkeys(next_workers)),
        home=home,
        holders=holders if home is None else (Holder(worker=home, load=float(loads[home])), *holders),
        share=certain / tuple_count if tuple_count and at >= 0 else None,
    )


def _routed(water: Water, rule: Rule, key: np.uint64, now: int | None) -> int | None:
    """Where a tuple of this key would go now. None if cells have to be added before. Nothing is changed."""
    latest = int(water.progress["latest"])
    time = (0 if latest == NEVER else latest) if now is None or not rule.windowed else now
    block = Block(np.array([key]), np.array([time], np.int64), ones(1), np.full(1, -1, np.int32))
    n = len(rule.step)
    done = route(block, 0, deepcopy(water), rule, Lowest(tournament(n), tournament(n)))
    return int(block.out[0]) if done == 1 else None


def _words(
    home: int | None, at: int, holders: tuple[Holder, ...], water: Water, *, watched: bool, below: int
) -> str:
    """below: tuples below the mean load at which a holder is full."""
    if holders:
        current = int(water.holders.ring["current"][at]) - 1
        used = home if current < 0 else int(water.holders.edge["worker"][current])
        full = "is within a tuple of" if below else "has reached"
        sentence = f"split: worker {used} is used until it {full} the mean load, then a holder with room"
    elif home is None:
        sentence = (
            "its home may be free by then: the worker with the least load of whole keys becomes its home"
        )
    else:
        sentence = "whole: it stays at its home, unless that worker is far above the mean"
    return f"{sentence}. Frequent enough to get another holder, at a price" if watched else sentence


def _home(water: Water, rule: Rule, key: np.uint64, high: int, now: int | None) -> int | None:
    """The home of a key. None if a slide that ends by `now` may have freed its cell."""
    if not rule.remembers:
        return int(hashed_home(rule, key))
    cell = high & (len(water.places.cell) - 1)
    doubts = water.doubts[: int(water.progress["doubted"])]
    if now is not None:
        latest = max([now, *doubts["time"].tolist()])
        return home_of(water.places, cell, latest // int(water.window.clock["length"]))
    home = home_of(water.places, cell)
    if home is None:
        mine = doubts["home"][(doubts["high"] & (len(water.places.cell) - 1)) == cell]
        home = int(mine[-1]) if len(mine) else int(np.argmin(water.tail))
    return home


def _ring(water: Water, owner: int) -> list[int]:
    """The edges of this owner's ring, in order of adoption."""
    edge, ring = water.holders.edge, water.holders.ring[owner]
    edges = [int(ring["first"])]
    while len(edges) < int(ring["size"]):
        edges.append(int(edge["next"][edges[-1]]))
    return edges[: int(ring["size"])]


def _holder(water: Water, edge: int) -> Holder:
    worker, used = int(water.holders.edge["worker"][edge]), int(water.holders.used[edge])
    last = None if int(water.window.clock["slide"]) == NEVER else used * int(water.window.clock["length"])
    return Holder(worker=worker, load=float(water.window.loads[worker]), last=last)


@kernel
def _look_up(water: Water, rule: Rule, key: np.uint64, found: UInt64s) -> None:
    """Write the key's counter (-1: it has none), and the high half of its hash, which has its cell."""
    spot = mix64(key ^ rule.salt)
    found[0] = np.uint64(find(water.summary, spot, key))
    found[1] = spot >> np.uint64(32)
