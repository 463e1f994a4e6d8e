"""What is checked: four Arrow schemas and the committed state of an input partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from spark_consumers.sinks.base import JSON_RECORDS

INPUT_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("marker", pa.struct([("producer", pa.string()), ("tuples", pa.int64()), ("producers", pa.int64())])),
    ]
)
"""Records of the input topic. `marker` is null but for end-of-stream markers. timestamp: ms, negative if none."""

REJECTED_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("mark", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("omitted", pa.bool_()),
        ("at_partition", pa.int32()),
        ("at_offset", pa.int64()),
    ]
)
"""Rejected records by their source position, null for a record that names none. Mark is null where there is none.

`omitted`: the record was too large to travel, so key and value are not compared. Null compares nothing.
at_partition, at_offset: where the record itself stands in the rejected topic.
"""

RESULTS_SCHEMA = JSON_RECORDS
"""JSON rows as a sink reads them back, each with its record's place and key.

Typed results have columns instead: window_start, window_end (timestamps), key (of its own type), <aggregates>.
"""

REASONS = ("late", "idle", "jump", "unreadable", "after-end")

NO_MARK = -(2**62)
END_MARK = 2**62


@dataclass(frozen=True, kw_only=True)
class Committed:
    """What the partitioner committed for one input partition with `offset`, the next record to read.

    begin: offset at which the query began to read.
    mark, max_time and idle_mark are event times in ms; max_time and idle_mark are None if there was none.
    """

    partition: int
    offset: int
    begin: int = 0
    max_time: int | None
    mark: int
    idle_mark: int | None
    ended: bool
    read: int
    routed: int
    rejected: int
    filtered: int = 0


def nothing_committed(partition: int) -> Committed:
    """The state of a partition for which nothing was committed yet."""
    return Committed(
        partition=partition,
        offset=0,
        max_time=None,
        mark=NO_MARK,
        idle_mark=None,
        ended=False,
        read=0,
        routed=0,
        rejected=0,
    )


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Where what is left of a log begins, by partition: above 0, the broker has deleted something of the query below it.

    inputs, rejected: first offset that is left of the input and of the rejected topic. A partition that is absent has
    all that the query was to read.
    """

    inputs: Mapping[int, int] = field(default_factory=dict)
    rejected: Mapping[int, int] = field(default_factory=dict)


EVERYTHING = Kept()
"""Nothing was deleted."""


def gone_below(left: Mapping[int, int], committed: Iterable[Committed]) -> dict[int, int]:
    """`Kept.inputs` of a topic whose logs begin at `left`: only what lay behind the place where the query began is lost."""
    return {
        state.partition: first for state in committed if (first := left.get(state.partition, 0)) > state.begin
    }
