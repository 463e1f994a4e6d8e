"""Catching up with a topic that is full already: start-up, and after it the slope between two lengths in one run.

While the query works, the ends of the results topic are noted. Afterwards the newest row at such a moment tells
which window, and so how many tuples, the results had reached.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from benchmarks.latency import SAMPLE, sampled_rows
from benchmarks.running import Running
from benchmarks.slopes import Length, slope
from benchmarks.stream import EVENT_RATE
from benchmarks.telling import step
from topics.reader import read_range
from workbench.processes import ChildProcess

_QUIET_SECONDS = 1.0
_MOST_SECONDS = 300.0
_SLIDE_MS = 1_000
_Ends = dict[int, int]


@dataclass
class _Seen:
    """Moments (seconds since 1970) and what the results topic held then."""

    running: Running
    start: int
    """Event time (ms) of the first tuple."""
    moments: list[tuple[float, _Ends]] = field(default_factory=list)

    def note(self) -> None:
        self.moments.append((time.time(), self.running.ends("results")))

    def settled(self) -> list[tuple[float, _Ends]]:
        """Moments at which results had come and no more were being written: between two micro-batches."""
        pairs = zip(self.moments, self.moments[1:], strict=False)
        return [first for first, then in pairs if first[1] == then[1] and first[1].get(SAMPLE, 0) > 0]

    def newest_row(self, ends: _Ends) -> tuple[int, int]:
        """Append time and window end (ms) of the newest row when the topic ended there."""
        begin, end = {SAMPLE: ends[SAMPLE] - 1}, {SAMPLE: ends[SAMPLE]}
        (appended, window_end, _), *_ = sampled_rows(self.running.settings, begin, end).tolist()
        return appended, window_end

    def length(self, ends: _Ends, began: float) -> Length:
        """How far the results were when the topic ended there."""
        appended, window_end = self.newest_row(ends)
        moment = appended / 1000
        used = self.running.meter.between(began, moment)
        tuples = (window_end - self.start) * EVENT_RATE // 1000
        return Length(tuples, moment - began, used, sum(ends.values()))


def catch_up(running: Running, *, tuples: int, start: int, short: int) -> dict[str, object]:
    """Start both services over `tuples` waiting tuples; the slope is taken from `short` tuples on.

    `start`: event time (ms) of the first tuple.
    """
    seen, began = _Seen(running, start), running.meter.now()
    with step(f"catch-up of {tuples:,} tuples", running.counts):
        spark, partitioner = running.start("aggregate"), running.start("partition")
        startup = _startup(running, seen, spark, partitioner, began)
        _until_all(running, seen, last_window(start, tuples))
        running.meter.now()
    lengths = [seen.length(ends, began) for ends in _each_once(seen)]
    least = next((length for length in lengths if length.tuples >= short), lengths[0])
    found: dict[str, object] = {"start_up": startup, "tuples": tuples, "result_rows": lengths[-1].rows}
    if lengths[-1].tuples > least.tuples:
        found["slope"] = slope(least, lengths[-1])
    return found


def last_window(start: int, tuples: int) -> int:
    """End (ms) of the last window that closes without an end of the stream: that before the newest tuple."""
    newest = start + (tuples - 1) * 1000 // EVENT_RATE
    return (newest - 1) // _SLIDE_MS * _SLIDE_MS


def _each_once(seen: _Seen) -> list[_Ends]:
    """Ends of the results topic between micro-batches, ascending; at least the last one."""
    found: list[_Ends] = []
    for _, ends in seen.settled():
        if not found or found[-1] != ends:
            found.append(ends)
    return found or [seen.moments[-1][1]]


def _startup(
    running: Running, seen: _Seen, spark: ChildProcess, partitioner: ChildProcess, began: float
) -> dict[str, float]:
    """Seconds from the start of both services to the first of each; CPU seconds up to the first row."""
    found: dict[str, float] = {}

    def first_row() -> bool:
        seen.note()
        if "spark_runs" not in found and "running:" in spark.output():
            found["spark_runs"] = round(time.time() - began, 2)
        return sum(seen.moments[-1][1].values()) > 0

    running.wait(first_row, "the first results", every=0.1)
    found["first_frame"] = round(_first_append(running) / 1000 - began, 2)
    first = sampled_rows(running.settings, {SAMPLE: 0}, {SAMPLE: max(1, seen.moments[-1][1].get(SAMPLE, 0))})
    found["first_row"] = round(int(first[:, 0].min()) / 1000 - began, 2)
    used = running.meter.between(began, running.meter.now())
    return found | {
        f"cpu_seconds_{label.replace(' ', '_')}": round(value, 1) for label, value in used.items()
    }


def _until_all(running: Running, seen: _Seen, last_window: int) -> None:
    """Wait until rows of the last window are there, and nothing has come for a second.

    `last_window`: its end in ms.
    """

    def reached() -> bool:
        seen.note()
        moment, ends = seen.moments[-1]
        if any(then != ends for at, then in seen.moments[-20:] if at > moment - _QUIET_SECONDS):
            return False
        return ends.get(SAMPLE, 0) > 0 and seen.newest_row(ends)[1] >= last_window

    running.wait(reached, "the rows of the last window", patience=_MOST_SECONDS, every=0.25)


def _first_append(running: Running) -> int:
    settings = running.settings
    stop = dict.fromkeys(range(settings.routed_partitions), 1)
    return min(
        message.timestamp()[1]
        for messages in read_range(settings.kafka, settings.topic("routed"), end=stop)
        for message in messages
    )
