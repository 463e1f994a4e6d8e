"""Set-up, tables and charts of the section on 002."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from evenflow.charts.lines import Line
from evenflow.charts.page import page
from papers.cells.run_plan import RunPlan
from papers.cells.store import SectionFigures
from papers.markdown import figure, ratio, table
from papers.paper_002 import cluster, over_time
from papers.paper_002.claims import copies_ratio
from papers.paper_002.formulas import Formula, formula, formulas
from papers.paper_002.grid import (
    EPS,
    FORMULA_WORKERS,
    FORMULA_ZIPFS,
    KEYS,
    LEAST_D_WORKERS,
    LEAST_D_ZIPFS,
    MORE_KEYS,
    MORE_ZIPFS,
    PAPER_TUPLES,
    QUICK_TUPLES,
    RULES,
    SHOWN_THETA_ZIPFS,
    SOURCES,
    TABLE_ZIPFS,
    THETA_WORKERS,
    THETAS,
    TUPLES,
    WORDS_WORKERS,
    WORKERS,
    ZIPFS,
    balance_cell,
    least_d_cell,
    long_cell,
    parts_cell,
    theta_cell,
    words_cell,
)
from papers.pictures import charts

if TYPE_CHECKING:
    import altair

TITLE = "002: D-Choices and W-Choices"


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and tables."""
    return [
        *_set_up(plan),
        *_by_formula(plan),
        *_balance(figures, plan),
        *_thresholds(figures, plan),
        *_parts(figures, plan),
        *_least_d(figures, plan),
        *_more_streams(figures, plan),
        *over_time.text(figures, plan),
        *cluster.text(figures, plan),
    ]


def _sizes(plan: RunPlan) -> tuple[int, int]:
    """(tuples of a stream, tuples of a long stream)."""
    return plan.pick(TUPLES, QUICK_TUPLES), plan.pick(PAPER_TUPLES, 2 * QUICK_TUPLES)


def _set_up(plan: RunPlan) -> list[str]:
    m, long = _sizes(plan)
    return [
        (
            f"{SOURCES} sources share each stream, theta = 1/5n and eps = {EPS:g}. Unless said otherwise,"
            f" streams have {KEYS:,} keys and {m:,} tuples. The paper's have 1e7 tuples. The table with more"
            f" keys repeats n = 100 with {long:,} tuples. The formulas (fig. 3-6) are exact: they use Zipf"
            " probabilities and 1e7 tuples."
        ),
        "",
    ]


def _by_formula(plan: RunPlan) -> list[str]:
    """Figures 3 to 6."""
    figures = ("head 1/5n", "head 2/n", "d", "D-C / PKG", "W-C / PKG", "D-C / SG", "W-C / SG")
    zipfs = FORMULA_ZIPFS[3::4] if plan.quick else FORMULA_ZIPFS[1::2]
    return [
        "Figures 3-6, by formula: keys in the head, d, and memory relative to PKG's and to shuffling's (SG).",
        "",
        *table(
            ["z", *(f"{name}, n = {n}" for n in FORMULA_WORKERS for name in figures)],
            (
                [f"{zipf}", *(cell for n in FORMULA_WORKERS for cell in _cells(formula(zipf, n)))]
                for zipf in zipfs
            ),
        ),
        "",
        "By formula, D-Choices and W-Choices cost at most 30 % more memory than PKG:",
        "",
        "![formulas of figures 3 to 6](reproducing/formulas.svg)",
        "",
    ]


def _cells(item: Formula) -> list[str]:
    ratios = [
        memory[rule] for memory in (item.over_pkg, item.over_shuffle) for rule in ("d-choices", "w-choices")
    ]
    return [str(item.head), str(item.short_head), str(item.d), *(f"{value:.3f}" for value in ratios)]


