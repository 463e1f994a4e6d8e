"""Publishing plans by hand. The plan agent follows them (`app`, `routing.plan_inbox`)."""

from __future__ import annotations

import time
from dataclasses import replace

from evenflow.errors import ConfigError, ServiceError
from evenflow.plans import LAST_EPOCH, Plan
from evenflow.settings import Settings
from evenflow.windows import END_MARK, NO_MARK
from partitioner_service.begin.prepare import OWN_TOPICS
from topics import admin
from topics.clients import seconds
from topics.query.audit import ROLE
from topics.query.input_topic import admitted
from topics.query.plan_topic import PlanRecords, PlanWriter, WriterFenced, entry_of, read_plans

IDENTITY = "plan-by-hand"
"""Identity of the writer. It is not the controller's, so a plan by hand fences no controller."""
_TRIES = 10
_LOOK_SECONDS = 0.05


def publish(
    settings: Settings,
    *,
    workers: int,
    reducers: int | None = None,
    effective_from: int | None = None,
    reason: str = "published by hand",
    because: str = "",
) -> Plan:
    """Publish a plan with the next epoch, and return the plan once it counts.

    reducers: None means all buckets. effective_from: event time (ms) on a slide boundary, None for "at the
    next slide". reason: for people who read the plan. because: for those who read the audit log, of which
    each plan is a part.

    Raises ConfigError for more workers than `max_workers`, for more reducers than buckets, for an
    `effective_from` that is no event time or not on a slide boundary, and for a missing input topic. Raises
    IncompatibleStateError for a query that began with other settings. Raises ServiceError when others publish
    at the same time.
    """
    most_r = settings.bucket_count
    r = most_r if reducers is None else reducers
    if not 1 <= workers <= settings.max_workers:
        raise ConfigError(
            f"workers must be 1..{settings.max_workers} (partitioner.max_workers), not {workers}",
            hint="the largest number of workers is fixed when the query begins",
        )
    if not 1 <= r <= most_r:
        raise ConfigError(f"reducers must be 1..{most_r}, the number of buckets, not {r}")
    if effective_from is not None and effective_from % settings.query.slide_ms:
        raise ConfigError(
            f"effective_from {effective_from} is not on a slide boundary (slide {settings.query.slide_ms} ms)"
        )
    if effective_from is not None and not NO_MARK < effective_from <= END_MARK:
        raise ConfigError(f"effective_from {effective_from} is no event time (ms since 1970)")
    settings = admitted(settings)
    specs = admin.pipeline_topics(settings)
    admin.ensure_topics(settings.kafka, [specs[role] for role in (*OWN_TOPICS, ROLE) if role in specs])
    begins = NO_MARK if effective_from is None else effective_from
    return _published(settings, Plan(epoch=1, p=workers, r=r, effective_from=begins, reason=reason), because)


def _published(settings: Settings, draft: Plan, because: str) -> Plan:
    """Publish this as the plan of the next epoch, whatever its own epoch is.

    Another writer may publish the same epoch at the same moment. The first plan in the log counts, so this
    tries again with the next epoch if its own plan is not that one.
    """
    reading = PlanRecords(settings)
    try:
        writer = PlanWriter(settings, identity=IDENTITY)
        for _ in range(_TRIES):
            epoch = _last_epoch(settings, reading) + 1
            plan = replace(draft, epoch=epoch)
            writer.write(plan, audit=entry_of(plan, because=because))
            # The log decides, not the commit: another writer's plan of this epoch may stand before this one.
            if plan in in_order(_once_visible(settings, reading, epoch)):
                return plan
    except WriterFenced:
        raise ServiceError(
            "another `evenflow plan` of this query began at the same moment",
            hint="see with `evenflow status` what holds now",
        ) from None
    raise ServiceError(f"others published plans at the same time, {_TRIES} times in a row", hint="try again")


def in_order(plans: list[Plan]) -> list[Plan]:
    """The plans of the log that count: a plan counts if its epoch is above all epochs before it."""
    counting: list[Plan] = []
    for plan in plans:
        if not counting or plan.epoch > counting[-1].epoch:
            counting.append(plan)
    return counting


def _last_epoch(settings: Settings, reading: PlanRecords) -> int:
    """The largest epoch in the log, 0 if the log is empty. Raises ConfigError if no epoch can follow it."""
    last = max((plan.epoch for plan in read_plans(settings, reading)), default=0)
    if last >= LAST_EPOCH:
        raise ConfigError(
            f"{settings.topic('plan')} holds a plan of the last epoch {last}: no later one can be published",
            hint="delete that topic, and the query's snapshots topic with it",
        )
    return last


def _once_visible(settings: Settings, reading: PlanRecords, epoch: int) -> list[Plan]:
    """The log, read again until it holds a plan of this epoch or a later one.

    A committed plan can only be read a moment after its commit. Raises ServiceError if that takes too long.
    """
    deadline = time.monotonic() + seconds(settings.kafka)
    while True:
        plans = read_plans(settings, reading)
        if any(plan.epoch >= epoch for plan in plans):
            return plans
        if time.monotonic() >= deadline:
            raise ServiceError(
                f"plan epoch {epoch} was committed, and cannot be read within {seconds(settings.kafka):g} s",
                hint=(
                    "another writer's transaction may be open: see with `evenflow status` whether it appears"
                ),
            )
        time.sleep(_LOOK_SECONDS)
