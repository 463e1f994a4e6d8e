"""What a record of the plan topic is to whoever reads it: one rule for all readers."""

from __future__ import annotations

import json

import pytest

from evenflow.plans import Plan
from evenflow.settings import Settings, load_settings
from topics.query.plan_topic import PlanRecords


@pytest.fixture
def settings() -> Settings:
    return load_settings(
        query={"key": "k", "time": "t", "window": "4s", "slide": "1s"},
        input={"partitions": 1},
        partitioner={"workers": 2, "routed_partitions": 6},
    )


def test_a_plan_for_more_workers_than_partitions_is_none_for_any_reader_and_said_once(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    reading = PlanRecords(settings)
    garbage = json.dumps({"v": 1, "epoch": 2, "p": 7, "r": 1, "effective_from": None}).encode()
    assert [reading.of_value(garbage, 4) for _ in range(3)] == [None] * 3
    assert reading.ignored == 1
    assert caplog.text.count("plan epoch 2 is impossible: it asks for 7 workers") == 1
    possible = Plan(epoch=2, p=6, r=1)
    assert reading.of_value(possible.encode(settings.fingerprint), 5) == possible
