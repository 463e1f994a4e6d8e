"""Figure 14 of 000: how often cooperating Daltons synchronise, at fixed and adaptive intervals.

Messages and their bytes are counted.
"""

from __future__ import annotations

from itertools import pairwise, product
from statistics import median

from benchmarks.reproducing.claims import Claim, Outcome
from benchmarks.reproducing.comparing import lower
from benchmarks.reproducing.markdown import figure, number, table
from benchmarks.reproducing.paper_000.grid import NAME, SLIDES, WORKERS
from benchmarks.reproducing.paper_000.sources import (
    COOPERATIVE,
    FIGURES,
    PAIRS,
    TOGETHER,
    keep,
    scenario_of,
    stream_of,
)
from benchmarks.reproducing.paper_000.talking import talk
from benchmarks.reproducing.plan import Cell, Opened, Plan, Stream
from benchmarks.reproducing.store import Found, Values
from evenflow.partitioners.dalton.cooperative import DaltonCooperative
from evenflow.simulation import Entrant, KeyedStream, Scenario, entrant
from evenflow.simulation.routing import route

DSYNCS = (0.5, 1, 4, 16)
"""Fixed intervals of synchronisation, in slides."""
SYNCED = ("uniform+zipf", "mixture")
_PHASES = {300: 1, 600: 2, 900: 4, 1200: 1}
"""The four phases of figure 14b: the second that ends a phase -> how many times as long the reducer takes in it."""
_WORK, _FIRST_DSYNC, _SLIDE = 7.5, 20, 20
"""In seconds: how long the reducer works on a round at first, the first interval, and the slide."""


def dsync_cell(plan: Plan, kind: str, slides: float) -> Cell:
    """Figure 14a: two partitioners that synchronise every `slides` slides. 0: never."""
    what = f"dsync {slides:g} slides" if slides else "dsync never"
    return Cell(NAME, what, stream_of(plan, kind), WORKERS, COOPERATIVE)


def adaptive_cell(plan: Plan) -> Cell:
    """Figure 14b: two partitioners whose reducer becomes slower, and then fast again."""
    tuples = max(_PHASES) * plan.pick(504, 16)
    return Cell(
        NAME, "adaptive dsync", Stream(PAIRS[0], tuples, plan.pick(50_000, 500)), WORKERS, COOPERATIVE
    )


def cells(plan: Plan) -> list[Cell]:
    """The cells of both parts of the figure."""
    return [*(dsync_cell(plan, *at) for at in product(SYNCED, (0, *DSYNCS))), adaptive_cell(plan)]


def measure(one: Cell, opened: Opened, plan: Plan) -> Values:
    """One value per seed. The adaptive interval has one value per phase instead."""
    stream = opened.at()
    if one.what == "adaptive dsync":
        return _measure_adaptive(stream, plan)
    return _measure_dsync(one, stream, plan)


def _measure_dsync(one: Cell, stream: KeyedStream, plan: Plan) -> Values:
    found: Values = {name: [] for name in (*FIGURES, "messages", "bytes")}
    apart = one.what == "dsync never"
    for seed in plan.seeds:
        scenario = scenario_of(stream, seed, sources=2, exchange=False)
        if apart:
            workers = route(stream, entrant(one.partitioner), scenario).workers
            messages, told = 0, 0
        else:
            dsync = int(float(one.what.split()[1]) * scenario.slide_ms)
            who = entrant(f"{one.partitioner}:dsync_ms={dsync}")
            talked = talk(_cooperating(scenario, who, stream), stream, slide_ms=scenario.slide_ms)
            workers, messages, told = talked.workers, talked.messages, talked.told_bytes
        keep(found, stream, workers, scenario)
        found["messages"].append(float(messages))
        found["bytes"].append(float(told))
    return found


def _cooperating(scenario: Scenario, who: Entrant, stream: KeyedStream) -> list[DaltonCooperative]:
    return [one for one in scenario.partitioners(who, stream) if isinstance(one, DaltonCooperative)]


