"""Who works on a query now, told from Kafka alone: members of its data plane's group, and its newest telemetry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evenflow.settings import Settings
from evenflow.telemetry import DecisionRecord, PartitionerRecord, Telemetry, parse
from topics.groups import Member, members
from topics.reader import read_newest
from topics.records import Record

_NEWEST = 5_000


@dataclass(frozen=True, kw_only=True)
class Part:
    """The newest telemetry of a part of the pipeline. at: ms, by the broker."""

    at: int
    said: Telemetry

    @property
    def name(self) -> str:
        """As `partitioner 0`, `spark fused` or `controller`."""
        if isinstance(self.said, PartitionerRecord):
            return f"partitioner {self.said.instance}"
        return "controller" if isinstance(self.said, DecisionRecord) else f"spark {self.said.stage}"

    @property
    def is_spark(self) -> bool:
        """Whether it is a stage of the Spark application."""
        return not isinstance(self.said, PartitionerRecord | DecisionRecord)

    @property
    def is_partitioner(self) -> bool:
        """Whether it is a partitioner instance."""
        return isinstance(self.said, PartitionerRecord)


@dataclass(frozen=True, kw_only=True)
class Alive:
    """members: of the data plane's group. parts: by name, as far back as the newest telemetry reaches. ignored: records

    there that are no telemetry of this query.
    """

    members: tuple[Member, ...]
    parts: tuple[Part, ...]
    ignored: int = 0

    @property
    def owners(self) -> list[str]:
        """In words, who is in the partitioners' group."""
        return [
            f"{member.client_id} on {member.host} is in the partitioners' group" for member in self.members
        ]

    @property
    def heard_last(self) -> Part | None:
        """Who reported last and is no member of the group: a Spark stage or the controller."""
        others = (part for part in self.parts if not part.is_partitioner)
        return max(others, key=lambda part: part.at, default=None)


def look(settings: Settings, *, whoever: bool = False) -> Alive:
    """Ask the broker once. Makes and joins nothing. Raises ServiceError when it does not answer.

    whoever: also parts of a query of this name that began with other settings. Needs no number of input partitions.
    """
    messages = read_newest(settings.kafka, settings.topic("telemetry"), _NEWEST)
    parts, ignored = parts_of(messages, fingerprint=None if whoever else settings.fingerprint)
    group = members(settings.kafka, settings.data_plane_group)
    return Alive(members=tuple(group), parts=parts, ignored=ignored)


def parts_of(messages: Iterable[Record], *, fingerprint: str | None) -> tuple[tuple[Part, ...], int]:
    """What each part said last, by name, and how many records are no telemetry of the query with this fingerprint (None:

    of any).
    """
    newest: dict[str, Part] = {}
    ignored = 0
    for message in messages:
        part = part_of(message.value(), at=int(message.timestamp()[1]), fingerprint=fingerprint)
        if part is None:
            ignored += 1
        else:
            newest[part.name] = part
    return tuple(newest[name] for name in sorted(newest)), ignored


def part_of(value: bytes | None, *, at: int, fingerprint: str | None) -> Part | None:
    """None for a record that is no telemetry, of another version, or of another query."""
    try:
        said = parse(value)
    except ValueError:
        return None
    return Part(at=at, said=said) if fingerprint in (None, said.fingerprint) else None
