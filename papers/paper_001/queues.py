"""Section `micro-batch-queue`: 001's figures 2.7 to 2.9, replayed as a queue of micro-batches with the kept
costs.

Thesis: throughput under a sinusoidal rate for batch intervals of 1, 2 and 3 s, throughput by Zipf exponent,
the times of reduce tasks, and what Prompt's planning costs. Here nothing is timed: see `queue_rates` and
`batch_work`.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from evenflow.charts.page import page
from papers.cells.run_plan import RunPlan
from papers.cells.store import SectionFigures
from papers.markdown import figure, table
from papers.paper_001 import planning_claims, queue_claims
from papers.paper_001.planning_claims import planning_share
from papers.paper_001.queue_grid import (
    AMPLITUDE,
    EXPONENTS,
    INTERVALS,
    MAPS,
    NAME,
    PERIOD,
    PLANNED,
    QUASI,
    REDUCES,
    RULES,
    SORTED,
    cells,
    planned_cell,
    queue_cell,
    slower,
    streams,
    zipf,
)
from papers.paper_001.queue_rates import measure
from papers.pictures.charts import Emphasis, curves, heights, ranges
from papers.unit_costs import planning_unit_costs, unit_costs

if TYPE_CHECKING:
    import altair

__all__ = ["CLAIMS", "NAME", "TITLE", "cells", "measure", "pictures", "text"]
TITLE = "001: Prompt's queue of micro-batches"
CLAIMS = (*queue_claims.CLAIMS, *planning_claims.CLAIMS)
_DRAWN = ("time-based", "shuffle", "hashing", "pkg", "cam", "dalton-batch", "evenflow", "prompt")
_EMPHASIS = Emphasis("prompt", ("time-based", "hashing", "cam", "evenflow"))


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and the tables."""
    costs = ", ".join(f"{name} {value:g}" for name, value in vars(unit_costs()).items())
    planning = ", ".join(f"{name} {value:g}" for name, value in vars(planning_unit_costs()).items())
    lines = [
        (
            f"A replay with kept costs: no cluster, nothing is timed. There are {MAPS} map tasks and"
            f" {REDUCES} reduce tasks. A batch is processed when its interval is over, one batch at a time."
            " Its reduce tasks begin when its last map task has ended. A map task folds the tuples of its"
            " data block, and sends a partial result for each key. A reduce task merges the partial results"
            " that it gets, takes each key into the window, and makes the row of each key of the batch."
            " Prompt places keys on reduce tasks by Alg. 3, the others hash them."
        ),
        "",
        (
            f"Prices are nanoseconds of CPU of our own stages, as in section `windowed`: {costs}. The thesis"
            f" does not say its rates. Its second is replayed as {1_000 / slower(plan):g} ms, so every price"
            f" is taken {slower(plan)} times. Read rates as ratios. Each partitioner is the one of this"
            " repository. Rules with memory forget at the end of a batch. `cam` has 2 candidates. The claims"
            " take the best of 2, 4 and 8, as the thesis does."
        ),
        "",
        (
            f"The rate follows a sine with a period of {PERIOD} s, and swings by {AMPLITUDE:.0%} of its mean."
            " The thesis says neither. A *rate*, in thousand tuples a second, is the highest mean rate with"
            " which every batch has been processed when the next one is complete: the thesis bounds the"
            " latency by the interval. One period counts. Rules that learn warm up for one period before."
            " Streams are read in a circle. Each seed begins elsewhere and gives the keys other hashes."
            " `TPC-H` is lineitem by its part, as the thesis's query 1, at scale 1. Of DEBS only 10,000"
            " rides are at hand. Tweets and the Google trace are not."
        ),
        "",
    ]
    for stream in streams(plan):
        lines += [f"Stream: {stream}", "", *_rates(figures, plan, stream), ""]
    return [
        *lines,
        (
            "Figure 2.9: planning at Prompt's highest rate. It is hidden if a batch is released early."
            " *after* is the rate if the batch is listed and planned when it has ended. Prices are"
            f" nanoseconds: {planning}. `buffer` and `renew` are those of a tuple while the batch fills,"
            " without and with the quasi-sorted list. The others are those of a key: to sort, to read the"
            " quasi-sorted list, and to plan (Alg. 2). `evenflow bench partitioners-prompt-plan` measures"
            " them and [planning.json](reproducing/planning.json) keeps them."
        ),
        "",
        *_planning(figures, plan),
        "",
        "![Throughput by Zipf exponent, for three batch intervals](reproducing/micro-batch-queue.svg)",
    ]


def _rates(figures: SectionFigures, plan: RunPlan, stream: str) -> list[str]:
    head = [
        "rule",
        *(f"rate, {interval} s" for interval in INTERVALS),
        "latency, s (3 s)",
        "range, s (3 s)",
        "reduce spread (3 s)",
    ]
    longest = INTERVALS[-1]
    rows = []
    for rule in RULES:
        last = queue_cell(plan, stream, longest, rule)
        rows.append(
            [
                f"`{rule}`",
                *(
                    figure(figures, queue_cell(plan, stream, interval, rule), "rate")
                    for interval in INTERVALS
                ),
                *(figure(figures, last, name) for name in ("latency", "range", "reduce spread")),
            ]
        )
    return table(head, rows)


def _planning(figures: SectionFigures, plan: RunPlan) -> list[str]:
    rows = []
    for stream, interval in product(streams(plan), INTERVALS):
        hidden = queue_cell(plan, stream, interval, "prompt")
        if hidden not in figures:
            continue
        rows.append(
            [
                stream,
                str(interval),
                figure(figures, hidden, "rate"),
                *(figure(figures, planned_cell(plan, stream, interval, how), "rate") for how in PLANNED),
                *(
                    f"{100 * planning_share(figures, plan, stream, interval, how):.1f}"
                    for how in (SORTED, QUASI)
                ),
            ]
        )
    head = ["stream", "interval, s", "hidden", "after, sort", "after, quasi", "sort, %", "quasi, %"]
    return table(head, rows)


def pictures(figures: SectionFigures, plan: RunPlan) -> dict[str, altair.TopLevelMixin]:
    """Charts by file name."""
    panels = []
    for interval in INTERVALS:
        at = {
            rule: [queue_cell(plan, zipf(exponent), interval, rule) for exponent in EXPONENTS]
            for rule in _DRAWN
        }
        if not all(cell in figures for row in at.values() for cell in row):
            return {}
        drawn = {
            rule: ranges(EXPONENTS, [figures.values(cell, "rate") for cell in row])
            for rule, row in at.items()
        }
        panels.append(
            curves(
                drawn,
                _EMPHASIS,
                x_title="Zipf exponent",
                y=heights(drawn),
                title=f"interval of {interval} s: thousand tuples a second",
            )
        )
    notes = [
        "Highest mean rate of a sine that the replayed queue of micro-batches sustains. Higher is better."
    ]
    return {NAME: page(panels, title="Throughput of micro-batches, by skew", subtitle=notes)}
