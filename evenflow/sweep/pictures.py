"""The picture of a sweep: a line for each partitioner with a band over the seeds, in one panel or several.

No partitioner stands out, and the title says what is drawn, not what is to be seen in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evenflow.charts.axes import Axis, decades, linear, ratios
from evenflow.charts.emphasis import equal
from evenflow.charts.lines import Line, lines
from evenflow.charts.looks import Look
from evenflow.charts.page import ONE_PANEL, TWO_PANELS, page, save
from evenflow.errors import ConfigError
from evenflow.simulation.charts import check_target
from evenflow.sweep.comparing import CONDITIONS, Centre, ConditionSummary, summarised

if TYPE_CHECKING:
    import altair

AXES = ("workers", "exponent", "sources")
"""What may be on the horizontal axis, and what panels may differ in."""
_FLOOR = 1e-7
"""Least value of a logarithmic axis. Smaller values, also 0, are drawn at this value."""
_WIDE = 300.0
"""Ratio of the largest to the least value from which an axis is logarithmic."""
_UNITS = {
    "imbalance": "imbalance I(m), share of the tuples",
    "imbalance_mean": "mean imbalance I(t), share of the tuples",
    "window_imbalance": "imbalance of the window, share of its tuples",
    "ksr": "replication factor (1 = no key is split)",
    "gamma": "pairs of key and worker",
    "distinct": "distinct keys",
    "max_holders": "workers that hold the most split key",
    "hot_keys": "keys treated as frequent",
    "seconds": "processor time in assign, s",
    "ns_per_tuple": "processor time, ns per tuple",
    "exchange_bytes": "bytes that a source sends, B/s",
}
_WORDS = {"workers": "workers", "exponent": "exponent of Zipf's law", "sources": "sources"}
_MOST_TICKS = 10


def plot(
    table: pa.Table,
    path: Path,
    *,
    metric: str,
    x: str = "workers",
    panels: str | None = None,
    names: Sequence[str] = (),
    centre: Centre = "mean",
    level: float = 0.95,
) -> None:
    """Write the picture. The ending of the path decides the format (`simulation.charts.FORMATS`).

    ConfigError for an unknown metric, name, axis or format, and if the table differs in more than x and
    panels.
    """
    check_target(path)
    save(picture(table, metric=metric, x=x, panels=panels, names=names, centre=centre, level=level), path)


def picture(
    table: pa.Table,
    *,
    metric: str,
    x: str = "workers",
    panels: str | None = None,
    names: Sequence[str] = (),
    centre: Centre = "mean",
    level: float = 0.95,
) -> altair.TopLevelMixin:
    """A panel for each value of the column `panels`, or one panel, with the metric over the column `x`.

    names: partitioners. Empty: all. centre, level: of the line and its band (`comparing.interval`).
    ConfigError as `plot`.
    """
    _check_axes(x, panels)
    points = summarised(table, metric, names, centre=centre, level=level)
    _check_varied(points, {x, panels})
    by_panel: dict[Any, list[ConditionSummary]] = {}
    for point in points:
        by_panel.setdefault(None if panels is None else point.condition[panels], []).append(point)
    looks = equal(point.partitioner for point in points)
    unit = _unit(metric, weighed=table.column("total_cost").null_count < len(table))
    axes = _x_axis(x, [point.condition[x] for point in points]), _y_axis(unit, metric, points)
    charts = (
        [
            _panel(by_panel[value], looks, axes, x, "" if panels is None else _panel_title(panels, value))
            for value in sorted(by_panel)
        ]
        if panels is not None
        else [_panel(points, looks, axes, x, "")]
    )
    return page(
        charts,
        title=f"{unit[0].upper()}{unit[1:]}",
        subtitle=_caption(
            points,
            {x, panels},
            seeds=_seeds(table, looks),
            how=(centre, level),
            cut=any(_low(point) < axes[1].low for point in points),
        ),
        columns=min(2, len(charts)),
        letters=TWO_PANELS if len(charts) > 1 else ONE_PANEL,
    )


def _unit(metric: str, *, weighed: bool) -> str:
    """The metric in words with its unit. weighed: whether the tuples have costs, so that shares are of
    costs.
    """
    unit = _UNITS.get(metric, metric)
    return unit.replace("tuples", "costs") if weighed and "share" in unit else unit


def _seeds(table: pa.Table, names: Collection[str]) -> list[int]:
    """The seeds of these partitioners' rows."""
    columns = (table.column(name).to_pylist() for name in ("partitioner", "hash_seed"))
    return sorted({seed for name, seed in zip(*columns, strict=True) if name in names})


