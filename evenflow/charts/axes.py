"""Axes with a fixed domain, so that the place of a value in pixels is known before Vega draws it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from evenflow.charts.page import drawing

_PLACES: dict[str, Callable[[float], float]] = {
    "linear": float,
    "log": math.log10,
    "symlog": math.log1p,
}
"""The kinds of scale as functions, the same as in Vega, so that a label lies where Vega draws its mark."""
_SHORT = "datum.value < 1000 ? format(datum.value, '~g') : format(datum.value, '~s')"
PLAIN_POWERS = "datum.value == 1 ? '1' : format(datum.value, '~e')"


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`."""

    title: str | None
    """What the axis shows, None for no title."""
    low: float
    """Value at its begin."""
    high: float
    """Value at its end."""
    kind: str = "linear"
    """How Vega calls the scale: "linear", "log" or "symlog"."""
    ticks: tuple[float, ...] | None = None
    """Where ticks are. If None, Vega chooses."""
    words: str | None = None
    """The text of a tick, as a Vega expression. If None, Vega chooses."""
    shown: bool = True
    """Whether the axis has its title and numbers. Inside a grid of panels it has not."""

    def share(self, value: float) -> float:
        """The place of a value on the axis, from 0 at `low` to 1 at `high`.
        A value outside is placed at the edge.
        """
        at = _PLACES[self.kind]
        inside = min(max(value, self.low), self.high)
        return (at(inside) - at(self.low)) / (at(self.high) - at(self.low))

    def x(self, field: str = "x") -> Any:
        """The axis as the channel x of a chart. field: the column of the data."""
        return drawing().X(f"{field}:Q", **self._options())

    def y(self, field: str = "y") -> Any:
        """The axis as the channel y of a chart. field: the column of the data."""
        return drawing().Y(f"{field}:Q", **self._options())

    def hidden(self) -> Axis:
        """The same axis without title and numbers."""
        return replace(self, shown=False)

    def _options(self) -> dict[str, Any]:
        alt = drawing()
        tick_options = {"values": self.ticks, "labelExpr": self.words}
        axis = alt.Axis(
            labels=self.shown,
            tickCount=5,
            **{name: value for name, value in tick_options.items() if value is not None},
        )
        scale = alt.Scale(type=self.kind, domain=[self.low, self.high], nice=False, clamp=True, zero=False)
        return {"title": self.title if self.shown else None, "scale": scale, "axis": axis}


def linear(title: str, values: Iterable[float], **more: Any) -> Axis:
    """A linear axis from the least to the largest value, with a little room at both ends."""
    low, high = _ends(values)
    room = (high - low or 1.0) * 0.03
    return Axis(title, low - room, high + room, **more)


def decades(title: str, values: Iterable[float], *, floor: float = 0.0, words: str = PLAIN_POWERS) -> Axis:
    """A logarithmic axis between two powers of ten, with a tick at each.
    Values below `floor` count as `floor`.
    """
    low, high = _ends(max(floor, value) for value in values)
    # The tiny number keeps a rounding error of log10 from adding a decade.
    first = math.floor(math.log10(low) + 1e-9)
    last = max(first + 1, math.ceil(math.log10(high) - 1e-9))
    ticks = tuple(10.0**power for power in range(first, last + 1))
    return Axis(title, ticks[0], ticks[-1], "log", ticks, words)


def ratios(title: str, values: Iterable[float], *, powers: bool = False) -> Axis:
    """A logarithmic axis from the least to the largest value, with a little room at both ends.

    powers: ticks at powers of ten only.
    """
    low, high = _ends(values)
    room = max(1.01, (high / low) ** 0.04)
    low, high = low / room, high * room
    return Axis(title, low, high, "log", _ticks(low, high, powers), _SHORT)


def _ticks(low: float, high: float, powers: bool) -> tuple[float, ...] | None:
    """Ticks at 1, 2, 5, 10, ... between `low` and `high`.
    None, so that Vega chooses, if fewer than three lie there.
    """
    steps = (1,) if powers else (1, 2, 5)
    ends = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = tuple(step * 10.0**power for power in ends for step in steps)
    inside = tuple(tick for tick in ticks if low <= tick <= high)
    return inside if len(inside) > 2 else None


def _ends(values: Iterable[float]) -> tuple[float, float]:
    # An iterable can be read once only, and both ends need it.
    numbers = list(values)
    return min(numbers), max(numbers)
