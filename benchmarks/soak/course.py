"""A live stream at 0.8 of the highest rate at which nothing piles up, while `evenflow verify` reads along.

The broker, the replay, a partitioner, a Spark application and verify share the machine. Verify takes what it
can get, so the sustained rate is searched with verify beside.

Retention by size deletes the oldest records of the input, the routed topic and the results all the time.
Each run of verify compares what is left and due. No window may lie between two runs. After the stream the
services are ended by SIGTERM, started again until the input has ended, and compared once more. Then the
partitioner's committed counters must have as many tuples as offsets were written, less a marker of the end in
each partition. Deleted records count in both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measuring.cpu import CpuMeter, budget
from benchmarks.measuring.pipelines import QueryProcesses, printed_object, run_to_end, running_query
from benchmarks.measuring.step_lines import step
from benchmarks.pipeline.end_to_end import Live
from benchmarks.soak.along import Comparison, ReadingAlong, gaps
from benchmarks.soak.retention import CHECK_MS, SECONDS, fullest_partitions, retain, topic_settings
from benchmarks.soak.sizes import of_folder, of_process
from evenflow.errors import ServiceError
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from workbench.local.broker import EmbeddedBroker
from workbench.local.processes import ChildProcess

SHARE = 0.8
"""Of the sustained rate."""
ZIPF = 1.4
WINDOW_MS, SLIDE_MS = 10_000, 2_000
_TRICKLE = 1_000
"""Tuples per second between the steps of the search, as in `service-end-to-end-fused`."""
RATES = (50_000, 100_000)
"""Tuples per second that are tried, one after the other, up to the first that is too much. No higher ones are
tried, because verify must read faster than the stream grows. On two cores it reads 120,000 to 180,000 tuples
per second beside the pipeline."""
_STEP_SECONDS = 60.0
_LEAST_SHARE = 0.97
"""Of the wanted rate that the replay must reach."""
_INTERRUPTED = 130
"""Exit status of a replay that a signal ends."""


@dataclass
class Soak:
    """What a long run has shown."""

    sustained: int | None = None
    """Tuples per second at which nothing piled up, with verify beside. None: not searched."""
    rate: int = 0
    """Tuples per second of the run."""
    seconds: list[float] = field(default_factory=list)
    """When each look was, since the run began."""
    sizes: dict[str, list[float]] = field(default_factory=dict)
    """What was looked at -> its size at each look."""
    comparisons: list[Comparison] = field(default_factory=list)
    """What each run of verify has compared, in order. The last one came after the end."""
    interruptions: int = 0
    """Runs of verify that ended because the broker deleted what they were about to read."""
    tuples: int = 0
    """Tuples that were delivered in the run."""
    cpu_seconds_per_million_tuples: dict[str, float] = field(default_factory=dict)
    """CPU time by process, verify included."""
    violations: list[str] = field(default_factory=list)
    """What must not be, in words."""


def soak(
    *, minutes: float, every: float, rate: int | None = None, period: float = 180.0, retention: float = 1.0
) -> Soak:
    """Let the pipeline run for so long.

    every: seconds between two looks. rate: tuples/s. None: `SHARE` of the sustained rate, which is searched
    first. period: seconds between the begins of two runs of verify. retention: topics keep so many times
    `SECONDS`. Raises ServiceError if a process ends by itself or does not come to the end, and if no rate is
    sustained. What else must not be is among the violations: what was seen is not lost by it.
    """
    properties = {"log.retention.check.interval.ms": str(CHECK_MS)}
    with EmbeddedBroker(properties=properties) as broker, CpuMeter() as meter:
        meter.watch(os.getpid(), "bench")
        meter.watch(broker.pid, "broker")
        query = {"window": f"{WINDOW_MS}ms", "slide": f"{SLIDE_MS}ms"}
        with running_query(broker.settings(), meter, "soak", query=query) as running:
            course = SoakCourse(running, broker, every=every, period=period, retention=retention)
            return course.run(minutes=minutes, rate=rate)


class SoakCourse:
    """One run, step by step.

    every, period, retention: as of `soak`.
    """

    def __init__(
        self,
        running: QueryProcesses,
        broker: EmbeddedBroker,
        *,
        every: float,
        period: float,
        retention: float,
    ) -> None:
        self._running = running
        self._broker = broker
        self._every = every
        self._period = period
        self._retention = retention
        self._soak = Soak()
        self._bytes: dict[TopicRole, float] = {}

    def run(self, *, minutes: float, rate: int | None) -> Soak:
        """Search the rate unless it is given, and let the pipeline run at it for so long."""
        running, result = self._running, self._soak
        services = {name: running.start(name) for name in ("partition", "aggregate")}
        trickle = running.start_replay("trickle", ZIPF, _TRICKLE)
        running.up_to_date()
        self._warm_up(rate)
        if rate is None:
            result.sustained = self._sustained_rate()
            rate = round(SHARE * result.sustained)
        result.rate = rate
        self._retain(rate)
        # What is too much for this rate is deleted before the first run of verify would read it.
        time.sleep(2 * CHECK_MS / 1000)
        begin = int(time.time() * 1000)
        with self._verify() as along:
            self._stream(trickle, services, minutes=minutes)
        result.comparisons, result.interruptions = along.comparisons, along.interruptions
        self._end(services)
        result.violations += [*along.failures, *verdict(result.comparisons, begin=begin)]
        return result

    # ---- before the run ------------------------------------------------------------------------

    def _warm_up(self, rate: int | None) -> None:
        """One step that does not count. It says how many bytes a tuple takes in each topic."""
        Live(self._running, ZIPF, seconds=10.0 if rate else 30.0).hold(rate or RATES[0], "warm-up")
        fullest = fullest_partitions(self._running.settings, self._broker.data_dir / "kafka")
        tuples = self._running.records("input")
        self._bytes = {role: size / tuples for role, size in fullest.items()}

    def _sustained_rate(self) -> int:
        """The highest rate (tuples/s) of `RATES` at which nothing piles up while verify reads along."""
        live, along, sustained = Live(self._running, ZIPF, seconds=_STEP_SECONDS), self._verify(), 0
        with along:
            for rate in RATES:
                self._retain(rate)
                if not live.hold(rate, "step")["sustained"]:
                    break
                sustained = rate
        if not sustained:
            raise ServiceError(
                f"{RATES[0]:,} tuples/s are not sustained", hint="is the machine busy with something else?"
            )
        # Where a rate is too high, results are late, which verify says. But none may differ.
        if differences := sum(comparison.differences for comparison in along.comparisons):
            self._soak.violations.append(f"{differences} differences while the rate was searched")
        return sustained

    def _retain(self, rate: int) -> None:
        retain(self._running.settings, topic_settings(self._bytes, rate, scale=self._retention))

    def _verify(self) -> ReadingAlong:
        return ReadingAlong(lambda: self._running.start_passing("verify", "--json"), period=self._period)

    # ---- the run -------------------------------------------------------------------------------

    def _stream(self, trickle: ChildProcess, services: Mapping[str, ChildProcess], *, minutes: float) -> None:
        running, result = self._running, self._soak
        before, limit = running.records("input"), round(result.rate * minutes * 60)
        replay = running.start_replay("soak", ZIPF, result.rate, limit=limit, end=True)
        running.wait(
            lambda: running.records("input") > before + result.rate or not replay.alive, "the replay to begin"
        )
        # Without another producer, the end of this replay is the end of the input.
        if (status := running.dismiss(trickle)) != _INTERRUPTED:
            raise ServiceError(f"the trickle ended with {status}:\n{trickle.tail()}")
        begin, before = running.meter.now(), running.records("input")
        with step(f"{result.rate:,} tuples/s for {minutes:g} minutes", running.counts, every=60.0):
            while replay.alive:
                time.sleep(self._every)
                self._check(begin + 2 * minutes * 60 + 60)
                self._look(services, begin)
        end = running.meter.now()
        if replay.returncode:
            raise ServiceError(f"the replay ended with {replay.returncode}:\n{replay.tail()}")
        summary = printed_object(replay.output())
        assert summary is not None  # a replay that ends well says what it did
        result.tuples = summary["tuples"]
        if summary["tuples_per_second"] < _LEAST_SHARE * result.rate:
            result.violations.append(f"the replay sent {summary['tuples_per_second']:,.0f} tuples/s")
        figures: dict[str, Any] = budget(
            running.meter.between(begin, end), tuples=max(1, running.records("input") - before)
        )
        result.cpu_seconds_per_million_tuples = dict(figures["cpu_seconds_per_million_tuples"])

    def _check(self, deadline: float) -> None:
        self._running.check()
        if not self._broker.alive:
            raise ServiceError("the broker has ended")
        if time.time() > deadline:
            raise ServiceError("the replay takes more than twice its time")

    def _look(self, services: Mapping[str, ChildProcess], begin: float) -> None:
        self._soak.seconds.append(round(self._running.meter.now() - begin, 1))
        for name, size in self._sizes(services):
            self._soak.sizes.setdefault(name, []).append(round(size, 2))

    def _sizes(self, services: Mapping[str, ChildProcess]) -> Iterator[tuple[str, float]]:
        """What is there now: its name with its unit, and its size."""
        pids = {name: child.pid for name, child in services.items()}
        if self._broker.pid is not None:
            pids["broker"] = self._broker.pid
        for name, pid in pids.items():
            memory, files, threads = of_process(pid)
            yield from ((f"{name}: memory, MiB", memory), (f"{name}: open files", files))
            yield f"{name}: threads", threads
        folders = of_topics(self._running.settings, self._broker.data_dir / "kafka")
        folders["checkpoint"] = of_folder(self._running.folder / "checkpoint")
        for name, (number, size) in folders.items():
            yield from ((f"{name}: files", number), (f"{name}: MiB", size))
        yield "results: newest window, s ago", time.time() - self._running.newest_window() / 1000

    # ---- the end -------------------------------------------------------------------------------

    def _end(self, services: Mapping[str, ChildProcess]) -> None:
        running, result = self._running, self._soak
        for name, child in services.items():
            if status := running.dismiss(child):
                result.violations.append(f"{name} ended with {status} after SIGTERM:\n{child.tail()}")
        run_to_end(running, "the end of the stream")
        last = ReadingAlong(lambda: running.start_passing("verify", "--json", "--ended"), period=0.0)
        last.once()
        result.comparisons = [*result.comparisons, *last.comparisons]
        result.interruptions += last.interruptions
        result.violations += last.failures
        # Each partition has one record that is no tuple: the marker of the end.
        tuples = sum(end - 1 for end in running.ends("input").values())
        result.violations += [
            f"{tuples} tuples were written, and {comparison.read} were read"
            for comparison in last.comparisons
            if comparison.read != tuples
        ]


def verdict(comparisons: list[Comparison], *, begin: int) -> list[str]:
    """In words: what the runs of verify have left out since `begin` (event time, ms)."""
    words = gaps(comparisons, begin=begin, window=WINDOW_MS, slide=SLIDE_MS)
    if all(comparison.since is None for comparison in comparisons):
        words.append("retention has deleted nothing of the input")
    if doubtful := sum(comparison.doubtful for comparison in comparisons):
        words.append(f"{doubtful} rows were not compared, because retention had deleted results")
    return words


def of_topics(settings: Settings, folder: Path) -> dict[str, tuple[int, float]]:
    """Files and MiB of each topic that retention shortens, and of all others together.

    folder: the broker's, with a folder for each partition.
    """
    names = {settings.topic(role): f"{role} topic" for role in SECONDS}
    sizes = dict.fromkeys((*names.values(), "other topics"), (0, 0.0))
    for partition in folder.iterdir():
        if partition.is_dir():
            name = names.get(partition.name.rpartition("-")[0], "other topics")
            number, size = of_folder(partition)
            sizes[name] = (sizes[name][0] + number, sizes[name][1] + size)
    return sizes
