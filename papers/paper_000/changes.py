"""Figures 9a and 9d of 000: the keys change again and again, between uniform and Zipf, and from one Zipf to
another. `change_rates` has the throughput. Here are its causes, imbalance and copies.

Slides have 4,000 tuples and windows 60 slides. In the first stream a window is skewed if its last slide is,
and flat if all its slides are uniform.
"""

from __future__ import annotations

from itertools import product
from statistics import median

import numpy as np

from evenflow.metrics import window_figures
from evenflow.simulation import Scenario, entrant
from evenflow.simulation.routing import route
from papers.cells.run_plan import Cell, RunPlan, Stream, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.claims import Claim, Outcome
from papers.comparing import lower, no_higher
from papers.drawn_streams import EXPONENTS, TURNS
from papers.markdown import figure, number, ratio, table
from papers.paper_000.grid import NAME, RULES, SLIDES, SPLITTING, WHOLE_OR_TWO, WORKERS

PERIOD = 100
"""Slides between two changes. The paper has 1,000 slides."""
PERIODS = {"by-turns": TURNS, "random-zipf": EXPONENTS}
FIGURES = ("all", "skewed", "flat", "ksr", "flat ksr")


def cell(plan: RunPlan, stream: str, rule: str) -> Cell:
    """One rule on one of the two streams."""
    tuples = PERIODS[stream] * PERIOD * plan.pick(4_000, 20)
    return Cell(NAME, "changes", Stream(stream, tuples, plan.pick(40_000, 500)), WORKERS, rule)


def cells(plan: RunPlan) -> list[Cell]:
    """Both streams with every rule."""
    return [cell(plan, *at) for at in product(PERIODS, RULES)]


