"""The courses of all policies on one shape: W above, executors below, a column for each policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evenflow.charts.axes import Axis
from evenflow.charts.lines import Line, strokes
from evenflow.charts.looks import NAMED, SUBJECT
from evenflow.charts.page import drawing, page
from workbench.elastic.judged import STEP, THRESHOLD

if TYPE_CHECKING:
    import altair

_MOST_LOAD = 2.0
_BAND = "#e6f0e6"
Rows = Sequence[dict[str, Any]]


def courses(rows: Rows) -> altair.TopLevelMixin:
    """Two panels for each row of `benchmarks.elasticity`."""
    shown = [row for row in rows if row["course"]]
    end = max(moment["at"] for row in shown for moment in row["course"])
    most = max(moment["executors"] or 1 for row in shown for moment in row["course"])
    x = Axis("seconds", 0, end)
    loads = Axis("W", 0, _MOST_LOAD, ticks=(0, 0.8, 0.9, 1, 2))
    executors = Axis("executors", 0, most + 0.5, ticks=tuple(range(most + 1)))
    above = [
        _load(row, end, x.hidden(), loads if at == 0 else loads.hidden()) for at, row in enumerate(shown)
    ]
    below = [_executors(row, x, executors if at == 0 else executors.hidden()) for at, row in enumerate(shown)]
    said = [
        f"{row['policy']}: {row['overloaded']:.0%} of the time overloaded, {row['slot_seconds']:,.0f} core-seconds"
        for row in shown
    ]
    return page(
        [*above, *below],
        title=title(shown),
        subtitle=[
            f"{shown[0]['profile']}. Green: zone 2, W from {THRESHOLD - STEP:.1f} to {THRESHOLD}; W above {_MOST_LOAD:g} is "
            "drawn there.",
            *("; ".join(said[first : first + 3]) for first in range(0, len(said), 3)),
        ],
        columns=len(shown),
        spacing=12,
    )


def title(rows: Rows) -> str:
    """What is to be seen: the policy with the least overload among those that act, beside none."""
    without = next((row for row in rows if row["policy"] == "none"), None)
    acting = [row for row in rows if row["actions"]]
    if without is None or not acting:
        return "W and executors, micro-batch by micro-batch"
    best = min(acting, key=lambda row: (row["overloaded"], row["slot_seconds"]))
    return (
        f"Without a policy the stage is overloaded for {without['overloaded']:.0%} of the time, with {best['policy']} "
        f"for {best['overloaded']:.0%}"
    )


def _load(row: dict[str, Any], end: float, x: Axis, y: Axis) -> Any:
    alt = drawing()
    band = (
        alt.Chart(alt.Data(values=[{"x": 0, "x2": end, "low": THRESHOLD - STEP, "high": THRESHOLD}]))
        .mark_rect(color=_BAND)
        .encode(x.x(), alt.X2("x2:Q"), y.y("low"), alt.Y2("high:Q"))
    )
    course = row["course"]
    line = Line([each["at"] for each in course], [min(each["W"], _MOST_LOAD) for each in course])
    drawn = strokes([(row["policy"], line, SUBJECT._replace(line=1.8))], x, y)
    heading = alt.TitleParams(row["policy"], fontSize=11, offset=4)
    return alt.layer(band, drawn).properties(width=118, height=96, title=heading)


def _executors(row: dict[str, Any], x: Axis, y: Axis) -> Any:
    course = row["course"]
    at, number = _stairs([each["at"] for each in course], [each["executors"] or 1 for each in course])
    drawn = strokes([(row["policy"], Line(at, number), NAMED[0]._replace(line=1.8))], x, y)
    return drawn.properties(width=118, height=48)


def _stairs(at: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """A line that stays until it jumps."""
    xs, ys = [at[0]], [values[0]]
    for time, value in zip(at[1:], values[1:], strict=True):
        xs += [time, time]
        ys += [ys[-1], value]
    return xs, ys
