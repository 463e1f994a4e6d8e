"""Catching up with a topic that is full before the services start: start-up, and how long until the last
row.
"""

from __future__ import annotations

import time

from benchmarks.measuring.cpu import MACHINE
from benchmarks.measuring.latency import SAMPLE, sampled_rows
from benchmarks.measuring.pipelines import QueryProcesses
from benchmarks.measuring.slopes import Length
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import EVENT_RATE, write_input
from topics.reader import read_range
from workbench.local.processes import ChildProcess

_QUIET_SECONDS = 1.0
_MOST_SECONDS = 300.0
_SLIDE_MS = 1_000
_Ends = dict[int, int]


def catch_up(running: QueryProcesses, *, tuples: int, zipf: float) -> tuple[Length, dict[str, float]]:
    """Fill the input topic, start both services, and wait for the rows of the last complete window.

    The first result is the time from the start of the services to that window's rows. The second has the
    seconds from the start to the first frame and the first row, and the CPU seconds until the first row. Both
    services go on running.
    """
    # So that the newest tuple is of now, and live replay can follow.
    start = int(time.time() * 1000) - tuples * 1000 // EVENT_RATE
    with step(f"writing {tuples:,} tuples (Zipf {zipf})"):
        write_input(running.settings, tuples=tuples, zipf=zipf, start=start, end=False)
    with step(f"catch-up of {tuples:,} tuples", running.counts):
        began = running.meter.now()
        spark = running.start("aggregate")
        running.start("partition")
        startup = _startup(running, spark, began)
        ends = _all_rows(running, last_window(start, tuples))
        # A look after the last row, so that the meter knows what was used until then.
        running.meter.now()
        last = _newest_row(running, ends)[0] / 1000
    used = running.meter.between(began, last)
    return Length(tuples, last - began, used, sum(ends.values())), startup


def last_window(start: int, tuples: int) -> int:
    """End (ms) of the last window that closes without an end of the stream: the last end before the newest
    tuple.
    """
    newest = start + (tuples - 1) * 1000 // EVENT_RATE
    return (newest - 1) // _SLIDE_MS * _SLIDE_MS


def _startup(running: QueryProcesses, spark: ChildProcess, began: float) -> dict[str, float]:
    """Seconds from the start of both services to the first frame and row, and CPU seconds up to the first
    row.
    """
    figures: dict[str, float] = {}

    def first_row() -> bool:
        if "spark_runs" not in figures and "running:" in spark.output():
            figures["spark_runs"] = round(time.time() - began, 2)
        return running.ends("results").get(SAMPLE, 0) > 0

    running.wait(first_row, "the first results", every=0.1)
    # The broker's clock says when rows and frames came, so that the pauses between two looks do not count.
    first = sampled_rows(running.settings, {SAMPLE: 0}, {SAMPLE: 1})
    figures["first_frame"] = round(_first_append(running) / 1000 - began, 2)
    figures["first_row"] = round(int(first[0, 0]) / 1000 - began, 2)
    used = running.meter.between(began, running.meter.now())
    names = {label: f"cpu_seconds_{label.replace(' ', '_')}" for label in used if label != MACHINE}
    return figures | {name: round(used[label], 1) for label, name in names.items()}


def _all_rows(running: QueryProcesses, window_end: int) -> _Ends:
    """Wait until rows of this window are there and nothing has come for a second.

    Returns the end offsets of the results topic.
    """
    ends: _Ends = {}
    changed = time.monotonic()

    def reached() -> bool:
        nonlocal ends, changed
        if (now := running.ends("results")) != ends:
            ends, changed = now, time.monotonic()
        quiet = time.monotonic() - changed >= _QUIET_SECONDS
        return quiet and _newest_row(running, ends)[1] >= window_end

    running.wait(reached, "the rows of the last window", patience=_MOST_SECONDS, every=0.25)
    return ends


def _newest_row(running: QueryProcesses, ends: _Ends) -> tuple[int, int]:
    """Append time and window end (ms) of the sample's last row before these end offsets."""
    begin, end = {SAMPLE: ends[SAMPLE] - 1}, {SAMPLE: ends[SAMPLE]}
    (appended, window_end, _), *_ = sampled_rows(running.settings, begin, end).tolist()
    return appended, window_end


def _first_append(running: QueryProcesses) -> int:
    """Append time (ms) of the first frame. Only the first record of each routed partition is read."""
    settings = running.settings
    stop = dict.fromkeys(range(settings.routed_partitions), 1)
    return min(
        message.timestamp()[1]
        for messages in read_range(settings.kafka, settings.topic("routed"), end=stop)
        for message in messages
    )
