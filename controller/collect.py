"""Collect: the newest word of each part of the pipeline, and when it came by our own clock.

The clocks of the writers count for nothing here: they differ. What was in the topic before the controller began, or
piled up while it was cut off, is known, but nobody can say how old it is. So it never counts as fresh.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from evenflow.settings import Settings
from evenflow.strict_json import read_object
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

log = logging.getLogger(__name__)

MOST_INSTANCES = 1_000
"""Partitioner instances that are remembered: whoever can write the topic can make up names."""

Kind = TypeVar("Kind", bound=Record)


@dataclass(frozen=True)
class Heard(Generic[Kind]):
    """A record and when it came: s of the controller's monotonic clock, and ms since 1970 of its wall clock.

    at is None for what was there before the controller began.
    """

    record: Kind
    at: float | None
    wall_ms: int = 0

    def age(self, now: float) -> float:
        """Seconds since it came. Infinite for what was there before."""
        return float("inf") if self.at is None else now - self.at


@dataclass
class StageWords:
    """The newest of a Spark stage. word: of either kind. batch: finished micro-batch. closing: one that closed windows."""

    word: Heard[BatchRecord] | Heard[HeartbeatRecord]
    batch: Heard[BatchRecord] | None = None
    closing: Heard[BatchRecord] | None = None


@dataclass
class Collected:
    """What is known of each part. partitioners: by instance, from the longest silent to the newest."""

    partitioners: dict[str, Heard[PartitionerRecord]] = field(default_factory=dict)
    stages: dict[Stage, StageWords] = field(default_factory=dict)


class Collector:
    """Takes in records of the telemetry topic. clock: s, monotonic. wall: s since 1970.

    told: called with every record of this query, decisions included, and whether it is fresh.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        told: Callable[[Telemetry, bool], None] = lambda record, fresh: None,
    ) -> None:
        self._told = told
        self._query = settings.query.name
        self._fingerprint = settings.fingerprint
        self._topic = settings.topic("telemetry")
        self._clock = clock
        self._wall = wall
        self.known = Collected()
        self.ignored: Counter[str] = Counter()
        """Records that say nothing of this query, by kind."""
        self.heard = 0
        """Records of parts of this query."""

    def take(self, value: bytes | None, *, fresh: bool = True) -> bool:
        """Take in one record of any bytes. Whether it was the word of a part of this query.

        fresh: False for what was there before the controller began, or piled up while it was cut off.
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
        self._told(record, fresh)
        if isinstance(record, DecisionRecord):
            return False
        self.heard += 1
        self._keep(record, self._clock() if fresh else None)
        return True

    def _keep(self, record: PartitionerRecord | BatchRecord | HeartbeatRecord, at: float | None) -> None:
        wall_ms = round(self._wall() * 1000)
        match record:
            case PartitionerRecord():
                self._partitioner(Heard(record, at, wall_ms))
            case BatchRecord():
                heard = Heard(record, at, wall_ms)
                words = self.known.stages.setdefault(record.stage, StageWords(heard))
                words.word = words.batch = heard
                if record.windows_closed and record.last_window_end is not None:
                    words.closing = heard
            case HeartbeatRecord():
                beat = Heard(record, at, wall_ms)
                self.known.stages.setdefault(record.stage, StageWords(beat)).word = beat

    def _partitioner(self, heard: Heard[PartitionerRecord]) -> None:
        known = self.known.partitioners
        known.pop(heard.record.instance, None)
        known[heard.record.instance] = heard
        if len(known) > MOST_INSTANCES:
            del known[next(iter(known))]

    def _ignore(self, kind: str, why: str) -> None:
        self.ignored[kind] += 1
        if self.ignored[kind] == 1:
            log.warning("%s has records %s, which are ignored and counted: %s", self._topic, kind, why)


def _kind(value: bytes | None) -> str:
    try:
        version = read_object(value, most_bytes=MOST_BYTES, depth=12).fields.get("v", TELEMETRY_VERSION)
    except ValueError:
        return "that cannot be read"
    return "that cannot be read" if version == TELEMETRY_VERSION else "of another version"
