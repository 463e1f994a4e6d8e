"""One run of each system over one topic, from the start of its processes to their end, with its CPU time.

The slope of two such runs has everything that grows with the length of the topic. It does not have starting
and ending.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring.cpu import CpuMeter
from benchmarks.measuring.pipelines import Program, ended_well, run_to_end, running_query
from benchmarks.measuring.slopes import Length
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import settings_for, write_input
from benchmarks.pipeline.rivals import programs
from evenflow.settings import KafkaSettings, Settings
from topics.admin import delete_topics

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
        return self._run(programs.flink_windows(self.kafka, self.topic(tuples), python=python), tuples)

    def flink_costly(self, tuples: int, **options: Any) -> Length:
        """Run Flink SQL with a function that costs work, into a black hole.

        options: those of `programs.flink_costly`.
        """
        with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as folder:
            topic = self.topic(tuples)
            program = programs.flink_costly(self.kafka, topic, folder=Path(folder), **options)
            return self._run(program, tuples)

    def spark_costly(self, tuples: int, **options: Any) -> Length:
        """Run Spark's `groupBy` with a function that costs work, by key and one of so many salts.

        options: those of `programs.spark_costly`.
        """
        return self._run(programs.spark_costly(self.kafka, self.topic(tuples), **options), tuples)

    def spark_windows(self, tuples: int) -> Length:
        """Run Spark's own streaming windows into a sink that drops the rows."""
        return self._run(programs.spark_windows(self.kafka, self.topic(tuples)), tuples)

    def plain_program(self, tuples: int) -> Length:
        """Run a plain program of one process, which drops the rows and keeps nothing."""
        return self._run(programs.plain_program(self.kafka, self.topic(tuples)), tuples)

    def _run(self, program: Program, tuples: int) -> Length:
        with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as place:
            folder = Path(place)
            with step(f"{program.name} over {tuples:,} tuples"):
                began = self.meter.now()
                child = program.start(folder, self.meter)
                try:
                    ended_well(child)
                finally:
                    child.terminate()
                ended = self.meter.now()
            # A program that printed no result has not done its job.
            answer = json.loads(
                next(line for line in child.output().splitlines() if line.startswith('{"seconds"'))
            )
        return Length(tuples, ended - began, self.meter.between(began, ended), answer.get("rows", 0))


Way = Callable[[int], Length]
"""Runs one system over the topic of the given number of tuples."""
