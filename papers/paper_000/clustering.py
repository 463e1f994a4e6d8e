"""Figure 9c of 000: correlation clustering, tuple at a time, while the keys change.

The registry of voters is not at hand. A stream with its numbers stands for it: 100,000 keys, uniform and Zipf
1.5 by turns (38.45 % of the tuples of table 2 are Zipf 1.5).

No costs are kept for clustering, so comparisons of two records are counted. VOTE compares a record with all
records of its key at its combiner, which makes M (M - 1) / 2 comparisons for a key with M records in a
window. How much GREEDY compares in the reducers the paper does not say. Two readings bound it:

    combiners   reducers take no time
    all pairs   a reducer compares every two records of a key that lie at different combiners

Work grows with the square of the rate. So the rate that a slide of fixed length sustains is as one over the
root of the shortest slide (`replay.shortest_slide`). A window is clustered anew in every slide.
"""

from __future__ import annotations

from statistics import median

import numpy as np

from evenflow.keys import bucket_of
from evenflow.numeric.arrays import Float64s, Int32s
from evenflow.simulation import KeyedStream, Scenario, entrant
from evenflow.simulation.routing import route
from papers.cells.run_plan import Cell, RunPlan, Stream, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.claims import Claim, Outcome
from papers.comparing import lower
from papers.drawn_streams import TURNS
from papers.markdown import figure, number, table
from papers.paper_000.grid import NAME, RULES
from papers.paper_000.replay import shortest_slide
from papers.paper_000.several_partitioners import PLACES, REDUCERS, SPAN, combiners
from papers.routing import renamed

PERIOD = 20
"""Slides between two changes."""
READINGS = ("combiners", "all pairs")
RIVALS = ("hashing", "cam", "shuffle", "pkg", "cm", "dagreedy")
"""The paper's other rules."""


SHOWN = (*RULES, "pk5", "cam:d=4", "cam:d=8")
"""Rules of the table."""


def _slide(plan: RunPlan) -> int:
    return plan.pick(20_000, 100)


def clustering_cell(plan: RunPlan, rule: str) -> Cell:
    """One rule."""
    stream = Stream("by-turns", TURNS * PERIOD * _slide(plan), plan.pick(100_000, 500))
    return Cell(NAME, "clustering", stream, combiners(rule), rule)


