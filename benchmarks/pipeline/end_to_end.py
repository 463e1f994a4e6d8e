"""The whole pipeline on this machine: broker, replay, one partitioner and one Spark application, a process
each.

For each exponent:

* bare read: the bare client reads the input topic. This is the yardstick of the machine and the hour.
* catch-up: the topic is full before the services start. The speed is the slope between a long and a short
  topic, each with new processes. Start-up (seconds to the first frame and row) has figures of its own. The
  processes of the short topic go on running for what follows.
* warm-up: one step whose figures do not count. The JVM's compilers need a minute of work. Their share of the
  JVM's CPU time stands beside every figure.
* sustained: the highest rate of live replay (event time = clock at sending) of a ladder at which nothing
  piles up. Nothing piles up if the replay kept the rate up, and if results came no later in the second half
  of the step than in the first, give or take `latency.SLACK_MS`. At most `_MOST_STEPS` rates are tried. W
  stands beside the rate. It is the median duration of a micro-batch over the batch interval. With W above 1,
  micro-batches follow each other without a pause and are larger.
* half load: latency (see `latency`) at half of the sustained rate, as p50 and p99.

Between the steps a trickle of `_TRICKLE` tuples per second goes on. Without it, the windows of a pause would
all close at once when the next step begins, and their rows would stand in its way.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from itertools import count
from typing import Any, Literal

import numpy as np

from benchmarks.measuring.cpu import budget, occupancy
from benchmarks.measuring.latency import all_rows, judged, sampled_rows
from benchmarks.measuring.pipelines import (
    WORKERS,
    QueryProcesses,
    measured_broker,
    printed_object,
    running_query,
)
from benchmarks.measuring.slopes import highest, slope
from benchmarks.measuring.step_lines import step, tell
from benchmarks.measuring.stream import KEYS
from benchmarks.pipeline.bare import bare_read
from benchmarks.pipeline.catch_up import catch_up
from evenflow.errors import ServiceError
from evenflow.telemetry import BatchRecord, parse
from topics.reader import read_range

LADDER = (
    *(12_500, 25_000, 30_000, 37_500, 45_000, 55_000, 65_000, 75_000, 87_500, 100_000, 125_000),
    *(150_000, 175_000, 200_000, 225_000, 250_000, 275_000, 300_000, 350_000, 400_000, 450_000),
    *(500_000, 550_000, 600_000),
)
"""Rates of live replay that are tried, in tuples per second."""
_LENGTHS = (2_000_000, 5_000_000)
"""Tuples of the short and of the long catch-up."""
_STEP_SECONDS = 15.0
_MOST_STEPS = 4
"""Most rates that the search for the sustained rate tries, because a scenario is bounded in time."""
_TRICKLE = 1_000
_FIRST = 0.5
"""The first rate that is tried, as a share of the catch-up rate. In live replay the replay shares the
cores.
"""
_GOAL_P99_MS = 2_000


def measure(wiring: Literal["fused", "split"], *, smoke: bool) -> dict[str, object]:
    """Figures by exponent."""
    figures: dict[str, object] = {
        "wiring": wiring,
        "workers": WORKERS,
        "window": "60s",
        "slide": "1s",
        "keys": KEYS,
    }
    short, long = (50_000, 200_000) if smoke else _LENGTHS
    for zipf in (1.4,) if smoke else (1.0, 1.4):
        with measured_broker() as (broker, meter):

            def query(name: str) -> AbstractContextManager[QueryProcesses]:
                topic = {"topic": f"{name}.input"}
                return running_query(broker.settings(), meter, name, input=topic, spark={"wiring": wiring})

            with query("bench-long") as running:
                longer, _ = catch_up(running, tuples=long, zipf=zipf)
            bare = bare_read(running.settings, meter, most=short)
            with query("bench-e2e") as running:
                shorter, start_up = catch_up(running, tuples=short, zipf=zipf)
                caught_up = {} if smoke and longer.seconds <= shorter.seconds else slope(shorter, longer)
                tell("catch-up", start_up | caught_up)
                figures[f"zipf_{zipf}"] = {
                    "bare_read": bare,
                    "start_up": start_up,
                    "catch_up": caught_up,
                    "cpu_times_bare_read": _times(caught_up, bare),
                    **_live_figures(running, zipf, caught_up.get("tuples_per_second"), smoke=smoke),
                }
    return figures


def _live_figures(running: QueryProcesses, zipf: float, rate: Any, *, smoke: bool) -> dict[str, object]:
    running.start_replay("trickle", zipf, _TRICKLE)
    with step("the windows of the pause", running.counts):
        running.up_to_date()
    live = Live(running, zipf, seconds=5.0 if smoke else _STEP_SECONDS)
    if smoke:
        return {"half_load": live.hold(5_000, "step")}
    return _searched(live, first=_FIRST * rate)


def _times(ours: dict[str, Any], bare: dict[str, Any]) -> float | None:
    """CPU time per tuple as a multiple of the bare read's, which is about the same on every machine."""
    name = "cpu_seconds_per_million_tuples"
    return round(ours[name]["all"] / bare[name]["all"], 2) if ours else None


