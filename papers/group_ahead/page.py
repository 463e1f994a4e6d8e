"""Tables and the chart of 001's figures 3.6 and 3.7."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from evenflow.charts.axes import linear
from evenflow.charts.lines import Line
from evenflow.charts.page import page
from papers.cells.run_plan import RunPlan
from papers.cells.store import SectionFigures
from papers.group_ahead.grid import (
    COST,
    COSTS,
    DEFAULT,
    FAST,
    GROUP,
    GROUPS,
    MOST,
    PARTITIONERS,
    SEEDS,
    SPIKE_BATCHES,
    TAKEN,
    WORKERS,
    Setting,
    late,
    spike,
    trigger_cell,
)
from papers.group_ahead.loads import LOADS, NOISE, SPIKE, SPIKES
from papers.group_ahead.measuring import BASE
from papers.group_ahead.queue import WAYS, throughput
from papers.markdown import figure, table
from papers.pictures.charts import Emphasis, curves

if TYPE_CHECKING:
    import altair

TITLE = "001: micro-batches planned a group ahead"
PICTURE = (
    "A plan that is amended in mid-group stops the growth of the queue sooner than one for the next group"
)
_COSTS = (0.2, 0.5, 0.8, 0.85)
_GROUPS = (1, 2, 5, 10, 20, 50)
_SHOWN = range(SPIKE - 3, 41)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and tables."""
    return [*_queue(), *_spikes(figures, plan), *_late(figures, plan), *_scheduling(figures)]


def _queue() -> list[str]:
    return [
        (
            "Batches of one second are played in virtual time. Work on a batch begins when the batch is"
            " complete and the one before is done. After each batch the policy `prompt-plus` sees its W"
            " (processing time over the interval), and the planner of the controller"
            " (`evenflow/elasticity/groups.py`) gives a plan or none. A batch has the number of workers that"
            " is in force, in event time, where the batch begins. Work takes a cost of scheduling, which a"
            " group shares, and the data over the number of workers. Executors start at once. An amendment"
            " costs the batches nothing, as in the thesis. *Late* is a batch that is done more than an"
            " interval after its completion."
        ),
        "",
    ]


def _spikes(figures: SectionFigures, plan: RunPlan) -> list[str]:
    rows = [
        _spike_row(figures, plan, kind, spike(kind, way, options))
        for kind, options, way in product(SPIKES, (FAST, DEFAULT), WAYS)
    ]
    return [
        (
            f"Figure 3.6: twice the data from batch {SPIKE} on (*lasting*), or in batch {SPIKE} alone"
            f" (*single*). The words of the thesis fit both. Before, {WORKERS} workers have W = 0.9."
            f" Scheduling costs {COST:g} intervals, a group has {GROUP} batches, and nothing is random."
            " *fast* acts after one batch, and adds as many workers as W asks for (`d = 1`, `proportional`)."
            f" *default* acts after three batches, and adds one worker. {SPIKE_BATCHES + 1} means: not within"
            f" the {SPIKE_BATCHES} batches played."
        ),
        "",
        *table(
            [
                "spike",
                "policy",
                "scheduling",
                "first batch with other workers",
                "W at most 0.9 from",
                "none late from",
                "latest, intervals",
            ],
            rows,
            left=3,
        ),
        "",
        f"{PICTURE}:",
        "",
        "![how late the batches around the spike are](reproducing/group-ahead.svg)",
        "",
    ]


def _spike_row(figures: SectionFigures, plan: RunPlan, kind: str, setting: Setting) -> list[str]:
    cell = setting.cell(plan)
    shown = [figure(figures, cell, name, _whole) for name in ("changed", "stable", "caught")]
    return [kind, setting.options, setting.scheduling.way, *shown, figure(figures, cell, "most", _hundredths)]


