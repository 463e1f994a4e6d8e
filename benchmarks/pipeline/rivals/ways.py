"""One run of each system over one topic, from the start of its processes to their end, with its CPU time.

The slope of two such runs has everything that grows with the length of the topic. It does not have starting
and ending.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring.cpu import CpuMeter
from benchmarks.measuring.pipelines import ended_well, run_to_end, running_query
from benchmarks.measuring.slopes import Length
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import settings_for, write_input
from benchmarks.pipeline.rivals.flink import PROGRAM, compiled, connector_jar
from evenflow.settings import KafkaSettings, Settings
from spark_consumers.jars.fetch import spark_kafka_jars
from topics.admin import delete_topics
from workbench.local.processes import ChildProcess

ZIPF = 1.4


@dataclass
class Stage:
    """The place where all systems run: a broker, a meter, and a topic of input for each number of tuples."""

    kafka: KafkaSettings
    """The broker."""
    meter: CpuMeter
    """Counts the CPU seconds of the system that runs."""
    zipf: float = ZIPF
    """Skew of the keys."""
    partitions: int = 4
    """Partitions of the topics of input."""
    runs: int = 0
    """How many runs there have been. Each has names of its own."""

    def fill(self, tuples: int) -> None:
        """Write the topic of `tuples` tuples, with the end of the stream."""
        with step(f"writing {tuples:,} tuples"):
            write_input(self.settings(tuples), tuples=tuples, zipf=self.zipf)

    def settings(self, tuples: int) -> Settings:
        """Settings whose input is the topic of `tuples` tuples."""
        name = f"fill-{self.zipf}-{tuples}".replace(".", "-")
        return settings_for(self.kafka, name, input=self._input(tuples))

    def topic(self, tuples: int) -> str:
        """Name of the topic of `tuples` tuples."""
        return f"peers.{self.zipf}.{tuples}"

    def _input(self, tuples: int) -> dict[str, Any]:
        return {"topic": self.topic(tuples), "partitions": self.partitions}

    def evenflow(self, tuples: int, **parts: dict[str, Any]) -> Length:
        """Run partitioner and Spark application (fused) until everything is emitted. Rows are the sink's
        records.

        parts: sections of the settings.
        """
        self.runs += 1
        query = f"peer-{self.zipf}-{self.runs}".replace(".", "-")
        with running_query(self.kafka, self.meter, query, input=self._input(tuples), **parts) as running:
            seconds, used = run_to_end(running, f"{query}, {tuples:,} tuples")
            rows = running.records("results")
            # No later run reads these topics, and all runs share one disk.
            delete_topics(self.kafka, [running.settings.topic(role) for role in ("routed", "results")])
        return Length(tuples, seconds, used, rows)

    def flink(self, tuples: int, *, python: Path) -> Length:
        """Run Flink SQL into a black hole. `python` is the Python that has PyFlink."""
        return self._flink(tuples, python, str(connector_jar()), "windows")

    def flink_costly(self, tuples: int, *, python: Path, phases: str, workers: int, cost_us: int) -> Length:
        """Run Flink SQL with a function that costs work, into a black hole.

        phases: `ONE_PHASE` (each tuple goes to the task of its key, which aggregates) or `TWO_PHASE` (each
        task that reads adds up what it read, and the sums go to the tasks of their keys).
        """
        with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as folder:
            function = compiled(Path(__file__).with_name("CostlySum.java"), python, Path(folder))
            return self._flink(
                tuples,
                python,
                f"{connector_jar()};{function}",
                "costly",
                f"pipeline.global-job-parameters=cost_us:{cost_us}",
                f"parallelism.default={workers}",
                f"table.optimizer.agg-phase-strategy={phases}",
            )

    def _flink(self, tuples: int, python: Path, jars: str, job: str, *options: str) -> Length:
        place = self.kafka.bootstrap_servers, self.topic(tuples)
        command = [str(python), str(PROGRAM), *place, jars, job, *options]
        return self._program(f"flink, {job}", tuples, command, java="flink_jvm")

    def spark_costly(self, tuples: int, *, salts: int, workers: int, cost_us: int) -> Length:
        """Run Spark's `groupBy` with a function that costs work, by key and one of so many salts."""
        program = Path(__file__).with_name("spark_costly.py")
        jars = ",".join(map(str, spark_kafka_jars()))
        command = [sys.executable, str(program), self.kafka.bootstrap_servers, self.topic(tuples), jars]
        command += [str(salts), str(workers), str(cost_us)]
        return self._program(f"spark with {salts} salts", tuples, command, java="spark_jvm")

    def spark_windows(self, tuples: int) -> Length:
        """Run Spark's own streaming windows into a sink that drops the rows."""
        program = Path(__file__).with_name("spark_windows.py")
        jars = ",".join(map(str, spark_kafka_jars()))
        command = [sys.executable, str(program), self.kafka.bootstrap_servers, self.topic(tuples), jars]
        return self._program("spark windows", tuples, command, java="windows_jvm")

    def plain_program(self, tuples: int) -> Length:
        """Run a plain program of one process, which drops the rows and keeps nothing."""
        program = Path(__file__).with_name("plain_program.py")
        command = [sys.executable, str(program), self.kafka.bootstrap_servers, self.topic(tuples)]
        return self._program("plain program", tuples, command, java="plain_jvm")

    def _program(self, name: str, tuples: int, command: Sequence[str], *, java: str) -> Length:
        with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as place:
            folder = Path(place)
            with step(f"{name} over {tuples:,} tuples"):
                began = self.meter.now()
                child = ChildProcess(
                    command, log=folder / "log", name=name, cwd=folder, env=_environment(folder, command[0])
                )
                try:
                    self.meter.watch(child.pid, java.replace("jvm", "python"), java=java)
                    ended_well(child)
                finally:
                    child.terminate()
                ended = self.meter.now()
            # A program that printed no result has not done its job.
            answer = json.loads(
                next(line for line in child.output().splitlines() if line.startswith('{"seconds"'))
            )
        return Length(tuples, ended - began, self.meter.between(began, ended), answer.get("rows", 0))


def _environment(folder: Path, python: str) -> Mapping[str, str]:
    """This process's environment variables, without those that lead to evenflow's own packages."""
    ours = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    return ours | {"FLINK_LOG_DIR": str(folder), "PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}


Way = Callable[[int], Length]
"""Runs one system over the topic of the given number of tuples."""
