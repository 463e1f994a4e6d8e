"""What only one machine can mean is refused or named before Spark is started on several."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from spark_consumers.cluster.machines import one_machine, refuse_unshared

PROTECTED = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


def settings(**parts: Any) -> Settings:
    spark = {
        "master": "spark://master:7077",
        "driver_host": "10.0.0.1",
        "checkpoint": "hdfs://names/checkpoint",
        "conf": PROTECTED,
    }
    return Settings(spark=spark | parts.pop("spark", {}), **parts)


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local-cluster[3,1,1024]"])
def test_the_driver_and_its_children_are_one_machine_and_nothing_is_said(
    master: str, caplog: pytest.LogCaptureFixture
) -> None:
    refuse_unshared(settings(spark={"master": master, "driver_host": "127.0.0.1", "checkpoint": "/here"}))
    assert one_machine(settings(spark={"master": master}))
    assert caplog.messages == []


def test_a_relative_folder_is_refused_where_executors_work_elsewhere() -> None:
    refuse_unshared(settings(spark={"master": "local[2]", "checkpoint": "here"}))
    with pytest.raises(ConfigError, match=r"spark.checkpoint is the relative folder here"):
        refuse_unshared(settings(spark={"master": "local-cluster[1,1,512]", "checkpoint": "here"}))
    with pytest.raises(
        ConfigError, match=r"spark.checkpoint is the relative folder here, and spark.master is spark:"
    ):
        refuse_unshared(settings(spark={"checkpoint": "here"}))
    with pytest.raises(ConfigError, match=r"results.path is the relative folder out"):
        refuse_unshared(settings(results={"sink": "parquet", "path": "out"}))


def test_a_folder_that_all_machines_may_share_is_named(caplog: pytest.LogCaptureFixture) -> None:
    refuse_unshared(settings(spark={"checkpoint": "/shared/checkpoint"}))
    (said,) = caplog.messages
    assert said.startswith(
        "spark.checkpoint is the folder /shared/checkpoint: with spark.master spark://master:7077 it"
    )
    caplog.clear()
    refuse_unshared(settings())
    assert caplog.messages == []


@pytest.mark.parametrize("master", ["spark://master:7077", "k8s://https://api:6443"])
def test_a_driver_at_a_loopback_address_is_named_unless_the_cluster_manager_is_there_too(
    master: str, caplog: pytest.LogCaptureFixture
) -> None:
    refuse_unshared(settings(spark={"master": master, "driver_host": "127.0.0.1"}))
    assert "only from this machine" in caplog.messages[0]
    caplog.clear()
    refuse_unshared(settings(spark={"master": "spark://127.0.0.1:7077", "driver_host": "127.0.0.1"}))
    assert caplog.messages == []


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[3,1,1024]", "k8s://https://api:6443", "yarn"])
def test_where_spark_or_evenflow_makes_a_secret_nobody_is_warned_of_open_ports(
    master: str, caplog: pytest.LogCaptureFixture
) -> None:
    refuse_unshared(settings(spark={"master": master, "conf": {}}))
    assert caplog.messages == []


@pytest.mark.parametrize("driver_host", ["10.0.0.1", "127.0.0.1"])
def test_the_open_ports_of_a_standalone_cluster_are_named_with_what_is_missing(
    driver_host: str, caplog: pytest.LogCaptureFixture
) -> None:
    there = {"master": "spark://127.0.0.1:7077", "driver_host": driver_host}
    refuse_unshared(settings(spark=there | {"conf": {}}))
    (warning,) = caplog.messages
    assert "does not set spark.authenticate and spark.network.crypto.enabled to true" in warning
    assert "one secret (docs/operations/workers-and-partitions.md#who-may-speak-to-the-driver)" in warning
    caplog.clear()
    refuse_unshared(settings(spark=there | {"conf": {"spark.authenticate": "true"}}))
    (warning,) = caplog.messages
    assert "does not set spark.network.crypto.enabled to true" in warning
    caplog.clear()
    refuse_unshared(settings(spark=there))
    assert caplog.messages == []
