"""The picture of a soak: each size of each part over time, a panel for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenflow.charts.axes import Axis
from evenflow.charts.lines import Line, strokes
from evenflow.charts.looks import SUBJECT
from evenflow.charts.page import drawing, page

if TYPE_CHECKING:
    import altair

_WIDTH, _HEIGHT, _COLUMNS = 190, 90, 3
_MINUTE = 60.0
_LEFT_OUT = "#f1f3f5"


def sizes(rows: Mapping[str, Any]) -> altair.TopLevelMixin:
    """A panel for each size that `service-soak` keeps: `seconds` of the looks, and `sizes` by
    their name. The axes of sizes begin at zero. What the tables leave out, the first quarter, is grey.
    """
    minutes = [second / _MINUTE for second in rows["seconds"]]
    x = Axis("minutes", 0.0, minutes[-1])
    first_used = minutes[len(minutes) // 4]
    below = len(rows["sizes"]) - _COLUMNS
    panels = [
        _panel(name, minutes, values, first_used, x if at >= below else x.hidden())
        for at, (name, values) in enumerate(rows["sizes"].items())
    ]
    return page(
        panels,
        title="Processes, folders and lateness, minute by minute",
        subtitle=["A live stream without faults. Each axis begins at zero. Grey: what the table leaves out."],
        columns=_COLUMNS,
        spacing=12,
    )


def _panel(
    name: str, minutes: Sequence[float], values: Sequence[float], first_used: float, x: Axis
) -> altair.LayerChart:
    alt = drawing()
    y = Axis(None, 0.0, 1.1 * max(1.0, *values))
    begin = alt.Data(values=[{"x": 0.0, "until": first_used, "y": y.low, "high": y.high}])
    grey = (
        alt.Chart(begin).mark_rect(color=_LEFT_OUT).encode(x.x(), alt.X2("until:Q"), y.y(), alt.Y2("high:Q"))
    )
    line = strokes([(name, Line(minutes, values), SUBJECT._replace(line=1.5))], x, y)
    heading = alt.TitleParams(name, fontSize=11, offset=4)
    return alt.layer(grey, line).properties(width=_WIDTH, height=_HEIGHT, title=heading)
