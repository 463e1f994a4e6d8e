"""Panels for figures of many seeds: points at the medians, and lines with bars over the range of the
seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from evenflow.charts.axes import Axis, decades, linear, ratios
from evenflow.charts.emphasis import looks
from evenflow.charts.lines import Line, lines
from evenflow.charts.points import points

if TYPE_CHECKING:
    import altair

FLOOR = 1e-7
"""The least imbalance that is drawn. The axis is logarithmic, so smaller imbalances, and none at all, are
drawn here.
"""


class Emphasis(NamedTuple):
    """What stands out in a picture."""

    hero: str
    """Name of the one strong mark."""
    named: tuple[str, ...] = ()
    """Further names that are written beside their marks."""


def scatter(
    at: Mapping[str, tuple[float, float]],
    emphasis: Emphasis,
    *,
    x_title: str,
    y: Axis,
    title: str,
) -> altair.LayerChart:
    """A point per name. `at` has x and y of each name. The x axis is logarithmic and only as wide as the
    points need.
    """
    styles = looks(at, hero=emphasis.hero, named=emphasis.named)
    return points(at, styles, x=ratios(x_title, [x for x, _ in at.values()]), y=y, title=title)


def ranges(x: Sequence[float], of_seeds: Sequence[Sequence[float]]) -> Line:
    """A line through the medians. At each point a bar goes from the least to the most of the seeds."""
    clipped = [[max(FLOOR, value) for value in values] for values in of_seeds]
    return Line(
        x,
        [median(values) for values in clipped],
        [min(values) for values in clipped],
        [max(values) for values in clipped],
    )


def curves(
    drawn: Mapping[str, Line],
    emphasis: Emphasis,
    *,
    x_title: str,
    y: Axis,
    title: str,
    width: int = 220,
) -> altair.LayerChart:
    """A line per name."""
    styles = looks(drawn, hero=emphasis.hero, named=emphasis.named)
    x = linear(x_title, [value for line in drawn.values() for value in line.x])
    return lines(drawn, styles, x=x, y=y, title=title, width=width, height=max(220, width // 2))


def imbalances(title: str, drawn: Mapping[str, Line]) -> Axis:
    """A logarithmic axis for all of these lines with their bars."""
    values = [value for line in drawn.values() for value in (*line.y, *line.low, *line.high)]
    return decades(title, values, floor=FLOOR)


def heights(drawn: Mapping[str, Line]) -> Axis:
    """A linear axis for all of these lines, whose panel says what they are."""
    return linear("", [value for line in drawn.values() for value in line.y])
