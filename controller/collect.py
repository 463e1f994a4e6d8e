"""Collect: the newest record of each part of the pipeline, and when it came by the controller's own clock.

The times that writers put into their records are not used, because the writers' clocks differ. Some records
were in the topic before the controller began, or piled up while it was cut off. Their content is used, but
their age is not known. So they never count as fresh.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from evenflow.settings import Settings
from evenflow.telemetry import (
    MOST_BYTES,
    TELEMETRY_VERSION,
    BatchRecord,
    DecisionRecord,
    HeartbeatRecord,
    PartitionerRecord,
    Record,
    Stage,
    Telemetry,
    parse,
)
from evenflow.text.strict_json import read_object

log = logging.getLogger(__name__)

MOST_INSTANCES = 1_000
"""Partitioner instances that are remembered.

The number is bounded, because anyone who can write the topic can make up names.
"""

Kind = TypeVar("Kind", bound=Record)


@dataclass(frozen=True)
class Arrival(Generic[Kind]):
    """A record and when it came, by the controller's clocks."""

    record: Kind
    """The record as its part wrote it."""
    at: float | None
    """Seconds of the monotonic clock. None if the record is not fresh."""
    wall_ms: int = 0
    """The same moment in ms since 1970."""

    def age(self, now: float) -> float:
        """Seconds since the record came. Infinite if it is not fresh."""
        return float("inf") if self.at is None else now - self.at


@dataclass
class StageWords:
    """The newest records of a Spark stage."""

    word: Arrival[BatchRecord] | Arrival[HeartbeatRecord]
    """The newest record of either kind, a finished micro-batch or a heartbeat."""
    batch: Arrival[BatchRecord] | None = None
    """The newest record of a finished micro-batch. None before the first."""
    closing: Arrival[BatchRecord] | None = None
    """The newest record of a micro-batch that closed windows. None before the first."""


@dataclass
class PipelineFigures:
    """What is known of each part."""

    partitioners: dict[str, Arrival[PartitionerRecord]] = field(default_factory=dict)
    """Instance -> newest record, in the order in which the records came."""
    stages: dict[Stage, StageWords] = field(default_factory=dict)
    """Stage -> its newest records. A stage that was never heard is absent."""


class Collector:
    """Takes in records of the telemetry topic. clock: s, monotonic. wall: s since 1970.

    on_record: called with every record of this query, decisions included, and with whether the record is
    fresh.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        on_record: Callable[[Telemetry, bool], None] = lambda record, fresh: None,
    ) -> None:
        self._on_record = on_record
        self._query = settings.query.name
        self._fingerprint = settings.fingerprint
        self._topic = settings.topic("telemetry")
        self._clock = clock
        self._wall = wall
        self.known = PipelineFigures()
        self.ignored: Counter[str] = Counter()
        """Number of records that say nothing about this query, by kind."""
        self.record_count = 0
        """Number of records of parts of this query."""

    def take(self, value: bytes | None, *, fresh: bool = True) -> bool:
        """Take in one record, of any bytes. Returns whether a part of this query wrote it.

        fresh: False if the record was there before the controller began, or piled up while the controller was
        cut off.
        """
        try:
            record = parse(value)
        except ValueError as error:
            self._ignore(_kind(value), str(error))
            return False
        if (record.query, record.fingerprint) != (self._query, self._fingerprint):
            self._ignore(
                "of another query", f"it is of query {record.query}, fingerprint {record.fingerprint}"
            )
            return False
        self._on_record(record, fresh)  # before decisions are sorted out: the page shows them, too
        if isinstance(record, DecisionRecord):
            return False  # a controller's own decision: no part of the pipeline
        self.record_count += 1
        self._keep(record, self._clock() if fresh else None)
        return True

    def _keep(self, record: PartitionerRecord | BatchRecord | HeartbeatRecord, at: float | None) -> None:
        wall_ms = round(self._wall() * 1000)
        match record:
            case PartitionerRecord():
                self._partitioner(Arrival(record, at, wall_ms))
            case BatchRecord():
                arrival = Arrival(record, at, wall_ms)
                words = self.known.stages.setdefault(record.stage, StageWords(arrival))
                words.word = words.batch = arrival
                if record.windows_closed and record.last_window_end is not None:
                    words.closing = arrival
            case HeartbeatRecord() if record.ended is not None:
                pass  # a stage that has ended is not idle. Its last word of before grows stale instead
            case HeartbeatRecord():
                beat = Arrival(record, at, wall_ms)
                self.known.stages.setdefault(record.stage, StageWords(beat)).word = beat

    def _partitioner(self, arrival: Arrival[PartitionerRecord]) -> None:
        # Removed first, so that the instance moves to the end: the dict is ordered from the oldest record on.
        known = self.known.partitioners
        known.pop(arrival.record.instance, None)
        known[arrival.record.instance] = arrival
        if len(known) > MOST_INSTANCES:
            del known[next(iter(known))]

    def _ignore(self, kind: str, why: str) -> None:
        self.ignored[kind] += 1
        if self.ignored[kind] == 1:
            log.warning("%s has records %s, which are ignored and counted: %s", self._topic, kind, why)


def _kind(value: bytes | None) -> str:
    try:
        version = read_object(value, most_bytes=MOST_BYTES, depth=12).fields.get("v")
    except ValueError:
        return "that cannot be read"
    return "that cannot be read" if version in (None, TELEMETRY_VERSION) else "of another version"
