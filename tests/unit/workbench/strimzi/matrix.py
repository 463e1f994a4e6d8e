"""Parts x topics, consumer groups and transactional ids, written down by hand. What does not stand here must
be denied.

R: Read, W: Write, D: Describe. Every part may also describe every topic of its query. Whoever may read as a
group may describe it.
"""

from __future__ import annotations

from collections.abc import Mapping

MATRIX: Mapping[str, Mapping[str, str]] = {
    #              partitioner  combiner  reducer  controller  tools  replay
    "input": {"partitioner": "R", "combiner": "R", "reducer": "R", "tools": "R", "replay": "RW"},
    "routed": {"partitioner": "W", "combiner": "R", "tools": "R"},
    "rejected": {"partitioner": "W", "tools": "R"},
    "partials": {"combiner": "RW", "reducer": "R", "tools": "R"},
    "results": {"reducer": "W", "tools": "R"},
    "plan": {"partitioner": "R", "combiner": "R", "reducer": "R", "controller": "RW", "tools": "R"},
    "telemetry": {
        "partitioner": "RW",
        "combiner": "W",
        "reducer": "W",
        "controller": "RW",
        "tools": "R",
    },
    "sync": {"partitioner": "RW"},
    "audit": {"controller": "W", "tools": "R"},
    # What each part must find again. Everybody reads in `snapshots` how the query began.
    "snapshots": {
        "partitioner": "RW",
        "combiner": "R",
        "reducer": "R",
        "controller": "R",
        "tools": "R",
        "replay": "R",
    },
    "combiner": {"combiner": "RW"},
    "reducer": {"reducer": "RW", "tools": "R"},
    "controller": {"controller": "RW"},
}
"""Topic -> part -> operations, for a split query with two instances, measured speeds and results in Kafka."""

IDS: Mapping[str, str] = {
    "partitioner.0": "partitioner",
    "claim": "partitioner",
    "spark.combine": "combiner",
    "spark.reduce": "reducer",
    "controller": "controller",
}
"""Transactional id, without the name of its query -> the only part that may use it."""

GROUPS: Mapping[str, Mapping[str, str]] = {
    # Its offsets carry the state of the query. R in it is a right to commit there.
    "<query>.partitioner": {"partitioner": "R", "combiner": "D", "reducer": "D", "tools": "D"},
    "<query>.control.*": {"partitioner": "R"},
    "<query>.plan-reader": {"partitioner": "R", "combiner": "R", "reducer": "R", "controller": "R"},
    "<query>.telemetry-reader": {"controller": "R"},
    # Of any query: readers that commit nothing.
    "evenflow-read-*": {
        "partitioner": "R",
        "combiner": "R",
        "reducer": "R",
        "controller": "R",
        "tools": "R",
        "replay": "R",
    },
    "spark-kafka-source-*": {"combiner": "R", "reducer": "R"},
}
"""Consumer group -> part -> operations, for the same query. *: any end of the name."""
_STRANGERS = (
    "<query>.control",
    "<query>.partitioner.2",
    "<query>.other",
    "<query>",
    "evenflow-read",
    "other",
)
"""Groups in which no part may do anything."""


def groups(query: str) -> Mapping[str, Mapping[str, str]]:
    """An example of each group, and groups of strangers -> part -> operations."""
    rights = {**GROUPS, **{name: {} for name in _STRANGERS}}
    return {name.replace("<query>", query).replace("*", "1"): parts for name, parts in rights.items()}