def _balance(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Figure 10."""
    return [
        "Figure 10: I(m), and copies of keys relative to PKG's.",
        "",
        *table(
            ["z", "n", *RULES, "copies D-C / PKG", "copies W-C / PKG"],
            (
                [
                    f"{z}",
                    f"{n}",
                    *(figure(figures, balance_cell(plan, z, n, rule), "imbalance") for rule in RULES),
                    *(_maybe_ratio(figures, plan, z, n, rule) for rule in ("d-choices", "w-choices")),
                ]
                for z, n in product(TABLE_ZIPFS, WORKERS)
            ),
        ),
        "",
        (
            "Where PKG's range reaches far up, one seed's F_1 and F_2 give the hottest key the same worker."
            " That happens with probability 1/n."
        ),
        "",
        "The more skew, the worse is PKG; W-Choices stays level:",
        "",
        "![imbalance against skew](reproducing/balance.svg)",
        "",
    ]


def _thresholds(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Figure 7."""
    return [
        "Figure 7: I(m) for thresholds 2/n .. 1/8n.",
        "",
        *table(
            ["z", "n", "rule", *(f"theta = {factor:g}/n" for factor in THETAS)],
            (
                [f"{z}", f"{n}", rule]
                + [figure(figures, theta_cell(plan, z, n, rule, factor), "imbalance") for factor in THETAS]
                for z, n, rule in product(SHOWN_THETA_ZIPFS, THETA_WORKERS, ("w-choices", "rr-head"))
            ),
            left=3,
        ),
        "",
    ]


def _parts(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Figure 8."""
    shares = ("head", "tail", "fullest", "emptiest")
    return [
        (
            'Figure 8: shares of the stream, n = 5, z = 2.0. "head" and "tail" make up the share of the'
            " fullest worker."
        ),
        "",
        *table(
            ["rule", *shares],
            (
                [rule, *(figure(figures, parts_cell(plan, rule), name) for name in shares)]
                for rule in ("pkg", "w-choices", "rr-head")
            ),
        ),
        "",
    ]


def _least_d(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Figure 9."""
    return [
        "Figure 9: d of D-Choices, and the least d that is as balanced as W-Choices.",
        "",
        *table(
            ["z", "n", "d", "least d within s eps", "least d within eps", "I(m) of D-Choices"],
            (
                [
                    f"{z}",
                    f"{n}",
                    *(
                        figure(figures, least_d_cell(plan, z, n), name)
                        for name in ("d", "matching", "least", "imbalance")
                    ),
                ]
                for z, n in product(LEAST_D_ZIPFS, LEAST_D_WORKERS)
            ),
        ),
        "",
    ]


def _more_streams(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Figures 10 and 11, on further streams."""
    _, long = _sizes(plan)
    more_keys = (
        [
            f"Zipf {z}, {keys:,} keys",
            f"{n}",
            *(figure(figures, balance_cell(plan, z, n, rule, keys), "imbalance") for rule in RULES),
        ]
        for keys, z, n in product(MORE_KEYS, MORE_ZIPFS, FORMULA_WORKERS)
    )
    # The last rule was not measured on words.
    words = (
        [
            "words",
            f"{n}",
            *(figure(figures, words_cell(plan, n, rule), "imbalance") for rule in RULES[:3]),
            "",
        ]
        for n in WORDS_WORKERS
    )
    as_long = (
        [
            f"Zipf {z}, {long:,} tuples",
            "100",
            *(figure(figures, long_cell(plan, z, rule), "imbalance") for rule in RULES),
        ]
        for z in MORE_ZIPFS
    )
    return [
        "Figure 10 with more keys, figure 11 on words, and the paper's number of tuples: I(m).",
        "",
        *table(["stream", "n", *RULES], [*more_keys, *words, *as_long]),
    ]


def _maybe_ratio(figures: SectionFigures, plan: RunPlan, zipf: float, n: int, rule: str) -> str:
    both = (balance_cell(plan, zipf, n, rule) in figures, balance_cell(plan, zipf, n, "pkg") in figures)
    return ratio(copies_ratio(figures, plan, zipf, n, rule)) if all(both) else "-"


def pictures(figures: SectionFigures, plan: RunPlan) -> dict[str, altair.TopLevelMixin]:
    """Charts by file name."""
    charts_by_file = {"formulas": _formula_chart()}
    if all(balance_cell(plan, *at) in figures for at in product(ZIPFS, WORKERS, RULES)):
        charts_by_file["balance"] = _balance_chart(figures, plan)
    return charts_by_file


def _balance_chart(figures: SectionFigures, plan: RunPlan) -> altair.TopLevelMixin:
    drawn = {
        n: {
            rule: charts.ranges(
                ZIPFS, [figures.values(balance_cell(plan, z, n, rule), "imbalance") for z in ZIPFS]
            )
            for rule in RULES
        }
        for n in WORKERS
    }
    y = charts.imbalances("I(m)", {f"{rule} {n}": line for n in drawn for rule, line in drawn[n].items()})
    panels = [
        charts.curves(lines, charts.Emphasis("w-choices"), x_title="exponent z", y=y, title=f"n = {n}")
        for n, lines in drawn.items()
    ]
    subtitle = ["Lines are medians, bars go from the least to the most of the seeds."]
    return page(panels, title="Imbalance, by skew", subtitle=subtitle, columns=3)


def _formula_chart() -> altair.TopLevelMixin:
    panels = []
    for title, pick in (
        ("keys in the head", lambda item: {"theta = 1/5n": item.head, "theta = 2/n": item.short_head}),
        ("d / n", lambda item: {"d-choices": item.d / item.workers}),
        ("memory / PKG's", lambda item: item.over_pkg),
        ("memory / shuffling's", lambda item: item.over_shuffle),
    ):
        drawn = {
            f"{curve}, n = {n}": Line(
                [item.zipf for item in formulas(n)], [pick(item)[curve] for item in formulas(n)]
            )
            for n in FORMULA_WORKERS
            for curve in pick(formulas(n)[0])
        }
        y = charts.heights(drawn)
        panels.append(charts.curves(drawn, charts.Emphasis(""), x_title="exponent z", y=y, title=title))
    return page(panels, title="Head, choices and memory by the formulas")
