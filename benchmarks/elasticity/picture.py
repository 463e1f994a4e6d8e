"""The picture of all policies on one shape. Each policy has a column: W, then p and executors, then
latency.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evenflow.charts.axes import Axis
from evenflow.charts.lines import Line, strokes
from evenflow.charts.looks import NAMED, REST, SUBJECT
from evenflow.charts.page import drawing, page
from workbench.elastic.course_figures import STEP, THRESHOLD

if TYPE_CHECKING:
    import altair

_MOST_LOAD, _MOST_LATENCY = 2.0, 40.0
_BAND = "#e6f0e6"
Rows = Sequence[dict[str, Any]]


def courses(rows: Rows) -> altair.TopLevelMixin:
    """Three panels for each row of `benchmarks.elasticity.loop`."""
    shown = [row for row in rows if row["course"]]
    end = max(moment["at"] for row in shown for moment in row["course"])
    # Without executors of their own (None) the tasks run in one process, the driver.
    most = max(max(moment["p"], moment["executors"] or 1) for row in shown for moment in row["course"])
    x = Axis("seconds", 0, end, ticks=(0, 50, 100))
    loads = Axis("W", 0, _MOST_LOAD, ticks=(0, 0.8, 0.9, 1, 2))
    scaled = Axis("p, executors", 0, most + 0.5, ticks=tuple(range(0, most + 1, 2)))
    late = Axis("latency, s", 0, _MOST_LATENCY, ticks=(0, 20, 40))
    rows_of_panels = [
        [draw(row, end, x.hidden(), y if at == 0 else y.hidden()) for at, row in enumerate(shown)]
        for draw, y in ((_load, loads), (_scaled, scaled))
    ]
    rows_of_panels.append([_late(row, x, late if at == 0 else late.hidden()) for at, row in enumerate(shown)])
    summaries = [
        f"{row['policy']}: {row['overloaded']:.0%} of the time overloaded, {row['slot_seconds']:,.0f}"
        " core-seconds"
        for row in shown
    ]
    return page(
        [panel for panels in rows_of_panels for panel in panels],
        title="W and executors, micro-batch by micro-batch",
        subtitle=[
            (
                f"{shown[0]['profile']}. Above: W of each micro-batch, at most {_MOST_LOAD:g} drawn; green is"
                f" zone 2 ({THRESHOLD - STEP:.1f} to {THRESHOLD})."
            ),
            (
                "Middle: workers p (blue) and executors (dark); r is 1 in the fused wiring. "
                f"Below: latency of each window, and the promised {shown[0]['slo_ms'] / 1000:g} s."
            ),
            *("; ".join(summaries[first : first + 3]) for first in range(0, len(summaries), 3)),
        ],
        columns=len(shown),
        spacing=12,
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


def _scaled(row: dict[str, Any], end: float, x: Axis, y: Axis) -> Any:
    course = row["course"]
    at = [each["at"] for each in course]
    lines = [
        (name, Line(*_stairs(at, [each[field] or 1 for each in course])), look._replace(line=1.8))
        for name, field, look in (("p", "p", SUBJECT), ("executors", "executors", NAMED[0]))
    ]
    return strokes(lines, x, y).properties(width=118, height=56)


def _late(row: dict[str, Any], x: Axis, y: Axis) -> Any:
    latencies = [
        (each["at"], each["latency_ms"] / 1000) for each in row["course"] if each["latency_ms"] is not None
    ]
    line = Line([at for at, _ in latencies], [min(seconds, _MOST_LATENCY) for _, seconds in latencies])
    promised = Line([0, x.high], [row["slo_ms"] / 1000] * 2)
    drawn = [("promised", promised, REST), (row["policy"], line, NAMED[2]._replace(line=1.8))]
    return strokes(drawn, x, y).properties(width=118, height=48)


def _stairs(at: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Points of a line of steps: each value stays until the next one begins."""
    xs, ys = [at[0]], [values[0]]
    for time, value in zip(at[1:], values[1:], strict=True):
        xs += [time, time]
        ys += [ys[-1], value]
    return xs, ys
