"""The doctor's check of how easily the broker loses what it has acknowledged.

evenflow notices when a frame is gone, and stops. It cannot bring the frame back. So the topics that hold
state should survive the loss of a disk and the election of a new leader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings
from topics.admin import describe
from topics.state import TopicState
from workbench.assist.findings import Finding

_INTERNAL = ("__consumer_offsets", "__transaction_state")
"""The broker's own topics: committed states of input partitions, and which transactions are complete."""
_NAME = "durability"
_SHOWN = 4


def internal_topics(kafka: KafkaSettings) -> list[TopicState]:
    """Those of the broker's own topics that hold a query's state and that the user of these settings may
    see.
    """
    try:
        return list(describe(kafka, _INTERNAL).values())
    except ServiceError:
        return []  # many clusters show them to administrators only


def check_durability(states: Sequence[TopicState]) -> Iterator[Finding]:
    """Findings about replication of the topics that hold state.
    A fact that the broker does not tell is passed over.
    """
    replicated = sorted((state for state in states if state.replicas), key=lambda state: state.name)
    single = [state for state in replicated if state.replicas == 1]
    if single:
        yield Finding(
            _NAME,
            "warning",
            f"{_named(single)} one replica: if a broker loses its disk, or power before the disk has written,"
            " what it had acknowledged is gone; evenflow then stops, and the query must be rebuilt",
            "in a cluster set kafka.replication_factor = 3 before the topics are made; topics that exist get"
            " more replicas with kafka-reassign-partitions, and the broker's own ones by"
            " offsets.topic.replication.factor and transaction.state.log.replication.factor",
        )
    few = [state for state in replicated if state.replicas == 2]
    if few:
        yield Finding(
            _NAME,
            "warning",
            f"{_named(few)} two replicas: while a broker is away, either a single one has what is"
            " acknowledged, or nothing can be written",
            "three replicas with min.insync.replicas=2 bear the loss of one:"
            " kafka-reassign-partitions adds replicas",
        )
    alone = [
        state for state in replicated if state.replicas > 1 and _config(state, "min.insync.replicas") == "1"
    ]
    if alone:
        yield Finding(
            _NAME,
            "warning",
            f"{_named(alone)} min.insync.replicas=1: a write counts as stored once a single broker has it",
            "set min.insync.replicas=2 on them, e.g. with kafka-configs --alter",
        )
    unclean = [state for state in replicated if _config(state, "unclean.leader.election.enable") == "true"]
    if unclean:
        yield Finding(
            _NAME,
            "warning",
            f"{_named(unclean)} unclean.leader.election.enable=true: a broker that has missed records may"
            " become the leader, and acknowledged records are gone",
            "set unclean.leader.election.enable=false on them, e.g. with kafka-configs --alter",
        )
    if replicated and not (single or few or alone or unclean):
        yield Finding(_NAME, "ok", f"{len(replicated)} topics survive the loss of a broker's disk")


def _config(state: TopicState, name: str) -> str | None:
    return state.config.get(name)


def _named(states: Sequence[TopicState]) -> str:
    """The topics and their verb: "a has", "a and b have"."""
    names = [state.name for state in states]
    if len(names) == 1:
        return f"{names[0]} has"
    shown, rest = names[:_SHOWN], len(names) - _SHOWN
    if rest > 0:
        return f"{', '.join(shown)} and {rest} more have"
    return f"{', '.join(shown[:-1])} and {shown[-1]} have"
