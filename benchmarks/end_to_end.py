"""The whole pipeline on this machine: broker, replay, one partitioner, one Spark application, a process each.

Three things are found for each exponent, with the same processes running throughout:

* catch-up: the topic holds a minute of event time (50 tuples per ms) before the partitioner starts; from its
  first frame in the routed topic to the last row in the results topic. It also fills the windows.
* sustained: the highest rate of live replay (event time = clock at sending) of a ladder, searched by halving, at
  which nothing piles up: the replay kept the rate up, and results came no later at the end of the step than in
  its middle, give or take `_SLACK_MS`. W (`load`: median duration of a micro-batch over the batch interval) stands
  beside it: above 1 the micro-batches follow each other without a pause, and are larger.
* latency at half of it: append time of each row of results (LogAppendTime) less the time at which it could have
  been known (window end + out_of_orderness + allowed_lateness); p50 and p99 over one of the result partitions.

A trickle of `_TRICKLE` tuples per second goes on between the steps: without it the windows of a pause would all
close at once when the next step begins, and their rows would stand in its way.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.stream import EVENT_RATE, settings_for, source_words, write_input
from evenflow.errors import ServiceError
from evenflow.settings import Settings, save_settings
from topics.admin import TopicState, describe
from topics.reader import read_range
from workbench.broker import EmbeddedBroker
from workbench.processes import ChildProcess

LADDER = (
    25_000,
    50_000,
    75_000,
    100_000,
    125_000,
    150_000,
    175_000,
    200_000,
    225_000,
    250_000,
    275_000,
    300_000,
)
_SAMPLE = 0
"""The partition of the results topic that is looked at: a fair sample, as rows are spread by hash of the key."""
_SLACK_MS = 1_000
_TRICKLE = 1_000
_BEHIND_MS = 4_000
"""Results are up to date when the newest window ended no longer ago than this."""
_PATIENCE = 90.0
_WINDOW_END = b'"window_end":'


def measure(wiring: Literal["fused", "split"], *, smoke: bool) -> dict[str, object]:
    """Figures by exponent."""
    figures: dict[str, object] = {
        "wiring": wiring,
        "workers": 8,
        "window": "60s",
        "slide": "1s",
        "keys": 100_000,
    }
    for zipf in (1.4,) if smoke else (1.0, 1.4):
        with _pipeline(wiring, zipf=zipf) as pipeline:
            figures[f"zipf_{zipf}"] = _figures(pipeline, smoke=smoke)
    return figures


def _figures(pipeline: Pipeline, *, smoke: bool) -> dict[str, object]:
    found: dict[str, object] = {"catch_up": pipeline.catch_up(seconds_of_event_time=2 if smoke else 60)}
    pipeline.trickle()
    hold = 5.0 if smoke else 20.0
    steps: list[dict[str, Any]] = []
    low, high = -1, len(LADDER)
    if smoke:
        low = high = 0
    while high - low > 1:
        middle = (low + high) // 2
        steps.append(pipeline.hold(LADDER[middle], seconds=hold))
        low, high = (middle, high) if steps[-1]["sustained"] else (low, middle)
    if steps:
        found["steps"] = steps
    found["sustained_tuples_per_second"] = None if smoke else LADDER[low] if low >= 0 else 0
    half = 5_000 if smoke else (LADDER[low] // 2 if low >= 0 else LADDER[0] // 2)
    found["latency_at_half"] = pipeline.hold(half, seconds=hold)
    return found


class Pipeline:
    """The running processes of one query."""

    def __init__(self, settings: Settings, zipf: float, start: Callable[..., ChildProcess]) -> None:
        self._settings = settings
        self._zipf = zipf
        self._start = start
        self._services: list[ChildProcess] = []

    def catch_up(self, *, seconds_of_event_time: int) -> dict[str, object]:
        """Fill the input topic, start the services, and time them until they have emitted all they can."""
        tuples = seconds_of_event_time * EVENT_RATE
        begin = int(time.time() * 1000) - seconds_of_event_time * 1000
        write_input(self._settings, tuples=tuples, zipf=self._zipf, start=begin, end=False)
        self._services.append(self._start("aggregate"))
        self._wait(lambda: "running:" in self._services[0].output(), "the Spark application to run")
        self._services.append(self._start("partition"))
        self._wait(lambda: self._ends("results") > 0, "the first results")
        self._quiet()
        results = self._rows({})
        first = self._first_append("routed")
        seconds = (int(results[:, 0].max()) - first) / 1000
        return {
            "tuples": tuples,
            "result_rows": self._ends("results"),
            "seconds": seconds,
            "tuples_per_second": round(tuples / seconds),
        }

    def trickle(self) -> None:
        """Keep event time going from now on; then wait until the windows of the pause before are out."""
        self._services.append(self._replay("trickle", _TRICKLE))
        self._up_to_date()

    def hold(self, rate: int, *, seconds: float) -> dict[str, Any]:
        """Replay live at this rate for so long; then wait until the results are up to date again."""
        before = describe(self._settings.kafka, [self._settings.topic("results")])
        told, sent = self._ends("telemetry"), self._ends("input")
        replay = self._replay("bench", rate, "--limit", str(int(rate * seconds)))
        self._wait(lambda: self._ends("input") > sent + rate // 2 or not replay.alive, "the replay to begin")
        begun = int(time.time() * 1000)
        self._wait(lambda: not replay.alive, "the replay to end", patience=4 * seconds + 30)
        over = int(time.time() * 1000)
        if replay.returncode:
            raise ServiceError(f"the replay failed:\n{replay.tail()}")
        achieved = _told_rate(replay.output())
        batches = self._batches(told)
        self._up_to_date()
        rows = self._rows(before[self._settings.topic("results")].end)
        return {
            "rate": rate,
            "achieved": achieved,
            **batches,
            **_judged(rows[rows[:, 1] <= over], rate, achieved, begun),
        }

    def _replay(self, producer: str, rate: int, *more: str) -> ChildProcess:
        words = [f"zipf:{source_words(tuples='endless', zipf=self._zipf)}", "--value", "amount"]
        words += ["--rate", str(rate), "--live", "--no-end", "--producer-id", producer, *more]
        return self._start("replay", *words)

    def _up_to_date(self) -> None:
        def reached() -> bool:
            end = self._ends_of("results").get(_SAMPLE, 0)
            rows = self._rows({_SAMPLE: max(0, end - 1)})
            return bool(len(rows)) and int(rows[:, 1].max()) >= time.time() * 1000 - _BEHIND_MS

        self._wait(reached, "results that are up to date", patience=2 * _PATIENCE)

    def _batches(self, told: int) -> dict[str, float]:
        """Median of W over the micro-batches since then; the slowest stage counts."""
        topic, interval = self._settings.topic("telemetry"), self._settings.spark.batch_interval
        loads: dict[str, list[float]] = {}
        for messages in read_range(self._settings.kafka, topic, begin={0: told}):
            for message in messages:
                record = json.loads(message.value())
                if record.get("source") == "spark":
                    loads.setdefault(record["stage"], []).append(record["duration_ms"] / interval)
        return {"load": round(max((float(np.median(each)) for each in loads.values()), default=0.0), 3)}

    def _rows(self, begin: dict[int, int] | Any) -> np.ndarray:
        """(append time, window end) of the sampled rows from these offsets on, distinct ones with their numbers."""
        topic = self._settings.topic("results")
        nowhere = {number: 0 for number in range(self._settings.spark.buckets) if number != _SAMPLE}
        chosen = {_SAMPLE: dict(begin).get(_SAMPLE, 0), **nowhere}
        found: dict[tuple[int, int], int] = {}
        for messages in read_range(self._settings.kafka, topic, begin=chosen, end=nowhere):
            for message in messages:
                value = message.value()
                at = value.index(_WINDOW_END) + len(_WINDOW_END)
                row = (message.timestamp()[1], int(value[at : value.index(b",", at)]))
                found[row] = found.get(row, 0) + 1
        return np.array([(*row, number) for row, number in found.items()], np.int64).reshape(-1, 3)

    def _first_append(self, role: str) -> int:
        topic = self._settings.topic(role)
        stop = dict.fromkeys(range(self._settings.routed_partitions), 1)
        return min(
            message.timestamp()[1]
            for messages in read_range(self._settings.kafka, topic, end=stop)
            for message in messages
        )

    def _quiet(self) -> None:
        """Wait until nothing has come to the results topic for three seconds."""
        seen, since = self._ends("results"), time.monotonic()
        deadline = since + _PATIENCE
        while time.monotonic() - since < 3 and time.monotonic() < deadline:
            time.sleep(0.5)
            self._check()
            if (now := self._ends("results")) != seen:
                seen, since = now, time.monotonic()

    def _ends(self, role: str) -> int:
        state = self._state(role)
        return 0 if state is None else state.records

    def _ends_of(self, role: str) -> dict[int, int]:
        state = self._state(role)
        return {} if state is None else dict(state.end)

    def _state(self, role: str) -> TopicState | None:
        topic = self._settings.topic(role)
        return describe(self._settings.kafka, [topic]).get(topic)

    def _wait(self, done: Callable[[], bool], what: str, *, patience: float = _PATIENCE) -> None:
        deadline = time.monotonic() + patience
        while not done():
            self._check()
            if time.monotonic() > deadline:
                raise ServiceError(f"waited {patience:g} s for {what}")
            time.sleep(0.2)

    def _check(self) -> None:
        for service in self._services:
            if not service.alive:
                raise ServiceError(f"{service.name} ended with {service.returncode}:\n{service.tail()}")


def _told_rate(output: str) -> int:
    """Tuples per second out of the replay's `--json` line."""
    line = next(line for line in output.splitlines() if line.startswith("{"))
    return round(json.loads(line)["tuples_per_second"])


