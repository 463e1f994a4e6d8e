"""Figures 13 and 14 of 002: throughput and latency on a cluster, played in virtual time.

The paper gives all that such a queue needs but one number: 48 sources, 80 workers, a Zipf stream of 10,000
keys and 2 million messages, and a delay of 1 ms for each message, which brings the cluster to its limit. So a
tick is 1 ms, in which each worker finishes the oldest message of its queue. A source sends its next message
as soon as one of its own is finished, and has at most `pending` unfinished ones (Storm's limit, which the
paper does not give). Sources send in turns. Sending and the network take no time. In a third setting all
sources together send at most 72 messages a tick, so that workers with even loads are busy for 90 % of the
time.

Throughput is that until the first source has sent everything. Latency is from sending to the end of
processing, of the messages behind the first quarter of that time.
"""

from __future__ import annotations

from itertools import pairwise, product
from statistics import median

import numpy as np

from evenflow.numeric.arrays import Int32s, Int64s, Whole
from evenflow.numeric.kernels import kernel
from evenflow.simulation import KeyedStream, Scenario, entrant
from papers.cells.run_plan import Cell, RunPlan
from papers.cells.store import SectionFigures
from papers.claims import Claim, Outcome
from papers.comparing import lower, no_higher
from papers.markdown import figure, number, table
from papers.paper_002.grid import CLUSTER_RULES as RULES
from papers.paper_002.grid import CLUSTER_SOURCES as SOURCES
from papers.paper_002.grid import CLUSTER_ZIPFS as ZIPFS
from papers.paper_002.grid import KEYS, ONE_VIEW, cluster_cell, one_view_cell
from papers.routing import placed

UNLIMITED = 1 << 30
PENDING = {"10 pending": (10, UNLIMITED), "100 pending": (100, UNLIMITED), "at 90 %": (100, 72)}
"""Messages that a source may have unfinished, and messages that all sources together may send in a tick."""
KG, PKG, SG, *OURS = RULES
FIGURES = ("rate", "latency", "p50", "p95", "p99")
_NEAR = 1.1
"""How far a latency may be above another and still count as very close to it."""


