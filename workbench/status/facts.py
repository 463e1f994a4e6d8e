"""What a look at a query finds. Times are event times in ms unless said otherwise. None is "not known", never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenflow.progress import PartitionState
from evenflow.settings.query import Query
from evenflow.windows import END_MARK, NO_MARK
from topics.groups import Member
from workbench.alive import Part


@dataclass(frozen=True, kw_only=True)
class PartitionFacts:
    """One input partition: what its log holds, and the state that partitioners have committed of it.

    log_begin, log_end: offsets. state: None before the query has begun. mark: None before the first tuple.
    """

    partition: int
    log_begin: int
    log_end: int
    state: PartitionState | None
    watermark: int | None
    mark: int | None

    @classmethod
    def of(
        cls, query: Query, partition: int, log: tuple[int, int], state: PartitionState | None
    ) -> PartitionFacts:
        """From the committed state. log: first offset and end."""
        mark = NO_MARK if state is None else state.mark(query)
        largest = None if state is None else state.max_time
        return cls(
            partition=partition,
            log_begin=log[0],
            log_end=log[1],
            state=state,
            watermark=None if largest is None else largest - query.out_of_orderness,
            mark=None if mark in (NO_MARK, END_MARK) else mark,
        )

    @property
    def lag(self) -> int:
        """Offsets that are not read yet."""
        return max(0, self.log_end - (self.log_begin if self.state is None else self.state.offset))

    @property
    def ended(self) -> bool:
        """All announced producers have ended."""
        return self.state is not None and self.state.ended

    @property
    def blank(self) -> bool:
        """It has given no event time yet, and holds the windows back."""
        return self.mark is None and not self.ended


@dataclass(frozen=True, kw_only=True)
class WindowFacts:
    """Ends of windows. due: the newest that all partitions have closed. written: the newest among the results, and when

    it was written (`written_at`, processing time in ms). missing: most windows that are due and not written. next: the
    one that closes next, once every partition has had an event time of `needs`. sparse: whether a window that is due may
    have no row, as of a filter that keeps nothing, or where nothing changed.
    """

    due: int | None
    written: int | None
    written_at: int | None
    missing: int
    next: int | None
    needs: int | None
    sparse: bool = False


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """By reason, of the newest records of the rejected topic. whole: of all that there are."""

    by_reason: Mapping[str, int]
    whole: bool


@dataclass(frozen=True, kw_only=True)
class PlanFacts:
    """The newest published plan; effective_from: None is at the next slide."""

    epoch: int
    workers: int
    reducers: int
    effective_from: int | None


@dataclass(frozen=True, kw_only=True)
class StageFacts:
    """A Spark stage's checkpoint on this machine: micro-batches done, and when the last one was (ms, processing time)."""

    stage: str
    batches: int
    last_at: int | None


@dataclass(frozen=True, kw_only=True)
class ViewFacts:
    """A view of the query, by the name that it has there."""

    name: str
    windows: WindowFacts
    stages: tuple[StageFacts, ...]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that one look found. now: processing time in ms. recorded: whether Kafka holds the record with which a query
    begins. workers: of the settings, in use until a plan says otherwise. ignored: records of the newest telemetry that are
    none of this query. troubles: in words, what could not be read and why.
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
    views: tuple[ViewFacts, ...] = ()

    @property
    def begun(self) -> bool:
        """Whether partitioners have committed anything."""
        return any(one.state is not None for one in self.partitions)

    @property
    def ended(self) -> bool:
        """Every input partition has ended."""
        return bool(self.partitions) and all(one.ended for one in self.partitions)

    @property
    def lag(self) -> int:
        """Offsets not read yet, of all partitions."""
        return sum(one.lag for one in self.partitions)

    def total(self, name: str) -> int:
        """Sum of `read`, `routed`, `filtered` or `rejected` over the partitions."""
        return sum(getattr(one.state, name) for one in self.partitions if one.state is not None)


def windows_of(
    query: Query, partitions: tuple[PartitionFacts, ...], written: tuple[int, int] | None
) -> WindowFacts:
    """What is due by these partitions. written: end of the newest written window and when it was written (ms)."""
    end, at = (None, None) if written is None else written
    begun = [one.state for one in partitions if one.state is not None]
    first = [state.first_time for state in begun if state.first_time is not None]
    if not first:
        return WindowFacts(due=None, written=end, written_at=at, missing=0, next=None, needs=None)
    slide = query.slide_ms
    oldest = (min(first) // slide + 1) * slide
    if query.emit_from is not None:
        oldest = max(oldest, query.emit_from + query.window)
    closed = _closed(query, partitions)
    due = None if closed is None or closed < oldest else closed
    since = oldest - slide if end is None else end
    over = all(one.ended for one in partitions)
    upcoming = None if over else max(oldest, (oldest - slide if due is None else due) + slide)
    return WindowFacts(
        due=due,
        written=end,
        written_at=at,
        missing=0 if due is None else max(0, (due - since) // slide),
        next=upcoming,
        needs=None if upcoming is None else upcoming + query.out_of_orderness + query.allowed_lateness,
        sparse=query.emit == "changes" or query.where is not None or query.explode is not None,
    )


def _closed(query: Query, partitions: tuple[PartitionFacts, ...]) -> int | None:
    """End of the newest window that every partition has closed. None while one holds all of them back."""
    slide = query.slide_ms
    open_ones = [one for one in partitions if not one.ended]
    if any(one.mark is None for one in open_ones):
        return None
    if open_ones:
        return min(one.mark // slide * slide for one in open_ones if one.mark is not None)
    latest = max(one.state.max_time or 0 for one in partitions if one.state is not None)
    return latest // slide * slide + query.window