def _judged(rows: np.ndarray, rate: int, achieved: int, begun: int) -> dict[str, Any]:
    """Latencies of windows that were emitted, and whether they stopped growing in the second half."""
    # Windows that ended in the pause before wait for the next tuple, not for us; the first seconds warm up.
    last = int(rows[:, 1].max()) if len(rows) else 0
    live = rows[rows[:, 1] > begun + 0.25 * (last - begun)]
    if last <= begun or not len(live):
        return {"sustained": False, "latency_p50_ms": None, "latency_p99_ms": None, "growth_ms": None}
    late = live[:, 0] - live[:, 1]
    middle = np.median(live[:, 1])
    early, end = (live[:, 1] <= middle), (live[:, 1] > middle)
    growth = 0.0
    if end.any():
        growth = _percentile(late[end], live[end, 2], 50) - _percentile(late[early], live[early, 2], 50)
    return {
        "latency_p50_ms": round(_percentile(late, live[:, 2], 50)),
        "latency_p99_ms": round(_percentile(late, live[:, 2], 99)),
        "growth_ms": round(growth),
        "sustained": bool(achieved >= 0.97 * rate and growth <= _SLACK_MS),
    }


def _percentile(values: np.ndarray, weights: np.ndarray, percent: float) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, percent / 100 * reached[-1])])


@contextmanager
def _pipeline(wiring: str, *, zipf: float) -> Iterator[Pipeline]:
    """A broker and a query on it; whatever was started is ended, by its own process id."""
    children: list[ChildProcess] = []
    with EmbeddedBroker() as broker, tempfile.TemporaryDirectory(prefix="evenflow-bench-") as name:
        folder = Path(name)
        settings = settings_for(
            broker.settings(),
            "bench-e2e",
            partitioner={"workers": 8},
            spark={"wiring": wiring, "checkpoint": str(folder / "checkpoint")},
        )
        save_settings(settings, folder / "settings.json")

        def start(*words: str) -> ChildProcess:
            number = len(children)
            command = [sys.executable, "-m", "cli.main", "-c", str(folder / "settings.json"), *words]
            command += ["--json"] if words[0] == "replay" else []
            log = folder / f"{number}-{words[0]}.log"
            children.append(ChildProcess(command, log=log, name=words[0], cwd=folder))
            return children[-1]

        try:
            yield Pipeline(settings, zipf, start)
        finally:
            for child in reversed(children):
                child.terminate(20)
