"""What happened in a closed loop, read back from its topics.
All times are of one clock: the broker's append times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evenflow.settings import Settings
from evenflow.telemetry import (
    BatchRecord,
    DecisionRecord,
    HeartbeatRecord,
    PartitionerRecord,
    Telemetry,
    parse,
)
from evenflow.text.strict_json import read_object
from topics.reader import read_range

_LARGEST_ROW = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A finished micro-batch."""

    at: float
    """When it ended, in seconds after the beginning."""
    stage: str
    """The Spark stage that ran it."""
    load: float
    """W, the processing time as a share of the batch interval."""
    tuples: int
    """How many the micro-batch processed."""
    backlog: int
    """Frames or blobs that still waited."""
    slots: int | None
    """How many tasks could run at once. None if Spark did not say."""
    executors: int | None
    """How many executors Spark had. None if it did not say."""
    epoch: int
    """Epoch of the plan that the application followed."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A plan that a controller published."""

    at: float
    """When it was published, in seconds after the beginning."""
    p: int
    """Workers that the plan wants."""
    r: int
    """Reduce buckets at once that the plan wants."""
    epoch: int
    """Number of the plan."""
    zone: int | None
    """Zone of W (1 to 3) by which the policy decided. None if W was unknown."""
    reason: str
    """The policy's reason, in words."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """What happened between two moments. Every `at` is in seconds after the first."""

    interval: float
    """Batch interval in seconds."""
    p: int
    """Workers in force at the beginning."""
    r: int
    """Reduce buckets at once in force at the beginning."""
    batches: tuple[Batch, ...]
    """Finished micro-batches, in the order of time."""
    changes: tuple[Change, ...]
    """Published plans, in the order of time."""
    decisions: int
    """How many observations a controller has judged."""
    rates: tuple[tuple[float, float], ...]
    """(at, tuples/s) as the partitioners reported it."""
    latencies: tuple[tuple[float, float], ...]
    """(at, ms) of the last row of each window in each partition of the results."""
    most_executors: int | None = None
    """The most executors that Spark reported, also within a micro-batch. None if it reported none."""


def course_of(settings: Settings, *, began: float, until: float) -> Course:
    """The course of this query between two times. began, until: seconds since 1970, by the broker's clock."""
    records = list(_telemetry_between(settings, began, until))
    decided = [(at, record) for at, record in records if isinstance(record, DecisionRecord)]
    return Course(
        interval=settings.spark.batch_interval / 1000,
        p=settings.partitioner.workers,
        r=settings.reducers,
        batches=tuple(_batches(records)),
        changes=tuple(
            Change(
                at=at,
                p=decision.wanted_p,
                r=decision.wanted_r,
                epoch=decision.epoch,
                zone=decision.zone,
                reason=decision.reason,
            )
            for at, decision in decided
            if decision.epoch is not None
        ),
        decisions=len(decided),
        rates=tuple(
            (at, record.rate)
            for at, record in records
            if isinstance(record, PartitionerRecord) and record.rate is not None
        ),
        latencies=tuple(_latencies(settings, began)),
        most_executors=max(
            (
                record.executors
                for _, record in records
                if isinstance(record, BatchRecord | HeartbeatRecord) and record.executors is not None
            ),
            default=None,
        ),
    )


def _telemetry_between(settings: Settings, began: float, until: float) -> Iterable[tuple[float, Telemetry]]:
    for batch in read_range(settings.kafka, settings.topic("telemetry")):
        for message in batch:
            at = message.timestamp()[1] / 1000
            if not began <= at <= until:
                continue
            try:
                record = parse(message.value())
            except ValueError:
                continue
            if record.fingerprint == settings.fingerprint:
                yield at - began, record


def _batches(records: Sequence[tuple[float, Telemetry]]) -> Iterable[Batch]:
    for at, record in records:
        if isinstance(record, BatchRecord) and record.load is not None:
            yield Batch(
                at=at,
                stage=record.stage,
                load=record.load,
                tuples=record.tuples,
                backlog=record.backlog or 0,
                slots=record.slots,
                executors=record.executors,
                epoch=record.epoch,
            )


def _latencies(settings: Settings, began: float) -> Iterable[tuple[float, float]]:
    """(when it was appended, its latency in ms) for the last row of each window in each partition
    of the results.
    """
    query = settings.query
    wait = query.result_delay
    last: dict[tuple[int, int], int] = {}
    for batch in read_range(settings.kafka, settings.topic("results")):
        for message in batch:
            row = read_object(message.value(), most_bytes=_LARGEST_ROW, depth=20)
            end = row.whole("window_end", -(2**62), 2**62)
            # A later row of the window replaces the one before it, so the last one counts.
            last[(message.partition(), end)] = message.timestamp()[1]
    for (_, end), appended in sorted(last.items(), key=lambda entry: entry[1]):
        if end > began * 1000 and appended > end + wait:  # the stream's end closes its last windows early
            yield appended / 1000 - began, float(appended - end - wait)
