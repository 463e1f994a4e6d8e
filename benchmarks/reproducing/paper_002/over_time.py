"""002's figure 12, and the cashtags of its figure 11: imbalance over time where the hot keys change.

The tweets are not public any more. The stream is drawn with the tuples, keys and p1 of its table I (`drawn.cashtags`).
"""

from __future__ import annotations

from itertools import product
from statistics import median

from benchmarks.reproducing.claims import Claim, Outcome
from benchmarks.reproducing.comparing import lower
from benchmarks.reproducing.drawn import CASHTAG_PERIODS
from benchmarks.reproducing.markdown import figure, number, table
from benchmarks.reproducing.paper_002.grid import (
    DRIFT_TUPLES,
    EPS,
    QUICK_TUPLES,
    RULES,
    SOURCES,
    WORKERS,
    drift_cell,
    words_cell,
)
from benchmarks.reproducing.plan import Cell, Plan
from benchmarks.reproducing.store import Found

LARGE = (20, 50, 100)
"""The paper's larger scales."""


def _drift(found: Found, plan: Plan, n: int, rule: str, name: str = "imbalance") -> list[float]:
    return found.values(drift_cell(plan, n, rule), name)


def _on_drift(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for n in LARGE:
        at = {rule: _drift(found, plan, n, rule) for rule in RULES[:3]}
        held += [lower(at["d-choices"], at["pkg"]), lower(at["w-choices"], at["d-choices"])]
        said.append(f"n = {n}: " + ", ".join(f"{rule} {number(median(v))}" for rule, v in at.items()))
    return Outcome("; ".join(said), tuple(held))


def _few_workers(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for n in (n for n in WORKERS if n not in LARGE):
        at = {rule: median(_drift(found, plan, n, rule)) for rule in RULES[:3]}
        held.append(max(at.values()) <= SOURCES * EPS)
        said.append(f"n = {n}: " + ", ".join(f"{rule} {number(value)}" for rule, value in at.items()))
    return Outcome("; ".join(said), tuple(held))


def _stable(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for n, rule in product(WORKERS, RULES[:3]):
        curve = _drift(found, plan, n, rule, "curve")
        rest = curve[len(curve) // 10 :]
        held.append(max(rest) <= max(2 * median(rest), SOURCES * EPS))
        if n == WORKERS[-1]:
            said.append(f"{rule} {number(min(rest))} to {number(max(rest))}")
    return Outcome(f"n = {WORKERS[-1]}: {', '.join(said)}", tuple(held))


def _harder(found: Found, plan: Plan) -> Outcome:
    held, said = [], []
    for rule in RULES[:3]:
        ours, words = _drift(found, plan, 100, rule), found.values(words_cell(plan, 100, rule), "imbalance")
        held.append(lower(words, ours))
        said.append(f"{rule} {number(median(ours))} against {number(median(words))}")
    return Outcome(f"n = 100: {'; '.join(said)}", tuple(held))


def text(found: Found, plan: Plan) -> list[str]:
    """The table of figure 12."""
    first = drift_cell(plan, WORKERS[0], RULES[0])
    lines = [
        "",
        f"Figure 12: I(t) on drawn cashtags, {plan.pick(DRIFT_TUPLES, QUICK_TUPLES):,} tuples of "
        f"{figure(found, first, 'keys')} keys, p1 = {figure(found, first, 'p1')} (the paper: 0.0329). Each of "
        f"{CASHTAG_PERIODS} periods is Zipf over keys that are dealt anew. Medians over the seeds.",
        "",
    ]
    shares = (4, 8, 12, 16, 20)
    return lines + table(
        ["rule", "n", *(f"{5 * share} %" for share in shares)],
        (
            [rule, f"{n}", *_points(found, drift_cell(plan, n, rule), shares)]
            for n, rule in product(WORKERS, RULES[:3])
        ),
    )


def _points(found: Found, cell: Cell, twentieths: tuple[int, ...]) -> list[str]:
    if cell not in found:
        return ["-"] * len(twentieths)
    curve = found.values(cell, "curve")
    return [number(curve[at * len(curve) // 20 - 1]) for at in twentieths]


CLAIMS = (
    Claim(
        "002, fig. 11 and 12",
        "On the cashtags, whose hot keys change, D-C is better than PKG at larger scale, and W-C better still.",
        "drawn cashtags, I(m) at n = 20, 50 and 100: D-C's lower than PKG's, W-C's lower than D-C's",
        _on_drift,
        reason="data",
        because="The cashtags are drawn: the paper gives tuples, keys and p1, not how the keys change.",
    ),
    Claim(
        "002, fig. 11 and 12",
        "With few workers all three do equally well on the cashtags.",
        f"drawn cashtags, n = 5 and 10: median I(m) of each at most s eps = {SOURCES * EPS:g}",
        _few_workers,
        reason="data",
        because="Each of the ten periods that were drawn has one key with a fifth of its tuples and more.",
    ),
    Claim(
        "002, fig. 12",
        "Imbalance stays relatively stable over time, also where the hot keys change.",
        f"drawn cashtags, every n, PKG, D-C and W-C: from a tenth of the stream on, the median I(t) is at most twice "
        f"its own median over time, or at most s eps = {SOURCES * EPS:g}",
        _stable,
        reason="data",
        because="The drawn periods are long: ten of 69,000 tuples.",
    ),
    Claim(
        "002, fig. 11 and 12",
        "The cashtags are harder to balance than the other streams, for all three.",
        "I(m) at n = 100: higher on the drawn cashtags than on the Gutenberg words",
        _harder,
        reason="data",
        because="I(m) is over the whole stream, so keys that are hot one after the other even out.",
        absent="The texts are not in the data folder.",
    ),
)
