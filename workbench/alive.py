"""Who works on a query now, told from Kafka alone: members of its data plane's group, and its newest telemetry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenflow.settings import Settings
from evenflow.strict_json import read_object
from topics.groups import Member, members
from topics.reader import read_newest

_NEWEST = 1_000
_LARGEST = 1_000_000
_LONGEST = 250


@dataclass(frozen=True, kw_only=True)
class Part:
    """The newest telemetry of a part of the pipeline. name: as `partitioner 0`, `spark fused`; at: ms, by the broker."""

    name: str
    at: int
    said: dict[str, Any]

    @property
    def is_spark(self) -> bool:
        """Whether it is a stage of the Spark application; otherwise it is a partitioner instance."""
        return self.said.get("source") == "spark"


@dataclass(frozen=True, kw_only=True)
class Alive:
    """members: of the data plane's group. parts: by name, as far back as the newest telemetry reaches."""

    members: tuple[Member, ...]
    parts: tuple[Part, ...]

    @property
    def owners(self) -> list[str]:
        """In words, who is in the partitioners' group."""
        return [
            f"{member.client_id} on {member.host} is in the partitioners' group" for member in self.members
        ]

    @property
    def heard_of_spark(self) -> Part | None:
        """The Spark stage that reported last."""
        return max((part for part in self.parts if part.is_spark), key=lambda part: part.at, default=None)


def look(settings: Settings) -> Alive:
    """Ask the broker once; makes and joins nothing. Raises ServiceError when it does not answer."""
    newest: dict[str, Part] = {}
    for message in read_newest(settings.kafka, settings.topic("telemetry"), _NEWEST):
        part = part_of(message.value(), at=int(message.timestamp()[1]))
        if part is not None:
            newest[part.name] = part
    return Alive(
        members=tuple(members(settings.kafka, settings.data_plane_group)),
        parts=tuple(newest[name] for name in sorted(newest)),
    )


def part_of(value: bytes | None, *, at: int) -> Part | None:
    """None for a record that is no telemetry of ours."""
    try:
        said = read_object(value, most_bytes=_LARGEST, depth=10)
        kind, which = ("source", "stage") if said.fields.get("source") == "spark" else ("part", "instance")
        name = f"{said.text(kind, most=_LONGEST)} {said.text(which, most=_LONGEST)}"
    except ValueError:
        return None
    return Part(name=name, at=at, said=said.fields)
