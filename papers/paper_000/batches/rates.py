"""Figures 8 and 9b of 000: throughput of micro-batches, by number of places, and while the keys change.

A replay with the kept costs, as figures 13 to 15 (`replay`): a rate is the highest with which no combiner and
no reducer is ever behind by more than a batch. `batch_work` prices the batches. Combiners reduce at the level
of a batch (section 3.4), so every key goes to a reducer, with every rule. A slide is a batch, and loads are
those of windows of 60 slides.

The tweets are not at hand. Zipf streams with the numbers of keys and the p1 of table 2 stand for them.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from evenflow.numeric.arrays import Int32s, UInt64s
from evenflow.simulation import KeyedStream, Scenario, entrant
from evenflow.simulation.routing import route
from papers.batch_work import BatchWork, Tasks, batch_work
from papers.cells.run_plan import LEAST_SEEDS, Cell, RunPlan, Stream, StreamCache
from papers.cells.store import Values
from papers.drawn_streams import TPCH_PARTS, TURNS
from papers.paper_000.grid import CAM, NAME, SLIDES
from papers.paper_000.replay import shortest_slide
from papers.routing import circling, renamed
from papers.unit_costs import unit_costs

PLACES = {8: 1, 16: 2, 32: 4, 64: 8}
"""Places and the reducers among them (5.1)."""
MOST = 64
MEASURED = 30
"""Batches that count, after a window of warming up."""
PERIOD = 80
"""Batches between two changes. The paper has 1,000 s."""
TWEETS = {"T4SA, drawn": (450_000, 0.8614), "Elections, drawn": (200_000, 0.986)}
"""Keys, and the exponent at which the most frequent key has the share of table 2: 2.69 % and 7.2 %."""
EXPONENTS = (0.1, 0.5, 1.0, 1.5, 2.0)
SKEWED = "Zipf 1.5"
FLAT = "T4SA, drawn"
SCALED = (*TWEETS, SKEWED)
"""Streams of figure 8."""
BATCH_RIVALS = ("hashing", "shuffle", "pkg", "cm", "prompt")
"""The paper's other rules, besides cAM."""
BY_BATCH = "dalton-batch:load_scope=batch"
"""Balances the loads of the batch, not those of the window."""
BATCH_RULES = (
    "time-based",
    "shuffle",
    "hashing",
    "pkg",
    "pk5",
    "cm",
    *CAM,
    "prompt",
    "dalton-batch",
    BY_BATCH,
    "evenflow",
)


def batch_tuples(plan: RunPlan) -> int:
    """Tuples of a batch."""
    return plan.pick(10_000, 100)


def streams(plan: RunPlan) -> dict[str, Stream]:
    """What is read in a circle, by name."""
    most, keys = plan.pick(1_000_000, 20_000), plan.pick(100_000, 2_000)
    return {
        **{
            name: Stream("zipf", most, keys if not plan.quick else 5_000, zipf)
            for name, (keys, zipf) in TWEETS.items()
        },
        **{f"Zipf {z:g}" if z % 1 else f"Zipf {z:.1f}": Stream("zipf", most, keys, z) for z in EXPONENTS},
        "TPC-H parts": Stream(TPCH_PARTS, most, plan.pick(200_000, 4_000)),
        "words": Stream("words", most),
        "flights-tailnum": Stream("flights-tailnum", plan.pick(0, 20_000)),
    }


def batch_cell(plan: RunPlan, stream: str, places: int, rule: str) -> Cell:
    """Figure 8."""
    return Cell(NAME, f"micro-batches, costs {unit_costs().mark}", streams(plan)[stream], places, rule)


def tasks_cell(plan: RunPlan, stream: str, rule: str) -> Cell:
    """How even the tasks of figure 8 are, with the most places."""
    return Cell(NAME, f"tasks of micro-batches, costs {unit_costs().mark}", streams(plan)[stream], MOST, rule)


def turns_cell(plan: RunPlan, rule: str) -> Cell:
    """Figure 9b."""
    stream = Stream("by-turns", TURNS * PERIOD * batch_tuples(plan), plan.pick(100_000, 500))
    return Cell(NAME, f"micro-batches by turns, costs {unit_costs().mark}", stream, MOST, rule)


