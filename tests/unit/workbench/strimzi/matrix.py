"""Parts x topics x operations, written down by hand. What does not stand here must be denied.

R: Read, W: Write. Every part may also describe every topic of its query.
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
