"""What verify found."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from evenflow.reporting.words import moment, printable
from evenflow.settings.durations import format_duration

FLOAT_BOUND = 1e-9
"""Sums and means of float64 may differ by this much, relative to the sum (mean) of the magnitudes."""

BEHIND, BLIND = "behind", "blind"
FINDINGS = (BEHIND, BLIND)
"""behind: results have not reached what is due in time. blind: nothing that is due could be compared."""

_SHOWN = 120


@dataclass(frozen=True, kw_only=True)
class LostRecords:
    """One input partition of which records are gone, or can no longer be judged."""

    partition: int
    """Number of the partition in the input topic."""
    before: int
    """The records below this offset are lost."""
    tuples: int
    """How many tuples that are."""
    routed: int
    """How many of these were accepted (routed, or filtered by the condition)."""
    until: int | None
    """No accepted lost tuple has a later event time (ms). None if none was accepted."""
    mark: int | None
    """No accepted lost tuple gave the partition a larger mark (ms). None if none was accepted."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing that is not as it should be. Fields that do not apply are None."""

    kind: str
    """One of missing, unexpected, not-due, value, duplicate, malformed, placement, rejected, not-rejected,
    unreadable, unmatched, too-large, counters, state, or one of FINDINGS, which are no differences, because
    nothing that is there is wrong."""
    detail: str
    """What is wrong, as a sentence."""
    window_start: int | None = None
    """Event time (ms) at which the window begins."""
    window_end: int | None = None
    """Event time (ms) at which it ends."""
    key: str | None = None
    """The key as text, cut when long."""
    column: str | None = None
    """Name of the result column that differs."""
    expected: int | float | str | None = None
    """What verify has computed."""
    got: int | float | str | None = None
    """What the results say."""
    partition: int | None = None
    """Partition of the input record. For `duplicate`, `placement` and `malformed`: of the results record, or
    of the rejected record that is malformed."""
    offset: int | None = None
    """Offset of the same record."""

    def __str__(self) -> str:
        where = []
        if self.window_end is not None:
            where.append(f"window [{self.window_start}, {self.window_end})")
        if self.key is not None:
            where.append(f"key {self.key}")
        if self.column is not None:
            where.append(f"{self.column}: expected {self.expected}, got {self.got}")
        if self.partition is not None:
            where.append(f"at [{self.partition}]" + ("" if self.offset is None else f" offset {self.offset}"))
        return f"{self.kind}: " + ", ".join([*where, self.detail])


@dataclass(frozen=True, kw_only=True)
class Counters:
    """Tuples of one input partition below its committed offset, as counted here and as committed."""

    partition: int
    """Number of the partition in the input topic."""
    offset: int
    """The committed offset."""
    read: int
    """Tuples as verify counts them."""
    routed: int
    """Tuples that verify would send to a worker."""
    rejected: int
    """Tuples that verify would reject."""
    committed_read: int
    """Tuples that the partitioner says it read."""
    committed_routed: int
    """Tuples that the partitioner says it sent to a worker."""
    committed_rejected: int
    """Tuples that the partitioner says it rejected."""
    ended: bool
    """Whether every announced producer has ended."""
    filtered: int = 0
    """Tuples that `query.where` drops, as verify counts them."""
    committed_filtered: int = 0
    """Tuples that the partitioner says it dropped."""
    unannounced: int = 0
    """Tuples of an ended partition beyond those that its producers' markers announce."""


@dataclass(frozen=True, kw_only=True)
class Reach:
    """How far results reach. Event times are in ms."""

    written: int | None
    """Newest window end among the results. None if there are no results."""
    due: int | None
    """Newest window end that the committed marks make due. None if no window is due."""
    windows: int
    """Number of pending windows, which are due but newer than any result."""
    behind: int
    """How much event time (ms) lies between the results and `due`."""
    seconds: float
    """How long, by verify's own clock, the pending windows have been due at least."""
    bound: float
    """Seconds for which windows may be pending."""

    @property
    def in_time(self) -> bool:
        """Whether nothing is pending, or nothing for too long."""
        return self.windows == 0 or self.seconds < self.bound

    def __str__(self) -> str:
        text = f"results reach window end {_shown_time(self.written)}"
        if self.due is None:
            return f"{text}, no window is due"
        text += f", {_shown_time(self.due)} is due"
        if not self.windows:
            return text
        return (
            f"{text}: {self.windows} windows, {format_duration(self.behind)} of event time behind, due for "
            f"{self.seconds:.1f} s or more"
        )


