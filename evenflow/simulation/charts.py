"""Three charts of a simulation in one picture: imbalance against replication factor, imbalance over time, load per
worker. Needs the extra `plots` (altair draws, vl-convert renders; no browser, no network)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenflow.errors import ConfigError
from evenflow.simulation.results import Result

if TYPE_CHECKING:
    import altair

FORMATS = (".png", ".svg", ".html")
_FLOOR = 1e-7
"""Imbalances are drawn on a logarithmic axis; smaller ones, also none at all, are drawn here."""
_SIZE = 340


def check_target(path: Path) -> None:
    """ConfigError when no picture can be written there; asked before anything is computed."""
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(
            f"{path} ends with none of {', '.join(FORMATS)}", hint="the ending tells the format"
        )
    if not path.parent.is_dir():
        raise ConfigError(f"there is no folder {path.parent}", hint="make it first")
    _probe(path)
    _altair()


def _probe(path: Path) -> None:
    """Open it for writing as `save` will; a picture that is there already stays, otherwise no file does."""
    try:
        target = path.resolve()
        there = target.exists()
        with target.open("ab"):
            pass
        if not there:
            target.unlink()
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(f"{path} cannot be written: {reason}", hint="name another file") from None


def plot(results: Sequence[Result], path: Path) -> None:
    """Write the picture; its ending tells the format."""
    check_target(path)
    save(picture(results), path)


def save(chart: altair.TopLevelMixin, path: Path) -> None:
    """As the ending says; a page of HTML holds all it needs."""
    ending: Any = path.suffix.lower().removeprefix(".")
    options: dict[str, Any] = {"inline": True} if ending == "html" else {"scale_factor": 2}
    chart.save(str(path), format=ending, **options)


def picture(results: Sequence[Result]) -> altair.HConcatChart:
    """The charts side by side, one colour for each partitioner."""
    alt = _altair()
    names = [result.figures.partitioner for result in results]
    colour = alt.Color(
        "partitioner:N",
        sort=names,
        scale=alt.Scale(domain=names, scheme="tableau10" if len(names) <= 10 else "tableau20"),
        legend=alt.Legend(title=None, symbolLimit=0, columns=1),
    )
    panels = [_against_replication(results, colour), _over_time(results, colour), _loads(results, colour)]
    return alt.hconcat(*panels).configure_view(strokeOpacity=0).configure_axis(gridOpacity=0.4)


def _against_replication(results: Sequence[Result], colour: altair.Color) -> altair.Chart:
    alt = _altair()
    rows = [
        {
            "partitioner": result.figures.partitioner,
            "ksr": result.figures.ksr,
            "imbalance": max(_FLOOR, _imbalance(result)),
        }
        for result in results
    ]
    points = alt.Chart(alt.Data(values=rows)).encode(
        alt.X(
            "ksr:Q", title="replication factor (1 = no key is split)", scale=alt.Scale(zero=False, nice=True)
        ),
        _log_axis("imbalance", "imbalance"),
        colour,
        alt.Tooltip(["partitioner:N", "ksr:Q", "imbalance:Q"]),
    )
    return _titled(points.mark_circle(size=110, opacity=0.9), "balance and its price")


def _over_time(results: Sequence[Result], colour: altair.Color) -> altair.Chart:
    alt = _altair()
    windowed = any(result.figures.window_imbalance is not None for result in results)
    rows = [
        {"partitioner": result.figures.partitioner, "at": float(at), "imbalance": max(_FLOOR, float(value))}
        for result in results
        for at, value in zip(result.at, result.over_time, strict=True)
    ]
    axis = alt.Axis(format=",~f" if windowed else "~s")
    lines = alt.Chart(alt.Data(values=rows)).encode(
        alt.X("at:Q", title="event time, s" if windowed else "tuples", axis=axis),
        _log_axis("imbalance", "imbalance of the window" if windowed else "imbalance of the stream so far"),
        colour,
    )
    return _titled(lines.mark_line(strokeWidth=1.5), "imbalance over time")


def _loads(results: Sequence[Result], colour: altair.Color) -> altair.Chart:
    alt = _altair()
    rows = [
        {"partitioner": result.figures.partitioner, "worker": rank, "load": float(load)}
        for result in results
        for rank, load in enumerate(np.sort(result.loads / max(result.loads.mean(), 1e-300))[::-1], start=1)
    ]
    lines = alt.Chart(alt.Data(values=rows)).encode(
        alt.X("worker:Q", title="workers, fullest first", scale=alt.Scale(nice=False)),
        alt.Y("load:Q", title="load / mean load", scale=alt.Scale(type="symlog", constant=1)),
        colour,
    )
    return _titled(lines.mark_line(strokeWidth=1.5, point={"size": 12}), "load per worker")


def _imbalance(result: Result) -> float:
    figures = result.figures
    return figures.imbalance if figures.window_imbalance is None else figures.window_imbalance


def _log_axis(field: str, title: str) -> altair.Y:
    alt = _altair()
    scale = alt.Scale(type="log", domain=[_FLOOR, 1], clamp=True)
    ticks = [10.0**power for power in range(round(math.log10(_FLOOR)), 1)]
    axis = alt.Axis(labelExpr="datum.value == 1 ? '1' : format(datum.value, '~e')", values=ticks)
    return alt.Y(f"{field}:Q", title=title, scale=scale, axis=axis)


def _titled(chart: altair.Chart, title: str) -> altair.Chart:
    return chart.properties(width=_SIZE, height=_SIZE, title=title)


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
