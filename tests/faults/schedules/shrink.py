"""A failing schedule with fewer faults, fewer records and fewer instances that still fails in the same
way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.faults.run import Outcome, run
from tests.faults.schedules.schedule import Schedule

_MOST_RUNS = 400


def shrunk(outcome: Outcome, *, again: Callable[[Schedule], Outcome] = run) -> Outcome:
    """The smallest failing run that single steps lead to. again: runs a schedule."""
    wanted = kind_of(outcome)
    left = _MOST_RUNS
    progress = True
    while progress and left:
        progress = False
        for smaller in _smaller(outcome.schedule):
            left -= 1
            tried = again(smaller)
            if kind_of(tried) == wanted:
                outcome, progress = tried, True
                break
            if not left:
                break
    return outcome


def kind_of(outcome: Outcome) -> str:
    """What is violated, without the numbers of this run. '' for a run in which all is well."""
    if not outcome.violations:
        return ""
    first = re.sub(r"'[^']*'|[0-9]+", "#", outcome.violations[0])
    return re.split(r"[:,(]", first)[0]


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    """Schedules with a little less, the largest steps first."""
    for number in range(len(schedule.faults)):
        yield schedule.without(number)
    shape = schedule.shape
    if shape.instances > 1:
        yield replace(schedule, shape=replace(shape, instances=shape.instances - 1))
    simpler = {
        "reduce": "hash",
        "wiring": "fused",
        "store": "disk",
        "sink": "kafka",
        "buckets": 1,
        "workers": 1,
        "shared": 0,
        "idle": None,
        "filtered": False,
        "window": shape.slide,
        "frame_bytes": 1_000_000,
        "start": "earliest",
        "updates": False,
        "lateness": 0,
        "disorder": 0,
    }
    for name, value in simpler.items():
        bound = (name == "start" and schedule.records) or (name == "lateness" and shape.updates)
        if getattr(shape, name) != value and not bound:
            yield replace(schedule, shape=replace(shape, **{name: value}))
    size = len(schedule.records) // 2
    while size:
        for begin in range(0, len(schedule.records), size):
            rest = schedule.records[:begin] + schedule.records[begin + size :]
            kept = tuple(record for record in schedule.records if record in rest or _needed(record, schedule))
            if len(kept) < len(schedule.records):
                yield replace(schedule, records=kept)
        size //= 2


def _needed(record: object, schedule: Schedule) -> bool:
    """Whether it is the last marker of its partition, without which no run comes to its end."""
    markers = [r for r in schedule.records if r.kind == "marker"]
    return any(
        record is r and not any(m.partition == r.partition and m.at > r.at for m in markers) for r in markers
    )
