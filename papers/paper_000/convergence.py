"""Figure 15 of 000: how one to eight partitioners converge.

Two curves begin with the stream: Eq. 1 of the most imbalanced combiner, as a share of the tuples of the
window, and Eq. 2 of the most frequent key, the number of partial results that the key makes in the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from papers.cells.run_plan import Cell, RunPlan, Stream, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.claims import Claim, Outcome
from papers.comparing import lower, no_higher, same
from papers.markdown import figure, number, table
from papers.paper_000.grid import NAME
from papers.paper_000.several_partitioners import (
    AT_ONCE,
    COOPERATIVE,
    OFTEN,
    PAIRS,
    SPAN,
    WORK_SECONDS,
    Server,
    combiners,
    run,
)
from papers.paper_000.variants.printed_mean import PrintedMean
from papers.pictures.charts import Emphasis, curves

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
LAWS = (
    (PAIRS[0], SLIDES),
    (PAIRS[0], 2 * SLIDES),
    ("uniform+zipf-1.0", SLIDES),
    ("uniform+zipf-2.0", SLIDES),
    (PAIRS[1], SLIDES),
    ("uniform+dealt", SLIDES),
    ("random-zipf", SLIDES),
)
"""Streams and their slides on which one and two partitioners are compared. The first is the paper's."""
WORKS = (5.0, WORK_SECONDS)
"""Seconds that the reducer takes for a round: the least that figure 14b allows, and the mean."""
STEADY = LAWS[:4]
"""Those of them where half is uniform and half is Zipf, all the time."""
_STREAMS = {False: "one stream for all", True: "a stream each"}
FIGURES = ("imbalance", "hottest", "settled", "late", "late hottest")


@dataclass(frozen=True)
class Cooperation:
    """So many partitioners, and how they learn."""

    partitioners: int
    """Their number."""
    rule: str = COOPERATIVE
    """What they are. Options of a cooperating partitioner mean nothing if it is alone."""
    own: bool = False
    """Each has a stream of its own at the same rate. Otherwise all share one stream."""
    kind: str = PAIRS[0]
    """The stream, by its name in `drawn_streams`."""
    slides: int = SLIDES
    """Slides of the stream."""
    server: Server = AT_ONCE
    """What makes their tables. One partitioner needs none."""

    def slide(self, plan: RunPlan) -> int:
        """Tuples of a slide."""
        return (self.partitioners if self.own else 2) * plan.pick(50_000, 200)

    def cell(self, plan: RunPlan) -> Cell:
        """The cell of the results. Settings that mean the same have the same cell."""
        several = self.partitioners > 1
        experiment = f"{self.partitioners} partitioners"
        if several and self.server.seconds:
            experiment += f", reducer {self.server.seconds:g} s"
        if several and self.server.merger is PrintedMean:
            experiment += ", printed mean"
        if self.slides != SLIDES:
            experiment += f", {self.slides} slides"
        rule = self.rule if several or self.rule == ALONE else COOPERATIVE
        stream = Stream(self.kind, self.slides * self.slide(plan), plan.pick(25_000, 100))
        return Cell(NAME, experiment, stream, combiners(rule), rule)


SHARED = [Cooperation(*at) for at in product(PARTITIONERS, MANY)]
"""Every number of partitioners with every rule, on one stream."""
OWN = [Cooperation(count, own=True) for count in PARTITIONERS]
"""Every number with streams of their own."""
SLOW = [Cooperation(count, server=Server(seconds)) for seconds, count in product(WORKS, PARTITIONERS)]
"""Every number on one stream, where tables take time."""
PRINTED = [Cooperation(count, server=Server(merger=PrintedMean)) for count in PARTITIONERS]
"""Every number on one stream, where tables have the mean as it is printed."""
FEW = [
    Cooperation(count, kind=kind, slides=slides, server=Server(seconds))
    for (kind, slides), seconds, count in product(LAWS, (0.0, *WORKS), (1, 2))
]
"""One and two partitioners on other laws and for longer."""


def cells(plan: RunPlan) -> list[Cell]:
    """The cells of all settings."""
    return list(dict.fromkeys(setting.cell(plan) for setting in (*SHARED, *OWN, *SLOW, *PRINTED, *FEW)))


