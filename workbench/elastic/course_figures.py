"""How good a course was: pure figures, the same for every policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from workbench.elastic.course import Batch, Course

THRESHOLD, STEP = 0.90, 0.10
"""Bounds of the zones by which every policy is judged.
They are those of 001, whatever zones the policy itself uses.
"""


@dataclass(frozen=True, kw_only=True)
class CourseVerdict:
    """Figures of a course."""

    seconds: float
    """How long the course was, without the first micro-batch."""
    batches: int
    """Finished micro-batches that count. The first does not."""
    out_of_zone_2: float
    """Share of the time with W outside of ]0.80, 0.90]."""
    overloaded: float
    """Share of the time with W above that zone."""
    under_used: float
    """Share of the time with W below that zone."""
    mean_load: float
    """Mean of W over time."""
    slot_seconds: float
    """Slots, summed over time."""
    over_provisioned: float
    """The part of `slot_seconds` beyond the fewest slots that would have kept W at or below 0.90. It takes W
    to be inversely proportional to the slots. As a micro-batch has a fixed cost, it is a lower bound."""
    slo_ms: float
    """The objective for the latency."""
    slo_violations: float | None
    """Share of the course's latencies above that objective. None if no window was due."""
    latency_p50_ms: float | None
    """Median of the course's latencies. None if no window was due."""
    latency_p99_ms: float | None
    """99th percentile of the course's latencies. None if no window was due."""
    actions: int
    """Number of plans that were published."""


def verdict_of(course: Course, *, slo_ms: float) -> CourseVerdict:
    """Figures of this course. slo_ms: latency that a user would have been promised.

    The first micro-batch does not count, because it holds what waited for Spark to start.
    """
    batches = one_stage(course.batches)
    lasted = _lasted(batches)
    # A record comes when its micro-batch has ended. So the time since the record before it belongs to that
    # micro-batch.
    spans = list(zip(batches[1:], lasted, strict=True))
    # 1.0: without a second micro-batch all shares are 0.
    whole = sum(lasted) or 1.0
    over = sum(seconds for batch, seconds in spans if zone_of(batch) == 3)
    under = sum(seconds for batch, seconds in spans if zone_of(batch) == 1)
    late = sorted(latency for _, latency in course.latencies)
    return CourseVerdict(
        seconds=round(sum(lasted), 1),
        batches=len(spans),
        out_of_zone_2=round((over + under) / whole, 3),
        overloaded=round(over / whole, 3),
        under_used=round(under / whole, 3),
        mean_load=round(sum(batch.load * seconds for batch, seconds in spans) / whole, 3),
        slot_seconds=round(sum((batch.slots or 1) * seconds for batch, seconds in spans), 1),
        over_provisioned=round(sum(_spare(batch) * seconds for batch, seconds in spans), 1),
        slo_ms=slo_ms,
        slo_violations=None if not late else round(sum(each > slo_ms for each in late) / len(late), 3),
        latency_p50_ms=_percentile(late, 50),
        latency_p99_ms=_percentile(late, 99),
        actions=len(course.changes),
    )


def zone_of(batch: Batch) -> int:
    """Zone 1, 2 or 3 of a micro-batch (001, chapter 3.3)."""
    return 3 if batch.load > THRESHOLD else 1 if batch.load <= THRESHOLD - STEP else 2


def one_stage(batches: Sequence[Batch]) -> list[Batch]:
    """The micro-batches of the stage that was loaded most. In the split wiring there are two stages."""
    stages = {batch.stage for batch in batches}
    if len(stages) <= 1:
        return list(batches)
    total = {stage: sum(batch.load for batch in batches if batch.stage == stage) for stage in stages}
    # Sorted, so that a tie is decided the same way each time.
    worst = max(sorted(total), key=lambda stage: total[stage])
    return [batch for batch in batches if batch.stage == worst]


def _lasted(batches: Sequence[Batch]) -> list[float]:
    return [max(0.0, later.at - before.at) for before, later in pairwise(batches)]


def _spare(batch: Batch) -> int:
    """How many slots of the micro-batch could have been missing with W still at or below the threshold."""
    slots = batch.slots or 1
    return max(0, slots - max(1, math.ceil(slots * batch.load / THRESHOLD)))


def _percentile(ordered: Sequence[float], percent: float) -> float | None:
    """The percentile by nearest rank. None if there are no values."""
    if not ordered:
        return None
    return round(ordered[min(len(ordered) - 1, math.ceil(percent / 100 * len(ordered)) - 1)])