@dataclass(frozen=True)
class UnfetchedOffsets:
    """Offsets that nobody could fetch."""

    partition: int
    """Partition of the input topic."""
    first: int
    """The first skipped offset."""
    last: int
    """The last skipped offset."""
    why: str
    """Who ordered to skip them, and why."""

    def __str__(self) -> str:
        return (
            f"offsets {self.first} to {self.last} of input partition {self.partition} could not be fetched"
            f" and are in no result: {printable(self.why)}"
        )


@dataclass(frozen=True, kw_only=True)
class Tuples:
    """Tuples in the rows that were compared. A tuple counts in each window that it is in."""

    due: int = 0
    """How many the input has."""
    merged: int = 0
    """How many the results say."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a comparison of the results with the input has shown."""

    windows: int
    """How many windows are due and were compared."""
    rows: int
    """How many result rows are due and were compared."""
    open_windows: int
    """Windows that have begun and are not closed yet."""
    pending_windows: int
    """Windows that are due but newer than the newest result. They exist only while the input is running,
    because the reducer may be behind (see `reach`)."""
    ended: bool
    """Whether the input has ended, so that all windows are due."""
    mark: int | None
    """Event time (ms) up to which windows are due. None if no window is due, or if all are (`ended`)."""
    read: int
    """Tuples of the input, where `read = routed + rejected + filtered`."""
    routed: int
    """Tuples that were sent to a worker."""
    rejected: int
    """Tuples that were rejected."""
    differences: int
    """How many there are, of all kinds together."""
    kinds: dict[str, int]
    """How many differences and findings there are of each kind."""
    first: tuple[Difference, ...]
    """Some of the differences and findings."""
    counters: tuple[Counters, ...]
    """One entry for each input partition."""
    reach: Reach
    """How far the results are behind."""
    filtered: int = 0
    """Tuples that `query.where` dropped."""
    unread: int = 0
    """Records of the input from the committed offsets on, which verify does not look at."""
    tuples: Tuples = field(default_factory=Tuples)
    """How many the compared rows hold."""
    unfit: int = 0
    """Values that are null because they do not fit their type."""
    without_schema: int = 0
    """Records that were rejected because the registry had no schema for the partitioner, and has one now."""
    withheld: int = 0
    """Records that were rejected as unreadable and whose schema the registry refuses to verify, so that
    nobody can say whether they are."""
    skipped: tuple[UnfetchedOffsets, ...] = ()
    """What an operator has ordered to go past."""
    lost: tuple[LostRecords, ...] = ()
    """What retention has deleted of the input."""
    compared_from: int | None = None
    """Windows that begin at this event time (ms) or later hold no lost tuple, and are compared exactly. None
    if no accepted tuple is lost."""
    skipped_windows: int = 0
    """How many windows begin earlier than `compared_from`."""
    doubtful_rows: int = 0
    """Rows that are due and not there, where retention has deleted results."""
    float_bound: float = field(default=FLOAT_BOUND)
    """The largest relative difference that counts as rounding of sums of floats."""

    @property
    def exact(self) -> bool:
        """Whether nothing differs, results reach what is due, and something was compared if anything is
        due.
        """
        return not self.kinds

    @property
    def settled(self) -> bool:
        """Whether waiting changes nothing, because all that is due is there or because the input has
        ended.
        """
        return self.ended or not (self.pending_windows or "missing" in self.kinds)

    def json(self) -> str:
        """One line of JSON with every field."""
        return json.dumps(asdict(self))

    def text(self) -> str:
        """The report for a person. The last line is `N differences`,
        followed by the findings if there are any.
        """
        lines = [str(difference) for difference in self.first]
        more = sum(self.kinds.values()) - len(self.first)
        if more > 0:
            lines.append(
                f"... and {more} more: " + ", ".join(f"{n} {kind}" for kind, n in self.kinds.items())
            )
        filtered = f" + filtered {self.filtered}" if self.filtered else ""
        lines.append(f"read {self.read} = routed {self.routed} + rejected {self.rejected}{filtered}")
        lines += self._input_notes()
        lines.append(f"{self.windows} windows, {self.rows} rows compared with the input")
        lines.append(
            f"tuples in these rows: {self.tuples.due} of the input,"
            f" {self.tuples.merged} as the results count them"
        )
        lines += self._result_notes()
        lines.append(
            "integers, counts, minima and maxima compared exactly, float sums and means within "
            f"{self.float_bound:g} of the sum of magnitudes"
        )
        last = f"{self.differences} difference{'' if self.differences == 1 else 's'}"
        lines.append(", ".join([last, *(_CONCLUSIONS[kind] for kind in FINDINGS if kind in self.kinds)]))
        return "\n".join(lines)

    def _input_notes(self) -> list[str]:
        notes = []
        for lost in self.lost:
            until = "no window" if lost.until is None else f"event times up to {_shown_time(lost.until)}"
            notes.append(
                f"warning: the records of input partition {lost.partition} below offset {lost.before} are"
                f" gone or no longer judged: {lost.tuples} tuples, which concerns {until}"
            )
        if self.compared_from is not None:
            notes.append(
                f"warning: {self.skipped_windows} windows that begin before {_shown_time(self.compared_from)}"
                " may hold lost tuples and are not compared"
            )
        unannounced = sum(counters.unannounced for counters in self.counters)
        if unannounced:
            notes.append(
                f"{unannounced} tuples more than the producers' markers announce:"
                " of replays without an end; they count"
            )
        if self.without_schema:
            notes.append(
                f"warning: {self.without_schema} records were rejected because the registry did not hand out"
                " their schemas; it does now, and they stay rejected: docs/formats.md"
            )
        for stretch in self.skipped:
            notes.append(f"warning: {stretch}")
        if self.withheld:
            notes.append(
                f"warning: {self.withheld} records were rejected as unreadable, and the registry refuses"
                " their schemas to verify, too: whether they are readable is not judged: docs/formats.md"
            )
        if self.unread:
            notes.append(
                f"{self.unread} records of the input lie behind the committed offsets: not looked at"
            )
        return notes

    def _result_notes(self) -> list[str]:
        notes = []
        if self.unfit:
            notes.append(f"{self.unfit} values do not fit int64 or their room and are null")
        if self.doubtful_rows:
            notes.append(
                f"warning: {self.doubtful_rows} rows are due and not there, but retention has deleted results"
                " where they would lie: not compared"
            )
        if not self.ended:
            notes.append(
                f"the input is still running, not compared: {self.open_windows} windows that are open, "
                f"{self.pending_windows} that are due but newer than any result"
            )
            notes.append(("warning: " if self.reach.windows else "") + str(self.reach))
        return notes


