"""What a look at a query finds. Times are event times in ms unless said otherwise. What is not known is None, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenflow.due_windows import ResultDelays, due_windows
from evenflow.progress import PartitionState
from evenflow.reporting import Trouble
from evenflow.settings.sections.query import Query
from evenflow.windows import END_MARK, NO_MARK
from topics.groups import Member
from workbench.alive import Part


@dataclass(frozen=True, kw_only=True)
class PartitionFacts:
    """One input partition: what its log holds, and the state that partitioners have committed for it.

    log_begin, log_end: offsets. state: None before the query has begun. watermark: None before the first tuple. mark: None
    before the first tuple, and after the end of the partition. max_jump: by how much (ms) a tuple may be ahead that is read
    next, None: off. max_jump_from: the offset from which on this holds, None before the query has begun.
    out_of_orderness, out_of_orderness_from: likewise, in ms.
    """

    partition: int
    log_begin: int
    log_end: int
    state: PartitionState | None
    watermark: int | None
    mark: int | None
    max_jump: int | None = None
    max_jump_from: int | None = None
    out_of_orderness: int = 0
    out_of_orderness_from: int | None = None

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
    """Which windows are due, written and next. A window is named by its end.

    due: the newest window that all partitions have closed, with `late = "update"` the newest that must have come out.
    written: the newest window among the results. written_at: when it was written (processing time in ms), None where nothing
    says it. looked: whether the results could be looked at. If not, none of them is missing. missing: at most how many
    windows are due and not written. next: the window that is due next. needs: the event time that every partition must have
    reached for that. sparse: whether a window that is due may have no row, for example because a filter keeps nothing or
    because nothing has changed.
    """

    due: int | None
    written: int | None
    written_at: int | None
    missing: int
    next: int | None
    needs: int | None
    sparse: bool = False
    looked: bool = True


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """Reason -> number of records, among the newest of the rejected topic. whole: whether these are all its records."""

    by_reason: Mapping[str, int]
    whole: bool


@dataclass(frozen=True, kw_only=True)
class PlanFacts:
    """The newest published plan. effective_from: event time from which on it holds. None: from the next slide on."""

    epoch: int
    workers: int
    reducers: int
    effective_from: int | None


@dataclass(frozen=True, kw_only=True)
class StageFacts:
    """A Spark stage by its checkpoint.

    batches: how many micro-batches are done. last_at: when the last one was done (ms of processing time).
    """

    stage: str
    batches: int
    last_at: int | None


@dataclass(frozen=True, kw_only=True)
class ViewFacts:
    """A view of the query. name: that of the view in the query."""

    name: str
    windows: WindowFacts
    stages: tuple[StageFacts, ...]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that one look has found.

    now: processing time in ms. recorded: whether Kafka holds the record with which a query begins. changed: what differs
    from the settings of that record, in words. workers: those of the settings, in use until a plan says otherwise.
    ignored: how many of the newest telemetry records are not of this query. troubles: in words, what could not be read
    and why. idle_timeout: of the settings, ms. leap: in words, that idle partitions do not follow the one with new tuples.
    gone: topics that the query had and that are there no more. losses: results that are gone from elsewhere.
    unfit: how many result values are null because they did not fit, as far back as the newest telemetry reaches.
    added: partitions that the topic has besides, and that the query has not taken in. delays: of the query's windows.
    ending: certificates of the settings, as files of this machine, that end soon or have ended, in words.
    """

    query: str
    topic: str
    now: int
    recorded: bool
    changed: tuple[str, ...]
    partitions: tuple[PartitionFacts, ...]
    rejected: Rejected
    windows: WindowFacts
    workers: int
    plan: PlanFacts | None
    members: tuple[Member, ...]
    parts: tuple[Part, ...]
    ignored: int
    stages: tuple[StageFacts, ...]
    troubles: tuple[str, ...]
    idle_timeout: int | None
    leap: str | None = None
    unfit: int = 0
    views: tuple[ViewFacts, ...] = ()
    added: int = 0
    delays: ResultDelays | None = None
    gone: tuple[str, ...] = ()
    losses: tuple[Trouble, ...] = ()
    ending: tuple[str, ...] = ()

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

    written: end of the newest written window, and when it was written (ms). None if none is written. looked: whether the
    results could be looked at.
    """
    end, at = (None, None) if written is None else written
    known = due_windows(query, [partition.state for partition in partitions])
    if known is None:
        return WindowFacts(
            due=None, written=end, written_at=at, missing=0, next=None, needs=None, looked=looked
        )
    since = known.oldest - query.slide_ms if end is None else end
    return WindowFacts(
        due=known.due,
        written=end,
        written_at=at,
        missing=0 if known.due is None or not looked else max(0, (known.due - since) // query.slide_ms),
        next=known.next,
        needs=known.needs,
        sparse=query.emit == "changes" or query.where is not None or query.explode is not None,
        looked=looked,
    )
