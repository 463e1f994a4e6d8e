"""Figure 15 of 000: how one to eight partitioners converge.

Two curves begin with the stream: Eq. 1 of the most imbalanced combiner, as a share of the tuples of the
window, and Eq. 2 of the most frequent key, the number of partial results that the key makes in the window.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from evenflow.charts.axes import linear
from evenflow.charts.lines import Line
from evenflow.charts.page import page
from evenflow.metrics import window_figures
from evenflow.numeric.arrays import Float64s, Int64s
from evenflow.simulation import KeyedStream
from papers.claims import Claim, Outcome
from papers.comparing import lower, no_higher
from papers.markdown import figure, number, table
from papers.paper_000.grid import NAME
from papers.paper_000.several_partitioners import (
    COOPERATIVE,
    OFTEN,
    PAIRS,
    SPAN,
    combiners,
    run,
)
from papers.pictures.charts import Emphasis, curves
from papers.run_plan import Cell, Opened, RunPlan, Stream
from papers.store import SectionFigures, Values

if TYPE_CHECKING:
    import altair

    from papers.paper_000.several_partitioners import Run

PARTITIONERS = (1, 2, 4, 8)
ALONE = "dalton"
SHARED_STEPS, SHARED_LOADS = (f"{COOPERATIVE}:{option}=true" for option in ("share_steps", "share_loads"))
MANY = (COOPERATIVE, SHARED_STEPS, SHARED_LOADS, ALONE)
"""Copies of `dalton` exchange nothing."""
SLIDES, POINTS = 12, 8
"""Slides of the stream, and points of a curve in each."""
_STREAMS = {False: "one stream for all", True: "a stream each"}
FIGURES = ("imbalance", "hottest", "settled", "late", "late hottest")


def _slide(plan: RunPlan, partitioners: int = 2) -> int:
    """Tuples of a slide if two partitioners make it, or so many at the same rate each."""
    return partitioners * plan.pick(50_000, 200)


def cell(plan: RunPlan, partitioners: int, rule: str = COOPERATIVE, *, own: bool = False) -> Cell:
    """So many partitioners, which share one stream, or have streams of their `own` at the same rate each.

    The options of a cooperating partitioner mean nothing if it is alone.
    """
    own = own and partitioners != 2
    slide = _slide(plan, partitioners) if own else _slide(plan)
    stream = Stream(PAIRS[0], SLIDES * slide, plan.pick(25_000, 100))
    rule = COOPERATIVE if partitioners == 1 and rule != ALONE else rule
    return Cell(NAME, f"{partitioners} partitioners", stream, combiners(rule), rule)


def cells(plan: RunPlan) -> list[Cell]:
    """Every number of partitioners with every rule, and cooperating ones with streams of their own."""
    shared = [cell(plan, *at) for at in product(PARTITIONERS, MANY)]
    return list(dict.fromkeys([*shared, *(cell(plan, count, own=True) for count in PARTITIONERS)]))


def measure(setting: Cell, opened: Opened, plan: RunPlan) -> Values:
    """One value per seed. Curves have the median over the seeds at each point."""
    stream, partitioners = opened.at(), int(setting.experiment.split()[0])
    slide = len(stream) // SLIDES
    series: Values = {name: [] for name in FIGURES}
    drawn: dict[str, list[Float64s | Int64s]] = {"curve": [], "hottest curve": []}
    for seed in plan.seeds:
        routed = run(
            stream, setting.partitioner, seed=seed, slide=slide, partitioners=partitioners, dsync=OFTEN
        )
        imbalance, hottest = courses(stream, routed, slide)
        drawn["curve"].append(imbalance)
        drawn["hottest curve"].append(hottest)
        half = len(imbalance) // 2
        late = float(imbalance[half:].mean())
        series["imbalance"].append(late)
        series["hottest"].append(float(hottest[half:].mean()))
        series["settled"].append(_settled(imbalance, late) / POINTS)
        series["late"].append(float(imbalance[half:].max()) / late)
        series["late hottest"].append(float(hottest[half:].max() / hottest[half:].mean()))
    return series | {name: np.median(values, axis=0).tolist() for name, values in drawn.items()}


def courses(stream: KeyedStream, routed: Run, slide: int) -> tuple[Float64s, Int64s]:
    """Eq. 1 over the tuples of the window, and combiners of the most frequent key in the window, shape
    (points,).
    """
    step, width = slide // POINTS, SPAN * POINTS
    points = stream.times // step
    workers = routed.scenario.workers
    # The window moves point by point here, not slide by slide, so a point takes the place of a pane.
    windows = window_figures(routed.workers, stream.codes, points, workers, panes_per_window=width)
    mine = stream.codes == np.bincount(stream.codes).argmax()
    presence = np.zeros((int(points[-1]) + 1, workers), np.bool_)
    presence[points[mine], routed.workers[mine]] = True
    ends = range(len(presence))
    hottest = np.array([presence[max(0, end + 1 - width) : end + 1].any(axis=0).sum() for end in ends])
    return windows.imbalance, hottest


def _settled(imbalance: Float64s, late: float) -> int:
    """The point from which on the imbalance stays at most 1.5 times `late`, its mean in the second half."""
    above = np.flatnonzero(imbalance > 1.5 * late)
    return int(above[-1]) + 1 if len(above) else 0


def _many(
    figures: SectionFigures, plan: RunPlan, name: str, rule: str = COOPERATIVE, *, own: bool = False
) -> dict[int, list[float]]:
    return {count: figures.values(cell(plan, count, rule, own=own), name) for count in PARTITIONERS}


def _medians(at: dict[int, list[float]]) -> str:
    return ", ".join(f"P = {count}: {number(median(values))}" for count, values in at.items())


def _stable_cost(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = {name: _many(figures, plan, name) for name in ("late", "late hottest")}
    checks = [median(values) <= 1.5 for by_count in at.values() for values in by_count.values()]
    return Outcome(
        f"highest against mean: Eq. 1 {_medians(at['late'])}; Eq. 2 {_medians(at['late hottest'])}",
        tuple(checks),
    )


def _two_against_one(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = _many(figures, plan, "imbalance")
    return Outcome(
        f"P = 1: {number(median(at[1]))}, P = 2: {number(median(at[2]))}",
        (lower(at[1], at[2]), median(at[2]) <= 2 * median(at[1])),
    )


def _no_growth(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for own, streams in _STREAMS.items():
        for name, equation in (("imbalance", "Eq. 1"), ("hottest", "Eq. 2")):
            at = _many(figures, plan, name, own=own)
            checks += [no_higher(at[count], at[2]) for count in (4, 8)]
            phrases.append(f"{streams}, {equation}: {_medians(at)}")
    return Outcome("; ".join(phrases), tuple(checks))


def _rate(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = _settled_after(figures, plan, own=False)
    each = _settled_after(figures, plan, own=True)
    checks = [
        at[1] <= at[2],
        *(slides[count] <= 1.25 * slides[2] for slides in (at, each) for count in (4, 8)),
    ]
    phrases = (
        f"{streams}: {', '.join(f'P = {count}: {slides:g} slides' for count, slides in by_count.items())}"
        for streams, by_count in zip(_STREAMS.values(), (at, each), strict=True)
    )
    return Outcome("; ".join(phrases), tuple(checks))


def _settled_after(figures: SectionFigures, plan: RunPlan, *, own: bool) -> dict[int, float]:
    return {count: median(values) for count, values in _many(figures, plan, "settled", own=own).items()}


def _as_level_as_one(figures: SectionFigures, plan: RunPlan, rule: str) -> Outcome:
    at = _many(figures, plan, "imbalance", rule)
    return Outcome(
        _medians(at), tuple(median(at[count]) <= 1.25 * median(at[1]) for count in PARTITIONERS[1:])
    )


CLAIMS = (
    Claim(
        "000, fig. 15, 5.4",
        "With one, two, four and eight partitioners learning comes to a stable cost.",
        "in the second half of the stream Eq. 1 of the fullest combiner, and Eq. 2 of the most frequent key,"
        ' are at most 1.5 times their mean there (our number for "stable")',
        _stable_cost,
        measure="counted tuples and copies",
        reason="measure",
        because="The paper draws a curve and gives no number for stable.",
    ),
    Claim(
        "000, fig. 15, 5.4",
        "Two partitioners have slightly more imbalance than one.",
        "mean Eq. 1 in the second half: higher with two than with one, by a factor of at most 2 (our number"
        ' for "slightly")',
        _two_against_one,
        measure="counted tuples",
        reason="measure",
        because=(
            "Eq. 1 is counted in routed streams, and what synchronisation costs is not in it. Here a second"
            " partitioner costs no balance at all: with both, what is left is made by the keys that"
            " definition 3.3 keeps whole (see the check of figure 13). The paper draws two curves and gives"
            " no numbers. Other laws and lengths were not examined."
        ),
    ),
    Claim(
        "000, fig. 15, 5.4",
        "More than two partitioners add no cost.",
        "second half: mean Eq. 1 of the fullest combiner, and mean Eq. 2 of the most frequent key, no higher"
        " with four and eight than with two, if all share one stream, and if each has a stream of the same"
        " rate",
        _no_growth,
        measure="counted tuples and copies",
        reason="measure",
        because=(
            "The common table is a mean, as in Algorithm 2. It has learned no more than each table that it is"
            " made of, and each of eight tables was learned from an eighth of the tuples. The paper does not"
            " say whether each source has a rate of its own. If each has, eight are as level as two."
        ),
    ),
    Claim(
        "ours, to 000 Alg. 2",
        "When each learns in steps as large as one tuple of every partitioner would make, several are as"
        " level as one.",
        "`share_steps=true`: mean Eq. 1 in the second half with two, four and eight at most a quarter above"
        " that with one",
        partial(_as_level_as_one, rule=SHARED_STEPS),
        measure="counted tuples",
        reason="ours",
        own=True,
    ),
    Claim(
        "ours, to 000 Alg. 2",
        "When each knows the loads that the others make, several are as level as one.",
        "`share_loads=true`: the same",
        partial(_as_level_as_one, rule=SHARED_LOADS),
        measure="counted tuples",
        reason="ours",
        because=(
            "Knowledge of the loads is not what the partitioners lack. Each of eight tables was learned from"
            " an eighth of the tuples, and their mean has learned no more."
        ),
        own=True,
    ),
    Claim(
        "000, fig. 15, 5.4",
        "One partitioner converges faster; how many more there are does not matter for the rate.",
        "slides until Eq. 1 stays below 1.5 times its mean in the second half, medians: with one no more than"
        " with two; with four and eight at most a quarter more than with two, if all share one stream, and if"
        " each has a stream of the same rate",
        _rate,
        measure="counted tuples",
        reason="measure",
        because=(
            "By the paper one partitioner is faster because it does not pay for synchronisation. Here slides"
            " are counted, and tables cost nothing. So one and two settle alike, within the spread of the"
            " seeds. Each of eight partitioners learns from an eighth of the tuples if all share one stream."
            " If each source has a rate of its own, eight settle as fast as two. With shared steps they do so"
            " on one stream, too."
        ),
        note="A window of three slides remembers the beginning for three slides.",
    ),
)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up, picture and table."""
    return [
        (
            f"Figure 15: one to eight partitioners on `{PAIRS[0]}`, {SLIDES} slides, windows of three. A"
            f" slide has {_slide(plan):,} tuples if all share one stream, and {_slide(plan, 1):,} for each"
            " partitioner if each has a stream of its own. Cooperating Daltons hear a common table every"
            " half slide. Copies of `dalton` stand beside them for comparison; their statistics are of a"
            " slide. Eq. 1 is that of the fullest combiner, as a share of the tuples of the window. Eq. 2 is"
            " the number of partial results that the most frequent key makes in a window. Both are means"
            " over the second half. The picture shows one stream for all."
        ),
        "",
        "![how partitioners converge](reproducing/converging.svg)",
        "",
        *table(
            [
                "partitioners",
                "rule",
                "tuples of a slide",
                "Eq. 1",
                "Eq. 2",
                "settled after slides",
                "highest / mean, second half",
            ],
            (
                [
                    setting.experiment.split()[0],
                    f"`{setting.partitioner}`",
                    f"{setting.stream.tuples // SLIDES:,}",
                    *(figure(figures, setting, name) for name in ("imbalance", "hottest", "settled", "late")),
                ]
                for setting in cells(plan)
            ),
            left=2,
        ),
        "",
    ]


