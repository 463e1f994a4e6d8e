"""What each part of a pipeline must be allowed to do in Kafka, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenflow.settings import Settings
from evenflow.settings.views import TopicRole, queries

Kind = Literal["topic", "group", "transactionalId"]
Operation = Literal["Read", "Write", "Describe", "DescribeConfigs"]
_BOTH: tuple[Operation, ...] = ("Read", "Write")
PARTS = ("partitioner", "combiner", "reducer", "controller", "tools", "replay")


@dataclass(frozen=True)
class Right:
    """What a part may do with a resource of Kafka."""

    kind: Kind
    """What `name` names: a topic, a consumer group or a transactional id."""
    name: str
    """Name of the resource, or the beginning of its name."""
    operations: tuple[Operation, ...]
    """What the part may do with it."""
    prefix: bool = False
    """Whether the right holds for all resources whose names begin with `name`."""


def rights(settings: Settings, part: str) -> list[Right]:
    """The rights of one of PARTS. `tools` is who verifies the results, and writes nothing.
    `replay` writes a stream.
    """
    rights_by_part = {
        "partitioner": _partitioner,
        "combiner": _combiner,
        "reducer": _reducer,
        "controller": _controller,
        "tools": _tools,
        "replay": _replay,
    }
    return [*_looking(settings), *rights_by_part[part](settings)]


def _looking(settings: Settings) -> list[Right]:
    """Rights of every part: before it starts, it checks the topics that it uses, and reads what the query
    is.
    """
    query = settings.query.name
    outside = {
        query_settings.topic(role) for query_settings in queries(settings) for role in ("input", "results")
    }
    strangers = sorted(name for name in outside if not name.startswith(f"{query}."))
    return [
        Right("topic", f"{query}.", ("Describe", "DescribeConfigs"), prefix=True),
        *(Right("topic", name, ("Describe", "DescribeConfigs")) for name in strangers),
        _may(settings, "Read", "snapshots"),
        Right("group", "evenflow-read-", ("Read",), prefix=True),
    ]


def _may(settings: Settings, operation: Operation, role: TopicRole) -> Right:
    return Right("topic", settings.topic(role), (operation,))


def _may_each(settings: Settings, operation: Operation, *roles: TopicRole) -> list[Right]:
    """The operation in the topics of these roles, both the query's and those that its views have
    of their own.
    """
    names = dict.fromkeys(
        query_settings.topic(role) for query_settings in queries(settings) for role in roles
    )
    return [Right("topic", name, (operation,)) for name in names]


def _partitioner(settings: Settings) -> list[Right]:
    query = settings.query.name
    exchange = [_may(settings, operation, "sync") for operation in _BOTH] if settings.exchanges else []
    measured = [_may(settings, "Read", "telemetry")] if settings.partitioner.speeds == "measured" else []
    return [
        *(_may(settings, "Read", role) for role in ("input", "plan")),
        *(_may(settings, "Write", role) for role in ("routed", "rejected", "telemetry", "snapshots")),
        *exchange,
        *measured,
        Right("group", settings.data_plane_group, ("Read",)),
        Right("group", f"{query}.control.", ("Read",), prefix=True),
        Right("group", f"{query}.plan-reader", ("Read",)),
        Right("transactionalId", f"{query}.partitioner.", ("Describe", "Write"), prefix=True),
        Right("transactionalId", f"{query}.claim", ("Describe", "Write")),
    ]


def _combiner(settings: Settings) -> list[Right]:
    """Rights of the combiner. It reads its own partials if its checkpoint is lost, because they say how
    far it was.
    """
    return [
        *_may_each(settings, "Read", "routed", "partials", "plan"),
        *_may_each(settings, "Write", "partials", "telemetry"),
        *(_may(settings, operation, "combiner") for operation in _BOTH),
        *_epochs(settings, "combine"),
        *_of_spark(settings),
    ]


def _reducer(settings: Settings) -> list[Right]:
    return [
        *_may_each(settings, "Read", "partials", "plan"),
        *_may_each(settings, "Write", "results", "telemetry"),
        *(_may(settings, operation, "reducer") for operation in _BOTH),
        *_epochs(settings, "reduce"),
        *_of_spark(settings),
    ]


def _epochs(settings: Settings, stage: str) -> list[Right]:
    """Rights to the ids that decide which driver of a stage may write."""
    ids = [f"{query_settings.query.name}.spark.{stage}" for query_settings in queries(settings)]
    return [Right("transactionalId", name, ("Describe", "Write")) for name in ids]


def _of_spark(settings: Settings) -> list[Right]:
    """Rights of both Spark stages.
    A stage reads the input, because it compares a sample with the query as it starts.
    """
    return [
        _may(settings, "Read", "input"),
        Right("group", "spark-kafka-source-", ("Read",), prefix=True),
        Right("group", f"{settings.query.name}.plan-reader", ("Read",)),
        Right("group", settings.data_plane_group, ("Describe",)),
    ]


def _controller(settings: Settings) -> list[Right]:
    query = settings.query.name
    return [
        *(_may(settings, "Read", role) for role in ("plan", "telemetry", "controller")),
        *(_may(settings, "Write", role) for role in ("plan", "telemetry", "controller", "audit")),
        *(Right("group", f"{query}.{role}-reader", ("Read",)) for role in ("plan", "telemetry")),
        Right("transactionalId", f"{query}.controller", ("Describe", "Write")),
    ]


def _tools(settings: Settings) -> list[Right]:
    read: tuple[TopicRole, ...] = (
        *("input", "routed", "rejected", "partials", "results"),
        *("telemetry", "plan", "reducer", "audit"),
    )
    return [
        *_may_each(settings, "Read", *read),
        Right("group", settings.data_plane_group, ("Describe",)),
    ]


def _replay(settings: Settings) -> list[Right]:
    """Rights of a replay. It reads the input, because it refuses to write behind the end of a stream."""
    return [_may(settings, operation, "input") for operation in _BOTH]
