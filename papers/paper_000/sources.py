"""Figure 13 of 000: two partitioners, whose sources have different distributions.

Even tuples are uniform and odd tuples are Zipf 1.5, or both are Zipf 1.5 with different hot keys.
Partitioners that can exchange what they know do so. `several_partitioners` says how a rate comes about.
"""

from __future__ import annotations

from itertools import product
from statistics import median

import numpy as np

from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.claims import Claim, Outcome
from papers.comparing import lower
from papers.markdown import figure, number, ratio, table
from papers.paper_000.grid import NAME, RULES, WHOLE_OR_TWO
from papers.paper_000.several_partitioners import (
    COOPERATIVE,
    MEASURED,
    OFTEN,
    PAIRS,
    PLACES,
    REDUCERS,
    WARM,
    announced_rate,
    combiners,
    counts,
    forwards,
    keys_of,
    rate,
    run,
    slide_of,
    stream_of,
    swung,
    whole_keys_imbalance,
)
from papers.unit_costs import unit_costs

TWO_SOURCES = (*RULES, COOPERATIVE)
RIVALS = ("hashing", "cam", "shuffle", "pkg", "cm", "dagreedy")
"""The paper's other rules."""
BEHIND = ("dagreedy", "dalton")
"""Rules that are behind cooperating Daltons by construction: without a common table the replay lets them
forward nothing. No check of who is ahead counts them.
"""
SWUNG = (*RIVALS, "dalton", COOPERATIVE)
DENSITIES = (1, 16)
"""Tuples in a slide for each key. The cells of the figure have 4."""
SPARSE = ("hashing", "dagreedy", "dalton", COOPERATIVE)
"""Rules that are also measured at the other densities: of each kind the best one."""


