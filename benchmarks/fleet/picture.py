"""The picture of courses: the imbalance of slides and windows over time, with what happened, a panel for
each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from benchmarks.fleet.instances import INPUTS, PANES, WORKERS
from evenflow.charts.axes import Axis, decades
from evenflow.charts.lines import Line, strokes
from evenflow.charts.looks import REST, SUBJECT
from evenflow.charts.page import drawing, page

if TYPE_CHECKING:
    import altair

_LEAST = 1e-5
"""Smaller imbalances are drawn here: the axis is logarithmic."""
_WIDTH, _HEIGHT, _IN_A_COLUMN = 620, 150, 3
Rows = Sequence[dict[str, Any]]


def courses(rows: Rows) -> altair.TopLevelMixin:
    """A panel for each row of a fleet's scenario that has the first row's seed."""
    rows = [row for row in rows if row["seed"] == rows[0]["seed"]]
    columns = 1 if len(rows) <= _IN_A_COLUMN else 2
    longest = max(len(row["slides"]) for row in rows)
    x = Axis("slides", 0, longest, ticks=tuple(range(0, longest + 1, 2 * PANES)))
    y = decades("imbalance", [v for row in rows for v in (*row["slides"], *row["windows"])], floor=_LEAST)
    return page(
        [
            _panel(
                row,
                x if at + columns >= len(rows) else x.hidden(),
                y if at % columns == 0 else y.hidden(),
                _WIDTH // columns,
            )
            for at, row in enumerate(rows)
        ],
        title="Imbalance, slide by slide",
        subtitle=[
            (
                f"Blue: imbalance of the window of {PANES} slides that ends with a slide. Grey: of the slide"
                " alone."
            ),
            (
                f"Dots below: rounds of the exchange, one for each slide that had any. {WORKERS} workers,"
                f" {INPUTS} input partitions."
            ),
        ],
        columns=columns,
        spacing=10,
    )


def _panel(row: dict[str, Any], x: Axis, y: Axis, width: int) -> Any:
    alt = drawing()
    at = [slide + 1 for slide in range(len(row["slides"]))]

    def line(name: str) -> Line:
        return Line(at, [max(_LEAST, value) for value in row[name]])

    drawn = strokes(
        [("slide", line("slides"), REST), ("window", line("windows"), SUBJECT._replace(line=2.0))], x, y
    )
    events = [{"x": slide, "event": event, "y": y.high} for event, slide in row["events"].items()]
    rules = alt.Chart(alt.Data(values=events)).mark_rule(color="#adb5bd", strokeDash=[3, 3]).encode(x.x())
    words = (
        alt.Chart(alt.Data(values=events))
        .mark_text(align="left", baseline="top", dx=3, dy=2, fontSize=10, color="#495057")
        .encode(x.x(), y.y(), alt.Text("event:N"))
    )
    known = [0, *(0 if number is None else number + 1 for number in row["rounds"])]
    rounds_by_slide = [later - before for before, later in pairwise(known)]
    marks = [
        {"x": slide, "y": y.low, "rounds": rounds}
        for slide, rounds in zip(at, rounds_by_slide, strict=True)
        if rounds > 0
    ]
    dots = (
        alt.Chart(alt.Data(values=marks))
        .mark_point(filled=True, color="#2f7d6b", yOffset=-6)
        .encode(
            x.x(), y.y(), alt.Size("rounds:Q", scale=alt.Scale(domain=[1, 10], range=[6, 40]), legend=None)
        )
    )
    heading = alt.TitleParams(_heading(row), fontSize=12, offset=4)
    return alt.layer(rules, drawn, dots, words).properties(width=width, height=_HEIGHT, title=heading)


def _heading(row: dict[str, Any]) -> str:
    known = [number for number in row["rounds"] if number is not None]
    rounds = f", {known[-1] + 1} rounds of the exchange" if known else ", no exchange"
    return f"{row['title']}{rounds}"
