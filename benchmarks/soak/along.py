"""`evenflow verify` again and again while the pipeline runs, and whether any window was left out.

Retention deletes the beginning of the input, so each run compares the windows that lie between what is gone
and what is due. They must overlap.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, NamedTuple

from benchmarks.measuring.pipelines import printed_object
from evenflow.errors import ServiceError
from workbench.local.processes import ChildProcess

_LONGEST = 400.0
"""Seconds after which a run counts as one that hangs."""
_DELETION = re.compile(r"offsets \d+ to \d+ are gone|the offset to read is gone")
"""In the error of a run that was reading what the broker deleted at that moment."""


class Comparison(NamedTuple):
    """What one run of verify has compared. Event times are in ms."""

    since: int | None
    """Windows that begin at this event time or later were compared. None: all."""
    until: int | None
    """Windows that end at this event time or earlier were compared. None: none was due, or all were."""
    ended: bool
    """Whether the input had ended, so that all windows were due."""
    read: int
    """Tuples that the partitioner has read by its committed counters. Deleted ones are among them."""
    rows: int
    """Rows that were compared."""
    differences: int
    """Differences of all kinds."""
    doubtful: int
    """Rows that could not be compared, because retention had deleted results."""
    seconds: float
    """How long the run took."""


class ReadingAlong:
    """Runs verify every `period` seconds, or without a pause if a run takes longer.

    start: starts a run. comparisons: those of the runs that have a report. interruptions: how many runs ended
    because the broker deleted what they were about to read. failures: what was wrong with other runs.
    """

    def __init__(self, start: Callable[[], ChildProcess], *, period: float) -> None:
        self._start = start
        self._period = period
        self.comparisons: list[Comparison] = []
        self.interruptions = 0
        self.failures: list[str] = []
        self._child: ChildProcess | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reading-along", daemon=True)

    def __enter__(self) -> ReadingAlong:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the run that is under way, or end it after an error. No other one follows."""
        self._over.set()
        if kind is not None and self._child is not None:
            self._child.terminate()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                began = time.monotonic()
                self.once()
                self._over.wait(max(0.0, began + self._period - time.monotonic()))
        except Exception as error:  # nobody else would hear of it
            self.failures.append(f"verify cannot be run: {type(error).__name__}: {error}")

    def once(self) -> None:
        """Start one run, wait for its end, and note what it says."""
        began = time.monotonic()
        self._child = child = self._start()
        try:
            status = child.wait(_LONGEST)
        except ServiceError as error:
            child.terminate()
            self.failures.append(f"{error.message}:\n{child.tail()}")
            return
        output = child.output()
        report = printed_object(output)
        if report is not None:
            self.comparisons.append(comparison_of(report, time.monotonic() - began))
        if report is None and _DELETION.search(output):
            self.interruptions += 1
        elif report is None or status:
            self.failures.append(f"verify ended with {status}:\n{child.tail()}")


def comparison_of(report: dict[str, Any], seconds: float) -> Comparison:
    """What this report of `evenflow verify --json`, which took so many seconds, has compared."""
    return Comparison(
        since=report["compared_from"],
        until=report["mark"],
        ended=report["ended"],
        read=sum(counters["committed_read"] for counters in report["counters"]),
        rows=report["rows"],
        differences=report["differences"],
        doubtful=report["doubtful_rows"],
        seconds=round(seconds, 1),
    )


def gaps(comparisons: Iterable[Comparison], *, begin: int, window: int, slide: int) -> list[str]:
    """In words: windows that begin at `begin` (event time, ms) or later and that no run has compared.

    window, slide: their length and the distance of their begins, ms. The window is a multiple of the slide.
    """
    words = []
    first = begin // slide * slide  # begin of the first window that no run has compared yet
    for comparison in comparisons:
        if comparison.since is not None and comparison.since > first:
            words.append(f"windows that begin from {first} on, before {comparison.since}, were not compared")
        if comparison.ended:
            return words
        if comparison.until is not None:
            first = max(first, ((comparison.until - window) // slide + 1) * slide)
    return [*words, f"windows that begin from {first} on were not compared"]
