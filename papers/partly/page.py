"""Tables and charts of PartLy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenflow.charts.axes import decades
from evenflow.charts.page import page
from papers.cells.run_plan import RunPlan
from papers.cells.store import SectionFigures
from papers.markdown import figure, number, ratio, table
from papers.partly.claims import less
from papers.partly.grid import (
    BATCHES,
    BY_TIMES,
    DATA_BLOCKS,
    NAMES,
    OVER,
    PARTLY,
    PLANNERS,
    TRAINED,
    TRAININGS,
    batch_tuples,
    block_cell,
    streams,
    time_cell,
    training_cell,
)
from papers.partly.measuring import HASHES
from papers.pictures.charts import Emphasis, scatter

if TYPE_CHECKING:
    import altair

TITLE = "001: PartLy's learned plans"
PICTURE = "PartLy's data blocks hold equally many keys on every skew; Prompt's hold equally many tuples"
EMPHASIS = Emphasis("partly", ("prompt", "cam", "hashing", "pk5", "shuffle"))
_PICTURED = ("Zipf 0.5", "Zipf 1.0", "Zipf 1.5", "words", "flights-tailnum", "debs-routes")
_LEAST = 1e-3


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Set-up and a table for each stream, what is spared, and what is kept."""
    lines = [
        f"There are {DATA_BLOCKS} data blocks and {DATA_BLOCKS} reduce tasks. A batch has"
        f" {batch_tuples(plan):,} tuples, "
        f"and there are {BATCHES} of a stream. debs-routes is one batch of its 10,000 tuples. Zipf streams"
        " have 2,000 keys "
        "if nothing else is said, and are drawn anew for each seed. Of data and tpch-q3 each seed renames the"
        " keys. "
        "Figures are means over the batches. BSI is in tuples, BCI in keys. In brackets BSI is divided by"
        " shuffling's and "
        "BCI by hashing's, medians each, as in fig. 4.7. A dash means that the divisor is 0. Fallback to"
        " Prompt is off.\n\n"
        "*map*, *reduce* and *Algorithm 3* are variances of the times of a batch's tasks, in us². A time is"
        " counted work "
        "with the kept costs: a map task pays `tuple` for a tuple, and `make` and `send` for a key. A reduce"
        " task pays "
        "`receive` for a fragment, and `hold` and `emit` for a key. Reduce variances are means over "
        f"{HASHES} hash functions.\n\n"
        f'The batches of "{TRAINED}" are the first that the training of the shipped policy drew. No claim is'
        " judged by "
        'them. All other streams are unseen. "partly, task times" is a policy whose training ended with'
        " rewards by the "
        "times of tasks (technique 3; [partly.md](partly.md) says how). The GCM trace is not at hand. The"
        " papers give its "
        "size and its number of keys, but not its skew, so that no stream is drawn in its place.",
        "",
    ]
    for stream in (*streams(plan), TRAINED):
        lines += [f"Stream: {stream}", ""]
        lines += table(
            ["rule", "BSI", "BCI", "split keys", "KSR", "map", "reduce", "Algorithm 3"],
            (_row(figures, plan, stream, rule) for rule in NAMES),
        )
        lines.append("")
    return [
        *lines,
        *_spared(figures, plan),
        *_trainings(figures, plan),
        *_times(figures, plan),
        f"{PICTURE}:",
        "",
        "![BSI against BCI, both relative to hashing](reproducing/partly.svg)",
    ]


def _row(figures: SectionFigures, plan: RunPlan, stream: str, rule: str) -> list[str]:
    cell = block_cell(plan, stream, rule)
    return [
        f"`{NAMES[rule]}`" if rule != BY_TIMES else NAMES[rule],
        _relative(figures, plan, stream, rule, "bsi", "shuffle"),
        _relative(figures, plan, stream, rule, "bci", "hashing"),
        figure(figures, cell, "split"),
        figure(figures, cell, "ksr", ratio),
        *(figure(figures, cell, name) for name in ("map", "reduce", "allocated")),
    ]


def _relative(figures: SectionFigures, plan: RunPlan, stream: str, rule: str, name: str, base: str) -> str:
    """A figure, and its median as a multiple of that of another rule."""
    cells = [block_cell(plan, stream, name) for name in (rule, base)]
    cell_text = figure(figures, cells[0], name)
    if any(cell not in figures for cell in cells):
        return cell_text
    ours, theirs = (figures.median(cell, name) for cell in cells)
    return f"{cell_text} [{number(ours / theirs) if theirs else '-'}]"


