"""Each alert fires on a real pipeline that has the fault it is for: skew, a stalled partition, rejected tuples, overload,
a controller that is gone.
"""

from __future__ import annotations

import json
import random
import threading
import time
from pathlib import Path

import pytest

from topics import admin, clients
from workbench.broker import EmbeddedBroker
from workbench.demo.interrupts import Interrupts
from workbench.demo.services import Services
from workbench.elastic import LoopOptions, shape_of
from workbench.elastic.loop import loop_settings
from workbench.ports import WebPorts
from workbench.prometheus import Prometheus

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(420)]
EXPECTED = {
    "EvenflowImbalance",
    "EvenflowWorkerFarAboveMean",
    "EvenflowWatermarkStalled",
    "EvenflowTuplesRejected",
    "EvenflowOverload",
    "EvenflowControllerSilent",
    "EvenflowPartDown",
}
_RATE = 400
_STALLS_AFTER = 15.0
_CONTROLLER_ENDS_AFTER = 30.0
_PATIENCE = 240.0


class Trouble(threading.Thread):
    """Writes a stream with one key at 90 %, 5 % garbage, and a second input partition that stands still after a while."""

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


def test_every_alert_fires_for_the_fault_that_it_is_for(tmp_path: Path) -> None:
    options = LoopOptions(
        shape=shape_of("spike"),
        policy="fixed",
        partitioner="hashing",
        workers=6,
        wait=4_000,
        ports=WebPorts.free(),
    )
    settings = loop_settings(options, tmp_path)
    fired: set[str] = set()
    with EmbeddedBroker() as broker, Interrupts() as interrupts:
        settings = settings.model_copy(update={"kafka": broker.settings()})
        admin.ensure_topics(settings.kafka, admin.pipeline_topics(settings).values())
        with (
            Services(settings, tmp_path, instances=1, interrupts=interrupts) as services,
            Prometheus(tmp_path / "prometheus", options.targets, every=1.0, hold=2.0) as prometheus,
        ):
            trouble = Trouble(settings.kafka, settings.topic("input"))
            trouble.start()
            services.start_control()
            began = time.monotonic()
            while not fired >= EXPECTED and time.monotonic() - began < _PATIENCE:
                services.check()
                if time.monotonic() - began > _CONTROLLER_ENDS_AFTER:
                    services.stop_control()
                fired |= prometheus.firing()
                threading.Event().wait(1.0)
            trouble.stop.set()
            trouble.join(10)
    assert fired >= EXPECTED
