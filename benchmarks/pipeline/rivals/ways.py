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

from benchmarks.measuring.cpu import CpuMeter
from benchmarks.measuring.pipelines import ended_well, run_to_end, running_query
from benchmarks.measuring.slopes import Length
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import settings_for, write_input
from benchmarks.pipeline.rivals.flink import PROGRAM, connector_jar
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
    runs: int = 0
    """How many runs there have been. Each has names of its own."""

    def fill(self, tuples: int) -> None:
        """Write the topic of `tuples` tuples, with the end of the stream."""
        with step(f"writing {tuples:,} tuples"):
            write_input(self.settings(tuples), tuples=tuples, zipf=ZIPF)

    def settings(self, tuples: int) -> Settings:
        """Settings whose input is the topic of `tuples` tuples."""
        return settings_for(self.kafka, f"fill-{tuples}", input={"topic": _topic(tuples)})

    def evenflow(self, tuples: int, *, sink: str) -> Length:
        """Run partitioner and Spark application (fused) until everything is emitted. Rows are the sink's
        records.
        """
        self.runs += 1
        query = f"peer-{self.runs}"
        with running_query(
            self.kafka, self.meter, query, input={"topic": _topic(tuples)}, results={"sink": sink}
        ) as running:
            seconds, used = run_to_end(running, f"sink {sink}, {tuples:,} tuples")
            rows = running.records("results")
            # No later run reads these topics, and all runs share one disk.
            delete_topics(self.kafka, [running.settings.topic(role) for role in ("routed", "results")])
        return Length(tuples, seconds, used, rows)

    def flink(self, tuples: int, *, python: Path) -> Length:
        """Run Flink SQL into a black hole. `python` is the Python that has PyFlink."""
        command = [
            str(python),
            str(PROGRAM),
            self.kafka.bootstrap_servers,
            _topic(tuples),
            str(connector_jar()),
        ]
        return self._program("flink", tuples, command, java="flink_jvm")

    def spark_windows(self, tuples: int) -> Length:
        """Run Spark's own streaming windows into a sink that drops the rows."""
        program = Path(__file__).with_name("spark_windows.py")
        jars = ",".join(map(str, spark_kafka_jars()))
        command = [sys.executable, str(program), self.kafka.bootstrap_servers, _topic(tuples), jars]
        return self._program("spark windows", tuples, command, java="windows_jvm")

    def plain_program(self, tuples: int) -> Length:
        """Run a plain program of one process, which drops the rows and keeps nothing."""
        program = Path(__file__).with_name("plain_program.py")
        command = [sys.executable, str(program), self.kafka.bootstrap_servers, _topic(tuples)]
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


def _topic(tuples: int) -> str:
    return f"peers.{tuples}"


Way = Callable[[int], Length]
"""Runs one system over the topic of the given number of tuples."""
