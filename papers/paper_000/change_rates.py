"""Figures 9a and 9d of 000 by the paper's own measure, throughput: word count while the keys change.

The rates are those of `word_count`, with 64 places. A window of the paper holds 60 slides, and the
distribution changes every 1,000 slides, so nearly all windows hold tuples of one distribution. Here it
changes every 100 slides. The last slides of a period count, when the whole window is of the period.

Decisions are priced with kept times where the text says so. They were timed on the three streams of figure 7
with as many combiners. The law of `by-turns` has such a time, Zipf 1.5. `random-zipf` draws its laws from 0.5
to 1.5, which no time was taken of, so each of the three prices it.
"""

from __future__ import annotations

from itertools import product
from statistics import mean, median

from papers.cells.run_plan import Cell, RunPlan, Stream, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.claims import Claim, Outcome
from papers.comparing import lower, no_higher
from papers.drawn_streams import EXPONENTS, TURNS
from papers.markdown import figure, number, table
from papers.paper_000.grid import NAME, RULES, SLIDES
from papers.paper_000.overhead import kept_times
from papers.paper_000.reducers import PLACES
from papers.paper_000.replay import counted, rate_of
from papers.paper_000.word_count import (
    MEASURED,
    OURS,
    TEXTS,
    combiners,
    routed,
    slide_tuples,
    way_of,
    with_partitioner,
)
from papers.unit_costs import unit_costs

PERIOD = 100
"""Slides between two changes."""
MOST = 64
PERIODS = {"by-turns": TURNS, "random-zipf": EXPONENTS}
"""Periods of the streams of figures 9a and 9d. The first one warms up."""
TURNING = ("skewed", "flat")
"""Periods of figure 9a: odd ones are Zipf 1.5, even ones uniform."""
RIVALS = ("hashing", "cam", "shuffle", "pkg", "cm", "dagreedy")
"""The paper's other rules."""
_TIMED = "Zipf 1.5"
_PRICED = {"by-turns": (_TIMED,), "random-zipf": tuple(TEXTS)}
"""The streams on which the decisions were timed that price another one."""
_AHEAD = {"by-turns": 1.3, "random-zipf": 1.1}
"""The least factor by which the paper's Dalton is ahead."""
_SHOWN = {"by-turns": "skewed", "random-zipf": "all"}
"""What Dalton is compared by."""


def rate_cell(plan: RunPlan, stream: str, rule: str) -> Cell:
    """One rule on one of the two streams."""
    keys, _ = TEXTS[_TIMED]
    tuples = PERIODS[stream] * PERIOD * slide_tuples(plan)
    return Cell(
        NAME,
        f"changes, rates, costs {unit_costs().mark}",
        Stream(stream, tuples, plan.pick(keys, 500)),
        combiners(MOST, rule),
        rule,
    )


def cells(plan: RunPlan) -> list[Cell]:
    """Both streams with every rule."""
    return [rate_cell(plan, *at) for at in product(PERIODS, RULES)]


