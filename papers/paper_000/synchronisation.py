"""Figure 14 of 000: how often cooperating Daltons synchronise, at fixed and adaptive intervals.

Rates are those of `several_partitioners`. Messages and their bytes are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from statistics import median

import numpy as np

from evenflow.simulation import KeyedStream, Scenario
from papers.cells.run_plan import Cell, RunPlan, Stream, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.claims import Claim, Outcome
from papers.comparing import lower, no_higher
from papers.markdown import figure, number, table
from papers.paper_000.grid import NAME
from papers.paper_000.reducer_exchange import talk
from papers.paper_000.several_partitioners import (
    AT_ONCE,
    COOPERATIVE,
    MEASURED,
    PAIRS,
    SLIDE_SECONDS,
    SPAN,
    WARM,
    WORK_SECONDS,
    Run,
    Server,
    announced_rate,
    combiners,
    cooperating,
    counts,
    forwards,
    keys_of,
    message_share,
    rate,
    run,
    slide_of,
    stream_of,
    tabled,
)
from papers.paper_000.variants.printed_mean import PrintedMean
from papers.unit_costs import unit_costs

DSYNCS = (0.25, 0.5, 1, 2)
"""Fixed intervals of synchronisation, in slides: 5, 10, 20 and 40 s of the paper."""
SYNCED = ("uniform+zipf", "mixture")
"""The paper's streams of figure 14a."""
CHANGING = ("uniform+dealt", "by-turns")
"""Streams whose hot keys or whose law change six times."""
_PHASES = {300: 1, 600: 2, 900: 4, 1200: 1}
"""The four phases of figure 14b: the second that ends a phase -> how many times as long the reducer takes
in it.
"""
_FIRST_DSYNC, _SETTLING = 20, 5
"""The first interval in seconds, and the slides of a phase that do not count, in which the interval may still
change."""
KEPT = f"{COOPERATIVE}:keep_rewards=true"
"""Rewards are kept back until the late table comes, as in Algorithm 2."""
INSISTENT = "papers.paper_000.variants.insistent_dalton:InsistentDalton:keep_rewards=true"
"""The same, and a partitioner that waits tells anew at the end of each interval."""
LATE = (KEPT, INSISTENT, COOPERATIVE)
"""What partitioners do while a table is late: the two readings of Algorithm 2, and ours."""
ADAPTIVE = 0
INTERVALS = (ADAPTIVE, 10, 20)
"""The intervals of figure 14b in seconds, fixed but for the first."""


