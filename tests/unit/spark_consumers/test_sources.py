"""What Spark's Kafka source is told."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.settings import Settings, load_settings
from spark_consumers.sources import source_options

ANSWERS = ("kafka.request.timeout.ms", "kafka.default.api.timeout.ms")


def settings(**java: Any) -> Settings:
    return load_settings(
        query={"name": "q", "key": "k", "window": "1s", "aggregates": {"n": "count"}},
        kafka={"extras": {"java": java}},
    )


def test_a_call_to_a_broker_that_has_died_ends_in_a_quarter_of_a_minute_and_tries_last_ten_minutes() -> None:
    options = source_options(settings(), "q.routed", "earliest")
    request, call = (int(options[name]) for name in ANSWERS)
    assert request <= call == 15_000, "Kafka's clients refuse a call that is shorter than a request"
    assert int(options["fetchOffset.numRetries"]) * (call + 1_000) >= 600_000


@pytest.mark.parametrize("name", ANSWERS)
def test_who_sets_one_of_both_times_gets_kafkas_own_other_one(name: str) -> None:
    options = source_options(settings(**{name.removeprefix("kafka."): 40_000}), "q.routed", "earliest")
    assert {other: options.get(other) for other in ANSWERS} == {
        other: "40000" if other == name else None for other in ANSWERS
    }
