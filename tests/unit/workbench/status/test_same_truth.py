"""Status, the live page and the health page of the Spark application call the same stage ok, slow or wrong."""

from __future__ import annotations

from itertools import product
from typing import Any

from evenflow.settings import load_settings
from evenflow.telemetry import HeartbeatRecord
from monitoring.live.picture import Picture
from spark_consumers.health import Health
from tests.unit.talking.clock import Clock
from tests.unit.workbench.status.test_status import NOW, facts, partition, state
from workbench.alive import Part
from workbench.status.judging import findings, state_of

SETTINGS = load_settings(query={"name": "w"}, input={"partitions": 1})
WORDS = {"ok": "unknown", "warning": "warn", "wrong": "bad"}
"""What the live page answers. As long as no micro-batch has ended, it does not know whether all is well."""


CASES = list(product([0, 11, 12, 35, 60], [None, 5, 12, 29, 30, 60, 100], [None, 7], [0, 1, 4, 20]))
"""Seconds of silence, seconds of the running micro-batch, the last finished micro-batch, the batch interval in s."""


def test_all_pages_judge_a_stage_alike() -> None:
    for silent, running, batch, interval in CASES:
        judge(silent, running, batch=batch, interval=interval)


def judge(silent: int, running: int | None, *, batch: int | None, interval: int) -> None:
    """Compare the three."""
    fields: dict[str, Any] = {
        "query": "w", "fingerprint": SETTINGS.fingerprint, "time": NOW, "stage": "fused", "batch": batch,
        "running_ms": None if running is None else 1_000 * running, "batch_interval_ms": 1_000 * interval,
    }  # fmt: skip
    said = HeartbeatRecord(**fields)
    clock = Clock()
    picture, health = Picture(SETTINGS, clock=clock, wall=lambda: NOW / 1_000), Health(clock)
    picture.add(said)
    health.loop.turned()
    health.heartbeat(said)
    clock.now += silent
    found = facts(
        partition(0, state(20_700)), written=(20_000, NOW), parts=(Part(at=NOW - 1_000 * silent, said=said),)
    )
    (trouble,) = findings(found) or (None,)
    level = state_of(findings(found))
    verdict = picture.glance().verdicts["keeping up"]
    if level == "ok":
        assert verdict.word == "unknown"
    else:
        assert trouble is not None
        assert verdict.word == WORDS[level]
        assert trouble.text.startswith(verdict.text.removesuffix(": does Kafka answer?"))
    if silent < 12:  # a stage is silent to others, not to itself
        assert (health.checks().healthy is None) == (level != "wrong")