def measure(setting: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed, million tuples a second, means over the periods.

    skewed, flat: of the periods of figure 9a. all: of all periods of figure 9d. ours: the same (for figure 9a
    skewed) in evenflow's own dataflow. Each seed draws exponents and hot keys of figure 9d anew.
    """
    by_turns = setting.stream.kind == "by-turns"
    ways = (way_of(setting.partitioner), OURS[way_of(setting.partitioner)])
    series: Values = {name: [] for name in (*(TURNING if by_turns else ("all",)), "ours")}
    for seed in plan.more_seeds:
        stream = opened.at(1 if by_turns else seed)
        routing = routed(stream, setting, seed=seed, slide=slide_tuples(plan), reducers=PLACES[MOST])
        ends = range(2 * PERIOD, (PERIODS[setting.stream.kind] + 1) * PERIOD, PERIOD)
        settled = [
            counted(routing.part(end - SLIDES - MEASURED, end), span=SLIDES, first=SLIDES, ways=ways)
            for end in ends
        ]
        rates, ours = ([rate_of(counts, way, unit_costs()) for counts in settled] for way in ways)
        if by_turns:
            # Period 0 warms up, so the first of these is period 1.
            series["skewed"].append(mean(rates[::2]))
            series["flat"].append(mean(rates[1::2]))
            series["ours"].append(mean(ours[::2]))
        else:
            series["all"].append(mean(rates))
            series["ours"].append(mean(ours))
    return series


def _rates(figures: SectionFigures, plan: RunPlan, stream: str, rule: str, name: str = "") -> list[float]:
    return figures.values(rate_cell(plan, stream, rule), name or _SHOWN[stream])


def _factors(figures: SectionFigures, plan: RunPlan, stream: str) -> dict[str, float]:
    ours = median(_rates(figures, plan, stream, "dalton"))
    return {rule: ours / median(_rates(figures, plan, stream, rule)) for rule in RIVALS}


def _listed(factors: dict[str, float]) -> str:
    return "Dalton's rate, times that of: " + ", ".join(f"{rule} {by:.2f}" for rule, by in factors.items())


def _ahead(figures: SectionFigures, plan: RunPlan, stream: str) -> Outcome:
    ours = _rates(figures, plan, stream, "dalton")
    checks = tuple(lower(_rates(figures, plan, stream, rule), ours) for rule in RIVALS)
    return Outcome(_listed(_factors(figures, plan, stream)), checks)


def _ahead_by(figures: SectionFigures, plan: RunPlan, stream: str) -> Outcome:
    factors = _factors(figures, plan, stream)
    return Outcome(_listed(factors), tuple(by >= _AHEAD[stream] for by in factors.values()))


def _ahead_by_turns(figures: SectionFigures, plan: RunPlan) -> Outcome:
    return _ahead(figures, plan, "by-turns")


def _ahead_by_turns_by(figures: SectionFigures, plan: RunPlan) -> Outcome:
    return _ahead_by(figures, plan, "by-turns")


def _ahead_of_exponents(figures: SectionFigures, plan: RunPlan) -> Outcome:
    return _ahead(figures, plan, "random-zipf")


def _ahead_of_exponents_by(figures: SectionFigures, plan: RunPlan) -> Outcome:
    return _ahead_by(figures, plan, "random-zipf")


def _drops(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for rule in (*RIVALS, "dalton"):
        flat, skewed = (_rates(figures, plan, "by-turns", rule, name) for name in ("flat", "skewed"))
        checks.append(lower(skewed, flat))
        phrases.append(f"{rule} {number(median(flat))} -> {number(median(skewed))}")
    return Outcome(f"million tuples/s, uniform -> skewed: {', '.join(phrases)}", tuple(checks))


def _like_hashing(figures: SectionFigures, plan: RunPlan) -> Outcome:
    ours, hashing = (_rates(figures, plan, "by-turns", rule, "flat") for rule in ("dalton", "hashing"))
    return Outcome(
        f"million tuples/s: dalton {number(median(ours))}, hashing {number(median(hashing))}",
        (no_higher(hashing, ours),),
    )


def _dagreedy(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for stream in PERIODS:
        both = [_rates(figures, plan, stream, rule) for rule in ("dalton", "dagreedy")]
        checks.append(lower(*reversed(both)))
        phrases.append(f"{stream}: {' against '.join(number(median(rates)) for rates in both)}")
        for text in _PRICED[stream]:
            ns = [_decision(figures, text, rule) for rule in ("dalton", "dagreedy")]
            priced = [with_partitioner(rates, taken) for rates, taken in zip(both, ns, strict=True)]
            checks.append(lower(*reversed(priced)))
            phrases.append(
                f"with one partitioner as on {text} {' against '.join(number(median(p)) for p in priced)}"
                f" ({ns[0]:.0f} and {ns[1]:.0f} ns)"
            )
    return Outcome(f"million tuples/s, {'; '.join(phrases)}", tuple(checks))


def _decision(figures: SectionFigures, text: str, rule: str) -> float:
    """ns of a decision, as kept."""
    keys, zipf = TEXTS[text]
    return figures.median(kept_times.deciding_cell(keys, zipf, combiners(MOST, rule), rule), "ns")


def _ours(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for stream in PERIODS:
        ours, dalton = (_rates(figures, plan, stream, rule) for rule in ("evenflow", "dalton"))
        checks.append(no_higher(dalton, ours))
        phrases.append(f"{stream}: {median(ours) / median(dalton):.2f}")
    return Outcome(f"times Dalton's rate: {', '.join(phrases)}", tuple(checks))


_SETTLED = "windows within a period, 64 places"
CLAIMS = (
    Claim(
        "000, fig. 9a, 5.2",
        "When the keys become skewed, the throughput of all rules drops.",
        f"{_SETTLED}: a lower rate in skewed periods than in uniform ones, for each of the paper's rules",
        _drops,
        measure="queue replay",
        reason="ours",
        because=(
            "By our costs rows of the window are most of the work. A window of uniform keys has all"
            " 25,000 of them, one of Zipf 1.5 some 4,900. So every rule is faster while the keys are"
            " skewed. What a tuple costs decides: if it took 8 times as long and all else the same, hashing,"
            " cAM, CM and DAGreedy would be slower while the keys are skewed, at 16 times two choices, at 32"
            " times Dalton, and shuffling not even at 128 times (seed 1). The paper's combiners parse their"
            " tuples. How long that takes it does not say."
        ),
        every=True,
    ),
    Claim(
        "000, fig. 9a, 5.2",
        "While the keys are skewed, Dalton outperforms the others.",
        f"uniform and Zipf 1.5 by turns, {_SETTLED}: a higher rate in skewed periods than hashing, cAM,"
        " shuffling, two choices, CM and DAGreedy",
        _ahead_by_turns,
        measure="queue replay",
        reason="ours",
    ),
    Claim(
        "000, fig. 9a, 5.2",
        "While the keys are skewed, Dalton outperforms the others by at least 1.3 times.",
        f"uniform and Zipf 1.5 by turns, {_SETTLED}: a median rate in skewed periods of at least"
        f" {_AHEAD['by-turns']} times that of each of the six (the paper says 1.3 to 6)",
        _ahead_by_turns_by,
        measure="queue replay",
        reason="ours",
        every=True,
    ),
    Claim(
        "000, fig. 9a, 5.2 (takeaway)",
        "While the keys are uniform, Dalton has the throughput of hashing.",
        f"uniform and Zipf 1.5 by turns, {_SETTLED}: in uniform periods a rate no lower than that of hashing",
        _like_hashing,
        measure="queue replay",
        false_by_construction=(
            "We give Dalton 8 of the 64 places as reducers, and hashing none. So where no key is hot it has"
            " seven eighths of hashing's combiners, and 0.88 times its rate. How many reducers the paper has"
            " in this figure it does not say."
        ),
    ),
    Claim(
        "000, fig. 9a and 9d, 5.2",
        "Dalton has a higher throughput than DAGreedy while the keys change.",
        f"skewed periods of the one stream, all of the other, {_SETTLED}: a higher rate, without the cost of"
        " decisions, and with one partitioner that takes the kept time of a decision. The laws of"
        " `random-zipf` were not timed, so each of the three kept times prices it",
        _dagreedy,
        measure="queue replay",
        reason="measure",
    ),
    Claim(
        "000, fig. 9d, 5.2",
        "Under random changes between Zipf laws Dalton has the highest throughput.",
        f"{_SETTLED}: a higher mean rate than hashing, cAM, shuffling, two choices, CM and DAGreedy",
        _ahead_of_exponents,
        measure="queue replay",
        reason="ours",
        because=(
            "It is ahead of hashing in 13 of 20 seeds, and 18 are needed. Exponents are drawn from 0.5 to"
            " 1.5. Where there is little skew, rows of the window decide by our costs, and hashing has all"
            " 64 places for them, Dalton 56 (see the uniform periods)."
        ),
    ),
    Claim(
        "000, fig. 9d, 5.2",
        "Under random changes between Zipf laws Dalton has at least 1.1 times the throughput of the others.",
        f"{_SETTLED}: a median rate of at least {_AHEAD['random-zipf']} times that of each of the six (the"
        " paper says 1.1 to 1.3)",
        _ahead_of_exponents_by,
        measure="queue replay",
        reason="ours",
        because=(
            "It is 1.03 times as fast as hashing, for the reason above, and 1.09 times as fast as"
            " DAGreedy. With one partitioner that takes the kept time of a decision on Zipf 1.5 it is 1.39"
            " times as fast as DAGreedy. The laws of this stream were not timed."
        ),
        every=True,
    ),
    Claim(
        "ours, to 000 fig. 9a and 9d",
        "While the keys change, evenflow does no worse than Dalton in this replay.",
        f"skewed periods of the one stream, all of the other, {_SETTLED}: no lower a rate",
        _ours,
        measure="queue replay",
        reason="ours",
        because=(
            "It levels tuples and not keys, and by our costs rows of keys are most of the work (see"
            " figure 7)."
        ),
        own=True,
    ),
)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and the table of figures 9a and 9d."""
    keys, _ = TEXTS[_TIMED]
    head = ["rule", "by-turns: skewed", "uniform", "random-zipf", "skewed, ours", "random-zipf, ours"]
    shown = (("by-turns", "skewed"), ("by-turns", "flat"), ("random-zipf", "all"))
    return [
        (
            "Figures 9a and 9d, throughput: word count as in figure 7, with the same kept costs, 64 places,"
            f" {plan.pick(keys, 500):,} keys, {slide_tuples(plan):,} tuples a slide. The law changes every"
            f" {PERIOD} slides (the paper's every 1,000). In each period but the first the last {MEASURED}"
            " slides count, whose windows lie within the period. Figures are million tuples a second: the"
            f" mean over the periods, and of these the median over {len(plan.more_seeds)} seeds. A seed draws"
            " the exponents and hot keys of `random-zipf` anew. *Ours* is evenflow's own dataflow, where"
            " reducers hold the windows that they finish."
        ),
        "",
        *table(
            head,
            (
                [
                    f"`{rule}`",
                    *(figure(figures, rate_cell(plan, stream, rule), name) for stream, name in shown),
                    *(figure(figures, rate_cell(plan, stream, rule), "ours") for stream in PERIODS),
                ]
                for rule in RULES
            ),
        ),
    ]
