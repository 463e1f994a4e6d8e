"""Which plan of a query is in force, and how its settings' `workers` get their meaning back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from controller.evaluate import patience
from evenflow.errors import IncompatibleStateError
from evenflow.plans import Plan, Schedule, UpcomingPlan
from evenflow.reporting.words import moment, printable, span
from evenflow.settings import Settings
from evenflow.telemetry import DecisionRecord, PartitionerRecord
from evenflow.windows import NO_MARK
from partitioner_service.plans_by_hand import publish
from topics.query.input_topic import admitted
from topics.query.plan_topic import read_plans
from workbench.assist.activity import Part, read_activity
from workbench.assist.status.words import count

_BETWEEN_LOOKS = 1.0  # s
_LONGER = 5.0
"""Seconds beyond the controller's patience after which a silent controller has stopped.

While Spark is silent, a controller judges once in its patience.
"""
CLEARED = "published by hand: the workers of the settings"
"""Reason of the plan that `clear` publishes."""


@dataclass(frozen=True)
class AppliedPlans:
    """The plans of a query as its parts apply them."""

    current: Plan | None
    """The plan that is in force. None if the settings hold."""
    upcoming: tuple[UpcomingPlan, ...]
    """Plans that come into force later, in that order."""
    workers: int
    """p of the settings."""
    reducers: int
    """r of the settings."""

    def lines(self) -> Iterator[str]:
        """The same for people, one line for each plan."""
        own = f"{count(self.workers, 'worker')} and {count(self.reducers, 'bucket')} at once"
        if self.current is None:
            none = "no plan is in force" if self.upcoming else "no plan has been published"
            yield f"{none}: {own}, by the settings"
        else:
            yield f"plan {self.current.epoch} is in force: {_numbers(self.current)}"
        for entry in self.upcoming:
            begins = "the next slide" if entry.begins == NO_MARK else moment(entry.begins)
            yield f"plan {entry.plan.epoch} follows from {begins} on: {_numbers(entry.plan)}"
        if self.current is not None or self.upcoming:
            yield f"the settings say {own}; `evenflow plan --clear` publishes that"

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON. begins: ms, None for the next slide."""
        return {
            "in_force": None if self.current is None else self.current.fields(),
            "upcoming": [
                {"begins": None if entry.begins == NO_MARK else entry.begins, **entry.plan.fields()}
                for entry in self.upcoming
            ],
            "settings": {"p": self.workers, "r": self.reducers},
        }


def applied_plans(settings: Settings) -> AppliedPlans:
    """Ask the broker once. Makes nothing.

    Raises ConfigError without an input topic, IncompatibleStateError for a query that began with other
    settings, and ServiceError if the broker does not answer.
    """
    settings = admitted(settings)
    records = (part.telemetry for part in read_activity(settings).parts)
    reached = max(
        (
            record.event_time
            for record in records
            if isinstance(record, PartitionerRecord) and record.event_time is not None
        ),
        default=None,
    )
    schedule = Schedule(settings.query.slide_ms)
    schedule.start(read_plans(settings), reached=reached)
    current = schedule.current
    return AppliedPlans(
        current=None if current is None else _applied(current, settings),
        upcoming=tuple(replace(entry, plan=_applied(entry.plan, settings)) for entry in schedule.upcoming),
        workers=settings.partitioner.workers,
        reducers=settings.reducers,
    )


def clear(settings: Settings, *, because: str = "") -> Plan:
    """Publish the settings' `workers` and `spark.reducers` as the plan of the next epoch, and return it.

    because: why, for the audit log.

    Raises what `partitioner_service.plans_by_hand.publish` raises.
    """
    return publish(
        settings,
        workers=settings.partitioner.workers,
        reducers=settings.reducers,
        reason=CLEARED,
        because=because,
    )


def refuse_beside_a_controller(
    settings: Settings,
    *,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
    waiting: Callable[[str], None] = lambda line: None,
) -> None:
    """Raise IncompatibleStateError if a controller of the query is at work.

    A controller that decided lately may have stopped since. This waits until it would have decided again.
    now: seconds since 1970. waiting: called with a line of text before the wait.
    """
    silent = patience(settings) + _LONGER
    first = None
    while (last := _controller(settings)) is not None:
        left = last.at / 1000 + silent - now()
        if left <= 0:
            return
        if first is None:
            first = last
            waiting(
                "a controller decided just now: waiting up to"
                f" {span(1000 * left)} to see whether it has stopped"
            )
        # It has decided since the first look, so it is at work.
        if last.at > first.at:
            raise IncompatibleStateError(
                f"a controller of query {settings.query.name} is at work, and would go on from a plan by"
                " hand: nothing is published",
                hint='stop it first, or set control.policy = "fixed"; --force publishes beside it',
            )
        sleep(min(_BETWEEN_LOOKS, left))


def _controller(settings: Settings) -> Part | None:
    """The newest decision of a controller of the query, None if there is none among the newest telemetry."""
    parts = read_activity(settings, whoever=True).parts
    return next((part for part in parts if isinstance(part.telemetry, DecisionRecord)), None)


def _applied(plan: Plan, settings: Settings) -> Plan:
    """The plan as every part applies it: at most the buckets that there are."""
    return replace(plan, r=min(plan.r, settings.bucket_count))


def _numbers(plan: Plan) -> str:
    why = f" ({printable(plan.reason)})" if plan.reason else ""
    return f"{count(plan.p, 'worker')} and {count(plan.r, 'bucket')} at once{why}"
