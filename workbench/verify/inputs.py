"""What is checked: the Arrow schemas of three topics, and the committed state of an input partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from evenflow.progress import PartitionState
from evenflow.settings import Query
from partitioner_service.kafka.sink import SKIPPED
from spark_consumers.sinks.base import JSON_RECORDS

INPUT_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("marker", pa.struct([("producer", pa.string()), ("tuples", pa.int64()), ("producers", pa.int64())])),
        ("appended", pa.int64()),
        ("through", pa.int64()),
    ]
)
"""Records of the input topic.

marker: null unless the record is an end-of-stream marker. timestamp: ms, negative if none. appended: the
timestamp (ms) if the broker's clock gave it, null otherwise. through: the last offset of a stretch that was
skipped by an order, null for a record. Such a row stands for all offsets from its own to this one.
"""

REJECTED_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("mark", pa.int64()),
        ("clock", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("omitted", pa.bool_()),
        ("at_partition", pa.int32()),
        ("at_offset", pa.int64()),
        ("through", pa.int64()),
    ]
)
"""Rejected records.

partition, offset: position of the input record, null if the rejected record names none. mark: the mark (ms)
that the tuple was held against, null if the record names none. clock: the clock (ms) that it was held
against, likewise. omitted: whether key and value were left out because the record was too large. They are
compared only if this is false, and not if it is null. at_partition, at_offset: where the record itself stands
in the rejected topic. through: the last offset that was skipped by an order, null for any other reason. Such
a record stands for all offsets from its own to this one, and `omitted` is null.
"""

RESULTS_SCHEMA = JSON_RECORDS
"""JSON rows as a sink reads them back, each with its record's place and key.

Typed results have these columns instead: window_start, window_end (timestamps), key (of its own type),
<aggregates>.
"""

REASONS = ("late", "idle", "jump", "ahead", "unreadable", "unmatched", "too-large", "after-end", SKIPPED)

NO_MARK = -(2**62)
END_MARK = 2**62


@dataclass(frozen=True, kw_only=True)
class CommittedInput:
    """What the partitioner committed for one input partition."""

    partition: int
    """Number of the partition in the input topic."""
    offset: int
    """Offset of the next record to read."""
    begin: int = 0
    """Offset at which the query began to read."""
    began_again: int | None = None
    """The same offset as the committed state has it. None: equal to `begin`."""
    max_time: int | None
    """Largest accepted event time (ms). None if no tuple was accepted."""
    mark: int
    """Event time (ms) up to which the partition has closed windows."""
    idle_mark: int | None
    """Largest mark (ms) that the partition had while idle. None if it was never idle."""
    ended: bool
    """Whether every announced producer has ended."""
    read: int
    """Tuples read before `offset`."""
    routed: int
    """Tuples before `offset` that were sent to a worker."""
    rejected: int
    """Tuples before `offset` that went to the rejected topic."""
    filtered: int = 0
    """Tuples before `offset` that `query.where` dropped."""
    max_jumps: tuple[tuple[int, int | None], ...] = ()
    """(offset, `max_jump` in ms or None for off) for each change since the query began."""
    disorders: tuple[tuple[int, int], ...] = ()
    """(offset, `out_of_orderness` in ms) for each time that it grew, as `PartitionState` has it."""
    floor: int | None = None
    """The partition's own mark (ms) when `out_of_orderness` grew last. None if it had none."""

    @classmethod
    def of(
        cls, partition: int, state: PartitionState, query: Query, *, begin: int | None = None
    ) -> CommittedInput:
        """What this state says. begin: offset at which the query began to read, None: as the state has it."""
        return cls(
            partition=partition,
            begin=state.begin if begin is None else begin,
            began_again=state.begin,
            offset=state.offset,
            max_time=state.max_time,
            mark=state.mark(query),
            idle_mark=state.idle_mark,
            ended=state.ended,
            read=state.read,
            routed=state.routed,
            rejected=state.rejected,
            filtered=state.filtered,
            max_jumps=state.max_jumps,
            disorders=state.disorders,
            floor=state.floor,
        )


@dataclass(frozen=True, kw_only=True)
class LogBegins:
    """Where the logs begin after retention has deleted records.

    A partition that is absent has all its records. If an offset is above 0, the broker has deleted something
    of the query below it.
    """

    inputs: Mapping[int, int] = field(default_factory=dict)
    """Partition of the input topic -> first offset that is left."""
    rejected: Mapping[int, int] = field(default_factory=dict)
    """Partition of the rejected topic -> first offset that is left."""


EVERYTHING = LogBegins()
"""Nothing was deleted."""


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """Between which moments the partitioners judged, in ms since 1970. None: not known."""

    begun: int | None = None
    """When the query began."""
    now: int | None = None
    """When verify looks."""


UNKNOWN_CLOCKS = Clocks()
"""Nothing is known of the time at which the tuples were judged."""


def gone_below(left: Mapping[int, int], committed: Iterable[CommittedInput]) -> dict[int, int]:
    """`Kept.inputs` of a topic whose logs begin at `left` (partition -> offset).

    A record before the place where the query began is no part of the query, so it is not lost.
    """
    return {
        state.partition: first for state in committed if (first := left.get(state.partition, 0)) > state.begin
    }