def _check_axes(x: str, panels: str | None) -> None:
    for option, value in (("x", x), ("panels", panels)):
        if value is not None and value not in AXES:
            raise ConfigError(f"{option} cannot be {value!r}", hint=f"choose one of {', '.join(AXES)}")
    if x == panels:
        raise ConfigError(f"x and panels are both {x!r}", hint="choose two different ones")


def _check_varied(points: Sequence[ConditionSummary], drawn: set[str | None]) -> None:
    """ConfigError if two points of a line would lie above each other."""
    for name in CONDITIONS:
        values = list(dict.fromkeys(point.condition[name] for point in points))
        if name in drawn and None in values:
            raise ConfigError(f"the table has no {name}", hint=f"choose another of {', '.join(AXES)}")
        if name not in drawn and len(values) > 1:
            raise ConfigError(
                f"the table has several values of {name}: {', '.join(map(str, values[:5]))}",
                hint=f"draw a panel for each with --panels {name}"
                if name in AXES
                else "sweep one of them at a time",
            )


def _panel(
    points: Sequence[ConditionSummary], looks: Mapping[str, Look], axes: tuple[Axis, Axis], x: str, title: str
) -> Any:
    curves: dict[str, Line] = {}
    for name in looks:
        own = sorted((p for p in points if p.partitioner == name), key=lambda p: float(p.condition[x]))
        if own:
            curves[name] = Line(
                [float(point.condition[x]) for point in own],
                [point.value.centre for point in own],
                [_low(point) for point in own],
                [_high(point) for point in own],
            )
    return lines(curves, looks, x=axes[0], y=axes[1], title=title, bands=True, width=300, height=240)


def _low(point: ConditionSummary) -> float:
    return point.value.centre if point.value.low is None else point.value.low


def _high(point: ConditionSummary) -> float:
    return point.value.centre if point.value.high is None else point.value.high


def _x_axis(x: str, values: Sequence[float]) -> Axis:
    low, high = min(values), max(values)
    axis = ratios(_WORDS[x], [low, high]) if x != "exponent" and high > 4 * low else linear(_WORDS[x], values)
    distinct = tuple(float(value) for value in sorted(set(values)))
    return replace(axis, ticks=distinct) if len(distinct) <= _MOST_TICKS else axis


def _panel_title(panels: str, value: float) -> str:
    return f"Zipf {value:g}" if panels == "exponent" else f"{value:,} {panels if value > 1 else panels[:-1]}"


def _y_axis(title: str, metric: str, points: Sequence[ConditionSummary]) -> Axis:
    centres = [point.value.centre for point in points]
    ends = [end for point in points for end in (_low(point), _high(point))]
    # Imbalances spread over orders of magnitude and may be 0, so their axis has a floor.
    if metric.endswith("imbalance") or metric == "imbalance_mean":
        return decades(title, [*centres, max(ends)], floor=_FLOOR)
    if min(centres) > 0 and max(centres) > _WIDE * min(centres):
        return decades(title, [*centres, max(ends)], floor=min(centres))
    return linear(title, [*centres, *ends])


def _caption(
    points: Sequence[ConditionSummary],
    drawn: set[str | None],
    *,
    seeds: Sequence[int],
    how: tuple[str, float],
    cut: bool,
) -> list[str]:
    """What was simulated, and what is drawn. how: centre and level. cut: whether a band ends below the
    axis.
    """
    (centre, level), condition = how, points[0].condition
    words = [f"stream {condition['stream']}"]
    if condition["exponent"] is not None and "exponent" not in drawn:
        words[0] += f" {condition['exponent']:g}"
    words.append(f"{condition['tuples']:,} tuples")
    if condition["generator_keys"] is not None:
        words.append(f"{condition['generator_keys']:,} keys")
    words += [_panel_title(name, condition[name]) for name in ("workers", "sources") if name not in drawn]
    if condition["window_ms"] is not None:
        words.append(f"window {condition['window_ms'] / 1000:g} s, slide {condition['slide_ms'] / 1000:g} s")
    if len(seeds) < 2:
        return [f"{', '.join(words)}.", f"Line: seed {seeds[0]}. One seed has no band."]
    kind = "t interval" if centre == "mean" else "bootstrap interval"
    return [
        f"{', '.join(words)}.",
        f"Line: {centre} over {len(seeds)} seeds ({_listed(seeds)}). Band: its {level:.0%} {kind}.",
        *(["A band that reaches below the axis is cut there."] if cut else []),
    ]


def _listed(seeds: Sequence[int]) -> str:
    """The seeds in words: `1 to 20`, or a list."""
    if len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"{seeds[0]} to {seeds[-1]}"
    few = ", ".join(map(str, seeds[:_MOST_TICKS]))
    return few if len(seeds) <= _MOST_TICKS else f"{few}, ... to {seeds[-1]}"
