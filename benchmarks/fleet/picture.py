"""The picture of courses: the imbalance of slides and windows over time, with what happened, a panel for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.fleet.instances import PANES, WORKERS
from evenflow.charts.axes import Axis, decades
from evenflow.charts.lines import Line, strokes
from evenflow.charts.looks import REST, SUBJECT
from evenflow.charts.page import drawing, page

if TYPE_CHECKING:
    import altair

_LEAST = 1e-5
"""Smaller imbalances are drawn here: the axis is logarithmic."""
_WIDTH, _HEIGHT = 620, 150
Rows = Sequence[dict[str, Any]]


def courses(rows: Rows) -> altair.TopLevelMixin:
    """A panel for each row of a fleet's scenario."""
    longest = max(len(row["slides"]) for row in rows)
    x = Axis("slides", 0, longest, ticks=tuple(range(0, longest + 1, 2 * PANES)))
    y = decades("imbalance", [v for row in rows for v in (*row["slides"], *row["windows"])], floor=_LEAST)
    return page(
        [_panel(row, x if row is rows[-1] else x.hidden(), y) for row in rows],
        title=title(rows),
        subtitle=[
            f"Blue: imbalance of the window of {PANES} slides that ends with a slide. Grey: of the slide alone. "
            f"{WORKERS} workers, {WORKERS - 4} input partitions.",
        ],
        columns=1,
        spacing=10,
    )


def title(rows: Rows) -> str:
    """What the picture shows: how long each took at most."""
    worst = {row["title"]: max(row["again"].values()) for row in rows}
    said = ", ".join(f"{name} {slides}" for name, slides in worst.items())
    return f"Slides until loads are as level as before, at most: {said}"


def _panel(row: dict[str, Any], x: Axis, y: Axis) -> Any:
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
    heading = alt.TitleParams(_heading(row), fontSize=12, offset=4)
    return alt.layer(rules, drawn, words).properties(width=_WIDTH, height=_HEIGHT, title=heading)


def _heading(row: dict[str, Any]) -> str:
    known = [number for number in row["rounds"] if number is not None]
    rounds = f", {known[-1] + 1} rounds of the exchange" if known else ", no exchange"
    return f"{row['title']}{rounds}"
