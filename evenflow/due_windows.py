"""Which windows are due by the states of all input partitions, and whether the next one is far away.

`evenflow status`, the health page of a partitioner and the live page judge by this alone whether windows stay
open for too long. Such windows come out once their time has come, so this is a warning. What nobody waits for
with success, such as a partition without a record, is judged elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenflow.progress import PartitionState
from evenflow.reporting import Trouble
from evenflow.reporting.words import moment, span
from evenflow.settings.durations import format_duration
from evenflow.settings.sections.query import Query
from evenflow.windows import NO_MARK

_SMALLER = "a smaller value needs a new query.name, or `evenflow reset`"


@dataclass(frozen=True, kw_only=True)
class DueWindows:
    """A window is named by its end (event time in ms)."""

    oldest: int
    """The first window that can have a tuple."""
    due: int | None
    """The newest window that all partitions have closed, with `late = "update"` the newest that must have
    come out. None before the first."""
    next: int | None
    """The window that is due next, None once the input has ended."""
    needs: int | None
    """The event time (ms) that every partition must have reached for the next window."""


@dataclass(frozen=True, kw_only=True)
class ResultDelays:
    """What windows wait for before they come out, in ms."""

    window: int
    """Length of the window."""
    out_of_orderness: int
    """The query's setting of this name."""
    allowed_lateness: int
    """The query's setting of this name, 0 where windows come out early."""
    by_clock: bool
    """Whether event times follow the clock, because those that are far ahead of it are rejected."""
    early: bool = False
    """Whether windows come out before they close (`late = "update"`).
    Then they do not wait for allowed_lateness."""

    @classmethod
    def of(cls, query: Query) -> ResultDelays:
        """The delays of a query."""
        return cls(
            window=query.window,
            out_of_orderness=query.out_of_orderness,
            allowed_lateness=query.allowed_lateness - query.emission.updates,
            by_clock=query.max_ahead_of_clock is not None,
            early=bool(query.emission.updates),
        )

    @property
    def total(self) -> int:
        """How far (ms) every partition must be past the end of a window."""
        return self.out_of_orderness + self.allowed_lateness

    @property
    def far(self) -> int:
        """A delay (ms) that is far longer than a window: 100 windows, and an hour at least."""
        return max(100 * self.window, 3_600_000)


def due_windows(query: Query, states: Sequence[PartitionState | None]) -> DueWindows | None:
    """Which windows are due, None before the first tuple.

    states: of every input partition, None of one that is not known.
    """
    first = [state.first_time for state in states if state is not None and state.first_time is not None]
    if not first:
        return None
    slide = query.slide_ms
    # The first window that can have a tuple ends with the pane of the first tuple.
    oldest = (min(first) // slide + 1) * slide
    if query.emit_from is not None:
        oldest = max(oldest, query.emit_from + query.window)
    closed = _closed(query, states)
    due = None if closed is None or closed < oldest else closed
    over = all(state is not None and state.ended for state in states)
    upcoming = None if over else max(oldest, (oldest - slide if due is None else due) + slide)
    return DueWindows(
        oldest=oldest,
        due=due,
        next=upcoming,
        needs=None if upcoming is None else upcoming + query.result_delay,
    )


def _closed(query: Query, states: Sequence[PartitionState | None]) -> int | None:
    """End of the newest window that must have come out. None while a partition without a mark holds all back.

    A window comes out when every partition has closed it, with updates already when every watermark has
    passed its end.
    """
    slide = query.slide_ms
    marks = [
        NO_MARK if state is None else state.mark(query)
        for state in states
        if state is None or not state.ended
    ]
    if NO_MARK in marks:
        return None
    if marks:
        return (min(marks) + query.emission.updates) // slide * slide
    # All have ended, so every window that holds a tuple is closed: the last one begins with the newest
    # tuple's pane.
    latest = max(state.max_time or 0 for state in states if state is not None)
    return latest // slide * slide + query.window


def open_for_long(delays: ResultDelays, *, needs: int | None, now: int) -> Trouble | None:
    """The warning that windows stay open for far longer than they are, with the setting that keeps them open.

    needs: as in `DueWindows`, None if not known. now: ms since 1970. None if they do not stay open for so
    long.
    """
    names = ("out_of_orderness", "allowed_lateness")
    longest = max(names, key=lambda name: int(getattr(delays, name)))
    value = int(getattr(delays, longest))
    cause, length = f'query.{longest} is "{format_duration(value)}"', format_duration(delays.window)
    does = "comes out" if delays.early else "closes"
    # Times that are not bound to the clock may be past that at any moment.
    waits = 0 if needs is None or not delays.by_clock else needs - now
    if needs is not None and waits > delays.far:
        sentence = f"no window {does} before {moment(needs)}, in {span(waits)}"
        if value > delays.far:
            return Trouble("warning", f"{sentence}: {cause}, for windows of {length}; {_SMALLER}")
        ahead = "event times that were read lie ahead of the clock; look at the producers' clocks"
        return Trouble("warning", f"{sentence}: {ahead}")
    if value <= delays.far:
        return None
    return Trouble(
        "warning",
        f"{cause}, so a window of {length} {does} only when every partition"
        f" is that far past its end; {_SMALLER}",
    )
