"""The pictures of what the partitioner `partly` makes of micro-batches, drawn from kept rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenflow.charts.axes import Axis, decades, linear, ratios
from evenflow.charts.emphasis import looks
from evenflow.charts.lines import Line, lines
from evenflow.charts.page import page

if TYPE_CHECKING:
    import altair

HERO = "partly"
_NAMED = ("prompt", "cam", "hashing", "shuffle", "prompt:rest=roomiest", "pk5")
_LEAST = 1e-4
"""Least share that a logarithmic axis shows. Smaller ones are drawn there."""
_SPLIT_LEAST = 0.1
"""A batch without a split key is drawn here."""
Rows = Sequence[dict[str, Any]]


def quality(rows: Rows) -> altair.TopLevelMixin:
    """BSI, BCI and split keys over the exponent, for batches of 2,000 keys (001, fig. 4.7 and the split
    keys).
    """
    rows = [row for row in rows if row["keys"] == 2_000]
    x = linear("exponent of Zipf's law", [row["zipf"] for row in rows])
    share = "share of a data block's mean"

    def panel(title: str, figure: str, least: float, y: str) -> Any:
        return _panel(rows, "zipf", x, title, lambda row: max(least, float(row[figure])), y)

    panels = [
        panel("BSI / mean tuples", "bsi_share", _LEAST, share),
        panel("BCI / mean keys", "bci_share", _LEAST, share),
        panel("split keys", "split_keys", _SPLIT_LEAST, "keys of a batch"),
    ]
    subtitle = (
        "24 data blocks, 100,000 tuples of at most 2,000 keys; means over batches that no policy was"
        " trained on"
    )
    return page(panels, title="BSI, BCI and split keys, by skew", subtitle=[subtitle], columns=3, spacing=60)


def plan(rows: Rows) -> altair.TopLevelMixin:
    """CPU time of a batch over its keys and over its skew (001, fig. 4.8b and 4.9)."""
    by_keys = [row for row in rows if row["over"] == "keys"]
    by_skew = [row for row in rows if row["over"] == "zipf"]
    keys = ratios("keys", [row["keys"] for row in by_keys], powers=True)
    skew = linear("exponent of Zipf's law", [row["zipf"] for row in by_skew])

    def time(row: dict[str, Any]) -> float:
        return float(row["batch_ms"])

    panels = [
        _panel(by_keys, "keys", keys, "Zipf 1.0, 10 tuples a key", time, "CPU ms for a batch"),
        _panel(by_skew, "zipf", skew, "10,000 keys, 100,000 tuples", time, "CPU ms for a batch"),
    ]
    return page(
        panels,
        title="CPU time of a batch, by keys and by skew",
        subtitle=["24 data blocks, one core"],
        columns=2,
        spacing=90,
    )


def training(rows: Rows) -> altair.TopLevelMixin:
    """The cost of held-out batches over the actions trained on, a line for each training."""
    drawn: dict[str, Line] = {}
    for name in dict.fromkeys(row["training"] for row in rows):
        own = [row for row in rows if row["training"] == name]
        drawn[name] = Line([row["steps"] / 1e6 for row in own], [row["cost"] for row in own])
    most = max(at for line in drawn.values() for at in line.x)
    drawn["Prompt"] = Line([0, most], [rows[0]["prompt"]] * 2)
    x = linear("million actions trained on", [0, most])
    y = ratios("mean cost of held-out batches", [cost for line in drawn.values() for cost in line.y])
    look = looks(drawn, hero="shipped", named=list(drawn))
    panel = lines(drawn, look, x=x, y=y, title="", width=420)
    return page([panel], title="Cost of held-out batches over the training", columns=1)


def _panel(
    rows: Rows, over: str, x: Axis, title: str, value: Callable[[dict[str, Any]], float], y_title: str
) -> Any:
    drawn = {name: _line(rows, name, over, value) for name in _names(rows)}
    y = decades(y_title, [at for line in drawn.values() for at in line.y])
    return lines(drawn, looks(drawn, hero=HERO, named=_NAMED), x=x, y=y, title=title)


def _line(rows: Rows, name: str, over: str, value: Callable[[dict[str, Any]], float]) -> Line:
    own = sorted((row for row in rows if row["partitioner"] == name), key=lambda row: float(row[over]))
    return Line([row[over] for row in own], [value(row) for row in own])


def _names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["partitioner"] for row in rows))