def _measure_adaptive(stream: KeyedStream, plan: Plan) -> Values:
    """The interval in s at the end of each phase, and all messages and bytes. One seed is enough: none changes it."""
    second = len(stream) // max(_PHASES)
    slide = _SLIDE * second
    scenario = Scenario(workers=WORKERS, sources=2, seed=1, window_ms=SLIDES * slide, slide_ms=slide)
    who = entrant(f"{COOPERATIVE}:dsync_ms={_FIRST_DSYNC * second}")

    def work(now: int) -> float:
        times = next(factor for until, factor in _PHASES.items() if now < until * second)
        return _WORK * second * times

    talked = talk(_cooperating(scenario, who, stream), stream, slide_ms=slide, work_ms=work, adaptive=True)
    # The interval was noted after each piece of the stream.
    pieces = len(talked.dsync_ms)
    return {
        "dsync": [talked.dsync_ms[pieces * until // max(_PHASES) - 1] / second for until in _PHASES],
        "messages": [float(talked.messages)],
        "bytes": [float(talked.told_bytes)],
    }


def _never(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for kind in SYNCED:
        at = {slides: found.values(dsync_cell(plan, kind, slides), "imbalance") for slides in (0, *DSYNCS)}
        held += [lower(at[slides], at[0]) for slides in DSYNCS]
        shown = ", ".join(f"{slides:g} slides {number(median(at[slides]))}" for slides in DSYNCS)
        said.append(f"{kind}: never {number(median(at[0]))}, {shown}")
    return Outcome("; ".join(said), tuple(held))


def _more_often(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for kind in SYNCED:
        at = [dsync_cell(plan, kind, slides) for slides in DSYNCS]
        held += [
            lower(found.values(short, "imbalance"), found.values(long, "imbalance"))
            for short, long in pairwise(at)
        ]
        held += [
            found.median(long, "messages") < found.median(short, "messages") for short, long in pairwise(at)
        ]
        shown = (
            f"{slides:g} slides {number(found.median(cell, 'imbalance'))} with {found.median(cell, 'messages'):g} messages"
            for slides, cell in zip(DSYNCS, at, strict=True)
        )
        said.append(f"{kind}: {', '.join(shown)}")
    return Outcome("; ".join(said), tuple(held))


def _adapts(found: Found, plan: Plan) -> Outcome:
    ours = found.values(adaptive_cell(plan), "dsync")
    said = " -> ".join(f"{slides:g}" for slides in (_FIRST_DSYNC, *ours))
    return Outcome(f"{said} s", tuple(a == b for a, b in zip(ours, (10, 20, 40, 10), strict=True)))


CLAIMS = (
    Claim(
        "000, fig. 14a, 5.4",
        "Partitioners that never synchronise do worse.",
        "two sources with other laws and two with the same mixture: mean window imbalance at a DSYNC of 1/2, 1, 4 and 16 "
        "slides lower than without any table",
        _never,
        reason="paper",
        because=TOGETHER,
    ),
    Claim(
        "000, fig. 14a, 5.4",
        "More frequent synchronisation improves the policy and costs more messages.",
        "1/2, 1, 4 and 16 slides: at each step to the shorter interval mean window imbalance is lower, and more "
        "messages are sent",
        _more_often,
        reason="ours",
        because="The interval is the statistics window as well, so a shorter interval counts fewer tuples of each key.",
        note="At which interval the messages begin to cost throughput can only be seen on a cluster.",
    ),
    Claim(
        "000, fig. 14b, 5.4",
        "DSYNC adapts: from 20 to 10, to 20 when the reducer takes twice as long, to 40 at four times, and back to 10.",
        f"in s, at the end of each phase of 300 s, with a slide of {_SLIDE} s; the reducer takes {_WORK:g} s a round at "
        "first (the paper gives no figure; it settles at 10 from 5 to 10)",
        _adapts,
    ),
)


def text(found: Found, plan: Plan) -> list[str]:
    """The table of figure 14a."""
    lines = ["Figure 14a: two cooperating Daltons, by the interval of synchronisation (DSYNC).", ""]
    lines += table(
        ["stream", "DSYNC", "imbalance", "KSR", "messages", "bytes"],
        (
            [
                kind,
                f"{slides:g} slides" if slides else "never",
                *(
                    figure(found, dsync_cell(plan, kind, slides), name)
                    for name in ("imbalance", "ksr", "messages", "bytes")
                ),
            ]
            for kind, slides in product(SYNCED, (0, *DSYNCS))
        ),
        left=2,
    )
    return [*lines, ""]
