"""Where labels go: no label meets another or lies on a strong mark. Pixels, from the upper left corner."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from evenflow.charts.looks import Look, width_of

_TOGETHER = 5.0
"""Marks this near are labelled together."""
_DETOUR = 9.0
"""Pixels that a label goes further rather than lie on a grey mark or close to another strong one."""
_LINE = 1.2
"""Height of a line of letters, as a multiple of their size."""


class Box(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether they have a point in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def grown(self, by: float) -> Box:
        """The rectangle with a margin."""
        return Box(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def inside(self, other: Box) -> bool:
        """Whether it lies in the other."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


class Dot(NamedTuple):
    """A mark with its look. `name` is what its label says."""

    name: str
    x: float
    y: float
    look: Look

    @property
    def box(self) -> Box:
        """What the mark covers."""
        radius = math.sqrt(self.look.point / math.pi) + 1
        return Box(self.x - radius, self.y - radius, self.x + radius, self.y + radius)


class Label(NamedTuple):
    """A label in its place, and the mark it belongs to."""

    box: Box
    dot: Dot

    @property
    def far(self) -> bool:
        """Whether it needs a line to its mark."""
        around = self.dot.box
        return not self.box.meets(Box(around.left - 6, around.top - 6, around.right + 6, around.bottom + 6))

    @property
    def distance(self) -> float:
        """Pixels from the mark to the label."""
        return math.dist(self.near_end, (self.dot.x, self.dot.y))

    @property
    def near_end(self) -> tuple[float, float]:
        """The point of the label that is nearest to the mark."""
        return (
            min(max(self.dot.x, self.box.left), self.box.right),
            min(max(self.dot.y, self.box.top), self.box.bottom),
        )


def place(dots: Sequence[Dot], width: float, height: float) -> list[Label]:
    """A label for each labelled mark inside the panel. The mark that is drawn last has the first choice."""
    strong = [dot for dot in reversed(dots) if dot.look.labelled]
    grey = [dot.box for dot in dots if not dot.look.labelled]
    taken, placed = [dot.box for dot in strong], list[Label]()
    for dot in (_fitting(dot, width - 60) for dot in _together(strong)):
        box = _free(dot, taken, grey, Box(0, 0, width, height))
        taken.append(box)
        placed.append(Label(box, dot))
    return placed


def spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """As near to the places wanted as goes with `gap` between neighbours, inside low .. high if there is room."""
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    groups: list[list[float]] = []
    for rank, at in enumerate(order):
        groups.append([wanted[at] - rank * gap])
        while len(groups) > 1 and _mean(groups[-2]) > _mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    first = [_mean(group) for group in groups for _ in group]
    top = max(low, high - (len(wanted) - 1) * gap)
    found = dict(
        zip(order, (min(max(y, low), top) + rank * gap for rank, y in enumerate(first)), strict=True)
    )
    return [found[at] for at in range(len(wanted))]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _together(strong: Sequence[Dot]) -> list[Dot]:
    """Marks on one spot become one with all names."""
    found: list[Dot] = []
    for dot in strong:
        for at, other in enumerate(found):
            if math.hypot(dot.x - other.x, dot.y - other.y) < _TOGETHER:
                found[at] = other._replace(name=f"{other.name}, {dot.name}")
                break
        else:
            found.append(dot)
    return found


def _fitting(dot: Dot, width: float) -> Dot:
    """With a name that is cut where it would be wider than this."""
    letters = int(len(dot.name) * width / width_of(dot.name, dot.look))
    return dot if letters >= len(dot.name) else dot._replace(name=dot.name[: letters - 1] + "…")


def _free(dot: Dot, taken: Sequence[Box], grey: Sequence[Box], panel: Box) -> Box:
    """The nearest place that is free of labels and strong marks. Grey marks and being near to others cost some way."""
    others = [box.grown(4) for box in taken if box != dot.box]
    places = list(_places(dot, panel))
    free = [box for box in places if box.inside(panel) and not any(box.meets(other) for other in taken)]

    def cost(box: Box) -> float:
        met = sum(box.meets(other) for other in (*grey, *others))
        return round(Label(box, dot).distance) + _DETOUR * met

    return min(free, key=cost, default=places[0])


def _places(dot: Dot, panel: Box) -> Iterator[Box]:
    """Places around the mark, further and further away. Above and below it a label is moved into the panel."""
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
"""Right of the mark, above, below, left, and slantwise."""
