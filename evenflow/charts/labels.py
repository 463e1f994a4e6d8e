"""Places labels so that no label meets another one or lies on a strong mark.

Coordinates are pixels from the upper left corner of the panel. y grows downwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from evenflow.charts.looks import Look, width_of

_TOGETHER = 5.0
"""Marks that are nearer to each other than this (pixels) share one label."""
_DETOUR = 9.0
"""A label on a grey mark, or close to a strong mark or label,
is as bad as one that is this much (pixels) further away.
"""
_LINE = 1.2
"""Height of a line of letters, as a multiple of their size."""


class Box(NamedTuple):
    """A rectangle in pixels. x grows to the right, y downwards."""

    left: float
    """x of the left edge."""
    top: float
    """y of the upper edge."""
    right: float
    """x of the right edge."""
    bottom: float
    """y of the lower edge."""

    def meets(self, other: Box) -> bool:
        """Whether the two rectangles overlap."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def grown(self, by: float) -> Box:
        """The rectangle with a margin of `by` pixels on each side."""
        return Box(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def inside(self, other: Box) -> bool:
        """Whether the rectangle lies within the other."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


class Dot(NamedTuple):
    """A mark with its look."""

    name: str
    """Text of its label."""
    x: float
    """Centre of the mark in pixels, from the left."""
    y: float
    """Centre of the mark in pixels, from the top."""
    look: Look
    """How the mark is drawn."""

    @property
    def box(self) -> Box:
        """The square around the mark, with a margin of a pixel."""
        # The size of a mark is its area in square pixels.
        radius = math.sqrt(self.look.point / math.pi) + 1
        return Box(self.x - radius, self.y - radius, self.x + radius, self.y + radius)


class Label(NamedTuple):
    """A label at its place."""

    box: Box
    """Where the text is."""
    dot: Dot
    """The mark that the label belongs to."""

    @property
    def far(self) -> bool:
        """Whether the label is so far from its mark that it needs a line to it."""
        around = self.dot.box
        return not self.box.meets(Box(around.left - 6, around.top - 6, around.right + 6, around.bottom + 6))

    @property
    def distance(self) -> float:
        """Pixels from the mark to the label."""
        return math.dist(self.near_end, (self.dot.x, self.dot.y))

    @property
    def near_end(self) -> tuple[float, float]:
        """The point (x, y) of the label that is nearest to the mark."""
        return (
            min(max(self.dot.x, self.box.left), self.box.right),
            min(max(self.dot.y, self.box.top), self.box.bottom),
        )


def place(dots: Sequence[Dot], width: float, height: float) -> list[Label]:
    """A label for each mark whose look has labels, inside a panel of this size.

    dots: in the order of drawing. The mark that is drawn last chooses its place first.
    """
    strong = [dot for dot in reversed(dots) if dot.look.labelled]
    grey = [dot.box for dot in dots if not dot.look.labelled]
    obstacles, placed = [dot.box for dot in strong], list[Label]()
    for dot in (_fitting(dot, width - 60) for dot in _together(strong)):
        box = _free(dot, obstacles, grey, Box(0, 0, width, height))
        obstacles.append(box)
        placed.append(Label(box, dot))
    return placed


def spread(targets: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Places as near to the targets as possible, with at least `gap` between neighbours.

    The places lie within low .. high if there is room. They are returned in the order of `targets`.
    """
    # Without the gaps, places must not decrease. Neighbours that would are merged to their mean, which gives
    # the least squares (pool adjacent violators). The gaps are added again at the end.
    order = sorted(range(len(targets)), key=lambda at: targets[at])
    groups: list[list[float]] = []
    for rank, at in enumerate(order):
        groups.append([targets[at] - rank * gap])
        while len(groups) > 1 and _mean(groups[-2]) > _mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    first = [_mean(group) for group in groups for _ in group]
    top = max(low, high - (len(targets) - 1) * gap)
    places = dict(
        zip(order, (min(max(y, low), top) + rank * gap for rank, y in enumerate(first)), strict=True)
    )
    return [places[at] for at in range(len(targets))]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _together(strong: Sequence[Dot]) -> list[Dot]:
    """The marks, where marks on one spot are joined to one with all their names."""
    marks: list[Dot] = []
    for dot in strong:
        for at, other in enumerate(marks):
            if math.hypot(dot.x - other.x, dot.y - other.y) < _TOGETHER:
                marks[at] = other._replace(name=f"{other.name}, {dot.name}")
                break
        else:
            marks.append(dot)
    return marks


def _fitting(dot: Dot, width: float) -> Dot:
    """The mark with its name cut to this width in pixels."""
    letters = int(len(dot.name) * width / width_of(dot.name, dot.look))
    return dot if letters >= len(dot.name) else dot._replace(name=dot.name[: letters - 1] + "…")


def _free(dot: Dot, obstacles: Sequence[Box], grey: Sequence[Box], panel: Box) -> Box:
    """The best place for a mark's label. If no place is free, the first one.

    A place is free if it meets no label and no strong mark. Of the free places, the nearest is best, where
    grey marks and nearby labels count as additional distance (`_DETOUR`).
    """
    others = [box.grown(4) for box in obstacles if box != dot.box]
    places = list(_places(dot, panel))
    free = [box for box in places if box.inside(panel) and not any(box.meets(other) for other in obstacles)]

    def cost(box: Box) -> float:
        met = sum(box.meets(other) for other in (*grey, *others))
        return round(Label(box, dot).distance) + _DETOUR * met

    return min(free, key=cost, default=places[0])


def _places(dot: Dot, panel: Box) -> Iterator[Box]:
    """Places for a label around its mark, further and further away.

    A place above or below the mark is moved sideways into the panel.
    """
    wide, high = width_of(dot.name, dot.look), dot.look.font * _LINE
    radius = math.sqrt(dot.look.point / math.pi)
    for away in range(3, 150, 6):
        reach = radius + away
        for across, down in _SIDES:
            left = dot.x + across * (reach + wide / 2) - wide / 2
            top = dot.y + down * (reach + high / 2) - high / 2
            if down:
                left = max(panel.left + 4, min(left, panel.right - wide))
            yield Box(left, top, left + wide, top + high)


_SIDES = ((1, 0), (0, -1), (0, 1), (-1, 0), (1, -1), (1, 1), (-1, -1), (-1, 1), (0.6, -1), (0.6, 1))
"""Directions (across, down) from the mark: right, above, below, left, and the diagonals."""
