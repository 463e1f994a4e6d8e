"""The way of a tuple through `evenflow`: window, summary, home, holders, and now and then a new holder.

`water_filling` tells the rule, and docs/evenflow-partitioner.md names its parts. A processor cannot predict
whether a tuple's key has a counter, is hot or is split. So the code branches on these as seldom as possible:
each wrong guess costs as much as a third of a tuple.
"""

from __future__ import annotations

import math

import numpy as np

from evenflow.numeric.arrays import NEVER, Whole
from evenflow.numeric.kernels import inlined, kernel
from evenflow.numeric.words import mix64
from evenflow.partitioners.base import Block
from evenflow.partitioners.evenflow.clock import doubt_it, doubted_home, forget, next_slide
from evenflow.partitioners.evenflow.frequent import due as half_is_due
from evenflow.partitioners.evenflow.frequent import lasts, offer, sure
from evenflow.partitioners.evenflow.holder_rings import drop_all
from evenflow.partitioners.evenflow.holders import (
    Level,
    Owner,
    below_mean,
    buy,
    fewest_of,
    hashed_home,
    holder,
    lowest_of,
    may_pay,
    move_home,
    move_run,
    price_of,
    settled,
    too_rare,
)
from evenflow.partitioners.evenflow.placements import cell_of, crowded, is_of_now, put, worker_of
from evenflow.partitioners.evenflow.state import (
    DOUBTS,
    Lowest,
    Rule,
    Water,
    split_column,
    tuples_column,
    whole_column,
)
from evenflow.partitioners.evenflow.weights import note_cost, weight_of, work_out
from evenflow.sketches.least_loaded import rebuild
from evenflow.sketches.window_loads import due, passed

_MARGIN = 3
"""Tuples that chance explains. The next holder must be below the target by this much. An overload up to this
much buys nothing. With S sources the first counts 1 / sqrt(S) times, as chance does. The second counts 1 / S
times, because a worker that is overloaded is so at every source. Where tuples cost differently, a tuple
here is the grain (`state.SCALE`)."""
_MANY = np.int64(1 << 40)
"""More holders than any ring has."""


@inlined
def _home(water: Water, rule: Rule, lowest: Lowest, key: np.uint64, cell: Whole, in_row: Whole) -> np.int64:
    """*Home*: the worker of the key's cell. A free cell goes to the worker with the least load of whole keys.

    It keeps its home if a doubted tuple is of this cell. Where homes are hashed, a cell matters only while a
    run goes on (`in_row`: 1 if the tuple before is of the same key), because the run may have moved (*Runs*).
    """
    if rule.remembers:
        home = worker_of(water.places, cell)
        if home < 0:
            home = doubted_home(water, cell)
            if home < 0:
                home = lowest_of(lowest.tail, water.tail)
            # The worker is credited at once with what the cell will bring, so that the next free cell goes
            # elsewhere.
            brings = water.progress[()]["cell"] * rule.step[home]
            water.credit[home] += brings
            water.tail[home] += brings
    else:
        home = worker_of(water.places, cell) if in_row != 0 and rule.sources > 1 else np.int64(-1)
        if home < 0:
            home = hashed_home(rule, key)
    # A home that is hashed needs no cell, but the cells in use tell how many keys the window has.
    put(water.places, cell, home)
    return home


@kernel
def _write_down(water: Water, fresh: Whole) -> None:
    """Count tuples of the cost `fresh` in the window and in the current slide."""
    water.progress[()]["tuples"] += fresh
    sent, row = water.window.ring, water.window.clock[()]["row"]
    sent[row, tuples_column(water.window.loads.shape[0])] += fresh


