"""Figure 14 of 000: how often cooperating Daltons synchronise, at fixed and adaptive intervals.

Rates are those of `several_partitioners`. Messages and their bytes are counted.
"""

from __future__ import annotations

from itertools import pairwise, product
from statistics import median

import numpy as np

from evenflow.simulation import KeyedStream, Scenario
from papers.claims import Claim, Outcome
from papers.comparing import lower, no_higher
from papers.markdown import figure, number, table
from papers.paper_000.grid import NAME
from papers.paper_000.reducer_exchange import talk
from papers.paper_000.several_partitioners import (
    COOPERATIVE,
    PAIRS,
    SPAN,
    Run,
    announced_rate,
    combiners,
    cooperating,
    counts,
    forwards,
    rate,
    run,
    slide_of,
    stream_of,
    tabled,
)
from papers.run_plan import Cell, Opened, RunPlan, Stream
from papers.store import SectionFigures, Values
from papers.unit_costs import unit_costs

DSYNCS = (0.25, 0.5, 1, 2)
"""Fixed intervals of synchronisation, in slides: 5, 10, 20 and 40 s of the paper."""
SYNCED = ("uniform+zipf", "mixture")
_PHASES = {300: 1, 600: 2, 900: 4, 1200: 1}
"""The four phases of figure 14b: the second that ends a phase -> how many times as long the reducer takes
in it.
"""
_WORK, _FIRST_DSYNC, _SLIDE, _SETTLING = 7.5, 20, 20, 5
"""In seconds: how long the reducer works on a round at first, the first interval, and the slide. Slides of a
phase that do not count, in which the interval may still change."""
ADAPTIVE = 0
INTERVALS = (ADAPTIVE, 10, 20)
"""The intervals of figure 14b in seconds, fixed but for the first."""


def dsync_cell(plan: RunPlan, kind: str, slides: float) -> Cell:
    """Figure 14a: two partitioners that synchronise every `slides` slides. 0: never."""
    experiment = f"dsync {slides:g} slides" if slides else "dsync never"
    return Cell(
        NAME,
        f"{experiment}, costs {unit_costs().mark}",
        stream_of(plan, kind),
        combiners(COOPERATIVE),
        COOPERATIVE,
    )


def slower_cell(plan: RunPlan, seconds: int) -> Cell:
    """Figure 14b: two partitioners whose reducer becomes slower, and then fast again. seconds: one of
    `INTERVALS`.
    """
    experiment = f"{f'fixed {seconds} s' if seconds else 'adaptive'} dsync, costs {unit_costs().mark}"
    stream = Stream(PAIRS[0], max(_PHASES) * plan.pick(1_000, 16), plan.pick(5_000, 80))
    return Cell(NAME, experiment, stream, combiners(COOPERATIVE), COOPERATIVE)


def cells(plan: RunPlan) -> list[Cell]:
    """The cells of both parts of the figure."""
    return [
        *(dsync_cell(plan, *at) for at in product(SYNCED, (0, *DSYNCS))),
        *(slower_cell(plan, seconds) for seconds in INTERVALS),
    ]


def measure(setting: Cell, opened: Opened, plan: RunPlan) -> Values:
    """One value per seed. The interval has one value per phase instead."""
    stream = opened.at()
    slower = {slower_cell(plan, seconds): seconds for seconds in INTERVALS}
    if setting in slower:
        return _measure_slower(slower[setting], stream, plan)
    return _measure_dsync(setting, stream, plan)


def _measure_dsync(setting: Cell, stream: KeyedStream, plan: RunPlan) -> Values:
    names = ("imbalance", "ksr", "rate", "announced", "forwarded", "messages", "bytes")
    series: Values = {name: [] for name in names}
    dsync = next(
        (slides for slides in DSYNCS if setting == dsync_cell(plan, setting.stream.kind, slides)), None
    )
    for seed in plan.seeds:
        routed = run(stream, COOPERATIVE, seed=seed, slide=slide_of(plan), partitioners=2, dsync=dsync)
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