def _late(figures: SectionFigures, plan: RunPlan) -> list[str]:
    batches, seeds = late("sine", WAYS[0]).cell(plan).stream.tuples, plan.pick(SEEDS, 2)
    settings = [(load, cost, FAST) for cost in COSTS for load in LOADS]
    settings += [(load, COST, DEFAULT) for load in LOADS]
    return [
        (
            f"Figure 3.7b: the share of {batches} batches that are late, and the mean number of workers. The"
            " thesis does not say its load. These are assumed: *spike* doubles the data for the middle third"
            " of the batches, *staircase* adds half of the base every 45 batches, and *sine* goes from half"
            f" to two and a half times the base with a period of 90. Of the base load a batch needs {BASE:g}"
            " intervals of one worker. The data of a batch varies by a gamma law with a coefficient of"
            f" variation of {NOISE:.0%}. There are {seeds} seeds, at most {MOST} workers, and at the"
            " beginning the fewest with which W is at most 0.9."
        ),
        "",
        *table(
            ["load", "cost, intervals", "policy", *(f"{way}: late" for way in WAYS), "workers"],
            (_late_row(figures, plan, *at) for at in settings),
            left=3,
        ),
        "",
        f"The same by the batches of a group (cost {COST:g}, *fast*):",
        "",
        *table(
            ["load", "scheduling", *(f"G = {group}" for group in GROUPS)],
            (
                [load, way, *(_share(figures, plan, late(load, way, group=group)) for group in GROUPS)]
                for load, way in product(LOADS, WAYS[1:])
            ),
            left=2,
        ),
        "",
    ]


def _late_row(figures: SectionFigures, plan: RunPlan, load: str, cost: float, options: str) -> list[str]:
    settings = [late(load, way, cost=cost, options=options) for way in WAYS]
    cells = [setting.cell(plan) for setting in settings]
    workers = [f"{figures.median(cell, 'p'):.1f}" if cell in figures else "-" for cell in cells]
    shares = [_share(figures, plan, setting) for setting in settings]
    return [load, f"{cost:g}", options, *shares, " / ".join(workers)]


def _share(figures: SectionFigures, plan: RunPlan, setting: Setting) -> str:
    return figure(figures, setting.cell(plan), "late", _percent)


def _scheduling(figures: SectionFigures) -> list[str]:
    return [
        (
            "Figure 3.7a: what Spark takes for a trigger, by the batches that it takes at once (50,000 tuples"
            " each), measured by `evenflow bench spark-batches-a-trigger`"
            " ([how](measurements.md#batches-a-trigger-spark-batches-a-trigger)). The fixed cost is the slope"
            " of seconds over triggers. The factor is what follows from it at an interval of 1 s."
        ),
        "",
        *table(
            [
                "partitioner",
                *(f"{many} a trigger, s" for many in TAKEN),
                "fixed, s",
                "a batch, s",
                f"speed, {GROUP} : 1",
                f"factor, G = {GROUP}",
            ],
            (_trigger_row(figures, name) for name in PARTITIONERS),
        ),
        "",
        "Throughput at the stability line, relative to one batch at a time, by (1 - cost/G) / (1 - cost):",
        "",
        *table(
            ["cost of scheduling, intervals", *(f"G = {group}" for group in _GROUPS)],
            ([f"{cost:g}", *(f"{throughput(cost, group):.2f}" for group in _GROUPS)] for cost in _COSTS),
        ),
    ]


def _trigger_row(figures: SectionFigures, partitioner: str) -> list[str]:
    cell = trigger_cell(partitioner)
    if cell not in figures:
        return [partitioner, *["-"] * (len(TAKEN) + 4)]
    seconds = [f"{value:.2f}" for value in figures.values(cell, "seconds")]
    costs = [f"{figures.median(cell, name):.2f}" for name in ("fixed_s", "batch_s")]
    speed = figures.values(cell, "speed")[-1]
    return [partitioner, *seconds, *costs, f"{speed:.1f}x", f"{figures.median(cell, 'factor'):.2f}x"]


def _whole(value: float) -> str:
    return f"{value:.0f}"


def _hundredths(value: float) -> str:
    return f"{value:.2f}"


def _percent(value: float) -> str:
    return f"{value:.0%}"


def pictures(figures: SectionFigures, plan: RunPlan) -> dict[str, altair.TopLevelMixin]:
    """Charts by file name."""
    panels = []
    for kind in SPIKES:
        cells = {way: spike(kind, way).cell(plan) for way in WAYS}
        drawn: dict[str, Line] = {
            way: Line(_SHOWN, [figures.values(cell, "delay")[batch - 1] for batch in _SHOWN])
            for way, cell in cells.items()
            if cell in figures
        }
        if drawn:
            values = [0.0, *(value for line in drawn.values() for value in line.y)]
            panels.append(
                curves(
                    drawn,
                    Emphasis(WAYS[-1], WAYS),
                    x_title="micro-batch",
                    y=linear("intervals until done", values),
                    title=f"twice the data, {kind}",
                    width=300,
                )
            )
    if not panels:
        return {}
    subtitle = f"A batch is late above 1. Policy: fast. Spike in batch {SPIKE}; groups end with 20 and 30."
    return {
        "group-ahead": page(
            panels, title="Lateness of the batches around a spike", subtitle=[subtitle], columns=2
        )
    }