def two_cell(plan: RunPlan, kind: str, rule: str, *, density: int = 4) -> Cell:
    """Two partitioners. density: one of `DENSITIES`, or 4."""
    stream = stream_of(plan, kind, keys=keys_of(plan) * 4 // density)
    return Cell(NAME, f"two sources, costs {unit_costs().mark}", stream, combiners(rule), rule)


def cells(plan: RunPlan) -> list[Cell]:
    """Every rule on both streams, and some at other densities."""
    return [
        *(two_cell(plan, *at) for at in product(PAIRS, TWO_SOURCES)),
        *(two_cell(plan, PAIRS[0], rule, density=d) for rule, d in product(SPARSE, DENSITIES)),
    ]


def measure(setting: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed. `swung` has one value for each of the swung costs, of the first seed."""
    stream, rule = opened.at(), setting.partitioner
    series: Values = {name: [] for name in ("imbalance", "ksr", "rate", "announced", "whole keys")}
    for seed in plan.seeds:
        dsync = OFTEN if rule == COOPERATIVE else None
        routed = run(stream, rule, seed=seed, slide=slide_of(plan), partitioners=2, dsync=dsync)
        done = counts(stream, routed)
        series["imbalance"].append(done.imbalance)
        series["ksr"].append(done.ksr)
        series["rate"].append(rate(done, forwards(rule, routed), unit_costs()))
        series["announced"].append(announced_rate(done, unit_costs()))
        series["whole keys"].append(whole_keys_imbalance(stream, workers=setting.workers, seed=seed))
        if seed == plan.seeds[0]:
            series["swung"] = [rate(done, forwards(rule, routed), costs) for costs in swung()]
    return series


def _values(
    figures: SectionFigures, plan: RunPlan, kind: str, rule: str, name: str = "rate", density: int = 4
) -> list[float]:
    return figures.values(two_cell(plan, kind, rule, density=density), name)


def _rates(
    figures: SectionFigures, plan: RunPlan, kind: str, rules: tuple[str, ...]
) -> dict[str, list[float]]:
    return {rule: _values(figures, plan, kind, rule) for rule in rules}


def _judged(rules: tuple[str, ...]) -> list[str]:
    return [rule for rule in rules if rule not in (COOPERATIVE, *BEHIND)]


def _medians(at: dict[str, list[float]]) -> str:
    return ", ".join(f"{rule} {number(median(values))}" for rule, values in at.items())


def _ahead_of(figures: SectionFigures, plan: RunPlan, rules: tuple[str, ...]) -> Outcome:
    checks, phrases = [], []
    for kind in PAIRS:
        at = _rates(figures, plan, kind, (COOPERATIVE, *rules))
        checks += [lower(at[rule], at[COOPERATIVE]) for rule in rules]
        phrases.append(f"{kind}: {_medians(at)}")
    return Outcome(f"million tuples/s: {'; '.join(phrases)}", tuple(checks))


def _better_together(figures: SectionFigures, plan: RunPlan) -> Outcome:
    return _ahead_of(figures, plan, ("dalton",))


def _ahead(figures: SectionFigures, plan: RunPlan) -> Outcome:
    return _ahead_of(figures, plan, (*WHOLE_OR_TWO, "shuffle"))


def _ahead_of_dagreedy(figures: SectionFigures, plan: RunPlan) -> Outcome:
    return _ahead_of(figures, plan, ("dagreedy",))


def _by_how_much(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for kind in PAIRS:
        ours = median(_values(figures, plan, kind, COOPERATIVE))
        times = {rule: ours / median(_values(figures, plan, kind, rule)) for rule in _judged(RIVALS)}
        checks += [factor >= 1.4 for factor in times.values()]
        phrases.append(f"{kind}: {', '.join(f'{rule} {factor:.2f}' for rule, factor in times.items())}")
    return Outcome(f"times the rate of {'; '.join(phrases)}", tuple(checks))


def _hashing_and_dagreedy(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for kind in PAIRS:
        at = _rates(figures, plan, kind, ("hashing", "cam", "dagreedy"))
        for rule in ("hashing", "cam"):
            slower, faster = ("dagreedy", rule) if kind == PAIRS[0] else (rule, "dagreedy")
            checks.append(lower(at[slower], at[faster]))
        phrases.append(f"{kind}: {_medians(at)}")
    return Outcome(f"million tuples/s: {'; '.join(phrases)}", tuple(checks))


def _any_density(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for density in (1, 4, 16):
        ours = _values(figures, plan, PAIRS[0], COOPERATIVE, density=density)
        at = {rule: _values(figures, plan, PAIRS[0], rule, density=density) for rule in _judged(SPARSE)}
        checks += [lower(theirs, ours) for theirs in at.values()]
        times = ", ".join(f"{rule} {median(ours) / median(theirs):.2f}" for rule, theirs in at.items())
        phrases.append(f"{density}: {times}")
    return Outcome(f"{PAIRS[0]}, times the rate of {'; '.join(phrases)}", tuple(checks))


def _any_cost(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for kind in PAIRS:
        ours = np.array(_values(figures, plan, kind, COOPERATIVE, "swung"))
        for rule in _judged(RIVALS):
            times = ours / np.array(_values(figures, plan, kind, rule, "swung"))
            checks += (times > 1).tolist()
            phrases.append(f"{kind}, {rule} {times.min():.2f} to {times.max():.2f}")
    return Outcome(f"times the rate of {'; '.join(phrases)}", tuple(checks))


def _together_without_forwarding(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for kind in PAIRS:
        at = {rule: _values(figures, plan, kind, rule, "announced") for rule in (COOPERATIVE, "dalton")}
        checks.append(lower(at["dalton"], at[COOPERATIVE]))
        level = {rule: _values(figures, plan, kind, rule, "imbalance") for rule in (COOPERATIVE, "dalton")}
        phrases.append(f"{kind}: {_medians(at)}; imbalance {_medians(level)}")
    return Outcome(f"million tuples/s: {'; '.join(phrases)}", tuple(checks))


def _whole_keys_explain(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for kind in PAIRS:
        ours, least = (
            _values(figures, plan, kind, COOPERATIVE, name) for name in ("imbalance", "whole keys")
        )
        checks.append(abs(median(ours) / median(least) - 1) <= 0.25)
        phrases.append(f"{kind}: {number(median(ours))}, whole keys alone {number(median(least))}")
    return Outcome("; ".join(phrases), tuple(checks))


_NOT_COUNTED = (
    "Two `dagreedy`, and copies of `dalton`, are behind by construction (claims above), so they do not count."
)

CLAIMS = (
    Claim(
        "000, fig. 13, 5.4",
        "Cooperating Daltons do better than copies that know their own source only.",
        "two sources, both streams: a higher rate than two `dalton` side by side",
        _better_together,
        measure="queue replay",
        note=(
            "What decides is forwarding, which only the common table allows. Our checks below say what is"
            " left without it."
        ),
        by_construction=(
            "The replay lets combiners finish whole keys only where a common table came, and prices what the "
            "others send to reducers. That decides. If both finish them, copies are ahead: see the check of "
            "forwarding by announcement."
        ),
    ),
    Claim(
        "000, fig. 13, 5.4",
        "With other distributions at the sources cooperating Daltons are ahead of rules with one and two"
        " choices.",
        "two sources, both streams: a higher rate than hashing, cAM, two choices, CM and shuffling",
        _ahead,
        measure="queue replay",
    ),
    Claim(
        "000, fig. 13, 5.4",
        "With other distributions at the sources cooperating Daltons are ahead of DAGreedy.",
        "two sources, both streams: a higher rate than two `dagreedy`, which know their own source only",
        _ahead_of_dagreedy,
        measure="queue replay",
        note=(
            "What a decision costs is not in the rate, because the paper's two partitioners are never the"
            " bottleneck."
        ),
        by_construction=(
            "As with copies: two `dagreedy` have no common table, so the replay lets their combiners finish "
            'nothing. If both finish whole keys, `dagreedy` is as fast (column "announced").'
        ),
    ),
    Claim(
        "000, fig. 13, 5.4",
        "Cooperating Daltons outperform the others by at least 1.4 times.",
        "two sources, both streams: the median rate at least 1.4 times that of hashing, cAM, shuffling, two"
        " choices and CM each (the paper says 1.4 to 3.4)",
        _by_how_much,
        measure="queue replay",
        note=_NOT_COUNTED,
        reason="ours",
        because=(
            "The costs are those of our stages, and the paper does not say how many tuples a key has in a"
            " slide."
        ),
        every=True,
    ),
    Claim(
        "000, fig. 13, 5.4",
        "Rules that keep keys whole outrun DAGreedy where a source is uniform, and the contrary where both"
        " are Zipf.",
        "hashing and cAM each: a higher rate than two `dagreedy` on the one stream, a lower one on the other",
        _hashing_and_dagreedy,
        measure="queue replay",
        note="Two `dagreedy` may not forward, so their reducers are the slowest part on both streams.",
    ),
    Claim(
        "ours, to 000 fig. 13",
        "Cooperating Daltons are ahead whether keys are rare or frequent.",
        "`uniform+zipf` with one, four and sixteen tuples of each key in a slide: a higher rate than hashing",
        _any_density,
        measure="queue replay",
        note=_NOT_COUNTED,
        reason="ours",
        because=(
            "The rarer keys are, the more of the work is that of windows, which no way of routing makes less."
        ),
        own=True,
    ),
    Claim(
        "ours, to 000 fig. 13",
        "Cooperating Daltons are ahead if any one of the kept costs is half or twice as high.",
        "the first seed, both streams, fourteen sets of costs: a higher rate than hashing, cAM, shuffling,"
        " two choices and CM each",
        _any_cost,
        measure="queue replay",
        note=_NOT_COUNTED,
        reason="ours",
        because="Costs decide where the slowest part is.",
        own=True,
    ),
    Claim(
        "ours, to 000 fig. 13",
        "Cooperating Daltons do better than copies, too, if both forward by announcement.",
        "two sources, both streams: a higher rate than two `dalton`",
        _together_without_forwarding,
        measure="queue replay",
        reason="ours",
        because=(
            "Announcements make forwarding safe without a common table. Then only the fullest combiner"
            " counts, and copies are more level: a copy splits a key with 1/n of its own source, the"
            " cooperating ones a key with 1/n of all tuples."
        ),
        own=True,
    ),
    Claim(
        "ours, to 000 def. 3.3",
        "Cooperating Daltons are as level as the keys allow that definition 3.3 keeps whole.",
        "two sources, both streams: mean window imbalance within a quarter of that which the keys with less"
        " than 1/n of all tuples make alone, each hashed to a worker",
        _whole_keys_explain,
        measure="counted tuples",
        reason="ours",
        because="What is more than that is the bandit's own.",
        own=True,
    ),
)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up, costs and the table of figure 13."""
    costs = ", ".join(f"{name} {value:g}" for name, value in vars(unit_costs()).items())
    lines = [
        (
            f"Figure 13: two partitioners, slides of {slide_of(plan):,} tuples, {keys_of(plan):,} keys,"
            f" windows of three slides, as the paper's 60 s by 20 s. Of {PLACES} places {REDUCERS} are"
            " reducers; hashing and cAM have no reducers. Tuple t goes through partitioner t mod 2. In"
            " `uniform+zipf` even tuples are uniform and odd tuples are Zipf 1.5. In `zipf+zipf` both are"
            f" Zipf 1.5, with different hot keys. `{COOPERATIVE}` hears a common table every half slide,"
            f" `evenflow` tells its loads at each slide. {MEASURED} slides count, after {WARM}."
        ),
        "",
        (
            "A *rate*, in million tuples a second, is the highest with which no combiner and no reducer is"
            " ever behind by more than a slide. Work is counted, and priced with costs of our own stages in"
            " nanoseconds of CPU, which `evenflow bench stage-costs` measures and"
            f" [costs.json](reproducing/costs.json) keeps: {costs}. Read rates as ratios. Combiners finish"
            " whole keys as in the paper (section 4.2): always with hashing and cAM, never where"
            " partitioners do not synchronise, and with cooperating Daltons in each slide in which a table"
            " came. `evenflow` has no such rule. Beside it stands the rate with forwarding by announcement."
        ),
        "",
    ]
    return [
        *lines,
        *table(
            [
                "rule",
                *(
                    f"{kind}: {heading}"
                    for kind in PAIRS
                    for heading in ("imbalance", "KSR", "rate", "announced")
                ),
            ],
            (
                [
                    f"`{rule}`",
                    *(
                        _shown(figures, two_cell(plan, kind, rule), name)
                        for kind in PAIRS
                        for name in ("imbalance", "ksr", "rate", "announced")
                    ),
                ]
                for rule in TWO_SOURCES
            ),
        ),
    ]


def _shown(figures: SectionFigures, cell: Cell, name: str) -> str:
    if name == "rate" and cell.partitioner == "evenflow":
        return "-"
    return figure(figures, cell, name, ratio if name == "ksr" else number)
