"""The clock of `evenflow`: what happens when a slide begins, and which tuples are believed to begin one
(*Release* and *Doubt* in docs/evenflow-partitioner.md).

Everything here happens once per slide, or for a tuple that is doubted.
"""

from __future__ import annotations

import math

import numpy as np

from evenflow.numeric.arrays import NEVER, Int64s, Whole
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.evenflow.frequent import fade, halve, sure
from evenflow.partitioners.evenflow.holder_rings import drop_all, drop_unused
from evenflow.partitioners.evenflow.holders import fewest_of, in_long_runs, length_of_runs
from evenflow.partitioners.evenflow.placements import cell_of, keys_of, move_to, put
from evenflow.partitioners.evenflow.state import (
    NO_RELIEF,
    REFERENCE,
    Rule,
    Water,
    is_whole_column,
    split_column,
    tuples_column,
    whole_column,
    worker_of_column,
)
from evenflow.partitioners.evenflow.weights import fade_costs, work_out
from evenflow.sketches.window_loads import end_of, passed

_SIGMAS, _FEW = 2, 8
"""If tuples were dealt out by chance, the largest of n loads would be about sqrt(2 ln n) standard deviations
above the mean. So many more of them, and tuples, are no reason to move a key."""
_MOST_RELIEF = 1e15
_RUN_PRICE = 0.25
"""Share of the price of the average key, at which a run of two tuples moves."""
_SHORTEST_RUN, _MOST_RUNS, _RUNS_OF_WORKER = 2, 4, 8
"""A stream comes in runs if these have so many tuples on average, if a key has at most so many of them in a
window, and if a worker has at least as many tuples as so many runs."""
_RUN_LEFT = 0.5
"""Where homes are hashed, a run that begins moves if the worker is above the mean by more than this share
of a run.
"""
_AGES = 16
"""The summary forgets half at least so many times per window,
if it knows enough to see a key of the least share.
"""


@kernel
def tuples_per_cell(tail: Int64s, credit: Int64s, step: Int64s, live: Whole) -> float:
    """Cost of the tuples that a cell brings its worker in a window: the mean over the live cells."""
    whole = 0.0
    for worker in range(tail.shape[0]):
        whole += (tail[worker] - credit[worker]) / step[worker]
    return whole / max(np.int64(1), live)


@kernel
def _shift(water: Water, time: Whole) -> None:
    """Move the loads to the slide of `time`: tuples that leave the window are taken off, and credit fades."""
    tail, credit, progress = water.tail, water.credit, water.progress[()]
    loads, sent, clock = water.window.loads, water.window.ring, water.window.clock[()]
    slides, n = np.int64(sent.shape[0]), credit.shape[0]
    now = time // clock["length"]
    slides_passed = slides if clock["slide"] == NEVER else passed(slides, clock["slide"], now)
    if slides_passed == slides:
        progress["since"] = time
    # The window is full, or empty. So what cells bring can be counted again, and the value from before a
    # rescale goes.
    if slides_passed == slides or time - progress["since"] >= slides * clock["length"]:
        progress["known"] = 0
    fade(water.summary, slides, slides_passed)
    share_left = 0.0 if slides_passed == slides else (1.0 - 1.0 / slides) ** slides_passed
    for step in range(slides_passed):
        row = (now - step) % slides
        progress["tuples"] -= sent[row, tuples_column(n)]
        for worker in range(n):
            of_whole = sent[row, whole_column(worker, n)]
            loads[worker] -= sent[row, split_column(worker)] + of_whole
            tail[worker] -= of_whole
        for column in range(sent.shape[1]):
            sent[row, column] = 0
    for worker in range(n):
        # Rounded down, so that credit ends at 0. The tail includes the credit, so it loses the same.
        left = np.int64(credit[worker] * share_left)
        tail[worker] -= credit[worker] - left
        credit[worker] = left
        water.relieved[worker] = np.int64(water.relieved[worker] * share_left)
    clock["slide"], clock["end"], clock["row"] = now, end_of(now, clock["length"]), now % slides
    if water.scale[()]["weighed"]:
        fade_costs(water.scale, water.moments, share_left)


