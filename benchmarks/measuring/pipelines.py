"""The processes of one query on this machine: broker, partitioner, Spark application and replays, watched
by a meter.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measuring.cpu import CpuMeter, Used
from benchmarks.measuring.latency import SAMPLE, sampled_rows
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import settings_for, source_words
from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings, Settings, save_settings
from evenflow.settings.views import TopicRole
from spark_consumers.sinks import SINKS
from topics.admin import describe
from workbench.local.broker import EmbeddedBroker
from workbench.local.processes import ChildProcess

WORKERS = 8
_PATIENCE = 90.0
_LONGEST = 420.0
_BEHIND_MS = 4_000
"""Results are up to date if the newest window ended no longer ago than this."""


def kafka_sinks() -> list[str]:
    """The sinks that write results to Kafka, but for Avro: it needs a schema registry, which would run beside
    what is measured.
    """
    return [name for name, sink in SINKS.items() if "results" in sink.topics and name != "avro"]


@contextmanager
def measured_broker(itself: str = "bench") -> Iterator[tuple[EmbeddedBroker, CpuMeter]]:
    """A broker, and a meter that watches the broker and this process, under the label `itself`.

    A Spark session of this process has the labels `spark_jvm` and `spark_python`.
    """
    with EmbeddedBroker() as broker, CpuMeter() as meter:
        meter.watch(os.getpid(), itself, below="spark_python", java="spark_jvm")
        meter.watch(broker.pid, "broker")
        yield broker, meter


class Program(NamedTuple):
    """A program of another system, that reads one topic."""

    name: str
    """What step lines and errors call it."""
    command: list[str]
    """The words that start it."""
    java: str
    """Label of its JVM in the figures, which ends with `_jvm`."""

    @property
    def python(self) -> str:
        """Label of its other processes in the figures."""
        return self.java.replace("_jvm", "_python")

    def environment(self, folder: Path) -> Mapping[str, str]:
        """This process's environment variables, without those that lead to evenflow's own packages.

        folder: where it may write.
        """
        own = ("PYTHONPATH", "SPARK_HOME")
        inherited = {name: value for name, value in os.environ.items() if name not in own}
        places = {"FLINK_LOG_DIR": str(folder), "PYSPARK_PYTHON": self.command[0]}
        return inherited | places | {"SPARK_LOCAL_IP": "127.0.0.1"}

    def start(self, folder: Path, meter: CpuMeter) -> ChildProcess:
        """Start it in this folder, watched by the meter. The caller ends it."""
        log, env = folder / "program.log", self.environment(folder)
        child = ChildProcess(self.command, log=log, name=self.name, cwd=folder, env=env)
        meter.watch(child.pid, self.python, java=self.java)
        return child


@dataclass
class QueryProcesses:
    """The processes of one query. `end` ends each of them by its process id."""

    settings: Settings
    """Settings with which the processes run."""
    folder: Path
    """Folder in which the processes keep their files."""
    meter: CpuMeter
    """Counts the CPU seconds of the processes."""
    _children: list[ChildProcess] = field(default_factory=list)
    _lasting: list[ChildProcess] = field(default_factory=list)

    def start(self, *words: str) -> ChildProcess:
        """Start `evenflow WORDS` as a process that is expected to run until `end`."""
        child = self.start_passing(*words)
        self._lasting.append(child)
        return child

    def start_passing(self, *words: str) -> ChildProcess:
        """Start `evenflow WORDS` as a process that may end by itself."""
        command = [sys.executable, "-m", "cli.main", "-c", str(self.folder / "settings.json"), *words]
        log = self.folder / f"{len(self._children)}-{words[0]}.log"
        child = ChildProcess(command, log=log, name=words[0], cwd=self.folder)
        self._children.append(child)
        if words[0] in ("aggregate", "combine", "reduce"):
            self.meter.watch(child.pid, "spark_python", java="spark_jvm")
        else:
            self.meter.watch(child.pid, {"partition": "partitioner"}.get(words[0], words[0]))
        return child

    def start_program(self, program: Program) -> ChildProcess:
        """Start a program of another system in place of partitioner and aggregation. It is expected to run
        until `end`.
        """
        child = program.start(self.folder, self.meter)
        self._children.append(child)
        self._lasting.append(child)
        return child

    def start_replay(
        self, producer: str, zipf: float, rate: int, *, limit: int | None = None, end: bool = False
    ) -> ChildProcess:
        """Start a live replay at this rate (tuples/s). A replay without a limit is expected to run until
        `end`.

        end: whether the stream ends with this replay. Else another one may follow.
        """
        words = ["replay", f"zipf:{source_words(tuples='endless', zipf=zipf)}", "--value", "amount", "--json"]
        words += ["--rate", str(rate), "--live", "--producer-id", producer, *([] if end else ["--no-end"])]
        return self.start(*words) if limit is None else self.start_passing(*words, "--limit", str(limit))

    def dismiss(self, child: ChildProcess) -> int:
        """End a process that was expected to run until `end`. Returns its exit status."""
        self._lasting.remove(child)
        return child.terminate(_PATIENCE)

    def end(self) -> None:
        """End the processes that still run, the last started first."""
        for child in reversed(self._children):
            child.terminate(20)

    # ---- looking -------------------------------------------------------------------------------

    def records(self, role: TopicRole) -> int:
        """Number of records that the topic got so far. 0 before the topic exists."""
        return sum(self.ends(role).values())

    def ends(self, role: TopicRole) -> dict[int, int]:
        """End offsets of the topic by partition."""
        topic = self.settings.topic(role)
        state = describe(self.settings.kafka, [topic]).get(topic)
        return {} if state is None else dict(state.end)

    def counts(self) -> dict[str, int]:
        """Numbers of records so far, for `step_lines.step`."""
        roles: dict[str, TopicRole] = {"tuples in": "input", "frames": "routed", "results out": "results"}
        return {name: self.records(role) for name, role in roles.items()}

    def up_to_date(self) -> None:
        """Wait until the newest window of the results ended a moment ago."""
        self.wait(
            lambda: self.newest_window() >= time.time() * 1000 - _BEHIND_MS,
            "results that are up to date",
            patience=2 * _PATIENCE,
        )

    def newest_window(self) -> int:
        """End (event time, ms) of the newest window among the results. 0 if there is none."""
        # The newest row of one partition is enough, because all partitions move on together.
        end = self.ends("results").get(SAMPLE, 0)
        return int(sampled_rows(self.settings, {SAMPLE: end - 1})[:, 1].max()) if end else 0

    def wait(
        self, done: Callable[[], bool], event: str, *, patience: float = _PATIENCE, every: float = 0.2
    ) -> None:
        """Wait until `done()`. ServiceError if that takes more than `patience` seconds or a service has
        ended.
        """
        deadline = time.monotonic() + patience
        while not done():
            self.check()
            if time.monotonic() > deadline:
                raise ServiceError(f"waited {patience:g} s for {event}")
            time.sleep(every)

    def check(self) -> None:
        """Raise ServiceError if a service that should run has ended."""
        for service in self._lasting:
            if not service.alive:
                raise ServiceError(f"{service.name} ended with {service.returncode}:\n{service.tail()}")


def printed_object(output: str) -> dict[str, Any] | None:
    """The object that a command with `--json` printed, from all that it wrote. None if it printed none."""
    line = next((line for line in output.splitlines() if line.startswith("{")), None)
    return None if line is None else dict(json.loads(line))


def run_to_end(running: QueryProcesses, label: str) -> tuple[float, Used]:
    """Run partitioner and Spark application over the whole input. Seconds and CPU time until both have
    ended.
    """
    meter = running.meter
    with step(f"evenflow, {label}", running.counts):
        began = meter.now()
        services = [
            running.start_passing("partition", "--until-ended"),
            running.start_passing("aggregate", "--until-ended"),
        ]
        for service in services:
            ended_well(service)
        ended = meter.now()
    return ended - began, meter.between(began, ended)


def ended_well(child: ChildProcess) -> None:
    """Wait for the end of a process. ServiceError if the process fails or takes too long."""
    if child.wait(_LONGEST):
        raise ServiceError(f"{child.name} ended with {child.returncode}:\n{child.tail()}")


@contextmanager
def running_query(
    kafka: KafkaSettings, meter: CpuMeter, name: str, **parts: dict[str, Any]
) -> Iterator[QueryProcesses]:
    """A query with these settings and a folder of its own. Its processes end with the block of `with`."""
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as place:
        folder = Path(place)
        spark = {"checkpoint": str(folder / "checkpoint")} | parts.pop("spark", {})
        partitioner = {"workers": WORKERS} | parts.pop("partitioner", {})
        settings = settings_for(kafka, name, partitioner=partitioner, spark=spark, **parts)
        save_settings(settings, folder / "settings.json")
        running = QueryProcesses(settings, folder, meter)
        try:
            yield running
        finally:
            running.end()