@dataclass(frozen=True)
class Interval:
    """Two partitioners of figure 14a that synchronise every so many slides."""

    kind: str
    """The stream, by its name in `drawn_streams`."""
    slides: float
    """DSYNC. 0: never."""
    server: Server = AT_ONCE
    """What makes the tables."""
    density: int = 4
    """Tuples in a slide for each key."""

    def cell(self, plan: RunPlan) -> Cell:
        """The cell of the results."""
        experiment = f"dsync {self.slides:g} slides" if self.slides else "dsync never"
        if self.server.seconds:
            experiment += f", reducer {self.server.seconds:g} s"
        if self.server.merger is PrintedMean:
            experiment += ", printed mean"
        stream = stream_of(plan, self.kind, keys=keys_of(plan) * 4 // self.density)
        experiment += f", costs {unit_costs().mark}"
        return Cell(NAME, experiment, stream, combiners(COOPERATIVE), COOPERATIVE)


EITHER = (*SYNCED, *CHANGING)
OTHERWISE: tuple[tuple[str, tuple[str, ...], Server, int], ...] = (
    ("as above", EITHER, AT_ONCE, 4),
    (f"the reducer takes {WORK_SECONDS:g} s for a round", EITHER, Server(WORK_SECONDS), 4),
    ("the mean as printed", SYNCED, Server(merger=PrintedMean), 4),
    ("64 tuples of each key in a slide", SYNCED, AT_ONCE, 64),
)
"""What else figure 14a may depend on: words, streams, what makes the tables, tuples of a key in a slide."""
NEVER = [Interval(kind, 0) for kind in SYNCED]
SOMETIMES = [
    Interval(kind, slides, server, density)
    for _, kinds, server, density in OTHERWISE
    for kind, slides in product(kinds, DSYNCS)
]


def dsync_cell(plan: RunPlan, kind: str, slides: float) -> Cell:
    """Figure 14a: two partitioners that synchronise every `slides` slides. 0: never."""
    return Interval(kind, slides).cell(plan)


def slower_cell(plan: RunPlan, seconds: int, rule: str = KEPT) -> Cell:
    """Figure 14b: two partitioners whose reducer becomes slower, and then fast again. seconds: one of
    `INTERVALS`.
    """
    experiment = f"{f'fixed {seconds} s' if seconds else 'adaptive'} dsync, costs {unit_costs().mark}"
    stream = Stream(PAIRS[0], max(_PHASES) * plan.pick(1_000, 16), plan.pick(5_000, 80))
    return Cell(NAME, experiment, stream, combiners(rule), rule)


def cells(plan: RunPlan) -> list[Cell]:
    """The cells of both parts of the figure."""
    return [
        *(interval.cell(plan) for interval in (*NEVER, *SOMETIMES)),
        *(slower_cell(plan, *at) for at in product(INTERVALS, LATE)),
    ]


def measure(setting: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed. The interval has one value per phase instead."""
    stream = opened.at()
    slower = {slower_cell(plan, *at): at[0] for at in product(INTERVALS, LATE)}
    if setting in slower:
        return _measure_slower(setting.partitioner, slower[setting], stream, plan)
    interval = next(one for one in (*NEVER, *SOMETIMES) if one.cell(plan) == setting)
    return _measure_dsync(interval, stream, plan)


def _measure_dsync(interval: Interval, stream: KeyedStream, plan: RunPlan) -> Values:
    names = ("imbalance", "ksr", "rate", "announced", "forwarded", "messages", "bytes")
    series: Values = {name: [] for name in names}
    for seed in plan.seeds:
        routed = run(
            stream,
            COOPERATIVE,
            seed=seed,
            slide=slide_of(plan),
            partitioners=2,
            dsync=interval.slides or None,
            server=interval.server,
        )
        done, forwarded = counts(stream, routed), forwards(COOPERATIVE, routed)
        figures = (
            done.imbalance,
            done.ksr,
            rate(done, forwarded, unit_costs()),
            announced_rate(done, unit_costs()),
            forwarded.mean(),
            routed.messages,
            routed.told_bytes,
        )
        for name, value in zip(names, figures, strict=True):
            series[name].append(float(value))
    return series


def _measure_slower(rule: str, seconds: int, stream: KeyedStream, plan: RunPlan) -> Values:
    """By phase: the rate and the share of slides with forwarding, and the interval in s at its end, of the
    first seed.
    """
    second = len(stream) // max(_PHASES)
    slide = SLIDE_SECONDS * second
    bounds = [0, *(until // SLIDE_SECONDS for until in _PHASES)]
    series: Values = {
        f"{name} {phase}": [] for name in ("rate", "forwarded") for phase in range(len(_PHASES))
    }
    for seed in plan.seeds:
        scenario = Scenario(
            workers=combiners(rule), sources=2, seed=seed, window_ms=SPAN * slide, slide_ms=slide
        )
        parts = cooperating(scenario, rule, stream, dsync_ms=(seconds or _FIRST_DSYNC) * second)

        def work(now: int) -> float:
            times = next(factor for until, factor in _PHASES.items() if now < until * second)
            return WORK_SECONDS * second * times

        talked = talk(parts, stream, slide_ms=slide, work_ms=work, adaptive=not seconds)
        routed = Run(talked.workers, tabled(talked.table_times, bounds[-1], slide), scenario)
        done = counts(stream, routed, first=0)
        for phase, (first, last) in enumerate(pairwise(bounds)):
            first += _SETTLING
            forwarded = routed.tabled[first:last]
            series[f"rate {phase}"].append(rate(done.between(first, last), forwarded, unit_costs()))
            series[f"forwarded {phase}"].append(float(np.mean(forwarded)))
        # The interval was noted after each piece of the stream. No seed changes it.
        pieces = len(talked.dsync_ms)
        series["dsync"] = [talked.dsync_ms[pieces * until // max(_PHASES) - 1] / second for until in _PHASES]
    return series


def _never(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for kind in SYNCED:
        at = {slides: figures.values(dsync_cell(plan, kind, slides), "rate") for slides in (0, *DSYNCS)}
        checks += [lower(at[0], at[slides]) for slides in DSYNCS]
        shown = ", ".join(f"{slides:g} slides {number(median(at[slides]))}" for slides in DSYNCS)
        phrases.append(f"{kind}: never {number(median(at[0]))}, {shown}")
    return Outcome(f"million tuples/s: {'; '.join(phrases)}", tuple(checks))


def _more_often(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for kind in EITHER:
        at = [dsync_cell(plan, kind, slides) for slides in DSYNCS]
        for short, long in pairwise(at[DSYNCS.index(0.5) :]):
            checks.append(lower(figures.values(long, "rate"), figures.values(short, "rate")))
        shown = (
            f"{slides:g} slides {number(figures.median(setting, 'rate'))}"
            for slides, setting in zip(DSYNCS, at, strict=True)
        )
        phrases.append(f"{kind}: {', '.join(shown)}")
    return Outcome(f"million tuples/s: {'; '.join(phrases)}", tuple(checks))


def _price_of_messages(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for kind in EITHER:
        told = [figures.median(dsync_cell(plan, kind, slides), "bytes") for slides in DSYNCS]
        shares = [message_share(count, WARM + MEASURED, unit_costs()) for count in told]
        checks += [share < 0.01 for share in shares]
        phrases.append(f"{kind}: {', '.join(number(share) for share in shares)}")
    return Outcome(
        f"share of a slide at {', '.join(f'{slides:g}' for slides in DSYNCS)} slides: {'; '.join(phrases)}",
        tuple(checks),
    )


def _messages(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for kind in SYNCED:
        sent = [figures.median(dsync_cell(plan, kind, slides), "messages") for slides in DSYNCS]
        checks += [long < short for short, long in pairwise(sent)]
        phrases.append(f"{kind}: {', '.join(f'{count:g}' for count in sent)}")
    return Outcome(
        f"messages at {', '.join(f'{slides:g}' for slides in DSYNCS)} slides: {'; '.join(phrases)}",
        tuple(checks),
    )


def _adapts(figures: SectionFigures, plan: RunPlan) -> Outcome:
    ours = figures.values(slower_cell(plan, ADAPTIVE), "dsync")
    summary = " -> ".join(f"{slides:g}" for slides in (_FIRST_DSYNC, *ours))
    return Outcome(f"{summary} s", tuple(a == b for a, b in zip(ours, (10, 20, 40, 10), strict=True)))


def _keeps_up(figures: SectionFigures, plan: RunPlan, rules: Mapping[str, str]) -> Outcome:
    checks, phrases = [], []
    for (rule, words), (phase, times) in product(rules.items(), enumerate(_PHASES.values())):
        at = {
            seconds: figures.values(slower_cell(plan, seconds, rule), f"rate {phase}")
            for seconds in INTERVALS
        }
        checks += [no_higher(at[seconds], at[ADAPTIVE]) for seconds in INTERVALS[1:]]
        fixed = ", ".join(f"{seconds} s {number(median(at[seconds]))}" for seconds in INTERVALS[1:])
        phrases.append(
            f"{words}reducer {times} times as slow: adaptive {number(median(at[ADAPTIVE]))}, {fixed}"
        )
    return Outcome(f"million tuples/s: {'; '.join(phrases)}", tuple(checks))


CLAIMS = (
    Claim(
        "000, fig. 14a, 5.4",
        "Partitioners that never synchronise do worse.",
        "two sources with other laws and two with the same mixture: a higher rate at a DSYNC of 1/4, 1/2, 1"
        " and 2 slides than without any table",
        _never,
        measure="queue replay",
        note=(
            "Who never synchronises here is a cooperating Dalton that waits for a table in vain. It keeps"
            " rewards back for a slide, so it is less level, and behind also if all forward by announcement"
            ' (column "announced"). Copies of `dalton`, which learn at once, are not (figure 13).'
        ),
        by_construction=(
            "As in figure 13: the replay lets combiners finish whole keys only in a slide with a common"
            " table, so who never has one forwards nothing. That decides. If all finish whole keys, copies of"
            " `dalton`, which tell each other nothing, are ahead: see the check of forwarding by"
            " announcement."
        ),
    ),
    Claim(
        "000, fig. 14a, 5.4",
        "More frequent synchronisation, up to 10 s, improves performance.",
        "the paper's two streams and two that change, DSYNC 2, 1 and 1/2 slides (the paper's 10 s): a higher"
        " rate at each step to the shorter interval",
        _more_often,
        measure="queue replay",
        reason="ours",
        because=(
            "The step from two slides to one is that of forwarding, which the replay grants in each slide"
            " with a table. At half a slide the load is more level than at one on `mixture` and on"
            " `uniform+dealt` (with 9 and 10 of 10 hashes), and the median rate is 3 % and 5 % higher, but"
            " not with nine of ten hashes: most work of a combiner is that of its keys, which no table"
            " moves. Between tables each partitioner learns by itself from the tuples of a slide, so ours"
            " needs no more than one table a slide. Four other causes were examined, and none makes the"
            ' rate rise at each step (table "Figure 14a, otherwise"): a reducer that takes as long as'
            " that of figure 14b, the mean of the tables as the paper prints it, more tuples of each key,"
            " and the price of messages (the check below)."
        ),
        note=(
            "What a shorter interval costs is the time that the reducer takes, not bytes: on `by-turns`"
            " half a slide is slower than one if a round takes 7.5 s."
        ),
    ),
    Claim(
        "ours, to 000 fig. 14a",
        "What messages cost is no part of the rate at slides of 20 s.",
        "1/4 to 2 slides, four streams: less than 1 % of a slide, if one place makes and reads all messages"
        " and tables, and each 8 bytes cost as much as a partial result that is sent and received",
        _price_of_messages,
        measure="priced from counts",
        reason="ours",
        because="Costs decide.",
        own=True,
    ),
    Claim(
        "000, fig. 14a, 4.1",
        "More frequent synchronisation costs more messages.",
        "1/4 to 2 slides: more messages at each step to the shorter interval",
        _messages,
        measure="counted messages",
        by_construction=(
            "A partitioner sends one message for each interval, so a shorter interval has more of them."
        ),
    ),
    Claim(
        "000, fig. 14b, 5.4",
        "DSYNC adapts: from 20 to 10, to 20 when the reducer takes twice as long, to 40 at four times, and"
        " back to 10.",
        f"in s, at the end of each phase of 300 s, with a slide of {SLIDE_SECONDS} s; the reducer takes"
        f" {WORK_SECONDS:g} s a round at first (the paper gives no figure; it settles at 10 from 5 to 10)",
        _adapts,
        measure="virtual time",
    ),
    Claim(
        "000, fig. 14b, 5.4",
        "With the adaptive interval a slow reducer does not stall execution.",
        f"in each of the four phases, from its slide {_SETTLING + 1} on: a rate no lower than with a fixed"
        " interval of 10 s, and of 20 s. Rewards are kept back until the late table comes, as in Algorithm"
        f" 2 (`{KEPT}`). A partitioner that waits sends nothing new, or it tells anew at the end of each"
        " interval",
        partial(_keeps_up, rules={KEPT: "", INSISTENT: "told anew, "}),
        measure="queue replay",
        reason="ours",
        because="The phases have 15 slides, and the paper's 250.",
        note=(
            "Algorithm 2 can be read in both ways. If a partitioner that waits sends nothing new, tables"
            " come every 20 s while the reducer takes 15 s, and bring as much with a fixed interval of 10 s"
            " as with the adaptive one. If it tells anew, a reducer that takes longer than a fixed interval"
            " falls behind, and is still behind when it is fast again. While it takes 30 s, no interval has"
            " a table in every slide, so the rates are alike."
        ),
    ),
    Claim(
        "ours, to 000 fig. 14b",
        "With the adaptive interval a slow reducer does not stall execution, if rewards are learned at the"
        " end of each interval.",
        "the same with ours as it is by default",
        partial(_keeps_up, rules={COOPERATIVE: ""}),
        measure="queue replay",
        reason="ours",
        because=(
            "While the reducer takes 15 s, tables come every 20 s with either interval. With a fixed one of"
            " 10 s ours learns what it kept back at the end of each interval, so twice as often. So a hot"
            " key moves on from its worker twice as often."
        ),
        own=True,
    ),
)


_RULES = {
    KEPT: f"`{KEPT}`",
    INSISTENT: "the same, and tells anew while it waits",
    COOPERATIVE: f"`{COOPERATIVE}`",
}
"""The rules of `LATE` in the page's words."""


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """The tables of both parts of figure 14."""
    lines = [
        (
            "Figure 14a: two cooperating Daltons, by the interval of synchronisation (DSYNC). Streams,"
            ' windows and rates are those of "Figure 13". In `uniform+dealt` even tuples are uniform, and'
            " odd tuples are Zipf 1.5 with other hot keys in each sixth of the stream. In `by-turns` each"
            ' sixth is uniform or Zipf 1.5 for both. The reducer takes no time here. "Forwarded" is the'
            " share of slides with a table."
        ),
        "",
    ]
    names = ("imbalance", "ksr", "rate", "announced", "forwarded", "messages", "bytes")
    lines += table(
        ["stream", "DSYNC", "imbalance", "KSR", *names[2:]],
        (
            [
                kind,
                f"{slides:g} slides" if slides else "never",
                *(figure(figures, dsync_cell(plan, kind, slides), name) for name in names),
            ]
            for kind, slides in (*product(SYNCED, (0, *DSYNCS)), *product(CHANGING, DSYNCS))
        ),
        left=2,
    )
    lines += [
        "",
        "Figure 14a, otherwise: rates, if one thing differs from the table above.",
        "",
        *table(
            ["what differs", "stream", *(f"{slides:g} slides" for slides in DSYNCS)],
            (
                [
                    words,
                    kind,
                    *(
                        figure(figures, Interval(kind, slides, server, density).cell(plan), "rate")
                        for slides in DSYNCS
                    ),
                ]
                for words, kinds, server, density in OTHERWISE[1:]
                for kind in kinds
            ),
            left=2,
        ),
        "",
        (
            f"Figure 14b: rate / share of slides with a table, by how many times {WORK_SECONDS:g} s the"
            f" reducer takes for a round. Slides have {SLIDE_SECONDS} s and"
            f" {SLIDE_SECONDS * plan.pick(1_000, 16):,} tuples; there are {plan.pick(5_000, 80):,} keys."
        ),
        "",
    ]
    lines += table(
        ["DSYNC", "rule", *(f"{times} times" for times in _PHASES.values())],
        (
            [
                f"{seconds} s" if seconds else "adaptive",
                _RULES[rule],
                *(_both(figures, slower_cell(plan, seconds, rule), phase) for phase in range(len(_PHASES))),
            ]
            for rule, seconds in product(LATE, INTERVALS)
        ),
        left=2,
    )
    return lines


def _both(figures: SectionFigures, setting: Cell, phase: int) -> str:
    return f"{figure(figures, setting, f'rate {phase}')} / {figure(figures, setting, f'forwarded {phase}')}"