@kernel
def next_slide(water: Water, rule: Rule, time: Whole, silence: bool) -> None:
    """Move everything to the slide of `time`. `silence`: nothing of the old window is left, a new one
    begins.
    """
    window, progress, meta = water.window, water.progress[()], water.summary.meta[()]
    slides, clock = np.int64(window.ring.shape[0]), window.clock[()]
    # The clock goes on to doubted tuples that `time` confirms. Otherwise the cells of their keys could be
    # placed anew within a window.
    time = _reached(water, time)
    if time - progress["since"] >= slides * clock["length"] and not silence:
        progress["full"] = progress["tuples"]
    if water.scale[()]["weighed"]:
        work_out(water.summary, water.scale, water.moments, fewest_of(rule.sources))
    _shift(water, time)
    now = clock["slide"]
    move_to(water.places, now)
    drop_unused(water.holders, now - slides + 1)
    ages = max(np.int64(1), slides // _AGES)
    # With less than a quarter of its memory, the summary would forget what it needs to see a key of the least
    # share.
    if passed(slides, progress["aged"], now) >= ages and 4 * meta["seen"] >= meta["memory"]:
        forget(water, rule)
    if silence:
        _believe(water, rule)
    else:
        _confirm(water, rule, time)
    progress["latest"] = max(progress["latest"], time)
    full = time - progress["since"] >= slides * clock["length"]
    live = water.places.meta[()]["live"]
    brings = tuples_per_cell(water.tail, water.credit, rule.step, live)
    # While the window fills, a cell has brought less than it will.
    more = water.scale[()]["mean"] * np.int64(not full and progress["known"] == 0)
    brings = max(brings + more, float(progress["known"]))
    progress["cell"] = brings_later(water.again, brings)
    water.relief[0] = _relief(water, rule)
    water.runs[()]["limit"] = _limit_of_runs(water, rule, brings)
    for count in range(water.again.shape[0]):
        water.again[count] -= water.again[count] // slides
    water.in_row[0] -= water.in_row[0] // slides
    for count in range(2):
        water.in_runs[count] -= water.in_runs[count] // slides


@kernel
def _relief(water: Water, rule: Rule) -> np.int64:
    """*Relieve*: the overload above which whole keys move away from a worker.
    None moves before a window was full.

    That is more than chance explains, plus the price of a holder for a key as rare as the average one.
    """
    full, n = water.progress[()]["full"], water.window.loads.shape[0]
    if full == 0 or not rule.remembers:
        return np.int64(NO_RELIEF)
    # After a silence or a rescale the window can have more than the last one that was full.
    mean, grain = max(full, water.progress[()]["tuples"]) / n, water.scale[()]["grain"]
    chance = _FEW * grain + (math.sqrt(2.0 * math.log(n)) + _SIGMAS) * math.sqrt(mean * grain)
    most = max(chance + _price_of_average(water, rule, mean), rule.level * mean * n)
    return np.int64(min(most, _MOST_RELIEF) * rule.unit)


@kernel
def _limit_of_runs(water: Water, rule: Rule, brings: float) -> np.int64:
    """*Runs*: the overload above which a run that begins moves away from a worker.

    None moves before a window was full, nor if the stream does not come in runs. The longer runs are, the
    more one replica levels. The more runs of the same key a window has, the more often the key may move.
    Where homes are hashed, see `_limit_of_shared_runs`. brings: cost of the tuples that a cell brings in a
    window.
    """
    if not rule.remembers:
        return _limit_of_shared_runs(water, rule, brings)
    full, n, scale = water.progress[()]["full"], water.window.loads.shape[0], water.scale[()]
    if full == 0:
        return np.int64(NO_RELIEF)
    mean, whole = max(full, water.progress[()]["tuples"]) / n, float(water.again[0])
    length = whole / max(1.0, whole - water.in_row[0])
    run = length * scale["mean"]
    times = max(1.0, brings / run)
    if length < _SHORTEST_RUN or times > _MOST_RUNS or mean < _RUNS_OF_WORKER * run:
        return np.int64(NO_RELIEF)
    price = _RUN_PRICE * _price_of_average(water, rule, mean) * times / (length - 1.0) ** 2
    most = max(scale["grain"] + price, rule.level * mean * n)
    return np.int64(min(most, _MOST_RELIEF) * rule.unit)


@kernel
def _limit_of_shared_runs(water: Water, rule: Rule, brings: float) -> np.int64:
    """*Runs*, of several sources whose homes are hashed: only long runs move,
    and a run is as large as what it levels.
    """
    if rule.sources == 1 or not in_long_runs(water):
        return np.int64(NO_RELIEF)
    run = length_of_runs(water) * water.scale[()]["mean"]
    if brings > _MOST_RUNS * run:
        return np.int64(NO_RELIEF)
    enough = rule.level * max(water.progress[()]["full"], water.progress[()]["tuples"])
    return np.int64(min(max(_RUN_LEFT * run, enough), _MOST_RELIEF) * rule.unit)


@kernel
def _price_of_average(water: Water, rule: Rule, mean: float) -> float:
    """The price of a holder for a key as rare as the average one of the window. mean: mean load of a
    worker.
    """
    return rule.price * REFERENCE * math.sqrt(max(1.0, keys_of(water.places))) * mean


@kernel
def brings_later(again: Int64s, brings: float) -> np.int64:
    """Cost of what a cell brings its worker after the slide in which it is placed. `brings`: of what it
    brings in a window.

    A run of tuples is over before another cell could be placed by it. Credit for it would only keep others
    away.
    """
    at_once = again[0] / max(1.0, float(again[0] - again[1]))
    return np.int64(max(0.0, brings - at_once))


@kernel
def _reached(water: Water, time: Whole) -> np.int64:
    """The time to which the clock moves with a tuple of `time`.

    If doubted tuples lie later, but within a window of `time`, that is the greatest of their times.
    """
    slides, length = np.int64(water.window.ring.shape[0]), water.window.clock[()]["length"]
    reached = np.int64(time)
    for doubt in range(water.progress[()]["doubted"]):
        then = water.doubts[doubt]["time"]
        if then > reached and passed(slides + 1, time // length, then // length) <= slides:
            reached = then
    return reached


@kernel
def _believe(water: Water, rule: Rule) -> None:
    """There was a silence: the doubted tuples become the first tuples of the window that has just begun."""
    loads, sent, clock = water.window.loads, water.window.ring, water.window.clock[()]
    progress, tail, step = water.progress[()], water.tail, rule.step
    n = loads.shape[0]
    for at in range(progress["doubted"]):
        doubt = water.doubts[at]
        column = doubt["column"]
        worker = worker_of_column(column, n)
        if rule.remembers:
            put(water.places, cell_of(water.places, doubt["high"]), doubt["home"])
        cost = water.doubted_costs[at]
        load = step[worker] * cost
        loads[worker] += load
        tail[worker] += load if is_whole_column(column, n) else 0
        sent[clock["row"], column] += load
        sent[clock["row"], tuples_column(n)] += cost
        progress["tuples"] += cost
    progress["doubted"] = 0


@kernel
def _confirm(water: Water, rule: Rule, reached: Whole) -> None:
    """The clock has come to `reached`: doubted tuples up to there were right, so their cells are in use now.

    They go on to count in the slide in which they were counted when they came.
    """
    doubts, progress = water.doubts, water.progress[()]
    left = np.int64(0)
    for at in range(progress["doubted"]):
        # Tuples that stay in doubt move to the front, in order.
        doubt, kept = doubts[at], doubts[left]
        if doubt["time"] > reached:
            kept["high"], kept["home"] = doubt["high"], doubt["home"]
            kept["column"], kept["time"] = doubt["column"], doubt["time"]
            water.doubted_costs[left] = water.doubted_costs[at]
            left += 1
        elif rule.remembers:
            put(water.places, cell_of(water.places, doubt["high"]), doubt["home"])
    progress["doubted"] = left


@kernel
def doubted_home(water: Water, cell: Whole) -> np.int64:
    """The home of the newest doubted tuple of this cell, or -1.

    If the tuple turns out to be right, it counts in a window with those that come now, so its key must not
    have moved.
    """
    home = np.int64(-1)
    for at in range(water.progress[()]["doubted"]):
        if cell_of(water.places, water.doubts[at]["high"]) == cell:
            home = np.int64(water.doubts[at]["home"])
    return home


@kernel
def doubt_it(water: Water, high: Whole, home: Whole, column: Whole, time: Whole, cost: Whole) -> None:
    """Remember this tuple, which may come from a wrong clock, or be the first one after a silence."""
    progress = water.progress[()]
    doubt = water.doubts[progress["doubted"]]
    doubt["high"], doubt["home"], doubt["column"], doubt["time"] = high, home, column, time
    water.doubted_costs[progress["doubted"]] = cost
    progress["doubted"] += 1


@kernel
def forget(water: Water, rule: Rule) -> None:
    """The summary forgets half. A split key below half the threshold then loses all holders but its home."""
    summary, holders = water.summary, water.holders
    halve(summary)
    for owner in range(summary.key.shape[0]):
        split = holders.ring[owner]["size"] > 0
        if split and 2 * rule.watched * np.int64(sure(summary, owner)) < summary.meta[()]["seen"]:
            drop_all(holders, owner)
    water.progress[()]["aged"] = water.window.clock[()]["slide"]