def played(stream: KeyedStream, setting: Cell, seed: int) -> dict[str, float]:
    """Of each of `PENDING`. rate: thousand messages a second. latency: ms, the highest mean of a worker.
    p50, p95, p99: ms, of all messages.
    """
    partitioners = 1 if setting.experiment == ONE_VIEW else SOURCES
    scenario = Scenario(workers=setting.workers, sources=partitioners, seed=seed)
    workers = placed(scenario.partitioners(entrant(setting.partitioner), stream), stream)
    values_by_name: dict[str, float] = {}
    for load, (pending, pace) in PENDING.items():
        sent, ended = ticks(
            workers, sources=SOURCES, workers_count=setting.workers, pending=pending, pace=pace
        )
        done = ended >= 0
        last = int(ended.max())
        late = done & (sent >= last // 4)
        latencies, at = (ended - sent)[late], workers[late]
        counts = np.bincount(at, minlength=setting.workers)
        means = np.bincount(at, latencies, minlength=setting.workers)[counts > 0] / counts[counts > 0]
        values = (
            float(done.sum()) / last,
            float(means.max()),
            *(float(value) for value in np.percentile(latencies, (50, 95, 99))),
        )
        values_by_name |= {f"{name} {load}": value for name, value in zip(FIGURES, values, strict=True)}
    return values_by_name


def ticks(
    workers: Int32s, *, sources: int, workers_count: int, pending: int, pace: int = UNLIMITED
) -> tuple[Int64s, Int64s]:
    """The tick at which each message was sent, and that at whose end it was finished, or -1.

    workers: the worker of each message, shape (m,). Message i is of source i mod `sources`. It ends when a
    source could send and has nothing left.
    """
    sent, ended = np.full(len(workers), -1, np.int64), np.full(len(workers), -1, np.int64)
    # The queues of the workers are lists, linked by `behind`.
    behind = np.full(len(workers), -1, np.int64)
    first, last = np.full(workers_count, -1, np.int64), np.full(workers_count, -1, np.int64)
    following, free = np.arange(sources, dtype=np.int64), np.full(sources, pending, np.int64)
    _play(workers, sent, ended, behind, first, last, following, free, pace)
    return sent, ended


@kernel
def _send(
    message: Whole, tick: Whole, workers: Int32s, sent: Int64s, behind: Int64s, first: Int64s, last: Int64s
) -> None:
    worker = workers[message]
    sent[message] = tick
    if first[worker] < 0:
        first[worker] = message
    else:
        behind[last[worker]] = message
    last[worker] = message


@kernel
def _play(
    workers: Int32s,
    sent: Int64s,
    ended: Int64s,
    behind: Int64s,
    first: Int64s,
    last: Int64s,
    following: Int64s,
    free: Int64s,
    pace: Whole,
) -> None:
    sources, messages = following.shape[0], workers.shape[0]
    tick = np.int64(0)
    while True:
        # Sources send in turns, and another one begins with each tick.
        left, sending = pace, True
        while left > 0 and sending:
            sending = False
            for turn in range(sources):
                source = (tick + turn) % sources
                if free[source] == 0 or left == 0:
                    continue
                if following[source] >= messages:
                    return
                _send(following[source], tick, workers, sent, behind, first, last)
                following[source] += sources
                free[source] -= 1
                left -= 1
                sending = True
        tick += 1
        for worker in range(first.shape[0]):
            message = first[worker]
            if message >= 0:
                ended[message] = tick
                first[worker] = behind[message]
                free[message % sources] += 1


def _values(figures: SectionFigures, plan: RunPlan, zipf: float, rule: str, name: str) -> list[float]:
    return figures.values(cluster_cell(plan, zipf, rule), name)


def _at(figures: SectionFigures, plan: RunPlan, zipf: float, name: str) -> dict[str, float]:
    return {rule: median(_values(figures, plan, zipf, rule, name)) for rule in RULES}


def _shown(figures: SectionFigures, plan: RunPlan, name: str) -> str:
    phrases = []
    for pending, zipf in product(PENDING, ZIPFS):
        at = _at(figures, plan, zipf, f"{name} {pending}")
        listed = ", ".join(f"{rule} {number(value)}" for rule, value in at.items())
        phrases.append(f"{pending}, z = {zipf:g}: {listed}")
    return "; ".join(phrases)


def _order(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks = []
    for pending, zipf in product(PENDING, ZIPFS):
        kg, pkg, sg = (_values(figures, plan, zipf, rule, f"rate {pending}") for rule in (KG, PKG, SG))
        checks += [lower(kg, pkg), lower(pkg, sg)]
    return Outcome(f"thousand messages/s: {_shown(figures, plan, 'rate')}", tuple(checks))


def _match(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks = []
    for pending, zipf, rule in product(PENDING, ZIPFS, OURS):
        ours, shuffled = (_values(figures, plan, zipf, name, f"rate {pending}") for name in (rule, SG))
        checks.append(no_higher(shuffled, ours))
    return Outcome(f"thousand messages/s: {_shown(figures, plan, 'rate')}", tuple(checks))


def _harder(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks = []
    for pending, rule in product(PENDING, (KG, PKG)):
        at = [_values(figures, plan, zipf, rule, f"rate {pending}") for zipf in ZIPFS]
        checks += [lower(more, less) for less, more in pairwise(at)]
    return Outcome(f"thousand messages/s: {_shown(figures, plan, 'rate')}", tuple(checks))


def _gains(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for pending, rule, (rival, gain) in product(PENDING, OURS, ((PKG, 1.5), (KG, 2.3))):
        each = [
            median(_values(figures, plan, zipf, rule, f"rate {pending}"))
            / median(_values(figures, plan, zipf, rival, f"rate {pending}"))
            for zipf in ZIPFS
        ]
        checks.append(max(each) >= gain)
        phrases.append(f"{pending}, {rule} / {rival} {', '.join(map(number, each))}")
    return Outcome(f"z = {', '.join(f'{z:g}' for z in ZIPFS)}: {'; '.join(phrases)}", tuple(checks))


def _half_of_hashing(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for pending in PENDING:
        at = _at(figures, plan, ZIPFS[-1], f"latency {pending}")
        checks.append(0.4 <= at[PKG] / at[KG] <= 0.6)
        phrases.append(f"{pending}: pkg {number(at[PKG])} ms, hashing {number(at[KG])} ms")
    return Outcome("; ".join(phrases), tuple(checks))


def _shuffled_is_less(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks = []
    for pending in PENDING:
        each = [_at(figures, plan, zipf, f"latency {pending}") for zipf in ZIPFS]
        checks += [at[SG] < at[PKG] for at in each]
        checks.append(max(at[PKG] / at[SG] for at in each) >= 3)
    return Outcome(f"ms: {_shown(figures, plan, 'latency')}", tuple(checks))


def _near_shuffling(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks = []
    for pending, zipf, rule in product(PENDING, ZIPFS, OURS):
        at = _at(figures, plan, zipf, f"latency {pending}")
        checks.append(at[rule] <= _NEAR * at[SG])
    return Outcome(f"ms: {_shown(figures, plan, 'latency')}", tuple(checks))


def _one_view(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for pending, zipf in product(PENDING, ZIPFS):
        name = f"latency {pending}"
        ours = figures.median(one_view_cell(plan, zipf, OURS[-1]), name)
        shuffled = figures.median(cluster_cell(plan, zipf, SG), name)
        checks.append(ours <= _NEAR * shuffled)
        phrases.append(f"{pending}, z = {zipf:g}: {number(ours)} / {number(shuffled)}")
    return Outcome(f"ms, W-Choices / shuffling: {'; '.join(phrases)}", tuple(checks))


def _spared_latency(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for pending, rule, (rival, least) in product(PENDING, OURS, ((PKG, 0.6), (KG, 0.75))):
        spared = []
        for zipf in ZIPFS:
            at = _at(figures, plan, zipf, f"p99 {pending}")
            spared.append(1 - at[rule] / at[rival])
        checks.append(max(spared) >= least)
        phrases.append(f"{pending}, {rule} against {rival} {max(spared):.0%}")
    return Outcome(f"99th percentile spared at best: {'; '.join(phrases)}", tuple(checks))


_LOADS = "10 and 100 messages pending, and at 90 %"
_SETTINGS = f"z = 1.4, 1.7 and 2.0, {_LOADS}"
CLAIMS = (
    Claim(
        "002, fig. 13, V-B Q4",
        "Hashing has the lowest throughput, two choices have more, but do not match shuffling.",
        f"{_SETTINGS}: hashing lower than two choices, two choices lower than shuffling",
        _order,
        measure="virtual time",
        reason="measure",
    ),
    Claim(
        "002, fig. 13, V-B Q4",
        "D-Choices and W-Choices match the throughput of shuffling.",
        f"{_SETTINGS}: no lower than shuffling",
        _match,
        measure="virtual time",
        reason="paper",
        because=(
            "At 90 % both do, and W-Choices always. D-Choices has up to 2.4 % less at saturation. That each"
            " of 48 sources finds its own head and its own d is not the cause: with one partitioner for all"
            " of them it has no more (see the table of one view). Which of F_1..F_d collide is: the seeds"
            " differ in nothing but the hash family, and with one view D-Choices has 70 to 80 thousand"
            " messages a second by it (z = 1.7). By the paper's own words the condition that D-Choices solves"
            " is a necessary one (IV-A), and it speaks of the workers that are expected (Eq. 10)."
        ),
    ),
    Claim(
        "002, fig. 13, V-B Q4",
        "More skew lowers the throughput of hashing and of two choices.",
        f"{_LOADS}: lower at each step from z = 1.4 to 1.7 and 2.0",
        _harder,
        measure="virtual time",
        reason="measure",
    ),
    Claim(
        "002, fig. 13, V-B Q4",
        "In the best case D-Choices and W-Choices have 1.5 times the throughput of PKG and 2.3 times that of"
        " hashing.",
        f"{_LOADS}: at the best z at least so many times",
        _gains,
        measure="virtual time",
        reason="measure",
        note=(
            "Ours is far more. Here nothing but the workers has a limit, so shuffling reaches all 80"
            " thousand messages a second. The paper's cluster saturated earlier, and it does not say by what."
        ),
    ),
    Claim(
        "002, fig. 14, V-B Q4",
        "At the highest skew two choices have about half of the latency of hashing.",
        f"z = 2.0, {_LOADS}: the highest mean of a worker 0.4 to 0.6 times (our number for"
        ' "about half") that of hashing',
        _half_of_hashing,
        measure="virtual time",
        reason="measure",
        by_construction=(
            "All that the sources may have unfinished waits at the worker of the hottest key, or at its two."
            " So the bound on unfinished messages makes one latency half of the other."
        ),
    ),
    Claim(
        "002, fig. 14, V-B Q4",
        "The latency of shuffling is always below that of two choices, up to three times.",
        f"{_SETTINGS}: a lower highest mean of a worker; at the best z two choices have at least three times"
        " as much",
        _shuffled_is_less,
        measure="virtual time",
        reason="measure",
        note=(
            "Ours is far more than three times, for the reason that stands at figure 13: here nothing but the"
            " workers has a limit."
        ),
        every=True,
    ),
    Claim(
        "002, fig. 14, V-B Q4",
        "The latencies of D-Choices and W-Choices are very close to that of shuffling.",
        f'{_SETTINGS}: the highest mean of a worker at most {_NEAR} times (our number for "very close") that'
        " of shuffling",
        _near_shuffling,
        measure="virtual time",
        reason="measure",
        because=(
            "Where the workers are saturated, the queue of one that gets a little more than its share grows"
            " until nothing more may be pending. (By its throughput the paper's cluster was saturated"
            " elsewhere.) At 90 % D-Choices still has 1.2 to 2.5 times the latency of shuffling, and"
            " W-Choices 3.4 to 4 times. The 48 sources know their own loads alone, so several choose the same"
            " worker at the same time. That is the cause for W-Choices (see the next check), and for"
            " D-Choices where its candidates do not collide. The paper measured a cluster with as many"
            " sources, and does not say what limited it."
        ),
    ),
    Claim(
        "ours, to 002 fig. 14",
        "Where all sources know the loads that all make, the latency of W-Choices is very close to that of"
        " shuffling.",
        f"{_SETTINGS}, one partitioner for all sources: the highest mean of a worker at most {_NEAR} times"
        ' (our number for "very close") that of shuffling',
        _one_view,
        measure="virtual time",
        own=True,
        every=True,
    ),
    Claim(
        "002, fig. 14, V-B Q4",
        "In the best case D-Choices and W-Choices spare 60 % of the 99th percentile of PKG and 75 % of that"
        " of hashing.",
        f"{_LOADS}: at the best z at least so much",
        _spared_latency,
        measure="virtual time",
        reason="measure",
    ),
)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """The tables of figures 13 and 14."""
    at = cluster_cell(plan, ZIPFS[0], SG)
    lines = [
        (
            f"Figures 13 and 14, in virtual time: {SOURCES} sources, {at.workers} workers, {KEYS:,} keys,"
            f" {at.stream.tuples:,} messages of 1 ms each. A source has at most 10, or 100,"
            " messages unfinished. In the third table it has 100, and all together send at most 72 a ms."
            " Rates in thousand messages a second, latencies in ms: the highest mean of a worker / 50th /"
            " 95th / 99th percentile of all messages, medians over the seeds."
        ),
        "",
    ]
    head = ["rule", *(f"{kind}, z = {zipf:g}" for kind in ("rate", "latency") for zipf in ZIPFS)]
    for pending in PENDING:
        lines += [f"Queues of a cluster, {pending}", ""]
        lines += table(
            head,
            (
                [
                    f"`{rule}`",
                    *(figure(figures, cluster_cell(plan, zipf, rule), f"rate {pending}") for zipf in ZIPFS),
                    *(_latencies(figures, cluster_cell(plan, zipf, rule), pending) for zipf in ZIPFS),
                ]
                for rule in RULES
            ),
        )
        lines.append("")
    lines += [
        (
            "The same with one view: one partitioner routes for all sources, so each knows the loads that all"
            " make. Rate / highest mean of a worker. The seeds differ in the hash family alone."
        ),
        "",
        *table(
            ["rule", "z", *PENDING],
            (
                [
                    f"`{rule}`",
                    f"{zipf:g}",
                    *(
                        " / ".join(
                            figure(figures, one_view_cell(plan, zipf, rule), f"{name} {pending}")
                            for name in ("rate", "latency")
                        )
                        for pending in PENDING
                    ),
                ]
                for rule, zipf in product(OURS, ZIPFS)
            ),
            left=2,
        ),
    ]
    return lines


def _latencies(figures: SectionFigures, setting: Cell, pending: str) -> str:
    if setting not in figures:
        return "-"
    return " / ".join(number(figures.median(setting, f"{name} {pending}")) for name in FIGURES[1:])
