"""The two pictures of the windowed suite.

Balance is drawn as something that a reader can picture: how far the fullest worker's load is above its fair
share, in percent. That is the window imbalance times the number of workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from evenflow.charts.axes import Axis, decades
from evenflow.charts.emphasis import OURS
from evenflow.charts.lines import Line
from evenflow.charts.page import TWO_PANELS, page
from papers.pictures.charts import Emphasis, curves, scatter

if TYPE_CHECKING:
    import altair

EMPHASIS = Emphasis(OURS, ("hashing", "shuffle", "d-choices", "w-choices", "dalton"))
SKEWED = ("Zipf 1.0", "Zipf 1.5", "shift")
FEW_COPIES = 1.01
"""KSR below which almost every key is whole."""
NEAR = 0.1
"""Percent above the fair share below which a worker is called level."""
TITLE = "Imbalance against replication, by stream"
SHIFT_TITLE = "Imbalance, slide by slide after a change of the keys"
_FLOOR = 1e-3
"""The least that is drawn, in percent. Smaller values are drawn here."""
_COPIES = "workers that hold a key, mean (1 = no key is split)"
_CALLED = {
    "uniform": "uniform: no key is hot",
    "shift": "shift: uniform, then Zipf 1.5",
}
Placed = Mapping[str, Mapping[str, tuple[float, float]]]
"""By stream and partitioner: KSR and window imbalance."""


def suite(placed: Placed, *, workers: int, seeds: Sequence[int]) -> altair.TopLevelMixin:
    """A panel for each stream: balance against replication, as medians over these seeds."""
    over = {
        stream: {rule: (ksr, _percent(imbalance, workers)) for rule, (ksr, imbalance) in points.items()}
        for stream, points in placed.items()
    }
    y = _axis(value for points in over.values() for _, value in points.values())
    panels = [
        scatter(points, EMPHASIS, x_title=_COPIES, y=y, title=_CALLED.get(stream, stream))
        for stream, points in over.items()
    ]
    grey = max(0, len(next(iter(over.values()))) - len(EMPHASIS.named) - 1)
    subtitle = (
        f"{workers} workers, windows of 60 slides, medians over seeds {seeds[0]} to {seeds[-1]}. "
        f"Less of both is better. Orange: evenflow, grey: {grey} others."
    )
    return page(panels, title=TITLE, subtitle=[subtitle], letters=TWO_PANELS)


def shift(imbalance: Mapping[str, Sequence[float]], *, workers: int, first: int) -> altair.TopLevelMixin:
    """Balance slide by slide after the law of the keys has changed."""
    drawn = after_shift(imbalance, workers=workers)
    y = _axis(value for line in drawn.values() for value in line.y)
    panel = curves(drawn, EMPHASIS, x_title="slides since the change", y=y, title="", width=640)
    subtitle = (
        f"{workers} workers; the keys change from uniform to Zipf 1.5 with slide {first}, a window is {first}"
        " slides."
    )
    return page([panel], title=SHIFT_TITLE, subtitle=[subtitle])


def after_shift(imbalance: Mapping[str, Sequence[float]], *, workers: int) -> dict[str, Line]:
    """A line for each rule: how far the fullest worker is above its fair share, in %, over the slides
    since the change.
    """
    return {
        rule: Line(list(range(1, len(values) + 1)), [_percent(value, workers) for value in values])
        for rule, values in imbalance.items()
    }


def recovery(drawn: Mapping[str, Line]) -> str:
    """In words: after how many slides ours is level and stays level."""
    ours = drawn.get(OURS, Line([], []))
    late = [int(at) for at, percent in zip(ours.x, ours.y, strict=True) if percent >= NEAR]
    # Ours was not measured, or is not level at the end, so there is no recovery to tell of.
    if not ours.x or late[-1:] == [len(ours.x)]:
        return "Balance after the keys have changed"
    slides = late[-1] + 1 if late else 1
    after = "1 slide" if slides == 1 else f"{slides} slides"
    return f"{after} after the keys have changed evenflow is level again, within {NEAR:g} % of the fair share"


def _percent(imbalance: float, workers: int) -> float:
    return 100 * workers * imbalance


def _axis(values: Iterable[float]) -> Axis:
    return decades(
        "fullest worker above its fair share", values, floor=_FLOOR, words="format(datum.value, ',~f') + ' %'"
    )
