"""The Java command of an executor's pod, out of what Spark's scheduler says in its environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_consumers.cluster.executor_pod import command

TOLD = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "evenflow-exec-3",
    "SPARK_EXECUTOR_MEMORY": "512m",
    **{f"SPARK_JAVA_OPT_{number}": f"-Dn={number}" for number in (10, 2, 0)},
}


def made(**more: str) -> list[str]:
    return command(TOLD | more, java="/jvm/bin/java", jars=Path("/spark/jars"), folder="/work")


def test_options_come_in_their_order_and_the_rest_says_whose_executor_it_is() -> None:
    words = made()
    assert words[:6] == ["/jvm/bin/java", "-Dn=0", "-Dn=2", "-Dn=10", "-Xms512m", "-Xmx512m"]
    assert words[6:9] == [
        "-cp",
        "/spark/jars/*:/work",
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
    ]
    assert words[9:13] == ["--driver-url", TOLD["SPARK_DRIVER_URL"], "--executor-id", "3"]
    assert words[-2:] == ["--podName", "evenflow-exec-3"]


def test_the_connector_stands_before_sparks_own_jars() -> None:
    assert "/opt/connector/*:/spark/jars/*:/work" in made(SPARK_CLASSPATH="/opt/connector/*")


def test_what_is_missing_is_named() -> None:
    with pytest.raises(KeyError, match="SPARK_DRIVER_URL"):
        command({"SPARK_EXECUTOR_MEMORY": "1g"}, java="java", jars=Path(), folder="/")