_CONCLUSIONS = {
    BEHIND: "but results do not reach what is due",
    BLIND: "but nothing of what is due could be compared",
}


@dataclass
class Findings:
    """Differences as they are found. All are counted, and the first of each kind are kept."""

    limit: int
    """How many examples of each kind are kept."""
    kinds: dict[str, int] = field(default_factory=dict)
    """Kind -> number of differences."""
    examples: list[Difference] = field(default_factory=list)
    """Differences in the order in which they were found."""

    def add(self, difference: Difference) -> None:
        """Add one difference."""
        count = self.kinds.get(difference.kind, 0)
        self.kinds[difference.kind] = count + 1
        if count < self.limit:
            self.examples.append(difference)

    def count_only(self, kind: str, number: int) -> None:
        """Count `number` more differences of this kind, without keeping them."""
        if number > 0:
            self.kinds[kind] = self.kinds.get(kind, 0) + number

    @property
    def total(self) -> int:
        """How many differences there are. FINDINGS do not count."""
        return sum(number for kind, number in self.kinds.items() if kind not in FINDINGS)

    def copy(self) -> Findings:
        """A copy, so that several comparisons can begin with the same differences."""
        return Findings(self.limit, dict(self.kinds), list(self.examples))


def wrong(partition: int, offset: int, detail: str) -> Difference:
    """The difference for a rejection that was not right."""
    return Difference(kind="rejected", detail=detail, partition=partition, offset=offset)


def missed(partition: int, offset: int, detail: str) -> Difference:
    """The difference for a record that should have been rejected and was not."""
    return Difference(
        kind="not-rejected", detail=f"should have been rejected: {detail}", partition=partition, offset=offset
    )


def _shown_time(time: int | None) -> str:
    """An event time for people: its milliseconds, and the moment in words."""
    return "none" if time is None else f"{time} ({moment(time)})"


def shortened(text: str) -> str:
    """The text, cut when long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def shown_key(key: Any) -> str | None:
    """A key for people: text where it is text, cut when long."""
    if key is None:
        return None
    data = bytes(key)
    text = repr(data[:_SHOWN].decode("utf-8", "backslashreplace"))
    return text if len(data) <= _SHOWN else f"{text}... ({len(data)} bytes)"
