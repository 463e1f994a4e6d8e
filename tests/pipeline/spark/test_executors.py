"""Real executor processes come and go by plans while a stream flows, and results stay exact."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark import SparkContext

from evenflow.plans import Plan
from evenflow.settings import KafkaSettings, Settings
from evenflow.telemetry import BatchRecord, HeartbeatRecord
from spark_consumers.application import run
from tests.patience import PATIENCE
from tests.pipeline.spark_stream import INTEGERS, Stream, make_settings, results, telemetry, told
from tests.pipeline.standalone import standalone
from topics.query.plan_topic import PlanWriter

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(900)]
_PATIENCE = 240.0 * PATIENCE
_SPARK = {
    "partitions_per_slot": 2,
    "executor_memory": "512m",
    "batch_interval": 500,
    "max_frames_per_batch": 300,
    "buckets": 2,
    "reducers": 1,
}


class Director:
    """Writes a stream, publishes plans and looks at what comes of it, while the application runs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stream = Stream(settings)
        self.plans = PlanWriter(settings, identity="test")
        self.stop = threading.Event()
        self.failed: list[BaseException] = []

    def run(self, script: Callable[[], None]) -> None:
        """The script in a thread, the application in this one, until all windows are emitted."""
        thread = threading.Thread(target=self._play, args=(script,))
        thread.start()
        try:
            run(self.settings, stop_event=self.stop, until_ended=True)
        finally:
            self.stop.set()
            thread.join()
        if self.failed:
            raise self.failed[0]

    def _play(self, script: Callable[[], None]) -> None:
        try:
            script()
            self.stream.end()
        except BaseException as error:
            self.failed.append(error)
            self.stop.set()

    def publish(self, epoch: int, p: int) -> None:
        """A plan that is in force at once."""
        self.plans.write(Plan(epoch=epoch, p=p, r=1))

    def flow_until(self, what: str, reached: Callable[[BatchRecord], bool]) -> BatchRecord:
        """Until a micro-batch that had rows says so."""
        before = len(told(self.settings))
        result: list[BatchRecord] = []

        def look() -> bool:
            result[:] = [record for record in told(self.settings)[before:] if reached(record)]
            return bool(result)

        self._flow(what, look)
        return result[0]

    def flow_until_registered(self, executors: int, *, but: str | None = None) -> None:
        """Until there are just so many executor processes, and not that one."""
        self._flow(
            f"{executors} executors", lambda: len(_registered()) == executors and but not in _registered()
        )

    def flow_until_said(self, said: Callable[[], bool]) -> None:
        """Until it was."""
        self._flow("a warning", said)

    def _flow(self, what: str, done: Callable[[], bool]) -> None:
        """A block now and then until it is so."""
        deadline = time.monotonic() + _PATIENCE
        while not done():
            assert not self.stop.wait(0.5), f"the application ended before: {what}"
            assert time.monotonic() < deadline, f"not within {_PATIENCE} s: {what}"
            self.stream.write(1)


def _registered() -> set[str]:
    context: Any = SparkContext._active_spark_context
    return set(str(context._jsc.sc().schedulerBackend().getExecutorIds().mkString(",")).split(","))


def _kill_one() -> str:
    """SIGKILL the process of an executor; its number."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has ended meanwhile; a zombie is such a process
            words = process.cmdline()
            if "--executor-id" in words and process.name() == "java":
                process.kill()
                return words[words.index("--executor-id") + 1]
    raise AssertionError("there is no executor")


def _settings(kafka: KafkaSettings, name: str, folder: Path, **spark: Any) -> Settings:
    return make_settings(
        kafka,
        name,
        folder,
        query={"aggregates": INTEGERS},
        partitioner={"workers": 1, "routed_partitions": 6},
        spark=_SPARK | spark,
    )


def _stands(epoch: int, executors: int) -> Callable[[BatchRecord], bool]:
    return lambda record: (record.epoch, record.executors) == (epoch, executors)


@pytest.mark.long
def test_executors_grow_as_far_as_there_is_room_and_shrink_again_under_a_flowing_stream(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "evenflow.spark")
    settings = _settings(kafka_settings, query_name, tmp_path, master="local-cluster[2,1,512]")
    director = Director(settings)

    def script() -> None:
        director.flow_until("first executor", _stands(0, 1))
        director.publish(1, p=6)  # 3 executors; there is room for 2
        grown = director.flow_until("second executor", _stands(1, 2))
        assert grown.slots == 2
        director.publish(2, p=2)
        director.flow_until("scale-in", _stands(2, 1))
        director.flow_until_registered(1)

    director.run(script)
    result, records = results(settings)
    assert result == director.stream.expected()
    assert records == len(result), "each window was emitted once"
    assert "plan 1 (p 6, r 1) wants 3 executors of 1 cores" in caplog.messages


@pytest.mark.long
def test_a_standalone_cluster_gives_takes_and_replaces_executors_and_a_stage_without_input_has_a_pulse(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    with standalone(tmp_path, cores=3, memory="2g") as cluster:
        settings = _settings(kafka_settings, query_name, tmp_path, master=cluster.url, wiring="split")
        director = Director(settings)

        def script() -> None:
            director.flow_until("first executor", _stands(0, 1))
            director.publish(1, p=6)
            director.flow_until("three executors", _stands(1, 3))
            killed = _kill_one()
            director.flow_until_registered(3, but=killed)
            director.publish(2, p=1)
            director.flow_until("scale-in", _stands(2, 1))
            director.flow_until_registered(1)
            _wait_for_pulse(settings)

        director.run(script)
    result, records = results(settings)
    assert result == director.stream.expected()
    assert records == len(result)


@pytest.mark.long
def test_a_request_that_is_refused_is_said_and_the_application_goes_on_with_what_it_has(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with standalone(tmp_path, cores=3, memory="2g") as cluster:
        settings = _settings(kafka_settings, query_name, tmp_path, master=cluster.url)
        director = Director(settings)

        def script() -> None:
            director.flow_until("first executor", _stands(0, 1))
            cluster.master.kill()
            cluster.master.wait(10)
            director.publish(1, p=6)
            director.flow_until("the plan without its executors", _stands(1, 1))
            director.flow_until_said(lambda: any("; it refuses (" in said for said in caplog.messages))

        director.run(script)
    result, records = results(settings)
    assert result == director.stream.expected()
    assert records == len(result)


def _wait_for_pulse(settings: Settings) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        beats = [record for record in telemetry(settings) if isinstance(record, HeartbeatRecord)]
        if {beat.stage for beat in beats if beat.running_ms is None and beat.epoch == 2} == {
            "combine",
            "reduce",
        }:
            return
        assert time.monotonic() < deadline, beats
        time.sleep(0.5)
