"""The picture of docs/scale.md: cores over the number of workers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.scale.setups import SETUPS, Setup
from evenflow.charts.axes import decades, ratios
from evenflow.charts.lines import Line, lines
from evenflow.charts.looks import NAMED, SUBJECT
from evenflow.charts.page import page
from evenflow.scale.costs import Units, terms
from evenflow.scale.shape import StreamLoad
from evenflow.settings.sections.sharing import chosen_partitions

if TYPE_CHECKING:
    import altair

SHOWN = ("as set", "one query")
WORKERS = (10, 20, 50, 100, 200, 500, 1_000)
_LEAST = 0.01
_TOPICS = {
    "the tuples themselves": ("tuples", "partials", "result rows"),
    "frames": ("headers", "frames", "punctuation"),
    "transactions": ("transactions",),
    "blobs": ("ranges", "blobs", "segments", "marks in blobs"),
    "lanes": ("lanes told", "lanes kept"),
    "control": ("telemetry", "decisions", "plans", "peers' progress", "snapshots"),
}


def by_workers(load: StreamLoad, units: Units) -> altair.TopLevelMixin:
    """Cores of all places by what they are spent on: a panel for the rhythm of a small pipeline, one for
    longer blocks.
    """
    drawn = {name: grown(SETUPS[name], load, units) for name in SHOWN}
    everything = [value for panel in drawn.values() for line in panel.values() for value in line.y]
    x = ratios("workers", WORKERS, powers=True)
    y = decades("cores", everything, floor=_LEAST, words="format(datum.value, ',~g')")
    looks = dict(zip(_TOPICS, (NAMED[0]._replace(line=2.5), SUBJECT, *NAMED[1:]), strict=False))
    panels = [
        lines(panel, looks, x=x, y=y, title=f"{name}: {SETUPS[name].words}", width=330, height=280)
        for name, panel in drawn.items()
    ]
    subtitle = [
        "10 M tuples/s, 100 input partitions, words (Zipf 0.95). Cores of all places, three replicas of each"
        " partition."
    ]
    return page(panels, title="Cores, by number of workers", subtitle=subtitle)


def grown(setup: Setup, load: StreamLoad, units: Units) -> dict[str, Line]:
    """Cores of each topic at each number of workers. There are never more tasks or buckets than workers."""
    cores_by_topic: dict[str, list[float]] = {topic: [] for topic in _TOPICS}
    for workers in WORKERS:
        routed = workers if setup.shape.shared_by == 1 else chosen_partitions(workers)
        shape = replace(
            setup.shape,
            routed=routed,
            shared_by=workers / routed,
            tasks=min(setup.shape.tasks, routed),
            buckets=min(setup.shape.buckets, workers),
        )
        bill = terms(shape, load, units)
        for topic, names in _TOPICS.items():
            cores_by_topic[topic].append(max(_LEAST, sum(term.cores for term in bill if term.topic in names)))
    return {topic: Line(list(map(float, WORKERS)), cores) for topic, cores in cores_by_topic.items()}
