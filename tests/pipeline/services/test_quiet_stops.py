"""SIGTERM to a whole process group, as systemd and `timeout` send it: every service ends in order, and
quietly.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from evenflow.commands.frame import USER_ERROR
from evenflow.settings import Settings
from tests.chaos.processes import java_of
from tests.ground.waiting import wait_until
from tests.pipeline import routed
from tests.pipeline.end_to_end import batch_is_running
from tests.pipeline.planes import some_rows
from tests.pipeline.spark_stream import SLOW, Stream, driver, make_settings, with_spark

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(200)]
NOISE = ("Traceback", "Py4J", "py4j", "Task was destroyed", "never awaited")


def says(log: Path, words: str) -> bool:
    """Whether a process has logged these words."""
    return words in log.read_text()


@contextmanager
def in_a_micro_batch(settings: Settings, log: Path) -> Iterator[tuple[Popen[bytes], int]]:
    """A driver within a micro-batch that takes long, and the process id of its Java."""
    Stream(settings).write(4)
    with driver(with_spark(settings, SLOW), log, "aggregate") as process:
        wait_until(lambda: batch_is_running(settings, "fused"), "no micro-batch begins", patience=120)
        (java,) = java_of(process.pid)
        yield process, java


def test_spark_finishes_its_micro_batch_says_nothing_of_py4j_and_takes_java_along(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings, log = make_settings(kafka_settings, query_name, tmp_path), tmp_path / "aggregate.log"
    with in_a_micro_batch(settings, log) as (process, java):
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(90) == 0, log.read_text()
        wait_until(lambda: not Path(f"/proc/{java}").exists(), "Java outlives the driver")
    output = log.read_text()
    assert not [word for word in NOISE if word in output], output
    assert "stopped between two micro-batches" in output.splitlines()[-1]


def test_a_driver_whose_java_is_killed_ends_in_words(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings, log = make_settings(kafka_settings, query_name, tmp_path), tmp_path / "aggregate.log"
    with in_a_micro_batch(settings, log) as (process, java):
        os.kill(java, signal.SIGKILL)
        assert process.wait(90) == USER_ERROR, log.read_text()
    output = log.read_text()
    assert not [word for word in NOISE if word in output], output
    assert "Spark's Java process ended by signal 9" in output


@pytest.mark.long
def test_java_ends_when_its_driver_is_killed(kafka_settings: Any, query_name: str, tmp_path: Path) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path)
    log = tmp_path / "aggregate.log"
    with driver(settings, log, "aggregate") as process:
        wait_until(lambda: "running: combine" in log.read_text(), "it does not begin", patience=120)
        (java,) = java_of(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: not Path(f"/proc/{java}").exists(), "Java outlives the driver", patience=60)


def test_a_partitioner_leaves_no_pending_task_at_any_moment_of_its_start(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = routed.make_settings(kafka_settings, query_name)
    routed.create_topics(settings)
    routed.write(settings, some_rows(100), end=False)
    for moment in ("assigned input partitions", "status page"):
        log = tmp_path / f"{len(moment)}.log"
        with driver(settings, log, "partition") as process:
            wait_until(partial(says, log, moment), "it does not begin")
            os.killpg(process.pid, signal.SIGTERM)
            assert process.wait(30) == 0, log.read_text()
        assert not [word for word in NOISE if word in log.read_text()], log.read_text()
