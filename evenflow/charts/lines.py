"""A panel of lines: one line for each name, labelled at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evenflow.charts.axes import Axis
from evenflow.charts.emphasis import grey_first
from evenflow.charts.labels import Box, Dot, Label, spread
from evenflow.charts.looks import HERO, NAMED, REST, Look, width_of
from evenflow.charts.page import drawing
from evenflow.charts.points import written

if TYPE_CHECKING:
    import altair

_GAP, _BESIDE = 14.0, 14.0
"""Pixels between neighbouring labels, and pixels from the panel to the labels."""


class Line(NamedTuple):
    """The points of a line."""

    x: Sequence[float]
    """x of each point, in the axis's values."""
    y: Sequence[float]
    """y of each point, in the axis's values."""
    low: Sequence[float] = ()
    """Lower end of a vertical bar or of a band at each point, or empty for neither."""
    high: Sequence[float] = ()
    """Upper end of the bar or band at each point, or empty for neither."""


def lines(
    drawn: Mapping[str, Line],
    look_of: Mapping[str, Look],
    *,
    x: Axis,
    y: Axis,
    title: str,
    width: int = 260,
    height: int = 220,
    bands: bool = False,
) -> altair.LayerChart:
    """A panel of lines. drawn: the line of each name. look_of: the look of each name. width, height: pixels.

    bands: whether `low` and `high` of a line are joined to a band, or drawn as a bar at each point.
    """
    names = [name for name in grey_first(dict(look_of)) if name in drawn]
    behind = _bands(drawn, look_of, x, y) if bands else _bars(drawn, look_of, x, y)
    layers = [behind, strokes([(name, drawn[name], look_of[name]) for name in names], x, y)]
    ends = [
        Dot(
            name, x.share(drawn[name].x[-1]) * width, (1 - y.share(drawn[name].y[-1])) * height, look_of[name]
        )
        for name in names
        if look_of[name].labelled
    ]
    layers += written(_beside(ends, width, height))
    shown = [layer for layer in layers if layer is not None]
    return drawing().layer(*shown).properties(width=width, height=height, title=title)


def multiples(drawn: Mapping[str, Line], *, x: Axis, y: Axis, hero: str, columns: int) -> list[Any]:
    """A small panel for each name: its own line, the line of `hero`, and all other lines in grey.

    Only panels at the left and lower edge of the grid show the words of their axes. columns: panels in a row.
    """
    panels = []
    for at, name in enumerate(drawn):
        below, first = at + columns >= len(drawn), at % columns == 0
        panels.append(_small(drawn, name, hero, x if below else x.hidden(), y if first else y.hidden()))
    return panels


def _small(drawn: Mapping[str, Line], name: str, hero: str, x: Axis, y: Axis) -> Any:
    alt = drawing()
    own = HERO if name == hero else NAMED[0]._replace(line=2.2)
    behind = [
        (other, line, REST._replace(line=0.7)) for other, line in drawn.items() if other not in (name, hero)
    ]
    front = [(hero, drawn[hero], HERO._replace(line=1.2))] if hero in drawn and name != hero else []
    title = alt.TitleParams(name, color=own.colour, fontSize=11, offset=4)
    layers = [strokes(behind, x, y, aria=False), strokes([*front, (name, drawn[name], own)], x, y)]
    return alt.layer(*layers).properties(width=118, height=96, title=title)


def strokes(series: Sequence[tuple[str, Line, Look]], x: Axis, y: Axis, *, aria: bool = True) -> Any:
    """A layer of lines, the last on top. The points of a line are joined in their order.

    aria: whether screen readers read the lines.
    """
    alt = drawing()
    rows = [
        {
            "name": name,
            "at": rank,
            "x": float(at),
            "y": float(value),
            "colour": look.colour,
            "width": look.line,
        }
        for name, line, look in series
        for rank, (at, value) in enumerate(zip(line.x, line.y, strict=True))
    ]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(aria=aria)
        .encode(
            x.x(),
            y.y(),
            alt.Detail("name:N"),
            alt.Order("at:Q"),  # by default, Vega joins the points of a line by their x
            alt.Color("colour:N", scale=None, legend=None),
            alt.StrokeWidth("width:Q", scale=None, legend=None),
        )
    )


def _bars(drawn: Mapping[str, Line], look_of: Mapping[str, Look], x: Axis, y: Axis) -> Any:
    alt = drawing()
    rows = [
        {"x": at, "y": low, "high": high, "colour": look_of[name].colour}
        for name, line in drawn.items()
        for at, low, high in zip(line.x, line.low, line.high, strict=False)
    ]
    if not rows:
        return None
    bars = alt.Chart(alt.Data(values=rows)).mark_rule(opacity=0.25)
    return bars.encode(x.x(), y.y(), alt.Y2("high:Q"), alt.Color("colour:N", scale=None, legend=None))


def _bands(drawn: Mapping[str, Line], look_of: Mapping[str, Look], x: Axis, y: Axis) -> Any:
    alt = drawing()
    rows = [
        {"name": name, "x": at, "y": low, "high": high, "colour": look_of[name].colour}
        for name, line in drawn.items()
        for at, low, high in zip(line.x, line.low, line.high, strict=False)
    ]
    if not rows:
        return None
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_area(opacity=0.18)
        .encode(
            x.x(),
            y.y(),
            alt.Y2("high:Q"),
            alt.Detail("name:N"),
            alt.Color("colour:N", scale=None, legend=None),
        )
    )


def _beside(ends: Sequence[Dot], width: int, height: int) -> list[Label]:
    """Labels to the right of the panel, each as near to the height of its line's end
    as the other labels allow.
    """
    heights = spread([end.y for end in ends], gap=_GAP, low=0, high=height)
    return [
        Label(Box(width + _BESIDE, y - 6, width + _BESIDE + width_of(end.name, end.look), y + 6), end)
        for end, y in zip(ends, heights, strict=True)
    ]
