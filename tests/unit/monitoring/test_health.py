"""Probes: what a restart may heal is not alive, what it does not is only unhealthy; over real HTTP."""

from __future__ import annotations

from typing import Any

from evenflow.reporting import unanswered
from evenflow.settings import load_settings
from evenflow.telemetry import BatchRecord, HeartbeatRecord
from monitoring.health import Checks, Turns
from monitoring.instruments.spark import SparkInstruments
from monitoring.serving import served
from spark_consumers.reports.health import Health
from tests.pages import page
from tests.unit.reporting.clock import Clock

COMMON: dict[str, Any] = {
    "query": "q",
    "fingerprint": "0123456789abcdef",
    "time": 1,
    "stage": "fused",
    "batch_interval_ms": 20_000,
    "finished": 1,
}


def test_pages_answer_200_or_503_with_the_reason() -> None:
    said = [Checks()]
    instruments = SparkInstruments(load_settings(query={"name": "q"}))
    with served(instruments, "127.0.0.1", 0, setting="spark.web_port", health=lambda: said[0]) as port:
        assert page(port, "/alive/") == (200, {"alive": True})
        assert page(port, "/healthy") == (200, {"healthy": True})
        said[0] = Checks(warnings=("look here",))
        assert page(port, "/healthy/") == (200, {"healthy": True, "warnings": ["look here"]})
        said[0] = Checks(unhealthy="it stands still")
        assert page(port, "/alive/") == (200, {"alive": True})
        assert page(port, "/healthy/") == (503, {"healthy": False, "reason": "it stands still"})
        said[0] = Checks(alive="its loop has ended")
        assert page(port, "/alive/") == (503, {"alive": False, "reason": "its loop has ended"})
        assert page(port, "/healthy/")[1]["reason"] == "its loop has ended"


def test_a_loop_that_has_begun_and_turns_no_more_is_not_alive() -> None:
    clock = Clock()
    loop = Turns("the loop", clock=clock)
    clock.now += 1_000
    assert (loop.begun, loop.trouble()) == (False, None), "a start may take long"
    loop.turned()
    clock.now += 59
    assert loop.trouble() is None
    clock.now += 2
    assert loop.trouble() == "the loop has not turned for 61 s"


def test_a_spark_application_is_healthy_once_it_runs_and_as_long_as_no_micro_batch_runs_for_ever() -> None:
    clock = Clock()
    health = Health(clock)
    assert health.checks() == Checks(None, "its streaming queries have not started yet")
    health.loop.turned()
    assert health.checks() == Checks()
    for seconds, trouble in ((99, None), (100, "fused of q has been in one micro-batch for 1.7 min")):
        health.heartbeat(HeartbeatRecord(**COMMON, running_ms=1_000 * seconds))
        assert health.checks() == Checks(None, trouble)
    health.batch(BatchRecord(**COMMON, batch=1, rows=1, duration_ms=1))
    assert health.checks() == Checks()
    clock.now += 11
    assert health.checks() == Checks()
    clock.now += 1
    assert health.checks() == Checks(None, "the application's loop has not turned for 12 s"), (
        "said before it is fatal"
    )
    clock.now += 49
    assert health.checks().alive == "the application's loop has not turned for 61 s"


def test_a_spark_application_without_kafka_is_unhealthy_and_alive() -> None:
    gone: list[float] = [0.0]
    health = Health(Clock(), kafka=lambda: unanswered("b:9092", gone[0]))
    health.loop.turned()
    assert health.checks() == Checks()
    gone[0] = 8.0
    assert health.checks() == Checks(None, "Kafka at b:9092 has not answered for 8 s")
