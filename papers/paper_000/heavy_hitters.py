"""Figure 10c of 000, as far as it can be counted: imbalance by how many keys may be split.

Dalton runs unchanged on a stream where only the h hottest keys can become hot. Each tuple of any other key
gets a rare key instead, which is hashed to the same worker. So the loads are those of hashing the other keys.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from statistics import median

import numpy as np

from evenflow.keys import candidate
from evenflow.metrics import window_figures
from evenflow.simulation import KeyedStream, Scenario, entrant
from evenflow.simulation.routing import route
from evenflow.simulation.streams import rank_hashes
from papers.claims import Claim, Outcome
from papers.comparing import lower
from papers.markdown import figure, number, table
from papers.paper_000.grid import NAME, SLIDES, WORKERS
from papers.run_plan import Cell, Opened, RunPlan, Stream
from papers.store import SectionFigures, Values

LIMITS = tuple(range(6))
"""Values of h. Of a Zipf 1.0 over 100,000 keys, five keys have at least 1/64 of the tuples."""
_RARE = 200_000
"""Rare keys to draw from: so many that none of them comes often enough to become hot."""


def cell(plan: RunPlan, limit: int) -> Cell:
    """The cell in which at most `limit` keys can be split."""
    stream = Stream("zipf", 2 * SLIDES * plan.pick(10_000, 200), plan.pick(100_000, 1_000), 1.0)
    return Cell(NAME, f"{limit} splittable", stream, WORKERS, "dalton")


def cells(plan: RunPlan) -> list[Cell]:
    """One cell for each of `LIMITS`."""
    return [cell(plan, limit) for limit in LIMITS]


def measure(setting: Cell, opened: Opened, plan: RunPlan) -> Values:
    """One value per seed."""
    stream, limit = opened.at(), int(setting.experiment.split()[0])
    slide = len(stream) // (2 * SLIDES)
    series: Values = {"imbalance": [], "holders": []}
    for seed in plan.seeds:
        scenario = Scenario(workers=WORKERS, seed=seed, window_ms=SLIDES * slide, slide_ms=slide)
        workers = route(limited(stream, limit, seed), entrant(setting.partitioner), scenario).workers
        panes = scenario.panes(stream.times)
        windows = window_figures(workers, stream.codes, panes, WORKERS, panes_per_window=SLIDES)[SLIDES:]
        series["imbalance"].append(float(windows.imbalance.mean()))
        series["holders"].append(float(windows.max_holders.mean()))
    return series


def limited(stream: KeyedStream, limit: int, seed: int) -> KeyedStream:
    """The stream, in which every key but the `limit` hottest is replaced by rare keys of the same worker."""
    random = np.random.default_rng([seed, 1])
    # Ranks that no key of the stream has.
    rare = rank_hashes(stream.key_count + _RARE)[stream.key_count :]
    homes = candidate(rare, 1, WORKERS, seed)
    by_home = [rare[homes == worker] for worker in range(WORKERS)]
    hot = np.isin(stream.codes, np.argsort(-np.bincount(stream.codes), kind="stable")[:limit])
    keys = stream.keys.copy()
    own = candidate(stream.keys, 1, WORKERS, seed)
    for worker, pool in enumerate(by_home):
        mine = ~hot & (own == worker)
        keys[mine] = random.choice(pool, int(mine.sum()))
    return replace(stream, keys=keys)


def _more_are_better(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = [figures.values(cell(plan, limit), "imbalance") for limit in LIMITS]
    summary = ", ".join(
        f"{limit}: {number(median(values))}" for limit, values in zip(LIMITS, at, strict=True)
    )
    return Outcome(f"imbalance by keys: {summary}", tuple(lower(more, fewer) for fewer, more in pairwise(at)))


CLAIMS = (
    Claim(
        "000, fig. 10c, 5.3",
        "Up to the number of heavy hitters that its definition gives, each key more that may be split lowers"
        " imbalance.",
        f"Zipf 1.0, n = {WORKERS}: mean window imbalance with at most h splittable keys lower than with h -"
        " 1, h = 1 .. 5 (five keys have 1/n of the tuples; in the paper it is four)",
        _more_are_better,
        measure="counted tuples",
        reason="data",
        because="Once three keys are split, imbalance differs more by the seed than by the number of keys.",
        note="That still more keys cost time cannot be seen here, where nothing is timed.",
    ),
)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """The table of figure 10c."""
    return [
        (
            "Figure 10c: window imbalance of `dalton` by the number of keys that can be split at most, Zipf"
            f" 1.0, n = {WORKERS}."
        ),
        "",
        *table(
            ["keys", "imbalance", "most holders"],
            (
                [f"{limit}", *(figure(figures, cell(plan, limit), name) for name in ("imbalance", "holders"))]
                for limit in LIMITS
            ),
        ),
        "",
    ]
