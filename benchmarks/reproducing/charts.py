"""Small charts: lines over a quantity with the range of the seeds, and points of balance against its price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from evenflow.errors import ConfigError

if TYPE_CHECKING:
    import altair

FLOOR = 1e-7
"""Imbalances are drawn on a logarithmic axis; smaller ones, also none at all, are drawn here."""
_SIZE = 220
_SHAPES = ("circle", "square", "triangle-up", "cross", "diamond", "triangle-down", "triangle-left")
Rows = Sequence[dict[str, Any]]


def middle(values: Sequence[float]) -> dict[str, float]:
    """Median, least and most of a row."""
    return {"middle": median(values), "low": min(values), "high": max(values)}


def lines(
    rows: Rows,
    *,
    x: str,
    x_title: str,
    y_title: str,
    colour: str,
    column: str | None = None,
    log: bool = False,
    points: bool = True,
    width: int = _SIZE,
) -> altair.TopLevelMixin:
    """A line per colour; rows have `middle` and perhaps `low` and `high`, drawn as a bar."""
    alt = _altair()
    shown = [{name: _drawn(name, value, log) for name, value in row.items()} for row in rows]
    hue = _colour(colour, [str(row[colour]) for row in rows])
    base = alt.Chart(alt.Data(values=shown)).encode(
        alt.X(f"{x}:Q", title=x_title, scale=alt.Scale(zero=False)), hue
    )
    lows = [value for row in shown for name, value in row.items() if name in ("middle", "low")]
    highs = [value for row in shown for name, value in row.items() if name in ("middle", "high")]
    height = (
        _log("middle", y_title, lows + highs)
        if log
        else alt.Y("middle:Q", title=y_title, scale=alt.Scale(zero=False))
    )
    drawn = base.mark_line(strokeWidth=1.4, point={"size": 14} if points else False).encode(height)
    if "low" in rows[0]:
        drawn = base.mark_rule(opacity=0.35).encode(alt.Y("low:Q"), alt.Y2("high:Q")) + drawn
    drawn = drawn.properties(width=width, height=max(_SIZE, width // 2))
    if column is None:
        return drawn
    order = list(dict.fromkeys(row[column] for row in rows))
    return drawn.facet(column=alt.Column(f"{column}:N", title=None, sort=order)).resolve_scale(
        x="independent"
    )


def scatter(
    rows: Rows, *, x: str, x_title: str, y: str, y_title: str, colour: str, title: str
) -> altair.Chart:
    """A point per row; colours and shapes go by the order of the rows."""
    alt = _altair()
    shown = [{**row, y: max(FLOOR, row[y])} for row in rows]
    return (
        alt.Chart(alt.Data(values=shown), title=title)
        .mark_point(filled=True, size=60, opacity=0.85)
        .encode(
            alt.X(
                f"{x}:Q",
                title=x_title,
                scale=alt.Scale(type="log", nice=False, padding=8),
                axis=alt.Axis(tickCount=5, format="~g"),
            ),
            _log(y, y_title, [row[y] for row in shown]),
            _colour(colour, [str(row[colour]) for row in rows]),
            _shape(colour, [str(row[colour]) for row in rows]),
        )
        .properties(width=_SIZE + 60, height=_SIZE + 60)
    )


def grid(
    panels: Sequence[altair.TopLevelMixin], *, columns: int = 2, one_legend: bool = True
) -> altair.TopLevelMixin:
    """Panels side by side; with one legend they show the same things in the same colours."""
    made = _altair().concat(*panels, columns=columns)
    return made if one_legend else made.resolve_scale(color="independent")


def save(chart: altair.TopLevelMixin, path: Path) -> None:
    """Write an SVG."""
    chart.save(str(path), format="svg")


def check() -> None:
    """ConfigError when charts cannot be drawn; asked before anything is computed."""
    _altair()


def _drawn(name: str, value: Any, log: bool) -> Any:
    return max(FLOOR, value) if log and name in ("middle", "low", "high") else value


def _log(field: str, title: str, values: Sequence[float]) -> Any:
    """A logarithmic axis from one power of ten to another, a tick at each."""
    alt = _altair()
    low = math.floor(math.log10(min(values)) + 1e-9)
    high = max(low + 1, math.ceil(math.log10(max(values)) - 1e-9))
    scale = alt.Scale(type="log", domain=[10.0**low, 10.0**high], clamp=True)
    ticks = [10.0**power for power in range(low, high + 1)]
    return alt.Y(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(format="~e", values=ticks))


def _colour(field: str, names: Sequence[str]) -> Any:
    alt = _altair()
    order = list(dict.fromkeys(names))
    scheme = "tableau10" if len(order) <= 10 else "tableau20"
    return alt.Color(f"{field}:N", sort=order, scale=alt.Scale(domain=order, scheme=scheme), legend=_legend())


def _shape(field: str, names: Sequence[str]) -> Any:
    alt = _altair()
    order = list(dict.fromkeys(names))
    shapes = [_SHAPES[at % len(_SHAPES)] for at in range(len(order))]
    return alt.Shape(f"{field}:N", sort=order, scale=alt.Scale(domain=order, range=shapes), legend=_legend())


def _legend() -> Any:
    return _altair().Legend(title=None, symbolLimit=0, labelLimit=260)


def _altair() -> Any:
    try:
        import altair
        import vl_convert  # noqa: F401  (altair renders with it)
    except ImportError as error:
        raise ConfigError(
            f"charts need the package {error.name}", hint='pip install "evenflow[plots]"'
        ) from None
    altair.data_transformers.disable_max_rows()
    return altair
