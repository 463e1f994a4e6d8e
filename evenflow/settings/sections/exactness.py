"""Client settings that exact results depend on: what `kafka.extras` and `spark.conf` may not set, and why.

The names are those of each client, with their aliases. If a service gets another client setting that results
depend on, its name must be added here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

Client = Literal["librdkafka", "java", "faust"]

_LOST = "a record that the broker did not keep would be missing without an error"
_TWICE = "records would be written twice or in another order"
_DAMAGED = "a damaged record would be counted as it is"
_UNCOMMITTED = "records of aborted transactions would be counted"
_GUESSED = "where reading goes on is committed state, never a guess"
_OWN_COMMITS = "offsets are committed with the frames that they stand for, in one transaction"
_IDENTITY = "evenflow chooses it, so that a second process with that identity is fenced"
_OWNERSHIP = "which process owns a partition, and when it gives it up, rests on it"
_TIMES = "set partitioner.transaction_timeout instead, which is checked against the other times"
_CHANGED = "records could be changed or dropped on their way"
_TABLES = "Faust's own transactions have open bugs, and the data plane has its own"

EXACTNESS: Mapping[Client, Mapping[str, str]] = {
    "librdkafka": {
        "acks": _LOST,
        "request.required.acks": _LOST,
        "enable.idempotence": _TWICE,
        "max.in.flight": _TWICE,
        "max.in.flight.requests.per.connection": _TWICE,
        "retries": _TWICE,
        "message.send.max.retries": _TWICE,
        "check.crcs": _DAMAGED,
        "isolation.level": _UNCOMMITTED,
        "auto.offset.reset": _GUESSED,
        "enable.auto.commit": _OWN_COMMITS,
        "auto.commit.enable": _OWN_COMMITS,
        "enable.auto.offset.store": _OWN_COMMITS,
        "enable.partition.eof": "the end of a topic is told by it",
        "group.id": _IDENTITY,
        "group.instance.id": _OWNERSHIP,
        "group.protocol": _OWNERSHIP,
        "partition.assignment.strategy": _OWNERSHIP,
        "transactional.id": _IDENTITY,
        "transaction.timeout.ms": _TIMES,
        "plugin.library.paths": _CHANGED,
    },
    "java": {
        "acks": _LOST,
        "enable.idempotence": _TWICE,
        "max.in.flight.requests.per.connection": _TWICE,
        "retries": _TWICE,
        "check.crcs": _DAMAGED,
        "isolation.level": _UNCOMMITTED,
        "auto.offset.reset": _GUESSED,
        "enable.auto.commit": _OWN_COMMITS,
        "group.id": _IDENTITY,
        "group.instance.id": _OWNERSHIP,
        "transactional.id": _IDENTITY,
        "interceptor.classes": _CHANGED,
    },
    "faust": {
        "id": _IDENTITY,
        "broker_check_crcs": _DAMAGED,
        "consumer_auto_offset_reset": _GUESSED,
        "consumer_group_instance_id": _OWNERSHIP,
        "processing_guarantee": _TABLES,
        "producer_acks": _LOST,
    },
}
"""For each client, the settings that are refused, and what would go wrong with each."""

_SAME_CUT = "a repeated micro-batch must hold exactly the same offset ranges in the same tasks"
_UNSEEN = "it reports files of the checkpoint as written that could not be written"
_CUTS = ("minPartitions", "maxRecordsPerPartition", "asyncProgressTracking", "adaptive.streaming.stateless")


def refused_conf(name: str, value: str) -> tuple[str, str] | None:
    """(the word that is refused, why) if `spark.conf` may not set this setting. None if it may."""
    for word in _CUTS:
        if word.lower() in name.lower() and value.lower() != "false":
            return word, _SAME_CUT
    if "AbortableStreamBased" in value:
        return "AbortableStreamBasedCheckpointFileManager", _UNSEEN
    for option, why in EXACTNESS["java"].items():
        if name.lower().endswith(f"kafka.{option}"):
            return f"kafka.{option}", why
    return None


def refused_extras(client: Client, names: Iterable[str]) -> list[str]:
    """The settings of these that are refused, each as `kafka.extras.java.acks (why)`, sorted by name."""
    return [
        f"kafka.extras.{client}.{name} ({EXACTNESS[client][name]})"
        for name in sorted(names)
        if name in EXACTNESS[client]
    ]
