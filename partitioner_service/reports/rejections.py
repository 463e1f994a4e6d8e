"""The records that were rejected since the start of this process, by reason, and the warnings about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from evenflow.numeric.arrays import Int64s
from evenflow.reporting import Concern
from evenflow.reporting.words import by_reason, share, span
from evenflow.settings import Settings
from partitioner_service.block import AFTER_END, REASONS, Rejections
from partitioner_service.kafka.sink import SKIPPED
from partitioner_service.reading.cells.reasons import OF_RECORDS

EVERY_REASON = (*REASONS.values(), *OF_RECORDS, AFTER_END, SKIPPED)
"""Every reason that a partitioner writes into a rejected record."""
_SHARES = (10, 1)
"""Percentages of rejected records, the largest first. Each has a warning of its own."""


class RejectionCounts:
    """Counts by reason, an example of each reason, and how far out of order late tuples were."""

    def __init__(self, settings: Settings) -> None:
        self._query = settings.query
        self._topic = settings.topic("rejected")
        self._examples: dict[str, Rejections] = {}
        self._last_counts: Counter[str] = Counter()
        self._disorder = 0
        self.by_reason: Counter[str] = Counter()
        """Number of rejected records by reason."""

    @property
    def total(self) -> int:
        """Number of rejected records, for any reason."""
        return self.by_reason.total()

    def note(self, rejections: Iterable[Rejections]) -> None:
        """Count the rejections of a block."""
        for group in rejections:
            self.by_reason[group.reason] += len(group.positions)
            self._examples[group.reason] = group
            if group.reason == "late":
                self._note_late(group.times, group.marks)

    def _note_late(self, times: Int64s, marks: Int64s) -> None:
        # A mark stays behind the largest event time by the query's delay, so this is that largest event time.
        largest = marks + self._query.out_of_orderness + self._query.allowed_lateness
        self._disorder = max(self._disorder, int((largest - times).max()))

    def note_skipped(self, count: int) -> None:
        """Count offsets that were skipped by order. The order is logged where it is obeyed."""
        self.by_reason[SKIPPED] += count
        self._last_counts[SKIPPED] += count

    def concerns(self, read: int) -> list[Concern]:
        """A concern for each reason that has grown since the last call, and one more if the share is large.

        read: number of records that this process has read.
        """
        grown = [reason for reason, count in self.by_reason.items() if count > self._last_counts[reason]]
        self._last_counts = self.by_reason.copy()
        whole = read
        large = next((at for at in _SHARES if grown and self.total * 100 >= at * whole), None)
        concerns = [self._concern(reason, whole) for reason in grown]
        if large is not None:
            concerns.append(
                Concern(
                    name=f"{large} % rejected",
                    text=(
                        f"{share(self.total, whole)} of the records are rejected"
                        f" ({by_reason(self.by_reason)}): are key, time, columns and types of the settings"
                        " those of the topic? `evenflow doctor` looks"
                    ),
                    fields={"rejected": self.total, "rejected_by_reason": dict(self.by_reason)},
                )
            )
        return concerns

    def _concern(self, reason: str, whole: int) -> Concern:
        example = self._examples[reason]
        count = self.by_reason[reason]
        advice = ""
        if reason == "late":
            advice = (
                f". The latest came {span(self._disorder)} of event time behind its partition;"
                " query.out_of_orderness = "
                f'"{-(-self._disorder // 1_000)}s" would have kept all. It may grow while the query runs'
            )
        if reason == "ahead":
            advice = (
                ". Look at the producer's clock and at query.time_unit. For data with times of the future"
                ' set query.max_ahead_of_clock = "off" (under a new query name)'
            )
        return Concern(
            name=f"rejected: {reason}",
            text=(
                f"{count:,} of {whole:,} records rejected as {reason}, unchanged to {self._topic}; for"
                f" example of partition {example.partition}: {_detail(example)}{advice}"
            ),
            fields={"reason": reason, "rejected": count, "partition": example.partition},
        )


def _detail(group: Rejections) -> str:
    """What is wrong with the last record of the group, without its content, which must not get into a log."""
    return group.words or str(group.details[-1].as_py().decode(errors="replace"))
