"""A panel of points: one point for each name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenflow.charts.axes import Axis
from evenflow.charts.emphasis import grey_first
from evenflow.charts.labels import Dot, Label, place
from evenflow.charts.looks import Look
from evenflow.charts.page import drawing

if TYPE_CHECKING:
    import altair


def points(
    at: Mapping[str, tuple[float, float]],
    look_of: Mapping[str, Look],
    *,
    x: Axis,
    y: Axis,
    title: str,
    width: int = 300,
    height: int = 260,
    below: Sequence[Any] = (),
) -> altair.LayerChart:
    """A panel of points. at: the values (x, y) of each name. look_of: the look of each name.
    below: layers behind them.
    """
    alt = drawing()
    names = [name for name in grey_first(dict(look_of)) if name in at]
    dots = [
        Dot(name, x.share(at[name][0]) * width, (1 - y.share(at[name][1])) * height, look_of[name])
        for name in names
    ]
    rows = [
        {
            "name": name,
            "x": at[name][0],
            "y": at[name][1],
            "colour": look_of[name].colour,
            "size": look_of[name].point,
        }
        for name in names
    ]
    marks = (
        alt.Chart(alt.Data(values=rows))
        .mark_circle(opacity=1, stroke="white", strokeWidth=0.7)
        .encode(
            x.x(),
            y.y(),
            alt.Color("colour:N", scale=None, legend=None),
            alt.Size("size:Q", scale=None, legend=None),
            alt.Tooltip(["name:N", "x:Q", "y:Q"]),
        )
    )
    layers = [*below, marks, *written(place(dots, width, height))]
    return alt.layer(*layers).properties(width=width, height=height, title=title)


def written(labels: Sequence[Label]) -> list[Any]:
    """The layers of the labels: a thin line to each mark that is far from its label, and the words."""
    lines = [
        {
            "x": label.dot.x,
            "y": label.dot.y,
            "x2": label.near_end[0],
            "y2": label.near_end[1],
            "colour": label.dot.look.colour,
        }
        for label in labels
        if label.far
    ]
    layers = [_leaders(lines)] if lines else []
    # The letters of a text layer have one size and colour, so each look has its own layer.
    for look in sorted({label.dot.look for label in labels}):
        layers.append(_words([label for label in labels if label.dot.look == look], look))
    return layers


def _leaders(rows: list[dict[str, Any]]) -> Any:
    alt = drawing()
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_rule(strokeWidth=0.7, opacity=0.6)
        .encode(
            alt.X("x:Q", scale=None),  # without a scale, values are pixels
            alt.Y("y:Q", scale=None),
            alt.X2("x2:Q"),
            alt.Y2("y2:Q"),
            alt.Color("colour:N", scale=None, legend=None),
        )
    )


def _words(labels: Sequence[Label], look: Look) -> Any:
    alt = drawing()
    rows = [
        {"text": label.dot.name, "x": label.box.left, "y": (label.box.top + label.box.bottom) / 2}
        for label in labels
    ]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_text(
            align="left",
            baseline="middle",
            fontSize=look.font,
            fontWeight="bold" if look.bold else "normal",
            color=look.colour,
        )
        .encode(alt.X("x:Q", scale=None), alt.Y("y:Q", scale=None), alt.Text("text:N"))
    )