def pictures(figures: SectionFigures, plan: RunPlan) -> dict[str, altair.TopLevelMixin]:
    """The two curves of figure 15, a line for each number of partitioners."""
    at = {count: cell(plan, count) for count in PARTITIONERS}
    if not all(setting in figures for setting in at.values()):
        return {}
    panels = []
    for name, heading, scale in (
        ("curve", "Eq. 1: fullest combiner above its share, % of the window", 100.0),
        ("hottest curve", "Eq. 2: partial results of the most frequent key", 1.0),
    ):
        drawn = {
            f"P = {count}": Line(
                [(point + 1) / POINTS for point in range(SLIDES * POINTS)],
                [scale * value for value in figures.values(setting, name)],
            )
            for count, setting in at.items()
        }
        y = linear("", [value for line in drawn.values() for value in line.y])
        emphasis = Emphasis("P = 8", tuple(drawn))
        panels.append(
            curves(drawn, emphasis, x_title="slides since the beginning", y=y, title=heading, width=380)
        )
    subtitle = (
        f"{combiners(COOPERATIVE)} combiners; half of the tuples are uniform, half Zipf 1.5; a common table"
        f" every half slide; a window is {SPAN} slides."
    )
    return {
        "converging": page(
            panels, title="Balance and partial results since the beginning", subtitle=[subtitle]
        )
    }