def cells(plan: RunPlan) -> list[Cell]:
    """Figure 8 with all places, the other streams with 64, and figure 9b."""
    settings = [(name, places) for name, places in product(SCALED, PLACES)]
    settings += [(name, MOST) for name in streams(plan) if name not in SCALED]
    return [
        *(batch_cell(plan, *at, rule) for at, rule in product(settings, BATCH_RULES)),
        *(tasks_cell(plan, stream, rule) for stream, rule in product(SCALED, BATCH_RULES)),
        *(turns_cell(plan, rule) for rule in BATCH_RULES),
    ]


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed, in million tuples a second.

    rate: of all batches that count. combiners: the same if reducers took no time. skewed, flat: of figure 9b,
    the lowest rate of the periods of Zipf 1.5 and of uniform keys, and the first period warms up. Of
    `tasks_cell`: maps, reduces: mean over the batches of the time of the longest task over the mean time of a
    task. took: microseconds from the cut of a batch until its last reducer is done, if nothing waits.
    """
    if cell.experiment.startswith("tasks"):
        return _tasks(cell, opened, plan)
    pool = opened.at()
    by_turns = cell.stream.kind == "by-turns"
    size = batch_tuples(plan)
    count = len(pool) if by_turns else (SLIDES + MEASURED) * size
    values: Values = {name: [] for name in (("skewed", "flat") if by_turns else ("rate", "combiners"))}
    for seed in plan.seeds:
        codes = pool.codes if by_turns else circling(pool, count, seed=seed, seeds=LEAST_SEEDS)
        hashes = renamed(pool, seed)
        work = _work(cell, codes, hashes, seed=seed, size=size)
        if by_turns:
            periods = [work[first : first + PERIOD] for first in range(0, len(work), PERIOD)]
            values["skewed"].append(min(map(rate, periods[1::2])))
            values["flat"].append(min(map(rate, periods[2::2])))
        else:
            values["rate"].append(rate(work[SLIDES:]))
            values["combiners"].append(rate(work[SLIDES:], reducers=False))
    return values


def _tasks(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    pool, size = opened.at(), batch_tuples(plan)
    values: Values = {"maps": [], "reduces": [], "took": []}
    for seed in plan.seeds:
        codes = circling(pool, (SLIDES + MEASURED) * size, seed=seed, seeds=LEAST_SEEDS)
        work = _work(cell, codes, renamed(pool, seed), seed=seed, size=size)[SLIDES:]
        for name, tasks in (
            ("maps", [batch.maps for batch in work]),
            ("reduces", [batch.reduces for batch in work]),
        ):
            values[name].append(float(np.mean([times.max() / times.mean() for times in tasks])))
        values["took"].append(
            1e-3 * float(np.mean([batch.maps.max() + batch.reduces.max() for batch in work]))
        )
    return values


def _work(cell: Cell, codes: Int32s, hashes: UInt64s, *, seed: int, size: int) -> list[BatchWork]:
    """The work of every batch of `size` tuples."""
    reducers = PLACES[cell.workers]
    stream = KeyedStream(hashes[codes], codes, np.arange(len(codes)), len(hashes), len(codes))
    combiners = cell.workers - reducers
    scenario = Scenario(workers=combiners, seed=seed, window_ms=SLIDES * size, slide_ms=size)
    blocks = route(stream, entrant(cell.partitioner), scenario).workers
    tasks = Tasks(combiners, reducers)
    # The batches of the warm-up are not counted in figure 8.
    first = 0 if cell.stream.kind == "by-turns" else SLIDES
    return [_NOTHING] * first + [
        batch_work(blocks[low : low + size], codes[low : low + size], hashes, tasks=tasks, costs=unit_costs())
        for low in range(first * size, len(codes), size)
    ]


_NOTHING = BatchWork(0, 0, 0, np.zeros(1), np.zeros(1))


def rate(batches: list[BatchWork], *, reducers: bool = True) -> float:
    """Million tuples a second with which nobody is ever behind by more than a batch."""
    work = [np.array([batch.maps for batch in batches])]
    if reducers:
        work.append(np.array([batch.reduces for batch in batches]))
    # Tuples per nanosecond are thousands of millions a second.
    return 1e3 * float(np.mean([batch.tuples for batch in batches])) / shortest_slide(work)
