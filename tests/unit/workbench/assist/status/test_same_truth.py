"""Status, the live page and the health pages say the same of a stage, and of windows that do not close for
long.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from evenflow.due_windows import ResultDelays
from evenflow.settings import load_settings
from evenflow.telemetry import BatchRecord, HeartbeatRecord
from monitoring.live.picture import Picture
from partitioner_service.reports.health import Health as PartitionerHealth
from partitioner_service.reports.health import warnings_of
from partitioner_service.reports.log_lines import LogLines
from partitioner_service.reports.rejections import RejectionCounts
from spark_consumers.reports.health import Health
from tests.unit.reporting.clock import Clock
from tests.unit.workbench.assist.status.test_status import NOW, PARTITIONER, SPARK, facts, partition, state
from workbench.assist.activity import Part
from workbench.assist.status.facts import PartitionFacts, windows_of
from workbench.assist.status.judging import findings, state_of

SETTINGS = load_settings(query={"name": "w"}, input={"partitions": 1})
WORDS = {"ok": "unknown", "warning": "warn", "wrong": "bad"}
"""What the live page answers. As long as no micro-batch has ended, it does not know whether all is well."""


CASES = list(product([0, 11, 12, 35, 60], [None, 5, 12, 29, 30, 60, 100], [None, 7], [0, 1, 4, 20]))
"""Seconds of silence, seconds of the running micro-batch, the last finished micro-batch, the batch
interval in s.
"""


def test_all_pages_judge_a_stage_alike() -> None:
    for silent, running, batch, interval in CASES:
        judge(silent, running, batch=batch, interval=interval)


def judge(silent: int, running: int | None, *, batch: int | None, interval: int) -> None:
    """Compare the three."""
    fields: dict[str, Any] = {
        "query": "w", "fingerprint": SETTINGS.fingerprint, "time": NOW, "stage": "fused", "batch": batch,
        "running_ms": None if running is None else 1_000 * running, "batch_interval_ms": 1_000 * interval,
        "finished": 1,
    }  # fmt: skip
    said = HeartbeatRecord(**fields)
    clock = Clock()
    picture, health = Picture(SETTINGS, clock=clock, wall=lambda: NOW / 1_000), Health(clock)
    picture.add(said)
    health.loop.turned()
    health.heartbeat(said)
    clock.now += silent
    result = facts(
        partition(0, state(20_700)),
        written=(20_000, NOW),
        parts=(Part(at=NOW - 1_000 * silent, telemetry=said),),
    )
    (trouble,) = findings(result) or (None,)
    level = state_of(findings(result))
    verdict = picture.glance().verdicts["keeping up"]
    if level == "ok":
        assert verdict.word == "unknown"
    else:
        assert trouble is not None
        assert verdict.word == WORDS[level]
        assert trouble.text.startswith(verdict.text.removesuffix(": does Kafka answer?"))
    if silent < 12:  # a stage is silent to others, not to itself
        checks = health.checks()
        assert (checks.healthy is None) == (level != "wrong")
        words = [trouble.text.removeprefix("spark fused")] if trouble and level == "warning" else []
        assert [text.removeprefix("fused of w") for text in checks.warnings] == words


WEEK = 7 * 86_400_000


@pytest.mark.parametrize(
    ("query", "largest", "says"),
    [
        (
            {"out_of_orderness": "7d"},
            NOW,
            (
                'no window closes before 2023-11-21 22:13:24 UTC, in 7 d: query.out_of_orderness is "7d", for'
                " windows of 4s; "
            ),
        ),
        (
            {"max_ahead_of_clock": "8d"},
            NOW + WEEK,
            (
                "no window closes before 2023-11-21 22:13:24 UTC, in 7 d: event times that were read lie"
                " ahead of the clock"
            ),
        ),
        ({}, NOW, None),
    ],
)
def test_windows_that_cannot_close_before_next_week_are_a_warning_in_status_and_on_every_page(
    query: dict[str, Any], largest: int, says: str | None
) -> None:
    settings = load_settings(
        query={"name": "w", "window": "4s", "out_of_orderness": 0, **query}, input={"partitions": 1}
    )
    committed = state(largest, first=largest)
    only = PartitionFacts.of(settings.query, 0, (0, 100), committed)
    windows = windows_of(settings.query, (only,), None)
    result = facts(only, windows=windows, delays=ResultDelays.of(settings.query))
    sentences = [trouble.text for trouble in findings(result)]
    assert state_of(findings(result)) == ("ok" if says is None else "warning")
    assert [text.startswith(says or "") for text in sentences] == [True] * (says is not None)

    wall = Clock()
    wall.now = NOW / 1_000
    shown = {"lag": 0, "at_end_s": None, "max_time": largest, "ended": False, "idle": False, "paused": False}
    status: dict[str, Any] = {
        "state": "running", "seconds_since_progress": 0.1, "input_partitions": 1, "read": 100, "filtered": 0,
        "tuples": 100,
        "rejected": 0, "rejected_by_reason": {}, "loads": [1], "assignment": {"0": shown | {"read": 100,
        "watermark": 0}},
    }  # fmt: skip
    standings = LogLines(settings, clock=Clock(), wall=wall).tell(
        status, RejectionCounts(settings), {0: committed}
    )
    status |= {"standing_still": standings.still, "warnings": standings.warnings}
    answer = PartitionerHealth(Clock()).healthy(status, control_joined=True)
    assert (answer["healthy"], answer.get("warnings", [])) == (True, sentences)

    who = {"fingerprint": settings.fingerprint}
    batch = SPARK.telemetry.model_copy(update={**who, "next_window_end": windows.next})
    assert isinstance(batch, BatchRecord)
    picture = Picture(settings, clock=Clock(), wall=wall)
    picture.add(PARTITIONER.model_copy(update={**who, "warnings": warnings_of(status)}))
    picture.add(batch)
    verdict = picture.glance().verdicts["keeping up"]
    assert verdict.word == ("good" if says is None else "warn")
    assert says is None or verdict.text == sentences[0]
    picture.add(batch.model_copy(update={"load": 1.3}))
    assert picture.glance().verdicts["keeping up"].word == "bad", "what is worse is said first"

    health = Health(Clock(), delays={"w": ResultDelays.of(settings.query)}, wall=wall)
    health.loop.turned()
    health.batch(batch)
    checks = health.checks()
    assert (checks.healthy, checks.warnings) == (None, tuple(f"w: {text}" for text in sentences))

    over = replace(
        result, partitions=(replace(only, state=replace(committed, ended_producers=("p",), announced=1)),)
    )
    assert says is None or not [one for one in findings(over) if says in one.text]