@inlined
def _ends_silence(water: Water, time: Whole) -> bool:
    """*Doubt*: whether more than a window without tuples lies before `time`, if `time` is believed."""
    slides, clock = np.int64(water.window.ring.shape[0]), water.window.clock[()]
    return bool(
        clock["slide"] != NEVER and passed(slides + 1, clock["slide"], time // clock["length"]) > slides
    )


@inlined
def _believe(water: Water, time: Whole) -> None:
    """Note the time of a tuple that is not doubted.
    Such a tuple denies a silence, so it takes back one doubt.
    """
    progress = water.progress[()]
    progress["latest"] = max(progress["latest"], time)
    if progress["doubted"] > 0:
        progress["doubted"] -= 1


@kernel
def _begin_slide(water: Water, rule: Rule, time: Whole, fresh: Whole, silence: bool) -> bool:
    """*Release*: end the slide, after tuples of the cost `fresh`, and begin that of `time`. Returns whether
    cells are short.
    """
    _write_down(water, fresh)
    next_slide(water, rule, time, silence)
    return bool(rule.remembers and crowded(water.places))


@kernel
def route(block: Block, first: int, water: Water, rule: Rule, lowest: Lowest) -> int:
    """Route from row `first` on. Returns the row before which the caller has to do something, or the end.

    If tuples are not weighed yet and that row costs other than 1, they are to be weighed. Else more cells are
    needed (`placements.grown`).
    """
    window, holders, tail, progress = water.window, water.holders, water.tail, water.progress[()]
    loads, sent, clock, meta = window.loads, window.ring, window.clock[()], water.summary.meta[()]
    n, slides = loads.shape[0], np.int64(sent.shape[0])
    scale, weighed, runs = water.scale[()], water.scale[()]["weighed"] != 0, water.runs[()]
    share = rule.unit / n
    margins, tolerances = _MARGIN / math.sqrt(rule.sources), _MARGIN / rule.sources
    belows = below_mean(rule.sources)
    grain = rule.unit * scale["grain"]
    margin, tolerated, below = margins * grain, tolerances * grain, belows * grain
    now = clock["slide"]
    oldest = now - slides + 1 if rule.windowed and now != NEVER else np.int64(NEVER)
    doubted = False
    # `tuples` of the window are written down. `fresh` ones are counted locally until a slide or the block
    # ends.
    tuples, fresh = progress["tuples"], np.int64(0)
    rebuild(lowest.loads, loads)
    rebuild(lowest.tail, tail)
    for row in range(first, block.keys.shape[0]):
        key, time, cost = block.keys[row], block.times[row], block.costs[row]
        if cost != 1 and not weighed:
            _write_down(water, fresh)
            return row
        if rule.windowed:
            due_now = due(window.clock, time)
            silence = due_now and _ends_silence(water, time)
            # Doubts are full after DOUBTS - 1 rows: one more tuple then confirms the silence.
            doubted = bool(silence and progress["doubted"] < DOUBTS - 1)
            if due_now and not doubted:
                # The caller makes more cells and comes back with this row. A kernel cannot allocate.
                if _begin_slide(water, rule, time, fresh, bool(silence)):
                    return row
                tuples, fresh = progress["tuples"], np.int64(0)
                now = clock["slide"]
                oldest = now - slides + 1
                rebuild(lowest.loads, loads)
                rebuild(lowest.tail, tail)
            if not doubted:
                _believe(water, time)
        fresh += cost
        weight = np.int64(1)
        if weighed:
            if water.moments[0] >= scale["next"]:
                work_out(water.summary, water.scale, water.moments, fewest_of(rule.sources))
            # A slide may have begun, too.
            grain = rule.unit * scale["grain"]
            margin, tolerated, below = margins * grain, tolerances * grain, belows * grain
            note_cost(water.moments, cost)
            weight = weight_of(cost, scale["unit"])
        # One hash serves two tables: its low bits find the summary's set, its high bits the cell.
        spot = mix64(key ^ rule.salt)
        at, taken = offer(water.summary, spot, key, weight, cost)
        # "Split and taken over" as one branch that is rarely taken: `taken` has all bits set or none, so the
        # bound is 0 or `_MANY`. The holders were those of the counter's former key.
        if holders.ring[at]["size"] > (_MANY & ~taken):
            drop_all(holders, at)
        if half_is_due(water.summary):
            forget(water, rule)
        high = np.int64(spot >> np.uint64(32))
        cell = cell_of(water.places, high)
        soon = np.int64(is_of_now(water.places, cell))
        in_row = np.int64(high == runs["previous"])
        runs["previous"] = high
        home = _home(water, rule, lowest, key, cell, in_row)
        worker = home
        level_mean = (tuples + fresh) * share
        level = Level(loads, level_mean, level_mean - below, margin, now, oldest)
        owner = Owner(key, at, home)
        # Occurrences in the recent stream that are the key's own, not inherited with its counter.
        certain = np.int64(sure(water.summary, at))
        if holders.ring[at]["size"] > 0:
            # Half the threshold at which the key was split, so that a key near the threshold does not
            # flicker.
            if 2 * rule.watched * certain < meta["seen"]:
                drop_all(holders, at)
            else:
                worker = holder(holders, owner, level)
        over = loads[worker] - level.mean - tolerated
        mean = progress["full"] * share if progress["full"] > 0 else level.mean
        # `may_pay` is cheap and nearly always says no. The price is worked out only if it says yes.
        if may_pay(water, rule, over, certain, mean) and over > price_of(
            water, rule, owner, certain, mean, tuples + fresh
        ):
            bought = buy(water, rule, lowest, owner, level)
            worker = bought if bought >= 0 else worker
        # Nothing else helps a worker whose keys are all too rare to be split.
        over = loads[worker] - level.mean
        whole = holders.ring[at]["size"] == 0 and not doubted
        if over > runs["limit"] and in_row == 0 and whole and too_rare(water, rule, certain) != 0:
            worker = move_run(water, rule, lowest, owner, cell, level)
        elif (
            over - water.relieved[worker] > water.relief[0] and whole and too_rare(water, rule, certain) != 0
        ):
            worker = move_home(water, rule, lowest, cell, worker)
        # The window keeps apart the tuples that level the load wherever it is needed: those of split keys
        # that last. Only the others count for where new homes go.
        split = holders.ring[at]["size"] > 0 and lasts(water.summary, at, certain, tuples + fresh)
        column = split_column(worker) if split else whole_column(worker, n)
        load = rule.step[worker] * cost
        loads[worker] += load
        sent[clock["row"], column] += load
        tail[worker] += np.int64(0) if split else load
        water.again[0] += np.int64(0) if split else cost
        water.again[1] += np.int64(0) if split else soon * cost
        water.in_row[0] += np.int64(0) if split else in_row * cost
        if in_row == 0:
            water.in_runs[2] = 1 - soon
        # Once a window was full, `split` says what `settled` would.
        if not (split if progress["full"] > 0 else settled(water, rule, owner, certain, tuples + fresh)):
            water.in_runs[0] += cost
            if in_row != 0:
                water.in_runs[1] += water.in_runs[2] * cost
        block.out[row] = worker
        if doubted:
            doubt_it(water, high, home, column, time, cost)
    _write_down(water, fresh)
    return block.keys.shape[0]