def _measure_slower(seconds: int, stream: KeyedStream, plan: RunPlan) -> Values:
    """By phase: the rate and the share of slides with forwarding, and the interval in s at its end, of the
    first seed.
    """
    second = len(stream) // max(_PHASES)
    slide = _SLIDE * second
    bounds = [0, *(until // _SLIDE for until in _PHASES)]
    series: Values = {
        f"{name} {phase}": [] for name in ("rate", "forwarded") for phase in range(len(_PHASES))
    }
    for seed in plan.seeds:
        scenario = Scenario(
            workers=combiners(COOPERATIVE), sources=2, seed=seed, window_ms=SPAN * slide, slide_ms=slide
        )
        parts = cooperating(scenario, COOPERATIVE, stream, dsync_ms=(seconds or _FIRST_DSYNC) * second)

        def work(now: int) -> float:
            times = next(factor for until, factor in _PHASES.items() if now < until * second)
            return _WORK * second * times

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
    for kind in SYNCED:
        at = [dsync_cell(plan, kind, slides) for slides in DSYNCS]
        for short, long in pairwise(at[DSYNCS.index(0.5) :]):
            checks.append(lower(figures.values(long, "rate"), figures.values(short, "rate")))
        shown = (
            f"{slides:g} slides {number(figures.median(setting, 'rate'))}"
            for slides, setting in zip(DSYNCS, at, strict=True)
        )
        phrases.append(f"{kind}: {', '.join(shown)}")
    return Outcome(f"million tuples/s: {'; '.join(phrases)}", tuple(checks))


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


def _keeps_up(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for phase, times in enumerate(_PHASES.values()):
        at = {seconds: figures.values(slower_cell(plan, seconds), f"rate {phase}") for seconds in INTERVALS}
        checks += [no_higher(at[seconds], at[ADAPTIVE]) for seconds in INTERVALS[1:]]
        fixed = ", ".join(f"{seconds} s {number(median(at[seconds]))}" for seconds in INTERVALS[1:])
        phrases.append(f"reducer {times} times as slow: adaptive {number(median(at[ADAPTIVE]))}, {fixed}")
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
            "A cooperating Dalton that hears no table keeps rewards back for a slide, so it is less level,"
            " too. Copies of `dalton`, which learn at once, are more level and have the same rate (figure"
            " 13): both may not forward. With forwarding by announcement the order is the same (column"
            ' "announced"), so forwarding alone does not make it.'
        ),
    ),
    Claim(
        "000, fig. 14a, 5.4",
        "More frequent synchronisation, up to 10 s, improves performance.",
        "DSYNC 2, 1 and 1/2 slides (the paper's 10 s): a higher rate at each step to the shorter interval",
        _more_often,
        measure="queue replay",
        reason="measure",
        because=(
            "Tables and messages cost nothing here, and our streams do not change, so more than one table a"
            " slide brings nothing. The step from two slides to one is that of forwarding, which the replay"
            " grants in each slide with a table. Streams that change were not examined."
        ),
        note=(
            "What the 14 KB of a round cost is not in the rate, so it cannot be seen here that a still"
            " shorter interval costs throughput."
        ),
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
        f"in s, at the end of each phase of 300 s, with a slide of {_SLIDE} s; the reducer takes {_WORK:g} s"
        " a round at first (the paper gives no figure; it settles at 10 from 5 to 10)",
        _adapts,
        measure="virtual time",
    ),
    Claim(
        "000, fig. 14b, 5.4",
        "With the adaptive interval a slow reducer does not stall execution.",
        f"in each of the four phases, from its slide {_SETTLING + 1} on: a rate no lower than with a fixed"
        " interval of 10 s, and of 20 s",
        _keeps_up,
        measure="queue replay",
        reason="measure",
        because=(
            "In AWAIT rewards are kept back (Algorithm 2), so a hot key stays at one worker until a table"
            " comes. While the reducer takes 15 s, tables come every 20 s with either interval. With a fixed"
            " one of 10 s ours learns what it kept back at the end of each interval, so twice as often. The"
            " paper does not say what its fixed interval does while a table is late. Other rules were not"
            " examined. At 30 s all three have a table in about half of the slides."
        ),
    ),
)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """The tables of both parts of figure 14."""
    lines = [
        (
            "Figure 14a: two cooperating Daltons, by the interval of synchronisation (DSYNC). Streams,"
            ' windows and rates are those of "Figure 13". "Forwarded" is the share of slides with a table.'
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
            for kind, slides in product(SYNCED, (0, *DSYNCS))
        ),
        left=2,
    )
    lines += [
        "",
        (
            f"Figure 14b: rate / share of slides with a table, by how many times {_WORK:g} s the reducer"
            f" takes for a round. Slides have {_SLIDE} s and {_SLIDE * plan.pick(1_000, 16):,} tuples; there"
            f" are {plan.pick(5_000, 80):,} keys."
        ),
        "",
    ]
    lines += table(
        ["DSYNC", *(f"{times} times" for times in _PHASES.values())],
        (
            [
                f"{seconds} s" if seconds else "adaptive",
                *(_both(figures, slower_cell(plan, seconds), phase) for phase in range(len(_PHASES))),
            ]
            for seconds in INTERVALS
        ),
    )
    return [*lines, ""]


def _both(figures: SectionFigures, setting: Cell, phase: int) -> str:
    return f"{figure(figures, setting, f'rate {phase}')} / {figure(figures, setting, f'forwarded {phase}')}"
