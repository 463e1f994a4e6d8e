"""Three charts of a simulation in one picture.

They show imbalance against replication factor, imbalance over time, and load per worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenflow.charts.axes import PLAIN_POWERS, Axis, decades, linear
from evenflow.charts.emphasis import FEW, best, equal, looks
from evenflow.charts.lines import Line, lines
from evenflow.charts.looks import EQUAL, Look
from evenflow.charts.page import TWO_PANELS, drawing, page, save
from evenflow.charts.points import points
from evenflow.errors import ConfigError
from evenflow.simulation.provenance import Provenance
from evenflow.simulation.results import SimulationResult

if TYPE_CHECKING:
    import altair

FORMATS = (".png", ".svg", ".pdf", ".html")
CURVE_POINTS = 200
"""Most points of a curve in the picture.
Of a longer curve the picture takes the largest value of each stretch.
"""
_FLOOR = 1e-7
"""Least imbalance of the logarithmic axes. Smaller imbalances, also 0, are drawn at this value."""
_TITLE = "Imbalance against replication, imbalance over time, and loads"
_UNITS = (
    "Imbalance: fullest worker above the mean, as a share of all. Replication: workers that hold a key, mean."
)
_KNOWN = ("hashing", "shuffle", "d-choices")
"""Well-known partitioners, which are named in every picture."""


def check_target(path: Path) -> None:
    """ConfigError if no picture can be written to this path. It is called before anything is computed."""
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(
            f"{path} ends with none of {', '.join(FORMATS)}", hint="the ending tells the format"
        )
    if not path.parent.is_dir():
        raise ConfigError(f"there is no folder {path.parent}", hint="make it first")
    _probe(path)
    drawing()


def _probe(path: Path) -> None:
    """ConfigError if the file cannot be opened for writing. The file system is as before afterwards."""
    try:
        target = path.resolve()
        existed_before = target.exists()
        with target.open("ab"):  # appending does not empty a picture that exists
            pass
        if not existed_before:
            target.unlink()
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(f"{path} cannot be written: {reason}", hint="name another file") from None


def plot(
    results: Sequence[SimulationResult],
    path: Path,
    *,
    about: Provenance | None = None,
    stress: str | None = None,
) -> None:
    """Write the picture. The ending of the path decides the format (`FORMATS`). The rest is as for
    `picture`.
    """
    check_target(path)
    save(picture(results, about=about, stress=stress), path)


def picture(
    results: Sequence[SimulationResult], *, about: Provenance | None = None, stress: str | None = None
) -> altair.TopLevelMixin:
    """The charts side by side. The title says what is drawn, and never which partitioner is better.

    about: the provenance of one of the results, for the caption. stress: the partitioner that stands out.
    None: none does. Of many partitioners the well-known and the best ones are named, and the rest is grey.
    """
    by_name = {result.figures.partitioner: result for result in results}
    at = {name: (result.figures.ksr, _imbalance(result)) for name, result in by_name.items()}
    if stress is None and len(by_name) <= len(EQUAL):
        look_of = equal(by_name)
    else:
        look_of = looks(by_name, hero=stress or "", named=[*_KNOWN, *best(at)])
    panels = [_balance(at, look_of), _over_time(by_name, look_of), _loads(by_name, look_of)]
    subtitle = _subtitle(results, look_of, about)
    return page(panels, title=_TITLE, subtitle=subtitle, columns=3, spacing=40, letters=TWO_PANELS)


def _subtitle(
    results: Sequence[SimulationResult], look_of: Mapping[str, Look], about: Provenance | None
) -> list[str]:
    figures = results[0].figures
    conditions = f"{figures.tuples:,} tuples, {figures.keys:,} keys, {figures.workers} workers"
    if about is not None:
        conditions = f"{caption(about)}, {conditions}"
    grey = sum(not look.labelled for look in look_of.values())
    lines = [f"{conditions}; grey: {grey} others" if len(look_of) > FEW and grey else conditions, _UNITS]
    if figures.total_cost is not None:
        lines.append(_weighed(results))
    if any(len(result.at) > CURVE_POINTS for result in results):
        lines.append("Imbalance over time: the largest value of each stretch.")
    return lines


def _weighed(results: Sequence[SimulationResult]) -> str:
    """What the loads are, and who does not weigh, in words."""
    others = [result.figures.partitioner for result in results if not result.figures.weighs]
    not_weighed = f"; do not weigh: {', '.join(others)}" if others else ""
    return f"Loads are sums of the costs of tuples{not_weighed}."


def caption(about: Provenance) -> str:
    """The stream, its window and the seed in words."""
    exponent = "" if about.exponent is None else f" {about.exponent:g}"
    words = [
        f"stream {about.stream}{exponent}",
        f"seed {about.hash_seed if about.seed is None else about.seed}",
    ]
    if about.seed not in (None, about.hash_seed):
        words.append(f"hash seed {about.hash_seed}")
    if about.window_ms is not None:
        words.append(f"window {about.window_ms / 1000:g} s, slide {about.slide_ms / 1000:g} s")
    if about.sources > 1:
        words.append(f"{about.sources} sources")
    return ", ".join(words)


def thinned(result: SimulationResult, most: int = CURVE_POINTS) -> Line:
    """The series of a result with at most so many points: the largest value of each stretch,
    at its own place.
    """
    stretch = -(-len(result.at) // most)
    pieces = [
        first + int(result.over_time[first : first + stretch].argmax())
        for first in range(0, len(result.at), stretch)
    ]
    return Line(result.at[pieces].tolist(), result.over_time[pieces].tolist())


def _balance(at: Mapping[str, tuple[float, float]], look_of: Mapping[str, Look]) -> Any:
    shares = [ksr for ksr, _ in at.values()]
    x = linear("replication factor (1 = no key is split)", [1.0, *shares, 1.05])
    y = _level("imbalance", [imbalance for _, imbalance in at.values()])
    return points(at, look_of, x=x, y=y, title="imbalance against replication: less of both is better")


def _over_time(results: Mapping[str, SimulationResult], look_of: Mapping[str, Look]) -> Any:
    windowed = any(result.figures.window_imbalance is not None for result in results.values())
    drawn = {name: thinned(result) for name, result in results.items()}
    ends = [float(at) for line in drawn.values() for at in (line.x[0], line.x[-1])]
    x = linear(
        "event time, s" if windowed else "tuples",
        ends,
        words=f"format(datum.value, '{',~f' if windowed else '~s'}')",
    )
    y = _level(
        "imbalance of the window" if windowed else "imbalance of the stream so far",
        [value for line in drawn.values() for value in line.y],
    )
    return lines(drawn, look_of, x=x, y=y, title="imbalance over time", height=260)


def _loads(results: Mapping[str, SimulationResult], look_of: Mapping[str, Look]) -> Any:
    drawn = {name: _ranked(result) for name, result in results.items()}
    most = max(line.y[0] for line in drawn.values())
    x = linear("workers, fullest first", [1, max(len(line.x) for line in drawn.values())])
    y = Axis("load / mean load", 0, max(2.0, most * 1.05), "symlog")
    return lines(drawn, look_of, x=x, y=y, title="load per worker", height=260)


def _ranked(result: SimulationResult) -> Line:
    # The tiny number avoids a division by 0 if no tuple was routed.
    shares = np.sort(result.loads / max(result.loads.mean(), 1e-300))[::-1]
    return Line(list(range(1, len(shares) + 1)), shares.tolist())


def _imbalance(result: SimulationResult) -> float:
    figures = result.figures
    return figures.imbalance if figures.window_imbalance is None else figures.window_imbalance


def _level(title: str, values: Sequence[float]) -> Axis:
    return decades(title, values, floor=_FLOOR, words=PLAIN_POWERS)
