"""Who works on a query now, as Kafka alone tells it: members of the data plane's group,
and the newest telemetry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evenflow.reporting import Sign
from evenflow.reporting.words import printable
from evenflow.settings import Settings
from evenflow.telemetry import (
    BatchRecord,
    DecisionRecord,
    HeartbeatRecord,
    PartitionerRecord,
    Telemetry,
    parse,
)
from topics.groups import Member, members
from topics.reader import read_newest
from topics.records import Record

_NEWEST = 5_000
"""How many of the newest offsets of each partition of the telemetry topic are read."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """The newest telemetry of a part of the pipeline."""

    at: int
    """Time of the record by the broker, in ms since 1970."""
    telemetry: Telemetry
    """The record itself. It names the part and the query."""

    @property
    def name(self) -> str:
        """The name of the part, such as `partitioner 0`, `spark fused` or `controller`."""
        if isinstance(self.telemetry, PartitionerRecord):
            return f"partitioner {self.telemetry.instance}"
        return "controller" if isinstance(self.telemetry, DecisionRecord) else f"spark {self.telemetry.stage}"

    @property
    def is_spark(self) -> bool:
        """Whether the part is a stage of the Spark application."""
        return not isinstance(self.telemetry, PartitionerRecord | DecisionRecord)

    def sign(self, now: int) -> Sign:
        """What is known of the part at this moment (ms since 1970)."""
        telemetry, silent = self.telemetry, max(0, now - self.at) / 1000
        if not isinstance(telemetry, BatchRecord | HeartbeatRecord):
            return Sign(name=self.name, silent=silent)
        running = telemetry.running_ms if isinstance(telemetry, HeartbeatRecord) else None
        return Sign(
            name=self.name,
            silent=silent,
            interval=telemetry.batch_interval_ms / 1000,
            running=None if running is None else running / 1000,
            first=telemetry.batch is None,
            ended=printable(telemetry.ended)
            if isinstance(telemetry, HeartbeatRecord) and telemetry.ended
            else None,
        )

    @property
    def is_partitioner(self) -> bool:
        """Whether the part is a partitioner instance."""
        return isinstance(self.telemetry, PartitionerRecord)


@dataclass(frozen=True, kw_only=True)
class Activity:
    """Who works on a query."""

    members: tuple[Member, ...]
    """Members of the consumer group of the data plane."""
    parts: tuple[Part, ...]
    """Parts of the pipeline in the order of their names, as far back as the newest telemetry reaches."""
    ignored: int = 0
    """How many of the newest records are no telemetry of this query."""
    unfit: int = 0
    """How many result values are null because they did not fit,
    as far back as the newest telemetry reaches."""

    @property
    def owners(self) -> list[str]:
        """Who is in the partitioners' group, in words."""
        return [
            f"{member.client_id} on {member.host} is in the partitioners' group" for member in self.members
        ]

    @property
    def heard_last(self) -> Part | None:
        """The Spark stage or controller that reported last.
        Partitioners are left out, as they are in `members`.
        """
        others = (part for part in self.parts if not part.is_partitioner)
        return max(others, key=lambda part: part.at, default=None)


def read_activity(settings: Settings, *, whoever: bool = False) -> Activity:
    """Ask the broker once. Makes and joins nothing. Raises ServiceError if the broker does not answer.

    whoever: whether parts of a query of this name that began with other settings count too. If so, the
    settings need not know the number of input partitions.
    """
    messages = read_newest(settings.kafka, settings.topic("telemetry"), _NEWEST)
    parts, ignored = _parse_parts(messages, fingerprint=None if whoever else settings.fingerprint)
    group = members(settings.kafka, settings.data_plane_group)
    return Activity(members=tuple(group), parts=newest(parts), ignored=ignored, unfit=unfit_of(parts))


def parts_of(messages: Iterable[Record], *, fingerprint: str | None) -> tuple[tuple[Part, ...], int]:
    """What each part said last, in the order of names, and how many records are no telemetry of the query.

    messages: the oldest first. fingerprint: that of the query. None: telemetry of any query counts.
    """
    parts, ignored = _parse_parts(messages, fingerprint=fingerprint)
    return newest(parts), ignored


def newest(parts: Iterable[Part]) -> tuple[Part, ...]:
    """What each part said last, in the order of names. parts: the oldest first."""
    # A later entry replaces an earlier one of the same name, so the newest of each part is left.
    last = {part.name: part for part in parts}
    return tuple(last[name] for name in sorted(last))


def unfit_of(parts: Iterable[Part]) -> int:
    """How many result values are null because they did not fit. A micro-batch that was repeated counts
    once.
    """
    batches = {
        (part.telemetry.stage, part.telemetry.batch): part.telemetry.unfit
        for part in parts
        if isinstance(part.telemetry, BatchRecord)
    }
    return sum(batches.values())


def _parse_parts(messages: Iterable[Record], *, fingerprint: str | None) -> tuple[list[Part], int]:
    """The telemetry of the query, and how many records are none. See `parts_of`."""
    candidates = [
        part_of(message.value(), at=int(message.timestamp()[1]), fingerprint=fingerprint)
        for message in messages
    ]
    parts = [part for part in candidates if part is not None]
    return parts, len(candidates) - len(parts)


def part_of(value: bytes | None, *, at: int, fingerprint: str | None) -> Part | None:
    """The part that a record is about. None if it is no telemetry, of another version, or of another query.

    at: time of the record in ms. fingerprint: that of the query. None: any query.
    """
    try:
        telemetry = parse(value)
    except ValueError:
        return None
    return Part(at=at, telemetry=telemetry) if fingerprint in (None, telemetry.fingerprint) else None
