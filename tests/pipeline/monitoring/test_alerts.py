"""Each alert fires on a real pipeline that has the fault it is for: skew, a stalled partition and those that
are paused because of it, rejected tuples, overload, state that cannot be saved, a part that hangs, a
controller that is gone, and micro-batches that come again.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from evenflow.settings import KafkaSettings, Settings
from tests.patience import PATIENCE
from tests.pipeline.firing import firing
from tests.pipeline.spark_stream import Stream, consumed, make_settings, run_until
from topics import admin, clients
from workbench.demo.interrupts import Interrupts
from workbench.demo.services import Services
from workbench.elastic import LoopOptions, shape_of
from workbench.elastic.loop import loop_settings
from workbench.local.broker import EmbeddedBroker
from workbench.local.ports import WebPorts
from workbench.local.processes import ChildProcess
from workbench.local.prometheus import Prometheus

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(420)]
OF_WORK = {
    "EvenflowImbalance",
    "EvenflowWorkerFarAboveMean",
    "EvenflowTuplesRejected",
    "EvenflowOverload",
}
OF_WHAT_STANDS_STILL = {
    "EvenflowWatermarkStalled",
    "EvenflowBacklogGrowing",
    "EvenflowSnapshotOld",
    "EvenflowPartDown",
    "EvenflowPartSilent",
}
_RATE = 400
_STALLS_AFTER = 25.0
_TOO_SMALL = 400
_PATIENCE = 240.0 * PATIENCE


class Trouble(threading.Thread):
    """Writes a stream with one key at 90 %, 5 % garbage, and a second input partition that stands still
    after a while.
    """

    def __init__(self, kafka: object, topic: str) -> None:
        super().__init__(daemon=True)
        self._producer = clients.producer(kafka)  # type: ignore[arg-type]
        self._topic = topic
        self.stop = threading.Event()

    def run(self) -> None:
        draw, began = random.Random(3), time.monotonic()
        while not self.stop.wait(0.1):
            stalled = time.monotonic() - began > _STALLS_AFTER
            for number in range(_RATE // 10):
                key = "hot" if draw.random() < 0.9 else f"cold {draw.randrange(1_000)}"
                value = json.dumps({"key": key, "time": round(1_000 * time.time()), "value": 1}).encode()
                if draw.random() < 0.05:
                    value = b"\xff{"
                self._producer.produce(self._topic, value=value, partition=0 if stalled else number % 2)
            self._producer.poll(0)
        self._producer.flush(5)


def save_no_more(settings: Settings) -> None:
    """From now on the broker refuses learned state: its topic takes small records only."""
    entry = ConfigEntry("max.message.bytes", str(_TOO_SMALL), incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, settings.topic("snapshots"), incremental_configs=[entry])
    for answer in clients.admin(settings.kafka).incremental_alter_configs([topic]).values():
        answer.result(30)


@contextmanager
def hanging(process: ChildProcess) -> Iterator[None]:
    """A process that lives and does nothing."""
    process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.signal(signal.SIGCONT)


def test_every_alert_fires_for_the_fault_that_it_is_for(tmp_path: Path) -> None:
    options = LoopOptions(
        shape=shape_of("spike"),
        policy="fixed",
        partitioner="pkg",  # learns, and leaves a key on two workers
        workers=6,
        wait=9_000,
        ports=WebPorts.free(),
    )
    settings = loop_settings(options, tmp_path)
    hasty = settings.partitioner.model_copy(update={"max_skew": 8_000, "snapshot_interval": 1_000})
    fired: set[str] = set()
    with EmbeddedBroker() as broker, Interrupts() as interrupts:
        settings = settings.model_copy(update={"kafka": broker.settings(), "partitioner": hasty})
        admin.ensure_topics(settings.kafka, admin.pipeline_topics(settings).values())
        with (
            Services(settings, tmp_path, instances=1, interrupts=interrupts) as services,
            Prometheus(tmp_path / "prometheus", options.targets, every=1.0, hold=2.0) as prometheus,
        ):

            def until(expected: set[str]) -> None:
                began = time.monotonic()
                while not fired >= expected:
                    assert time.monotonic() - began < _PATIENCE, f"not fired: {expected - fired}"
                    services.check()
                    fired.update(firing(prometheus))
                    threading.Event().wait(0.5)

            trouble = Trouble(settings.kafka, settings.topic("input"))
            trouble.start()
            services.start_control()
            parts = (
                "evenflow_telemetry_records_total and on (query) evenflow_learning_begin_timestamp_seconds"
            )
            services.wait(lambda: bool(prometheus.query(parts)), lambda: None)
            save_no_more(settings)
            until(OF_WORK)
            assert services.spark is not None
            with hanging(services.spark):
                until(OF_WHAT_STANDS_STILL)
            services.stop_control()
            until({"EvenflowControllerSilent"})
            trouble.stop.set()
            trouble.join(10)


@pytest.mark.long
def test_an_older_checkpoint_repeats_partials_which_is_said(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    ports = WebPorts.free()
    settings = make_settings(
        kafka_settings, query_name, tmp_path, spark={"wiring": "split", "web_port": ports.spark}
    )
    checkpoint = Path(settings.spark.checkpoint) / query_name / "combine"
    stream = Stream(settings)

    def combine_all() -> None:
        run_until(settings, lambda: consumed(settings, "combine", "routed"), ("combine",))

    stream.write(5)
    combine_all()
    shutil.copytree(checkpoint, tmp_path / "older")
    stream.write(10)
    combine_all()
    shutil.rmtree(checkpoint)
    shutil.move(tmp_path / "older", checkpoint)
    with Prometheus(tmp_path / "prometheus", {"evenflow-spark": ports.spark}, every=0.5) as prometheus:
        began = time.monotonic()
        run_until(
            settings,
            lambda: "EvenflowDuplicates" in firing(prometheus) or time.monotonic() - began > _PATIENCE,
        )
        assert "EvenflowDuplicates" in firing(prometheus)