def _searched(live: Live, *, first: float) -> dict[str, object]:
    begin = max((index for index, rate in enumerate(LADDER) if rate <= first), default=0)
    live.hold(LADDER[max(0, begin - 2)], "warm-up")
    steps: list[dict[str, Any]] = []

    def holds(rate: int) -> bool:
        steps.append(live.hold(rate, "step"))
        return bool(steps[-1]["sustained"])

    sustained = highest(LADDER, begin, holds, most=_MOST_STEPS)
    full = next((each for each in steps if each["rate"] == sustained), None)
    half = live.hold((sustained or LADDER[0]) // 2, "half load")
    return {
        "steps": [_short(each) for each in steps],
        "sustained_tuples_per_second": sustained or 0,
        "full_load": full,
        "half_load": half,
        "goal_p99_at_half_ms": _GOAL_P99_MS,
        "goal_met": goal_met(full, half),
    }


def goal_met(full: dict[str, Any] | None, half: dict[str, Any]) -> bool | None:
    """Whether p99 at half load is below the goal. None if W at full load is 1 or more, where there is no
    goal.
    """
    if full is None or full["W"] >= 1:
        return None
    return half["latency_p99_ms"] is not None and half["latency_p99_ms"] < _GOAL_P99_MS


def _short(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures of a step without its budgets of CPU time, so that they fit on one line."""
    return {name: value for name, value in figures.items() if not name.startswith("cpu_")}


class Live:
    """Steps of live replay into the running query.

    whole: whether every row is looked at, for queries with few rows. settle: seconds to wait besides until
    late rows are there, for systems whose parts do not move on together.
    """

    def __init__(
        self,
        running: QueryProcesses,
        zipf: float,
        *,
        seconds: float,
        whole: bool = False,
        settle: float = 0.0,
    ) -> None:
        self._running = running
        self._zipf = zipf
        self._seconds = seconds
        self._whole = whole
        self._settle = settle
        self._numbers = count()

    def hold(self, rate: int, label: str) -> dict[str, Any]:
        """Replay live at this rate for the length of a step. Then wait until the results are up to date
        again.

        ServiceError if the replay fails.
        """
        name = f"{label} at {rate:,} tuples/s"
        with step(name, self._running.counts):
            figures = self._hold(rate)
        tell(name, figures)
        return figures

    def _hold(self, rate: int) -> dict[str, Any]:
        running = self._running
        telemetry_start, sent = running.records("telemetry"), running.records("input")
        replay = running.start_replay(
            f"bench-{next(self._numbers)}", self._zipf, rate, limit=int(rate * self._seconds)
        )
        running.wait(
            lambda: running.records("input") > sent + rate // 2 or not replay.alive, "the replay to begin"
        )
        begun, first, before = running.meter.now(), running.records("input"), running.ends("results")
        running.wait(lambda: not replay.alive, "the replay to end", patience=4 * self._seconds + 30)
        over, last, after = running.meter.now(), running.records("input"), running.ends("results")
        if replay.returncode:
            raise ServiceError(f"the replay failed:\n{replay.tail()}")
        summary = printed_object(replay.output())
        assert summary is not None  # a replay that ends well says what it did
        achieved = round(summary["tuples_per_second"])
        loads = self._loads(telemetry_start)
        running.up_to_date()
        time.sleep(self._settle)
        rows = (all_rows if self._whole else sampled_rows)(running.settings, before)
        used = running.meter.between(begun, over)
        emitted = sum(after.values()) - sum(before.values())
        return {
            "rate": rate,
            "achieved": achieved,
            "W": loads,
            # Windows that ended after the step are of the trickle.
            **judged(rows[rows[:, 1] <= over * 1000], rate, achieved, int(begun * 1000)),
            "rows_per_second": round(emitted / (over - begun)),
            **occupancy(used, over - begun),
            **budget(used, tuples=max(1, last - first), rows=emitted),
        }

    def _loads(self, begin: int) -> float:
        """Median of W over the micro-batches from telemetry record `begin` on. The slowest stage counts."""
        settings = self._running.settings
        interval, loads = settings.spark.batch_interval, dict[str, list[float]]()
        for messages in read_range(settings.kafka, settings.topic("telemetry"), begin={0: begin}):
            for message in messages:
                record = parse(message.value())
                if isinstance(record, BatchRecord):
                    loads.setdefault(record.stage, []).append(record.duration_ms / interval)
        return round(max((float(np.median(each)) for each in loads.values()), default=0.0), 3)
