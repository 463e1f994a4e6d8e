"""What a look at a query finds. Times are event times in ms unless said otherwise. What is not known is
None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenflow.due_windows import ResultDelays, due_windows
from evenflow.progress import PartitionState
from evenflow.reporting import Trouble
from evenflow.settings.sections.query import Query
from evenflow.windows import END_MARK, NO_MARK
from topics.groups import Member
from workbench.assist.activity import Part


@dataclass(frozen=True, kw_only=True)
class PartitionFacts:
    """One input partition: what its log holds, and the state that partitioners have committed for it."""

    partition: int
    """Number of the partition in the input topic."""
    log_begin: int
    """First offset that the broker still has."""
    log_end: int
    """Offset behind the newest record."""
    state: PartitionState | None
    """State that partitioners have committed. None before the query has begun."""
    watermark: int | None
    """Event time (ms) by which the partition's tuples have come: the largest so far less `out_of_orderness`.
    None before the first tuple."""
    mark: int | None
    """Event time (ms) up to which the partition has closed windows.
    None before the first tuple and after the end."""
    max_jump: int | None = None
    """By how much (ms) a tuple may be ahead that is read next. None: the rule is off."""
    max_jump_from: int | None = None
    """The offset from which on this `max_jump` holds. None before the query has begun."""
    out_of_orderness: int = 0
    """By how much (ms) a tuple may be behind that is read next."""
    out_of_orderness_from: int | None = None
    """The offset from which on this `out_of_orderness` holds. None before the query has begun."""

    @classmethod
    def of(
        cls, query: Query, partition: int, log: tuple[int, int], state: PartitionState | None
    ) -> PartitionFacts:
        """The facts that follow from the committed state. log: first offset and end offset."""
        mark = NO_MARK if state is None else state.mark(query)
        return cls(
            partition=partition,
            log_begin=log[0],
            log_end=log[1],
            state=state,
            watermark=None if state is None else state.watermark(query),
            mark=None if mark in (NO_MARK, END_MARK) else mark,
            max_jump=query.max_jump if state is None else state.max_jump(query),
            max_jump_from=None if state is None else state.max_jump_from,
            out_of_orderness=query.out_of_orderness if state is None else state.out_of_orderness(query),
            out_of_orderness_from=None if state is None else state.out_of_orderness_from,
        )

    @property
    def lag(self) -> int:
        """How many offsets are not read yet."""
        return max(0, self.log_end - (self.log_begin if self.state is None else self.state.offset))

    @property
    def ended(self) -> bool:
        """Whether all announced producers have ended."""
        return self.state is not None and self.state.ended

    @property
    def blank(self) -> bool:
        """Whether the partition has given no event time yet, and so holds the windows back."""
        return self.mark is None and not self.ended


@dataclass(frozen=True, kw_only=True)
class WindowFacts:
    """Which windows are due, written and next. A window is named by its end, an event time in ms."""

    due: int | None
    """The newest window that all partitions have closed,
    with `late = "update"` the newest that must have come out."""
    written: int | None
    """The newest window among the results."""
    written_at: int | None
    """When it was written (processing time in ms). None where nothing says it."""
    missing: int
    """At most how many windows are due and not written."""
    next: int | None
    """The window that is due next."""
    needs: int | None
    """The event time that every partition must have reached for `next` to be due."""
    sparse: bool = False
    """Whether a window that is due may have no row, for example because a filter keeps nothing or because
    nothing has changed."""
    looked: bool = True
    """Whether the results could be looked at. If not, none of them is missing."""


@dataclass(frozen=True, kw_only=True)
class RejectedCounts:
    """What the rejected topic holds."""

    by_reason: Mapping[str, int]
    """Reason -> number of records, among the newest of the topic."""
    whole: bool
    """Whether these are all records of the topic."""


@dataclass(frozen=True, kw_only=True)
class PlanFacts:
    """The newest published plan."""

    epoch: int
    """Number of the plan."""
    workers: int
    """p that the plan wants."""
    reducers: int
    """r that the plan wants."""
    effective_from: int | None
    """Event time (ms) from which on the plan holds. None: from the next slide on."""


@dataclass(frozen=True, kw_only=True)
class StageFacts:
    """A Spark stage by its checkpoint."""

    stage: str
    """Name of the stage in the checkpoint and in telemetry."""
    batches: int
    """How many micro-batches are done."""
    last_at: int | None
    """When the last one was done (ms of processing time)."""


@dataclass(frozen=True, kw_only=True)
class ViewFacts:
    """A view of the query."""

    name: str
    """Name of the view in the query."""
    windows: WindowFacts
    """Windows of the view's own results."""
    stages: tuple[StageFacts, ...]
    """Spark stages that work for the view alone."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that one look has found."""

    query: str
    """Name of the query."""
    topic: str
    """The input topic."""
    now: int
    """Processing time in ms."""
    recorded: bool
    """Whether Kafka holds the record with which a query begins."""
    changed: tuple[str, ...]
    """What differs from the settings of that record, in words."""
    partitions: tuple[PartitionFacts, ...]
    """One entry for each input partition."""
    rejected: RejectedCounts
    """What the newest records of the rejected topic are."""
    windows: WindowFacts
    """Windows of the query's own results."""
    workers: int
    """p of the settings, in use until a plan says otherwise."""
    plan: PlanFacts | None
    """The newest published plan. None if there is none."""
    members: tuple[Member, ...]
    """Members of the consumer group of the data plane."""
    parts: tuple[Part, ...]
    """The newest telemetry of each part."""
    ignored: int
    """How many of the newest telemetry records are not of this query."""
    stages: tuple[StageFacts, ...]
    """The Spark stages of the query, without those of its views."""
    troubles: tuple[str, ...]
    """What could not be read and why, in words."""
    idle_timeout: int | None
    """The settings' `idle_timeout`, in ms."""
    leap: str | None = None
    """Says that idle partitions do not follow the one with new tuples. None if all follow."""
    unfit: int = 0
    """How many result values are null because they did not fit,
    as far back as the newest telemetry reaches."""
    views: tuple[ViewFacts, ...] = ()
    """One entry for each view of the query."""
    added: int = 0
    """Partitions that the topic has besides, and that the query has not taken in."""
    delays: ResultDelays | None = None
    """What windows of the query wait for before they come out."""
    missing: tuple[str, ...] = ()
    """Topics that the query had and that no longer exist."""
    losses: tuple[Trouble, ...] = ()
    """Results that were written outside of Kafka and are gone."""
    ending: tuple[str, ...] = ()
    """Certificates of the settings, as files of this machine, that end soon or have ended, in words."""

    @property
    def early(self) -> bool:
        """Whether windows come out before they close."""
        return self.delays is not None and self.delays.early

    @property
    def begun(self) -> bool:
        """Whether partitioners have committed anything."""
        return any(partition.state is not None for partition in self.partitions)

    @property
    def ended(self) -> bool:
        """Whether every input partition has ended."""
        return bool(self.partitions) and all(partition.ended for partition in self.partitions)

    @property
    def lag(self) -> int:
        """How many offsets of all partitions are not read yet."""
        return sum(partition.lag for partition in self.partitions)

    def total(self, name: str) -> int:
        """Sum of `read`, `routed`, `filtered` or `rejected` over the partitions."""
        return sum(
            getattr(partition.state, name) for partition in self.partitions if partition.state is not None
        )


def windows_of(
    query: Query,
    partitions: tuple[PartitionFacts, ...],
    written: tuple[int, int | None] | None,
    *,
    looked: bool = True,
) -> WindowFacts:
    """Which windows are due according to these partitions.

    written: end of the newest written window, and when it was written (ms). None if none is written. looked:
    whether the results could be looked at.
    """
    end, at = (None, None) if written is None else written
    windows = due_windows(query, [partition.state for partition in partitions])
    if windows is None:
        return WindowFacts(
            due=None, written=end, written_at=at, missing=0, next=None, needs=None, looked=looked
        )
    since = windows.oldest - query.slide_ms if end is None else end
    return WindowFacts(
        due=windows.due,
        written=end,
        written_at=at,
        missing=0 if windows.due is None or not looked else max(0, (windows.due - since) // query.slide_ms),
        next=windows.next,
        needs=windows.needs,
        sparse=query.emit == "changes" or query.where is not None or query.explode is not None,
        looked=looked,
    )