def _spared(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """How much less than with Prompt there is, stream by stream."""
    rows = []
    for stream in (*streams(plan), TRAINED):
        rules = [
            rule
            for rule in (PARTLY, BY_TIMES)
            if all(block_cell(plan, stream, name) in figures for name in (rule, "prompt"))
        ]
        rows += [
            [stream, NAMES[rule]]
            + [
                f"{less(figures, plan, stream, rule, name):.1%}"
                for name in ("split", "map", "reduce", "allocated")
            ]
            for rule in rules
        ]
    return [
        "Less than with Prompt, by medians:",
        "",
        *table(["stream", "policy", "split keys", "map", "reduce", "Algorithm 3"], rows, left=2),
        "",
    ]


def _trainings(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Figure 4.8a: the kept curves."""
    cells = {which: training_cell(plan, which) for which in TRAININGS}
    if any(cell not in figures for cell in cells.values()):
        return []
    curves = {
        which: list(zip(*(figures.values(cell, name) for name in ("steps", "stage", "cost")), strict=True))
        for which, cell in cells.items()
    }
    rows = [
        [f"{ours[0]:,.0f}", f"{ours[1]:.0f}", f"{ours[2]:.4f}", f"{theirs[2]:.4f}"]
        for ours, theirs in zip(curves["with"], curves["without"], strict=True)
    ]
    return [
        (
            "Figure 4.8a: cost of held-out batches over a training, kept from two trainings of one seed each"
            " ([partly/training.json](partly/training.json)). A stage is how many actions there are: 8, 20"
            " and 32."
        ),
        "",
        *table(["actions trained on", "stage", "with partial rewards", "without"], rows),
        "",
    ]


def _times(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Figures 4.8b and 4.9: the kept times to plan."""
    cells = {rule: time_cell(plan, rule) for rule in PLANNERS}
    if any(cell not in figures for cell in cells.values()):
        return []
    lines = [
        (
            "Figures 4.8b and 4.9: CPU ms of a batch from its tuples to their data blocks. These times are"
            " kept figures of `evenflow bench partitioners-partly-plan`"
            " ([partly/plan.json](partly/plan.json)), and no run of this page measures them. Where keys vary,"
            " each has 10 tuples at exponent 1: a longer batch interval brings more of both. Where the"
            " exponent varies, there are 10,000 keys."
        ),
        "",
    ]
    for over, heading in OVER.items():
        times = {rule: figures.values(cell, f"{over} ms") for rule, cell in cells.items()}
        at = figures.values(cells["partly"], over)
        lines += table(
            [heading, *cells],
            (
                [f"{value:,g}", *(number(times[rule][place]) for rule in cells)]
                for place, value in enumerate(at)
            ),
        )
        lines.append("")
    return lines


def pictures(figures: SectionFigures, plan: RunPlan) -> dict[str, altair.TopLevelMixin]:
    """Charts by file name."""
    rules = {NAMES[rule]: rule for rule in NAMES if rule != BY_TIMES}
    panels = [
        scatter(
            {name: _place(figures, plan, stream, rule) for name, rule in rules.items()},
            EMPHASIS,
            x_title="BCI / hashing's",
            y=decades("BSI / hashing's", [1e-6, 1.0], floor=1e-6),
            title=stream,
        )
        for stream in _PICTURED
        if all(block_cell(plan, stream, rule) in figures for rule in rules.values())
    ]
    if not panels:
        return {}
    subtitle = ["Down: tuples of the data blocks more even. Left: keys more even. 24 data blocks."]
    return {"partly": page(panels, title="BSI against BCI, both relative to hashing", subtitle=subtitle)}


def _place(figures: SectionFigures, plan: RunPlan, stream: str, rule: str) -> tuple[float, float]:
    bci, bsi = (
        figures.median(block_cell(plan, stream, rule), name)
        / max(1e-9, figures.median(block_cell(plan, stream, "hashing"), name))
        for name in ("bci", "bsi")
    )
    return max(_LEAST, bci), max(1e-6, bsi)
