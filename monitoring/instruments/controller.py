"""The metrics of a controller: what it decides, and which parts it hears."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import product

from evenflow.elasticity import CAUSES
from evenflow.settings import Settings
from evenflow.telemetry import DecisionRecord
from monitoring.instruments import catalogue as c
from monitoring.instruments.sheet import Instruments, Sheet


class ControllerInstruments(Instruments):
    """Counts decisions as they are made, and reads everything else at each scrape.

    Decisions come from the controller's thread and scrapes from another, so a lock guards them.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, "controller")
        self._patience: float | None = None
        self._lock = threading.Lock()
        self._last: DecisionRecord | None = None
        self._decisions: Counter[tuple[str, str]] = Counter()
        self._record_count: Callable[[], int] = lambda: 0
        self._ignored: Callable[[], Mapping[str, int]] = dict
        self._silence: Callable[[], Mapping[str, float]] = dict

    def watch(
        self,
        *,
        record_count: Callable[[], int],
        ignored: Callable[[], Mapping[str, int]],
        silence: Callable[[], Mapping[str, float]],
        patience: float,
    ) -> None:
        """Say where to read the other values. Without this call they are 0 or missing.

        record_count: returns the number of records so far. ignored: returns records by kind. silence: returns
        seconds by part. patience: seconds of silence that are not too long.
        """
        self._patience = patience
        self._record_count, self._ignored, self._silence = record_count, ignored, silence

    def decided(self, record: DecisionRecord) -> None:
        """Count a judged observation."""
        with self._lock:
            self._last = record
            self._decisions[outcome(record), record.cause] += 1

    def write(self, sheet: Sheet) -> None:
        """As `Instruments` says."""
        sheet.put(c.PATIENCE, self._patience)
        sheet.put(c.HEARD, self._record_count())
        for kind, number in self._ignored().items():
            sheet.put(c.IGNORED, number, kind=kind)
        for part, seconds in self._silence().items():
            sheet.put(c.SILENCE, seconds, part=part)
        with self._lock:
            # All combinations from the start: Prometheus sees no increase in a counter that begins above 0.
            for name, cause in product(OUTCOMES, CAUSES):
                sheet.put(c.DECISIONS, self._decisions[name, cause], outcome=name, cause=cause)
            if self._last is not None:
                self._write_decision(sheet, self._last)

    @staticmethod
    def _write_decision(sheet: Sheet, last: DecisionRecord) -> None:
        load = last.observation.get("load")
        sheet.put(c.ZONE, last.zone)
        sheet.put(c.OBSERVED_LOAD, load if isinstance(load, int | float) else None)
        sheet.put(c.PLANNED_WORKERS, last.p)
        sheet.put(c.PLANNED_REDUCERS, last.r)
        sheet.put(c.WANTED_WORKERS, last.wanted_p)
        sheet.put(c.WANTED_REDUCERS, last.wanted_r)
        sheet.put(c.DECIDED, last.time / 1000)


OUTCOMES = ("none", "out", "in", "mixed", "held")


def outcome(record: DecisionRecord) -> str:
    """The outcome of a decision: `held`, `none`, `out`, `in`,
    or `mixed` if p and r move in opposite directions.
    """
    if record.held:
        return "held"
    steps = {record.wanted_p - record.p, record.wanted_r - record.r}
    more, fewer = any(step > 0 for step in steps), any(step < 0 for step in steps)
    return "mixed" if more and fewer else "out" if more else "in" if fewer else "none"
