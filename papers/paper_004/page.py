"""Set-up, tables and chart of the section on 004."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from evenflow.charts.axes import decades
from evenflow.charts.page import page
from papers.cells.run_plan import Cell, RunPlan
from papers.cells.store import SectionFigures
from papers.markdown import figure, number, ratio, table
from papers.paper_004.claims import ENOUGH
from papers.paper_004.grid import (
    DATA,
    MEMORY_KEYS,
    MEMORY_RULES,
    MEMORY_WORKERS,
    SYMBOLS,
    WORKERS,
    data_cell,
    memory_cell,
    stream_title,
)
from papers.pictures import charts

if TYPE_CHECKING:
    import altair

TITLE = "004: partitioners that know cardinalities"
PICTURE = "cAM splits no key and is more even than hashing; PK pays for more balance with copies"
EMPHASIS = charts.Emphasis("cAM-5", ("FLD-1", "SH-w", "PK-2", "PK-5", "CM-2", "LM-2"))
PAPER_MEMORY = {
    "cm": (243, 243, 243),
    "am": (122, 122, 122),
    "lm": (243, 243, 243),
    "cm:cardinality=hll": (0.02, 0.04, 0.08),
    "am:cardinality=hll": (0.02, 0.04, 0.08),
    "lm:cardinality=hll": (0.02, 0.04, 0.08),
}
"""The paper's table 4: MB for 8, 16 and 32 workers."""


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and tables."""
    return [
        *_set_up(),
        *_streams(figures, plan),
        *_figures(figures, plan),
        *_spread(figures, plan),
        "",
        f"{PICTURE}:",
        "",
        "![tuple imbalance against aggregation cost](reproducing/cardinality.svg)",
        "",
        *_memory(figures, plan),
    ]


def _set_up() -> list[str]:
    return [
        (
            "Windows tumble, and every rule forgets at the end of a window. Figures are means over complete"
            " windows. Keys and tuples are those of a window. The windows of the DEBS files are five minutes"
            " long, since these files hold 36 minutes. A dash stands for data that is not in the data folder."
            " The flights and the drawn streams are always there."
        ),
        "",
        (
            f"A stream is judged where a worker gets at least {ENOUGH} tuples of a window on average. With"
            " fewer tuples, chance decides more than the rule does. The tables show these streams, too."
        ),
        "",
    ]


def _streams(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """The table of the streams."""
    sizes = ("tuples", "keys", "windows")
    return table(
        ["data", *sizes],
        (
            # Every rule counted the same tuples of a stream, so one rule's cell tells them.
            [
                f"{data} ({stream_title(data)})",
                *(figure(figures, data_cell(plan, data, 8, "hashing"), name) for name in sizes),
            ]
            for data in DATA
        ),
    )


def _figures(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """A table for each figure: every rule on every stream."""
    columns = list(product(_datasets(figures, plan), WORKERS))
    lines = []
    for name, title, how in (
        ("imbalance", "Tuple imbalance, (max - mean) / tuples of the window", number),
        ("ksr", "Gamma / distinct keys", ratio),
        ("cardinality", "Cardinality imbalance, max / mean - 1", number),
    ):
        lines += ["", f"{title}:", ""]
        lines += table(
            ["rule", *(f"{data}, n = {n}" for data, n in columns)],
            (
                [f"{symbol} (`{rule}`)"]
                + [_middle(figures, data_cell(plan, data, n, rule), name, how) for data, n in columns]
                for rule, symbol in SYMBOLS.items()
            ),
        )
    return lines


def _spread(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """The tuple imbalance with its range over the seeds."""
    datasets = _datasets(figures, plan)
    rows = (
        [symbol, *(figure(figures, data_cell(plan, data, 32, rule), "imbalance") for data in datasets)]
        for rule, symbol in SYMBOLS.items()
    )
    return ["", "Spread over the seeds, n = 32 (tuple imbalance):", "", *table(["rule", *datasets], rows)]


def _memory(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Table 4."""
    keys = plan.pick(MEMORY_KEYS, 20_000)
    return [
        f"Table 4: MB of state after {keys:,} keys, beside the paper's MB (8.1 million keys).",
        "",
        *table(
            ["rule", *(f"n = {n}" for n in MEMORY_WORKERS), "paper"],
            (
                [
                    SYMBOLS[rule],
                    *(figure(figures, memory_cell(plan, rule, n), "megabytes") for n in MEMORY_WORKERS),
                    " / ".join(f"{value:g}" for value in PAPER_MEMORY[rule]),
                ]
                for rule in MEMORY_RULES
            ),
        ),
        "",
        (
            "Our sketch takes a byte per register where the paper's packs five bits. Our exact sets also know"
            " when each (key, worker) pair came last, so that a window can slide. They grow by doubling."
        ),
    ]


def _datasets(figures: SectionFigures, plan: RunPlan) -> list[str]:
    return [data for data in DATA if data_cell(plan, data, 8, "hashing") in figures]


def _middle(figures: SectionFigures, cell: Cell, name: str, how: object) -> str:
    return how(figures.median(cell, name)) if cell in figures and callable(how) else "-"


def pictures(figures: SectionFigures, plan: RunPlan) -> dict[str, altair.TopLevelMixin]:
    """Charts by file name."""
    panels = [
        charts.scatter(
            {
                symbol: _place(figures, data_cell(plan, data, 32, rule))
                for rule, symbol in SYMBOLS.items()
                if data_cell(plan, data, 32, rule) in figures
            },
            EMPHASIS,
            x_title="Gamma / distinct keys",
            y=decades("tuple imbalance", [charts.FLOOR, 0.1]),
            title=f"{data}, n = 32",
        )
        for data in ("tpch-q3", "debs-routes", "words", "retail-stock", "flights-tailnum")
        if data_cell(plan, data, 32, "hashing") in figures
    ]
    return {"cardinality": page(panels, title="Tuple imbalance against aggregation cost")} if panels else {}


def _place(figures: SectionFigures, cell: Cell) -> tuple[float, float]:
    return figures.median(cell, "ksr"), max(charts.FLOOR, figures.median(cell, "imbalance"))
