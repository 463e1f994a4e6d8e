"""What metrics cost a partitioner instance: its data plane on a real broker, with metrics and without, in
turns.

One data plane reads, parses, routes, frames, produces and commits. After each commit it goes on with or
without what monitoring needs: reports (rate, keys, hottest keys, the telemetry record), histograms, and a
scrape over HTTP every 15 s of the time with metrics. CPU time is that of this process. It includes the
client's threads and the asking side of the scrape.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any

from benchmarks.measuring.scraping import Scraper, scraper
from benchmarks.measuring.step_lines import step, tell
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.measuring.stream import settings_for, write_input
from benchmarks.measuring.with_and_without import Pair, Piece, cost, having, pairs
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.telemetry import PartitionerRecord
from monitoring.instruments.partitioner import PartitionerInstruments
from partitioner_service.begin.prepare import prepare
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.plane.loop import Loop
from partitioner_service.plane.opening import Parts
from partitioner_service.reports.telemetry import Reports
from partitioner_service.routing.pieces import RoutedTuples
from workbench.local.broker import EmbeddedBroker

ID = "service-metrics-partitioner"
WHAT = "tuples/s of the partitioner's data plane with metrics against the same without (goal: 0.98)"

_LABEL = "data_plane"


def run(*, smoke: bool) -> dict[str, object]:
    """Ratios for the default partitioner, and for the cheapest one, where metrics are a larger share of
    the work.
    """
    tuples, passes = (1_500_000, 1) if smoke else (10_000_000, 3)
    numbers = count()
    with EmbeddedBroker() as broker:

        def fresh(partitioner: str) -> Settings:
            options = {"name": partitioner, "workers": 8, "commit_interval": 50 if smoke else 500}
            return settings_for(broker.settings(), f"bench-{next(numbers)}", partitioner=options)

        with step(f"writing {tuples:,} tuples"):
            write_input(fresh("hashing"), tuples=tuples)
        names = ("evenflow",) if smoke else ("evenflow", "hashing")
        return {name: _cost(partial(fresh, name), name, passes) for name in names}


def _cost(settings: Callable[[], Settings], name: str, passes: int) -> dict[str, object]:
    """Route the whole input `passes` times, each time with a query and a data plane of its own."""
    measured: list[Pair] = []
    spent = 0.0
    for number in range(passes):
        with step(f"{name}, pass {number + 1} of {passes}"):
            turns = _measured(prepare(settings()))
            measured += pairs(turns.pieces[:-1])  # the last one waited for the end
            spent += turns.reports_share / passes
    figures = cost(measured) | {"reports_share_of_cpu": round(spent, 4)}
    tell(name, figures)
    return figures


class _Silent(Reports):
    """Reports that note nothing and are never due."""

    due = False

    def note(self, sent: RoutedTuples, seconds: float, *, workers: int) -> None:
        """Do nothing."""


class _ClockedReports(Reports):
    """Reports that know how much of their thread's CPU time they have taken."""

    spent = 0.0
    """CPU seconds so far."""

    def note(self, sent: RoutedTuples, seconds: float, *, workers: int) -> None:
        """Note, and count the CPU time of that."""
        began = time.thread_time()
        super().note(sent, seconds, workers=workers)
        self.spent += time.thread_time() - began

    def record(self, *what: Any, **more: Any) -> PartitionerRecord:
        """The telemetry record. Its CPU time is counted."""
        began = time.thread_time()
        report = super().record(*what, **more)
        self.spent += time.thread_time() - began
        return report


class _MeasuredLoop(Loop):
    """The data plane's loop, which puts aside what it needs for metrics, and takes it up again."""

    def __init__(self, settings: Settings, parts: Parts, *, turns: _Turns, **more: Any) -> None:
        super().__init__(settings, parts, **more)
        self._turns = turns
        self._instruments = self._onlooker
        # The loop of the base class works with `_reports` and `_onlooker`. `commit` exchanges both.
        self._reports = self._telling = turns.telling
        self._silent = _Silent(settings)

    def _report(self) -> None:
        if self._reports is self._telling:
            super()._report()

    def commit(self, added: Mapping[int, PartitionState] | None = None) -> None:
        """Commit. A piece ends with that, and the next one begins with or without metrics."""
        super().commit(added)
        has = self._turns.turn(self.work.tuples, had=self._reports is self._telling)
        self._reports = self._telling if has else self._silent
        self._onlooker = self._instruments if has else None


class _Turns:
    """The pieces of a run, with metrics and without. telling: the reports of the pieces with metrics."""

    def __init__(self, settings: Settings, scrapes: Scraper) -> None:
        self.telling = _ClockedReports(settings)
        self.pieces: list[Piece] = []
        self._scrapes = scrapes
        self._begun: tuple[int, float, float] | None = None

    @property
    def reports_share(self) -> float:
        """The CPU time of the reports as a share of the CPU time of all pieces with metrics."""
        return self.telling.spent / sum(piece.used[_LABEL] for piece in self.pieces if piece.having)

    def turn(self, tuples: int, *, had: bool) -> bool:
        """End a piece. `tuples`: routed so far. `had`: whether the piece had metrics. Returns whether the
        next one has.
        """
        # A commit without a tuple, such as that of a stint's first frames, ends no piece.
        if tuples == (0 if self._begun is None else self._begun[0]):
            return had
        now = tuples, time.perf_counter(), time.process_time()
        # The first commit only begins the first piece: start-up is no part of any piece.
        if self._begun is not None:
            routed, seconds, cpu = (after - before for after, before in zip(now, self._begun, strict=True))
            self.pieces.append(Piece(had, int(routed), seconds, {_LABEL: cpu}))
            self._scrapes.worked(seconds if had else 0.0)
        self._begun = now
        return having(len(self.pieces))


def _measured(settings: Settings) -> _Turns:
    """Route the whole input with one data plane, in pieces with metrics and without."""
    instruments = PartitionerInstruments(settings)
    with scraper(instruments) as scrapes:
        turns = _Turns(settings, scrapes)
        plane = DataPlane(
            settings, until_ended=True, onlooker=instruments, loop=partial(_MeasuredLoop, turns=turns)
        )
        instruments.watch(plane.status, lambda: plane.newest_telemetry)
        plane.run()
    return turns