def measure(setting: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed: mean window imbalance of all, of skewed and of flat windows, and KSR of all and
    of flat ones.
    """
    stream = opened.at()
    slide = len(stream) // (PERIODS[setting.stream.kind] * PERIOD)
    series: Values = {name: [] for name in FIGURES}
    for seed in plan.seeds:
        scenario = Scenario(workers=WORKERS, seed=seed, window_ms=SLIDES * slide, slide_ms=slide)
        workers = route(stream, entrant(setting.partitioner), scenario).workers
        windows = window_figures(
            workers, stream.codes, scenario.panes(stream.times), WORKERS, panes_per_window=SLIDES
        )
        period, into = np.divmod(windows.ends, PERIOD)
        full = windows.ends >= SLIDES
        # Even periods are uniform. A flat window needs `SLIDES` slides of its period, so that it holds no
        # older law.
        skewed, flat = full & (period % 2 == 1), (into >= SLIDES) & (period % 2 == 0)
        for name, values, which in (
            ("all", windows.imbalance, full),
            ("skewed", windows.imbalance, skewed),
            ("flat", windows.imbalance, flat),
            ("ksr", windows.ksr, full),
            ("flat ksr", windows.ksr, flat),
        ):
            series[name].append(float(values[which].mean()))
    return series


def _values(figures: SectionFigures, plan: RunPlan, stream: str, rule: str, name: str) -> list[float]:
    return figures.values(cell(plan, stream, rule), name)


def _skewed(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = {rule: _values(figures, plan, "by-turns", rule, "skewed") for rule in ("dalton", *WHOLE_OR_TWO)}
    checks = [lower(at["dalton"], at[rule]) for rule in WHOLE_OR_TWO]
    return Outcome(_medians(at), tuple(checks))


def _flat(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = {rule: _values(figures, plan, "by-turns", rule, "flat") for rule in ("dalton", "hashing")}
    copies = median(_values(figures, plan, "by-turns", "dalton", "flat ksr"))
    checks = (no_higher(at["dalton"], at["hashing"]), copies <= 1.01)
    return Outcome(f"{_medians(at)}; KSR {ratio(copies)}", checks)


def _adapting(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = {
        rule: _values(figures, plan, "by-turns", rule, "skewed") for rule in RULES[:-1] if rule != "shuffle"
    }
    best = {rule: median(values) for rule, values in at.items()}
    fixed = min(best[rule] for rule in WHOLE_OR_TWO)
    return Outcome(_medians(at), tuple(best[rule] <= fixed / 2 for rule in ("dalton", "dagreedy")))


def _exponents(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = {rule: _values(figures, plan, "random-zipf", rule, "all") for rule in ("dalton", *WHOLE_OR_TWO)}
    checks = [lower(at["dalton"], at[rule]) for rule in WHOLE_OR_TWO]
    copies = {rule: _values(figures, plan, "random-zipf", rule, "ksr") for rule in ("dalton", *SPLITTING)}
    checks += [lower(copies["dalton"], copies[rule]) for rule in SPLITTING]
    shown = ", ".join(f"{rule} {ratio(median(values))}" for rule, values in copies.items())
    return Outcome(f"{_medians(at)}; KSR {shown}", tuple(checks))


def _dagreedy(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for stream, name in (("by-turns", "skewed"), ("random-zipf", "all")):
        at = {rule: _values(figures, plan, stream, rule, name) for rule in ("dalton", "dagreedy")}
        checks.append(lower(at["dalton"], at["dagreedy"]))
        phrases.append(f"{stream}: {_medians(at)}")
    return Outcome("; ".join(phrases), tuple(checks))


def _medians(at: dict[str, list[float]]) -> str:
    return ", ".join(f"{rule} {number(median(values))}" for rule, values in at.items())


CLAIMS = (
    Claim(
        "000, fig. 9a, 5.2 (its cause)",
        "Whenever the data is skewed, Dalton is ahead of rules with one and two choices.",
        "uniform and Zipf 1.5 by turns: mean imbalance of the windows that end in a skewed period lower than"
        " that of hashing, cAM, two choices and CM",
        _skewed,
        measure="counted tuples",
    ),
    Claim(
        "000, fig. 9a, 5.2 (its cause)",
        "Whenever the data is uniform again, Dalton does as hashing does.",
        "windows of uniform data only: mean imbalance no higher than hashing's, KSR at most 1.01",
        _flat,
        measure="counted tuples and copies",
        reason="ours",
        because="What Dalton has learned in the skewed period lasts for two statistics windows only.",
    ),
    Claim(
        "000, fig. 9a, 5.2",
        "Only Dalton and DAGreedy adapt.",
        "mean imbalance in skewed periods: that of each of the two at most half of the best of hashing, cAM,"
        ' two choices and CM (our number for "adapt"; shuffling is balanced anyway)',
        _adapting,
        measure="counted tuples",
    ),
    Claim(
        "000, fig. 9d, 5.2 (its cause)",
        "Under random changes between Zipf laws Dalton is ahead of rules that do not adapt.",
        "mean window imbalance lower than that of hashing, cAM, two choices and CM, KSR lower than that of"
        " shuffling, two choices and CM",
        _exponents,
        measure="counted tuples and copies",
        reason="paper",
        because=(
            "The paper does not say how many keys there are. Where many workers hold hot keys, two choices"
            " keep other keys whole."
        ),
    ),
    Claim(
        "000, fig. 9a and 9d, 5.2 (its cause)",
        "Dalton beats DAGreedy when the keys change again and again.",
        "lower mean imbalance, in the skewed periods of the one stream and over all windows of the other",
        _dagreedy,
        measure="counted tuples",
        reason="measure",
        because=(
            "The paper compares throughput, which is judged beside this. Here only the balance is measured:"
            " copies of rare keys and the cost of each decision do not count."
        ),
    ),
)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and both tables."""
    lines = [
        (
            f"Figures 9a and 9d: the law changes every {PERIOD} slides of {plan.pick(4_000, 20):,} tuples,"
            f" {plan.pick(40_000, 500):,} keys, n = {WORKERS}. `by-turns` is uniform and Zipf 1.5 by turns."
            " `random-zipf` draws an exponent from 0.5 to 1.5 and other hot keys at each change. Figures are"
            " mean window imbalance and KSR. A window is skewed if its last slide is, and flat if it holds"
            " uniform data only."
        ),
        "",
    ]
    return lines + table(
        ["rule", "by-turns: skewed", "flat", "KSR", "random-zipf: all", "KSR"],
        (
            [
                f"`{rule}`",
                figure(figures, cell(plan, "by-turns", rule), "skewed"),
                figure(figures, cell(plan, "by-turns", rule), "flat"),
                figure(figures, cell(plan, "by-turns", rule), "ksr", ratio),
                figure(figures, cell(plan, "random-zipf", rule), "all"),
                figure(figures, cell(plan, "random-zipf", rule), "ksr", ratio),
            ]
            for rule in RULES
        ),
    )
