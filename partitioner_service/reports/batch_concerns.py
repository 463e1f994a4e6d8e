"""What is wrong with the micro-batches of an instance: they come late, or are cut before they are whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from evenflow.reporting import Concern
from evenflow.reporting.words import span
from evenflow.settings import Settings

LATE = 0.1
"""Share of its interval by which a batch may come late before that is a concern.
The alert has the same bound.
"""

_SOON = 10.0
"""Seconds that batches must come late before it is told."""
_LONG = 60.0
"""Seconds after a batch was cut short until that is over, if no other one was."""

Shown = Mapping[str, Any]
"""`BatchesState` as the status page shows it."""


class BatchConcerns:
    """Looks at each new status. clock: seconds."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = settings.partitioner
        self._max_skew = settings.max_skew
        self._clock = clock
        self._count = 0
        self._counted_at = clock()
        self._short: Mapping[str, int] = {}
        self._short_at: dict[str, float] = {}

    def concerns(self, batches: Shown | None) -> Iterator[Concern]:
        """The concerns about these batches. None: the instance routes tuple by tuple."""
        if batches is None:
            return
        self._note(batches)
        interval = batches["interval_ms"] / 1000
        last = batches["last"]
        # Without newer batches, the last one says nothing about the present.
        if last and (last["late"] or 0) > LATE and self._within(self._counted_at, max(_SOON, 3 * interval)):
            yield self._late(last, batches["interval_ms"], after=max(_SOON, 2 * interval))
        for reason, text in (("memory", self._memory), ("skew", self._skew)):
            at = self._short_at.get(reason)
            if at is not None and self._within(at, max(_LONG, 3 * interval)):
                yield Concern(
                    name=f"batches cut short: {reason}",
                    text=text(batches["interval_ms"]),
                    over=f"no micro-batch was cut short by {reason} any more",
                    fields={"cut_short": self._short[reason], "batches": self._count},
                )

    def _note(self, batches: Shown) -> None:
        """Note when there was a new batch, and when one was cut short for each reason."""
        if batches["count"] != self._count:
            self._count, self._counted_at = batches["count"], self._clock()
        for reason, number in batches["cut_short"].items():
            if number != self._short.get(reason, 0):
                self._short_at[reason] = self._clock()
        self._short = dict(batches["cut_short"])

    def _within(self, at: float, seconds: float) -> bool:
        return self._clock() - at <= seconds

    def _late(self, last: Shown, interval_ms: int, *, after: float) -> Concern:
        return Concern(
            name="batches late",
            text=(
                f"micro-batches come late: the last one was written {100 * last['late']:.0f} % of its"
                f" interval of {span(interval_ms)} after its end, {span(last['took_ms'])} after it was cut."
                " More instances, a longer partitioner.batch_interval or another"
                " partitioner give each batch more time"
            ),
            over="micro-batches come in time again",
            after=after,
            fields={"late": last["late"], "took_ms": last["took_ms"], "interval_ms": interval_ms},
        )

    def _memory(self, interval_ms: int) -> str:
        return (
            f"micro-batches are cut short, because more than {self._options.batch_bytes:,} bytes waited for"
            " the end of one (partitioner.batch_bytes): a shorter partitioner.batch_interval (now:"
            f" {span(interval_ms)}) or more instances make batches smaller"
        )

    def _skew(self, interval_ms: int) -> str:
        return (
            "micro-batches are cut short, because nothing comes while input partitions of this instance wait"
            f" for slower ones: max_skew ({span(self._max_skew)}) should be several times as"
            f" long as a batch ({span(interval_ms)})"
        )
