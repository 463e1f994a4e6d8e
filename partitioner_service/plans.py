"""Publishing plans by hand; following them is the plan agent's work (`app`)."""

from __future__ import annotations

import json

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from evenflow.windows import NO_MARK
from partitioner_service.plane import Plan, plan_record
from partitioner_service.prepare import OWN_TOPICS
from partitioner_service.records import LAST_EPOCH, SideRecords
from topics import admin, clients
from topics.settled import admitted


def publish(
    settings: Settings, *, workers: int, reducers: int | None = None, effective_from: int | None = None
) -> dict[str, int]:
    """Publish the next plan epoch and return it.

    Raises ConfigError when it asks for more workers than routed partitions, more reducers than buckets,
    or an event time that is not on a slide boundary, and for an input topic that is missing.
    """
    most_r = settings.spark.buckets
    r = most_r if reducers is None else reducers
    if not 1 <= workers <= settings.routed_partitions:
        raise ConfigError(
            f"workers must be 1..{settings.routed_partitions}, the partitions of the routed topic, not {workers}"
        )
    if not 1 <= r <= most_r:
        raise ConfigError(f"reducers must be 1..{most_r}, the number of buckets, not {r}")
    if effective_from is not None and effective_from % settings.query.slide_ms:
        raise ConfigError(
            f"effective_from {effective_from} is not on a slide boundary (slide {settings.query.slide_ms} ms)"
        )
    settings = admitted(settings)
    specs = admin.pipeline_topics(settings)
    admin.ensure_topics(settings.kafka, [specs[role] for role in OWN_TOPICS])
    last = max((plan["epoch"] for plan in SideRecords(settings).plans()), default=0)
    if last >= LAST_EPOCH:
        raise ConfigError(
            f"{settings.topic('plan')} holds a plan of the last epoch {last}: no later one can be published",
            hint="delete that topic, and the query's snapshots topic with it",
        )
    plan = Plan(
        epoch=last + 1, p=workers, effective_from=NO_MARK if effective_from is None else effective_from
    )
    record = plan_record(plan, r=r)
    producer = clients.producer(settings.kafka)
    producer.produce(settings.topic("plan"), value=json.dumps(record).encode())
    clients.flush(producer, settings.kafka)
    return record
