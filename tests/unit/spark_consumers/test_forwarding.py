"""What forwarding asks of Spark, and what keeps partials travelling although it is on."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.settings import Settings
from spark_consumers.cluster.forwarding import forwarding_conf, obstacles, warn_of_travel
from spark_consumers.layout import Layout
from spark_consumers.session import session_conf

CLUSTER = {"master": "spark://master:7077", "buckets": 4}


def settings(spark: dict[str, Any] | None = None, **partitioner: Any) -> Settings:
    how = {"forwarding": "on", "workers": 8, **partitioner}
    return Settings(spark=CLUSTER | (spark or {}), partitioner=how, input={"partitions": 4})


def test_without_forwarding_nothing_is_asked_of_spark_and_nothing_is_in_the_way() -> None:
    off = settings({"wiring": "split"}, forwarding="off")
    assert forwarding_conf(off) == {}
    assert obstacles(off) == []
    assert session_conf(off)["spark.locality.wait"] == "0s"
    assert Layout.from_settings(off, "t").forwarding_seed is None


def test_with_forwarding_a_task_waits_for_the_executor_that_has_its_input() -> None:
    on = settings(seed=11)
    assert session_conf(on)["spark.locality.wait"] == "3s"
    assert session_conf(settings({"conf": {"spark.locality.wait": "1s"}}))["spark.locality.wait"] == "1s"
    assert obstacles(on) == []
    assert Layout.from_settings(on, "t").forwarding_seed == 11


def test_in_one_process_no_task_waits() -> None:
    assert forwarding_conf(settings({"master": "local[2]"})) == {}


@pytest.mark.parametrize(
    ("spark", "workers", "reason"),
    [
        ({"wiring": "split"}, 8, "every partial goes through Kafka"),
        ({"master": "local[*]"}, 8, "all tasks run in one process"),
        ({"master": "local-cluster[2,1,1024]"}, 8, "all executors are on one machine"),
        ({"reduce": "prompt"}, 8, "partials go to reduce tasks first"),
        ({"buckets": 3}, 8, "of 8 workers (partitioner.workers) and 3 buckets (spark.buckets) neither"),
    ],
)
def test_what_keeps_partials_travelling_is_named(spark: dict[str, Any], workers: int, reason: str) -> None:
    (named,) = obstacles(settings(spark, workers=workers))
    assert reason in named


def test_partitions_that_workers_share_and_buckets_that_are_no_divisor_of_them_are_named() -> None:
    (named,) = obstacles(settings({"buckets": 8}, workers=1_000))
    assert "workers share 63 routed partitions" in named
    assert "8 buckets (spark.buckets) neither is a multiple" in named
    assert obstacles(settings({"buckets": 8}, workers=1_000, routed_partitions=64)) == []
    assert obstacles(settings({"buckets": 8}, workers=16, routed_partitions=4)) == []


def test_all_that_is_in_the_way_is_said_in_one_warning_and_nothing_is_said_otherwise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for quiet in (settings(), settings({"wiring": "split"}, forwarding="off")):
        warn_of_travel(quiet)
        assert caplog.messages == []
    warn_of_travel(settings({"wiring": "split", "buckets": 3}))
    (said,) = caplog.messages
    assert caplog.records[0].levelname == "WARNING"
    assert "every partial goes through Kafka; of 8 workers" in said
    assert said.endswith("Results are the same")
