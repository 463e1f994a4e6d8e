"""The programs of other systems, as they are started: their commands, and what their processes are called."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.measuring.pipelines import Program
from benchmarks.pipeline.rivals.flink import PROGRAM, compiled, connector_jar
from evenflow.settings import KafkaSettings
from spark_consumers.jars.fetch import spark_kafka_jars

_HERE = Path(__file__).parent


def flink_windows(kafka: KafkaSettings, topic: str, *, python: Path) -> Program:
    """Flink SQL into a black hole. `python` is the Python that has PyFlink."""
    return _flink(kafka, topic, "windows", python, str(connector_jar()))


def flink_costly(
    kafka: KafkaSettings,
    topic: str,
    *,
    python: Path,
    folder: Path,
    phases: str,
    workers: int,
    cost_us: int,
    results: str | None = None,
) -> Program:
    """Flink SQL with a function that costs work, compiled into `folder`.

    phases: `ONE_PHASE` (each tuple goes to the task of its key, which aggregates) or `TWO_PHASE` (each task
    that reads adds up what it read, and the sums go to the tasks of their keys). results: the topic for rows.
    Then the program does not end. Without it the program reads to the end of its topic, into a black hole.
    """
    function = compiled(_HERE / "CostlySum.java", python, folder)
    options = [
        f"pipeline.global-job-parameters=cost_us:{cost_us}",
        f"parallelism.default={workers}",
        f"table.optimizer.agg-phase-strategy={phases}",
    ]
    jars = f"{connector_jar()};{function}"
    return _flink(kafka, topic, "costly", python, jars, *options, results=results)


def _flink(
    kafka: KafkaSettings,
    topic: str,
    job: str,
    python: Path,
    jars: str,
    *options: str,
    results: str | None = None,
) -> Program:
    command = [str(python), str(PROGRAM), kafka.bootstrap_servers, topic, jars, job, *options]
    return Program(f"flink, {job}", [*command, *_live(results)], "flink_jvm")


def spark_costly(
    kafka: KafkaSettings,
    topic: str,
    *,
    salts: int,
    workers: int,
    cost_us: int,
    most: int | None,
    results: str | None = None,
) -> Program:
    """Spark with a function that costs work, by key and one of so many salts.

    most: records of a micro-batch. None: all that are there.
    results: the topic for rows. Then the program does not end. Without it the program reads to the end of its
    topic and drops its rows.
    """
    command = [*_spark("spark_costly", kafka, topic), str(salts), str(workers), str(cost_us)]
    bound = [] if most is None else ["--most", str(most)]
    return Program(f"spark with {salts} salts", [*command, *bound, *_live(results)], "spark_jvm")


def spark_windows(kafka: KafkaSettings, topic: str) -> Program:
    """Spark's own streaming windows into a sink that drops the rows."""
    return Program("spark windows", _spark("spark_windows", kafka, topic), "windows_jvm")


def plain_program(kafka: KafkaSettings, topic: str) -> Program:
    """A plain program of one process, which drops the rows and keeps nothing."""
    command = [sys.executable, str(_HERE / "plain_program.py"), kafka.bootstrap_servers, topic]
    return Program("plain program", command, "plain_jvm")


def _spark(name: str, kafka: KafkaSettings, topic: str) -> list[str]:
    jars = ",".join(map(str, spark_kafka_jars()))
    return [sys.executable, str(_HERE / f"{name}.py"), kafka.bootstrap_servers, topic, jars]


def _live(results: str | None) -> list[str]:
    return [] if results is None else ["--results", results]
