"""002's figure 12, and the cashtags of its figure 11: imbalance over time where the hot keys change.

The tweets are not public any more. Two streams are drawn instead, with the numbers of tuples and keys and the
p1 of the paper's table I (`cashtags_sudden` and `cashtags_daily` in `drawn`).
"""

from __future__ import annotations

from itertools import product
from statistics import median

from papers.cells.run_plan import Cell, RunPlan
from papers.cells.store import SectionFigures
from papers.claims import Claim, Outcome
from papers.comparing import lower
from papers.drawn_streams import CASHTAG_P1, DAILY, SUDDEN
from papers.markdown import figure, number, table
from papers.paper_002.grid import (
    DRIFT_KEYS,
    DRIFT_TUPLES,
    DRIFTS,
    EPS,
    QUICK_TUPLES,
    RULES,
    SOURCES,
    WORKERS,
    drift_cell,
    words_cell,
)

LARGE = (20, 50, 100)
"""The paper's larger scales."""


def _drift(
    figures: SectionFigures, plan: RunPlan, at: tuple[str, int, str], name: str = "imbalance"
) -> list[float]:
    return figures.values(drift_cell(plan, *at), name)


def _on_drift(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for drift, n in product(DRIFTS, LARGE):
        at = {rule: _drift(figures, plan, (drift, n, rule)) for rule in RULES[:3]}
        checks += [lower(at["d-choices"], at["pkg"]), lower(at["w-choices"], at["d-choices"])]
        phrases.append(_medians(drift, n, at))
    return Outcome("; ".join(phrases), tuple(checks))


def _few_workers(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for drift, n in product(DRIFTS, (n for n in WORKERS if n not in LARGE)):
        at = {rule: _drift(figures, plan, (drift, n, rule)) for rule in RULES[:3]}
        medians = [median(values) for values in at.values()]
        checks.append(max(medians) - min(medians) <= SOURCES * EPS)
        phrases.append(_medians(drift, n, at))
    return Outcome("; ".join(phrases), tuple(checks))


def _medians(drift: str, n: int, at: dict[str, list[float]]) -> str:
    shown = ", ".join(f"{rule} {number(median(values))}" for rule, values in at.items())
    return f"{drift}, n = {n}: {shown}"


def _stable(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for at in product(DRIFTS, WORKERS, RULES[:3]):
        curve = _drift(figures, plan, at, "curve")
        # The first tenth is left out: I(t) of a few tuples is mostly chance.
        rest = curve[len(curve) // 10 :]
        checks.append(max(rest) <= max(2 * median(rest), SOURCES * EPS))
        if at[1] == WORKERS[-1]:
            phrases.append(f"{at[0]}, {at[2]} {number(min(rest))} to {number(max(rest))}")
    return Outcome(f"n = {WORKERS[-1]}: {'; '.join(phrases)}", tuple(checks))


def _harder(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for drift, rule in product(DRIFTS, RULES[:3]):
        ours = _drift(figures, plan, (drift, 100, rule))
        words = figures.values(words_cell(plan, 100, rule), "imbalance")
        checks.append(lower(words, ours))
        phrases.append(f"{drift}, {rule} {number(median(ours))} against {number(median(words))}")
    return Outcome(f"n = 100: {'; '.join(phrases)}", tuple(checks))


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """The table of figure 12."""
    shares = (4, 8, 12, 16, 20)
    p1 = (f"{drift} {figure(figures, drift_cell(plan, drift, WORKERS[0], 'pkg'), 'p1')}" for drift in DRIFTS)
    lines = [
        "",
        (
            f"Figure 12: I(t) on drawn cashtags, {plan.pick(DRIFT_TUPLES, QUICK_TUPLES):,} tuples of"
            f" {DRIFT_KEYS:,} keys. p1: {', '.join(p1)} (the paper: {CASHTAG_P1}). `{SUDDEN}` has ten periods"
            f" with nothing in common. `{DAILY}` has thirty days, and on each day a tenth of the keys trade"
            " ranks. Figures are medians over the seeds."
        ),
        "",
    ]
    return lines + table(
        ["stream", "n", "rule", *(f"{5 * share} %" for share in shares)],
        (
            [drift, f"{n}", rule, *_points(figures, drift_cell(plan, drift, n, rule), shares)]
            for drift, n, rule in product(DRIFTS, WORKERS, RULES[:3])
        ),
        left=3,
    )


def _points(figures: SectionFigures, cell: Cell, twentieths: tuple[int, ...]) -> list[str]:
    if cell not in figures:
        return ["-"] * len(twentieths)
    curve = figures.values(cell, "curve")
    return [number(curve[at * len(curve) // 20 - 1]) for at in twentieths]


CLAIMS = (
    Claim(
        "002, fig. 11 and 12",
        "On the cashtags, whose hot keys change, D-C is better than PKG at larger scale, and W-C better"
        " still.",
        "both drawn streams, I(m) at n = 20, 50 and 100: D-C's lower than PKG's, W-C's lower than D-C's",
        _on_drift,
        measure="counted tuples",
        reason="data",
        because=(
            "The paper gives tuples, keys and p1. It does not say how the keys change. On the daily stream"
            " PKG is level with 20 workers, too."
        ),
    ),
    Claim(
        "002, fig. 11 and 12",
        "With few workers all three do equally well on the cashtags.",
        f"both drawn streams, n = 5 and 10: the medians of I(m) are at most s eps = {SOURCES * EPS:g} apart",
        _few_workers,
        measure="counted tuples",
        reason="data",
        because="If one key has a quarter of a period's tuples, ten workers are already many.",
    ),
    Claim(
        "002, fig. 12",
        "Imbalance stays relatively stable over time, also where the hot keys change.",
        "both drawn streams, every n, PKG, D-C and W-C: from a tenth of the stream on, the median I(t) is at"
        f" most twice its own median over time, or at most s eps = {SOURCES * EPS:g}",
        _stable,
        measure="counted tuples",
        reason="data",
        because=(
            "I(t) is over the stream so far. Each period that begins moves I(t), and later periods move it"
            " less. How many periods there are is our choice."
        ),
    ),
    Claim(
        "002, fig. 11 and 12",
        "The cashtags are harder to balance than the other streams, for all three.",
        "I(m) at n = 100: higher on both drawn streams than on the Gutenberg words",
        _harder,
        measure="counted tuples",
        reason="data",
        because=(
            "I(m) is over the whole stream, so keys that are hot one after the other even each other out."
        ),
        absent="The texts are not in the data folder.",
    ),
)
