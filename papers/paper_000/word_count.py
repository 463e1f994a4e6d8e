"""Streams, settings and rates of figures 7, 11 and 12 of 000: word count, tuple at a time.

A rate is the highest with which no combiner and no reducer is ever behind by more than a slide (`replay`),
with the kept costs, in the dataflow that 000 describes: combiners hold windows. That of evenflow, where
reducers hold those that they finish, stands beside it.

The streams are those of figure 7 at a quarter of the paper's size: a quarter of the keys of table 2 with its
p1, 5,000 tuples a slide, 60 slides a window. (A slide of one second has 20,000 tuples at the rates of figure
12.) Of 8, 16, 32 and 64 places 1, 2, 4 and 8 are reducers. Hashing and cAM have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from evenflow.keys import candidate
from evenflow.simulation import KeyedStream, Scenario, entrant
from evenflow.simulation.routing import route
from papers.cells.run_plan import Cell, RunPlan, Stream, StreamCache
from papers.cells.store import Values
from papers.paper_000.grid import NAME, RULES, SLIDES
from papers.paper_000.reducers import FORWARDING, PLACES, WITHOUT_REDUCERS
from papers.paper_000.replay import Counts, RoutedReplay, Way, counted, rate_of
from papers.paper_000.several_partitioners import key_hashes
from papers.unit_costs import unit_costs

NON_HYBRID = "dalton:theta=0"
"""The variant of figure 11 that takes every key for hot."""
TEXTS = {"T4SA, drawn": (112_500, 0.83), "Elections, drawn": (50_000, 0.9629), "Zipf 1.5": (25_000, 1.5)}
"""Keys, and the exponent at which the most frequent key has the share of table 2: 2.69, 7.2 and 38.45 %."""
FLAT, SKEWED = "T4SA, drawn", ("Elections, drawn", "Zipf 1.5")
MEASURED = 12
"""Slides that count, after a window of warming up."""
WITHOUT: Way = "windows"
WITH: Way = "windows-forwarded"
"""Ways of the dataflow of 000, without key forwarding and with it."""
OURS: dict[Way, Way] = {WITHOUT: "none", WITH: "forwarded"}
"""The same in evenflow's own dataflow."""
WAYS: tuple[Way, ...] = (*OURS, *OURS.values())
# Far from the hash seeds of the rules, so that a key's reducer does not depend on its worker.
_REDUCER_SEED = 1 << 20


def combiners(places: int, rule: str) -> int:
    """Combiners of a rule: what its reducers leave of the places."""
    return places if rule in WITHOUT_REDUCERS else places - PLACES[places]


def slide_tuples(plan: RunPlan) -> int:
    """Tuples of a slide."""
    return plan.pick(5_000, 50)


def word_cell(plan: RunPlan, stream: str, places: int, rule: str) -> Cell:
    """The cell of one rule on `places` places."""
    keys, zipf = TEXTS[stream]
    drawn = Stream("zipf", (SLIDES + MEASURED) * slide_tuples(plan), plan.pick(keys, 1_000), zipf)
    return Cell(
        NAME, f"word count, {places} places, costs {unit_costs().mark}", drawn, combiners(places, rule), rule
    )


def cells(plan: RunPlan) -> list[Cell]:
    """Every stream, number of places and rule."""
    return [word_cell(plan, *at) for at in product(TEXTS, PLACES, (*RULES, NON_HYBRID))]


def way_of(rule: str) -> Way:
    """Whether a rule forwards: the name of its rate."""
    return WITH if rule in (*WITHOUT_REDUCERS, *FORWARDING) else WITHOUT


def measure(setting: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed. Of each of `WAYS` million tuples a second. imbalance, ksr: means over the
    windows.
    """
    stream = opened.at()
    places = int(setting.experiment.split()[2])
    return rates(stream, setting, plan, slide=slide_tuples(plan), reducers=PLACES[places])


def rates(stream: KeyedStream, setting: Cell, plan: RunPlan, *, slide: int, reducers: int) -> Values:
    """What `measure` says, of a stream whose slides have so many tuples. A window of warming up comes
    first.
    """
    series: Values = {name: [] for name in (*WAYS, "imbalance", "ksr")}
    for seed in plan.seeds:
        counts = _counts(stream, setting, seed=seed, slide=slide, reducers=reducers)
        for way in WAYS:
            series[way].append(rate_of(counts, way, unit_costs()))
        series["imbalance"].append(counts.imbalance)
        series["ksr"].append(counts.ksr)
    return series


def with_partitioner(rates_by_seed: Sequence[float], ns: float) -> list[float]:
    """The rates if one partitioner stands before the combiners that takes so long for a tuple."""
    # Tuples per nanosecond are thousands of millions a second.
    return [min(value, 1e3 / ns) for value in rates_by_seed]


def _counts(stream: KeyedStream, setting: Cell, *, seed: int, slide: int, reducers: int) -> Counts:
    routing = routed(stream, setting, seed=seed, slide=slide, reducers=reducers)
    return counted(routing, span=SLIDES, first=SLIDES, ways=WAYS)


def routed(stream: KeyedStream, setting: Cell, *, seed: int, slide: int, reducers: int) -> RoutedReplay:
    """The stream, routed by the setting's rule through one partitioner."""
    scenario = Scenario(workers=setting.workers, seed=seed, window_ms=SLIDES * slide, slide_ms=slide)
    workers = route(stream, entrant(setting.partitioner), scenario).workers
    keys = key_hashes(stream)
    return RoutedReplay(
        workers=workers,
        codes=stream.codes,
        panes=stream.times // slide,
        sources=np.zeros(len(stream), np.int32),
        homes=candidate(keys, 1, setting.workers, seed),
        reducers=candidate(keys, 1, reducers, _REDUCER_SEED + seed),
        combiners=setting.workers,
        reducer_count=reducers,
    )