def cells(plan: RunPlan) -> list[Cell]:
    """Every rule."""
    return [clustering_cell(plan, rule) for rule in SHOWN]


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed: the rate of each reading in the skewed periods. The unit is arbitrary."""
    pool, slide = opened.at(), _slide(plan)
    values: Values = {name: [] for name in READINGS}
    for seed in plan.seeds:
        hashes = renamed(pool, seed)
        stream = KeyedStream(hashes[pool.codes], pool.codes, pool.times, pool.key_count, pool.next_time)
        scenario = Scenario(workers=cell.workers, seed=seed, window_ms=SPAN * slide, slide_ms=slide)
        workers = route(stream, entrant(cell.partitioner), scenario).workers
        buckets = bucket_of(hashes, REDUCERS)
        shortest = dict.fromkeys(READINGS, 0.0)
        # Odd periods are skewed.
        for period in range(1, TURNS, 2):
            windows = [
                comparisons(workers[rows], pool.codes[rows], buckets, cell.workers)
                for rows in _windows(slide, range(period * PERIOD, (period + 1) * PERIOD))
            ]
            done, merged = (np.array(parts) for parts in zip(*windows, strict=True))
            for name, work in (("combiners", [done]), ("all pairs", [done, merged])):
                shortest[name] = max(shortest[name], shortest_slide(work))
        # Twice the tuples in a window make four times the pairs, so the rate is one over the root of the
        # slide.
        for name, length in shortest.items():
            values[name].append(1e6 / length**0.5)
    return values


def _windows(slide: int, slides: range) -> list[slice]:
    """Rows of the windows that end with these slides."""
    return [slice((last + 1 - SPAN) * slide, (last + 1) * slide) for last in slides]


def comparisons(workers: Int32s, codes: Int32s, buckets: Int32s, places: int) -> tuple[Float64s, Float64s]:
    """Comparisons of records that each combiner makes, shape (places,), and each reducer, shape
    (`REDUCERS`,).

    workers, codes: of the tuples of a window. buckets: of each key number.
    """
    pairs, sizes = np.unique(codes.astype(np.int64) * places + workers, return_counts=True)
    key, place = np.divmod(pairs, places)
    # Of all pairs of records of a key, those inside a combiner are compared there, the others at the reducer.
    inside = sizes * (sizes - 1) / 2
    records = np.bincount(key, sizes, minlength=len(buckets))
    across = records * (records - 1) / 2 - np.bincount(key, inside, minlength=len(buckets))
    done = np.bincount(place, inside, minlength=places).astype(np.float64)
    return done, np.bincount(buckets, across, minlength=REDUCERS).astype(np.float64)


def _rates(figures: SectionFigures, plan: RunPlan, name: str) -> dict[str, list[float]]:
    return {rule: figures.values(clustering_cell(plan, rule), name) for rule in RULES}


def _ahead(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for name in READINGS:
        at = _rates(figures, plan, name)
        checks += [lower(at[rule], at["dalton"]) for rule in RIVALS]
        shares = (f"{rule} {median(at['dalton']) / median(at[rule]):.2f}" for rule in RIVALS)
        phrases.append(f"{name}: {', '.join(shares)}")
    return Outcome(f"times the rate of: {'; '.join(phrases)}", tuple(checks))


def _ours(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for name in READINGS:
        at = _rates(figures, plan, name)
        checks.append(not lower(at["evenflow"], at["dalton"]))
        phrases.append(f"{name}: {number(median(at['evenflow']) / median(at['dalton']))}")
    return Outcome(f"times Dalton's rate: {'; '.join(phrases)}", tuple(checks))


CLAIMS = (
    Claim(
        "000, fig. 9c, 5.2",
        "In correlation clustering Dalton outperforms the others while the keys are skewed.",
        "100,000 keys, skewed periods, both readings of the work of reducers: a higher rate than hashing,"
        " cAM, shuffling, two choices, CM and DAGreedy (the paper says 1.1 to 1.8 times)",
        _ahead,
        measure="queue replay",
        reason="measure",
        because=(
            "Comparisons are counted. The paper's measure is throughput. It does not say what GREEDY"
            " compares, but neither of the two readings gives its order, so that is not shown to be the"
            " cause. If GREEDY compares all pairs, the reducer of the hottest key makes the comparisons that"
            " its combiners are spared, so splitting the key helps little. Two equal parts are best, as two"
            " choices make them: then the reducer has half of the pairs. If reducers take no time, only the"
            " largest part counts. Then shuffling is ahead of every rule, and DAGreedy, which does not"
            " explore, of Dalton."
        ),
    ),
    Claim(
        "ours, to 000 fig. 9c",
        "In correlation clustering evenflow does no worse than Dalton.",
        "both readings: a rate no lower than `dalton`'s",
        _ours,
        measure="queue replay",
        reason="ours",
        because="The hottest key decides.",
        own=True,
    ),
)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and the table of figure 9c."""
    return [
        (
            "Figure 9c, a model: correlation clustering by VOTE and GREEDY, tuple at a time. The registry of"
            f" voters is not at hand. 100,000 keys stand for it, uniform and Zipf 1.5 by turns, {PERIOD}"
            f" slides of {_slide(plan):,} tuples each. Windows have {SPAN} slides. Of {PLACES} places"
            f" {REDUCERS} are reducers; hashing and cAM have none. No costs are kept for clustering, so"
            " comparisons of two records are counted. In the reading *combiners* reducers take no time. In"
            " *all pairs* a reducer compares any two records of a key that lie at different combiners."
            " Comparisons grow with the square of the rate, so a rate is one over the root of the shortest"
            " slide. Figures are rates in the skewed periods, in an arbitrary unit."
        ),
        "",
        *table(
            ["rule", *READINGS],
            (
                [f"`{rule}`", *(figure(figures, clustering_cell(plan, rule), name) for name in READINGS)]
                for rule in SHOWN
            ),
        ),
    ]
