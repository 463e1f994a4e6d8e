"""Whether the costs that `partitioner.cost` gives the tuples of a sample can say anything to a
partitioner.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenflow import partitioners
from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Float64s
from evenflow.partitioners.costs import MAX_COST, weighed
from evenflow.reporting.words import share
from evenflow.settings import Settings
from workbench.assist.findings import Finding
from workbench.assist.sample_check.facts import SampleFacts
from workbench.assist.sample_check.judges.columns import likely_name
from workbench.assist.sample_check.words import counted, listed

_NAME = "the cost"
_NEARLY_ALL = 0.99
"""Where so large a share of the tuples costs the same, weighing them changes nothing."""
_LEAST = 100
"""Fewer tuples say nothing of the others."""


def judge_costs(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    """Findings about columns of the cost that no record has,
    and about costs that are all the same or out of range.

    None of these is a problem: a cost changes balance, never results. A partitioner that does not weigh
    tuples is one, because the service refuses it.
    """
    cost = settings.cost
    if cost is not None and not _weighs(settings.partitioner.name):
        message = (
            f"partitioner.cost is set, but partitioner {settings.partitioner.name} does not weigh tuples"
        )
        yield Finding(
            _NAME,
            "problem",
            message,
            f"leave it out, or take one that weighs: {', '.join(partitioners.weighing())}",
        )
    if cost is None or facts.costs is None or not len(facts.costs):
        return
    absent = [name for name in (*cost.of_record, *cost.of_element) if not facts.shape.column(name).present]
    if facts.shape.rows and absent:
        candidate = likely_name(absent[0], facts.shape)
        message = f"none of {facts.shape.rows:,} records has a column {absent[0]!r} ({_NAME}); columns seen: "
        do = (
            f"did you mean {candidate!r}?" if candidate is not None else "name a column that the records have"
        )
        yield Finding(_NAME, "warning", message + listed(facts.shape.columns), do)
    yield from _judge_range(settings, facts.costs)


def _weighs(partitioner: str) -> bool:
    """Whether this partitioner weighs tuples. True for an unknown one, which is refused for another
    reason.
    """
    try:
        return partitioners.takes_costs(partitioner)
    except ConfigError:
        return True


def _judge_range(settings: Settings, numbers: Float64s) -> Iterator[Finding]:
    costs, below, above = weighed(numbers)
    count = len(costs)
    named = f"partitioner.cost = {settings.partitioner.cost!r}"
    if below:
        message = (
            f"{named} is below 1, or no number, for {counted(below, count)}"
            f" tuples ({share(below, count)}), which "
        )
        message += "count as 1"
        yield Finding(_NAME, "warning", message, "choose a smaller unit (size * 1000), or another column")
    if above:
        message = (
            f"{named} is above {MAX_COST:,} for {counted(above, count)}"
            f" tuples ({share(above, count)}), which "
        )
        message += "count as that"
        yield Finding(_NAME, "warning", message, "choose a larger unit (size / 1000)")
    values, tuples = np.unique(costs, return_counts=True)
    most = int(np.argmax(tuples))
    if count >= _LEAST and tuples[most] >= _NEARLY_ALL * count:
        message = (
            f"{named} is {values[most]:,} for {counted(int(tuples[most]), count)} tuples,"
            " so weighing changes nothing"
        )
        yield Finding(_NAME, "warning", message, "leave partitioner.cost out, or name what tuples differ in")
    else:
        message = f"{named}: {values[0]:,} to {values[-1]:,}, {np.mean(costs):,.1f} on average"
        yield Finding(_NAME, "ok", message)