def measure(setting: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed. Curves, of one stream for all, have the median over the seeds at each point."""
    stream = opened.at()
    at = next(one for one in (*SHARED, *OWN, *SLOW, *PRINTED, *FEW) if one.cell(plan) == setting)
    slide = at.slide(plan)
    series: Values = {name: [] for name in FIGURES}
    drawn: dict[str, list[Float64s | Int64s]] = {"curve": [], "hottest curve": []}
    for seed in plan.seeds:
        routed = run(
            stream,
            setting.partitioner,
            seed=seed,
            slide=slide,
            partitioners=at.partitioners,
            dsync=OFTEN,
            server=at.server if at.partitioners > 1 else AT_ONCE,
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
    if at not in SHARED:
        return series
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
    return {count: figures.values(Cooperation(count, rule, own).cell(plan), name) for count in PARTITIONERS}


def _medians(at: dict[int, list[float]]) -> str:
    return ", ".join(f"P = {count}: {number(median(values))}" for count, values in at.items())


def _stable_cost(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = {name: _many(figures, plan, name) for name in ("late", "late hottest")}
    checks = [median(values) <= 1.5 for by_count in at.values() for values in by_count.values()]
    return Outcome(
        f"highest against mean: Eq. 1 {_medians(at['late'])}; Eq. 2 {_medians(at['late hottest'])}",
        tuple(checks),
    )


def _two_against_one(
    figures: SectionFigures, plan: RunPlan, laws: Sequence[tuple[str, int]], works: Sequence[float]
) -> Outcome:
    checks, phrases = [], []
    for (kind, slides), seconds in product(laws, works):
        one, two = _one_and_two(figures, plan, kind, slides, seconds)
        checks += [lower(one, two), median(two) <= 2 * median(one)]
        phrases.append(
            f"{kind}, {slides} slides, reducer {seconds:g} s: P = 1: {number(median(one))}, P = 2:"
            f" {number(median(two))}"
        )
    return Outcome("; ".join(phrases), tuple(checks))


def _no_difference(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for kind, slides in STEADY:
        one, two = _one_and_two(figures, plan, kind, slides, 0.0)
        checks.append(same([one, two]))
        phrases.append(f"{kind}, {slides} slides: P = 1: {number(median(one))}, P = 2: {number(median(two))}")
    return Outcome("; ".join(phrases), tuple(checks))


def _one_and_two(
    figures: SectionFigures, plan: RunPlan, kind: str, slides: int, seconds: float
) -> list[list[float]]:
    return [
        figures.values(
            Cooperation(count, kind=kind, slides=slides, server=Server(seconds)).cell(plan), "imbalance"
        )
        for count in (1, 2)
    ]


def _no_growth(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for own, streams in _STREAMS.items():
        for name, equation in (("imbalance", "Eq. 1"), ("hottest", "Eq. 2")):
            at = _many(figures, plan, name, own=own)
            checks += [no_higher(at[count], at[2]) for count in (4, 8)]
            phrases.append(f"{streams}, {equation}: {_medians(at)}")
    return Outcome("; ".join(phrases), tuple(checks))


def _rate(figures: SectionFigures, plan: RunPlan, ways: Mapping[str, Sequence[Cooperation]]) -> Outcome:
    checks, phrases = [], []
    for words, settings in ways.items():
        at = {
            setting.partitioners: median(figures.values(setting.cell(plan), "settled"))
            for setting in settings
        }
        checks += [at[1] <= at[2]] if not settings[0].own else []
        checks += [at[count] <= 1.25 * at[2] for count in (4, 8)]
        shown = (f"P = {count}: {slides:g} slides" for count, slides in at.items())
        phrases.append(f"{words}: {', '.join(shown)}")
    return Outcome("; ".join(phrases), tuple(checks))


def _as_level_as_one(figures: SectionFigures, plan: RunPlan, rule: str) -> Outcome:
    at = _many(figures, plan, "imbalance", rule)
    return Outcome(
        _medians(at), tuple(median(at[count]) <= 1.25 * median(at[1]) for count in PARTITIONERS[1:])
    )


_BY_WORK = {
    f"one stream for all, reducer {seconds:g} s": [
        Cooperation(count, server=Server(seconds)) for count in PARTITIONERS
    ]
    for seconds in (0.0, *WORKS)
}
"""Every number of cooperating partitioners on one stream, by how long tables take."""
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
        "the paper's stream, 12 and 24 slides, a reducer that takes 5 s and 7.5 s for a round (figure 14b):"
        " mean Eq. 1 in the second half higher with two than with one, by a factor of at most 2 (our number"
        ' for "slightly")',
        partial(_two_against_one, laws=LAWS[:2], works=WORKS),
        measure="counted tuples",
        reason="ours",
        because=(
            "With 7.5 s it is higher with 9 and 10 of 10 hashes, with 5 s with 7 and 8. With the other"
            " hashes the whole keys of one worker alone make all of Eq. 1, with one partitioner and with"
            " two. How long the paper's reducer takes is not given."
        ),
        note=(
            "One partitioner needs no tables. Two keep rewards back while the reducer works on theirs, and"
            " a hot key stays at one worker meanwhile. That makes the difference: if tables take no time,"
            " there is none (the next check)."
        ),
    ),
    Claim(
        "ours, to 000 fig. 15",
        "If tables take no time, two partitioners are as level as one where half is uniform and half is"
        " Zipf.",
        "exponents 1.0, 1.5 and 2.0, and 1.5 for 24 slides: no difference in mean Eq. 1 in the second half",
        _no_difference,
        measure="counted tuples",
        reason="ours",
        because="Two tables are learned apart.",
        note="What is left is made by the keys that definition 3.3 keeps whole (see the check of figure 13).",
        own=True,
    ),
    Claim(
        "ours, to 000 fig. 15",
        "On other streams, too, two partitioners have slightly more imbalance than one.",
        "other exponents, hot keys of each source, and hot keys or laws that change; a reducer that takes 5"
        " s: mean Eq. 1 in the second half higher with two than with one, by a factor of at most 2",
        partial(_two_against_one, laws=LAWS[2:], works=WORKS[:1]),
        measure="counted tuples",
        reason="ours",
        because=(
            "What waiting for a table costs depends on how hot the hottest keys are. With exponent 1.0 it"
            " is nothing that shows. With 2.0, and where each source has hot keys of its own, it is more"
            " than one partitioner's whole imbalance."
        ),
        own=True,
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
        "slides until Eq. 1 stays below 1.5 times its mean in the second half, medians: with one no more"
        " than with two; with four and eight at most a quarter more than with two. All share one stream,"
        " and the reducer takes 0, 5 and 7.5 s for a round; or each has a stream of the same rate",
        partial(_rate, ways={**_BY_WORK, "a stream each": OWN}),
        measure="counted tuples",
        reason="ours",
        because=(
            "One and two settle alike if tables take no time, within the spread of the seeds, and one is no"
            " slower if they take some. Each of eight partitioners learns from an eighth of the tuples if"
            " all share one stream, and our mean of their tables has learned no more. With the mean that"
            " the paper prints eight settle as fast as two (the next check), and so they do if each source"
            " has a rate of its own, or with shared steps."
        ),
        note="A window of three slides remembers the beginning for three slides.",
    ),
    Claim(
        "ours, to 000 fig. 15",
        "With the mean as section 4.1 prints it, the number of partitioners does not matter for the rate.",
        "all share one stream, tables take no time: the same",
        partial(_rate, ways={"one stream for all, printed mean": PRINTED}),
        measure="counted tuples",
        reason="ours",
        because="Only the mean differs.",
        note=(
            "The printed mean divides by GL and by the number of partitioners. So all values come close to"
            " 0, above what the next rewards bring, and every worker is tried soon. Ours divides by the"
            " tuples of the key."
        ),
        own=True,
    ),
)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up, picture and table."""
    return [
        (
            f"Figure 15: one to eight partitioners on `{PAIRS[0]}`, {SLIDES} slides, windows of three. A"
            f" slide has {Cooperation(2).slide(plan):,} tuples if all share one stream, and"
            f" {Cooperation(1, own=True).slide(plan):,} for each"
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
                for setting in dict.fromkeys(one.cell(plan) for one in (*SHARED, *OWN))
            ),
            left=2,
        ),
        "",
        (
            "Figure 15, otherwise: Eq. 1 / settled after slides, of cooperating Daltons that share one"
            " stream, by how long the reducer takes for a round (a slide lasts 20 s), and with the mean of"
            " tables as printed."
        ),
        "",
        *table(
            ["stream", "slides", "partitioners", *(f"{seconds:g} s" for seconds in (0.0, *WORKS)), "printed"],
            (_otherwise(figures, plan, *at) for at in _rows()),
            left=2,
        ),
    ]


def _rows() -> list[tuple[str, int, int]]:
    """Streams, slides and numbers of partitioners that are measured with a reducer that takes time."""
    return [(*LAWS[0], count) for count in PARTITIONERS] + [
        (*law, count) for law in LAWS[1:] for count in (1, 2)
    ]


def _otherwise(figures: SectionFigures, plan: RunPlan, kind: str, slides: int, count: int) -> list[str]:
    servers = [Server(seconds) for seconds in (0.0, *WORKS)] + [Server(merger=PrintedMean)]
    settings = [Cooperation(count, kind=kind, slides=slides, server=server).cell(plan) for server in servers]
    # One partitioner needs no tables, so its figures stand once.
    return [
        kind,
        f"{slides}",
        f"{count}",
        *(
            f"{figure(figures, setting, 'imbalance')} / {figure(figures, setting, 'settled')}"
            if setting in figures and (count > 1 or row == 0)
            else "-"
            for row, setting in enumerate(settings)
        ),
    ]


def pictures(figures: SectionFigures, plan: RunPlan) -> dict[str, altair.TopLevelMixin]:
    """The two curves of figure 15, a line for each number of partitioners."""
    at = {count: Cooperation(count).cell(plan) for count in PARTITIONERS}
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
