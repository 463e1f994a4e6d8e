"""Figures 8 and 9b of 000 as a part of the section: cells, measuring, claims, tables and picture."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from evenflow.charts.page import page
from papers.cells.run_plan import RunPlan
from papers.cells.store import SectionFigures
from papers.markdown import figure, table
from papers.paper_000.batches.claims import CLAIMS
from papers.paper_000.batches.rates import (
    BATCH_RULES,
    MEASURED,
    MOST,
    PERIOD,
    PLACES,
    SCALED,
    TWEETS,
    batch_cell,
    batch_tuples,
    cells,
    measure,
    streams,
    tasks_cell,
    turns_cell,
)
from papers.paper_000.grid import SLIDES
from papers.pictures.charts import Emphasis, curves, heights, ranges

if TYPE_CHECKING:
    import altair

__all__ = ["CLAIMS", "cells", "measure", "pictures", "text"]
_DRAWN = ("hashing", "shuffle", "pkg", "cam", "cm", "prompt", "dalton-batch", "evenflow")
_EMPHASIS = Emphasis("dalton-batch", ("hashing", "shuffle", "prompt", "evenflow"))


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and the tables of figures 8 and 9b."""
    tweets = ", ".join(f"{name} ({keys:,} keys, Zipf {zipf:g})" for name, (keys, zipf) in TWEETS.items())
    lines = [
        (
            f"Figures 8 and 9b: micro-batches of {batch_tuples(plan):,} tuples, a replay with the same kept"
            " costs. Of 8, 16, 32 and 64 places 1, 2, 4 and 8 are reducers. Combiners reduce a batch, and"
            " with every rule each key goes to the reducer that its hash names. A combiner folds the tuples"
            " of its data block, and sends a partial result for each key. A reducer merges them, takes each"
            " key into the window, and makes the row of each key of the batch. Rows of other keys of the"
            " window are left out: they are the same work with every rule. A *rate*, in million tuples a"
            " second, is the highest with which no combiner and no reducer is ever behind by more than a"
            f" batch. Streams are read in a circle. {MEASURED} batches count, after a window of {SLIDES}. The"
            " tweets are not at hand. Zipf streams with the keys and the p1 of the paper's table 2 stand for"
            f" them: {tweets}. `cam` has 2 candidates. The claims take the best of 2, 4 and 8. The last"
            " column is the rate if reducers took no time."
        ),
        "",
    ]
    for stream in SCALED:
        lines += [f"Micro-batches of {stream}, rate by places", ""]
        lines += table(
            ["rule", *map(str, PLACES), f"{MOST}, combiners alone"],
            (
                [
                    f"`{rule}`",
                    *(figure(figures, batch_cell(plan, stream, places, rule), "rate") for places in PLACES),
                    figure(figures, batch_cell(plan, stream, MOST, rule), "combiners"),
                ]
                for rule in BATCH_RULES
            ),
        )
        lines.append("")
    others = [name for name in streams(plan) if name not in SCALED]
    return [
        *lines,
        f"Micro-batches of other streams, rate with {MOST} places",
        "",
        *table(
            ["rule", *others],
            (
                [
                    f"`{rule}`",
                    *(figure(figures, batch_cell(plan, stream, MOST, rule), "rate") for stream in others),
                ]
                for rule in BATCH_RULES
            ),
        ),
        "",
        (
            f"Tasks of these micro-batches with {MOST} places: time of the longest combiner over the mean of"
            " the combiners / the same of the reducers / microseconds from the cut of a batch until its last"
            " reducer is done, if nothing waits. So the latency of a tuple is this and what is left of its"
            " batch when it comes."
        ),
        "",
        *table(
            ["rule", *SCALED],
            (
                [
                    f"`{rule}`",
                    *(
                        " / ".join(
                            figure(figures, tasks_cell(plan, stream, rule), name)
                            for name in ("maps", "reduces", "took")
                        )
                        for stream in SCALED
                    ),
                ]
                for rule in BATCH_RULES
            ),
        ),
        "",
        (
            f"Figure 9b: micro-batches of {batch_tuples(plan):,} tuples of 100,000 keys, uniform and Zipf 1.5"
            f" by turns, {PERIOD} batches each, {MOST} places. Figures are the lowest rates of the skewed and"
            " of the uniform periods. The first uniform period warms up."
        ),
        "",
        *table(
            ["rule", "skewed", "uniform"],
            (
                [
                    f"`{rule}`",
                    *(figure(figures, turns_cell(plan, rule), name) for name in ("skewed", "flat")),
                ]
                for rule in BATCH_RULES
            ),
        ),
        "",
        "![Throughput of micro-batches by number of places](reproducing/micro-batches.svg)",
    ]


def pictures(figures: SectionFigures, plan: RunPlan) -> dict[str, altair.TopLevelMixin]:
    """Charts by file name."""
    if not all(batch_cell(plan, *at) in figures for at in product(SCALED, PLACES, _DRAWN)):
        return {}
    panels = []
    for stream in SCALED:
        drawn = {
            rule: ranges(
                list(PLACES),
                [figures.values(batch_cell(plan, stream, places, rule), "rate") for places in PLACES],
            )
            for rule in _DRAWN
        }
        panels.append(
            curves(
                drawn,
                _EMPHASIS,
                x_title="places",
                y=heights(drawn),
                title=f"{stream}: million tuples a second",
            )
        )
    notes = ["Highest rate that the replayed queues of combiners and reducers sustain. Higher is better."]
    return {"micro-batches": page(panels, title="Micro-batches, by number of places", subtitle=notes)}
