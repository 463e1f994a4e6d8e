"""What a session is given for a checkpoint in an object store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenflow.errors import ConfigError, ServiceError
from evenflow.settings import Settings
from spark_consumers.jars import object_store
from spark_consumers.jars.object_store import application_jars, store_conf
from spark_consumers.session import session_conf

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_PROVIDER = "spark.hadoop.fs.s3a.aws.credentials.provider"


@pytest.fixture(autouse=True)
def jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that a test needs, not resolved."""
    monkeypatch.delenv("AWS_WEB_IDENTITY_TOKEN_FILE", raising=False)
    monkeypatch.setattr(object_store, "spark_kafka_jars", lambda: [Path("/kafka.jar")])
    monkeypatch.setattr(object_store, "s3_jars", lambda: [Path("/s3.jar")])


def _settings(checkpoint: str, **spark: Any) -> Settings:
    return Settings.model_validate({"spark": {"checkpoint": checkpoint} | spark})


def test_only_what_is_in_an_object_store_needs_its_jars() -> None:
    assert application_jars(_settings("/local")) == [Path("/kafka.jar")]
    assert application_jars(_settings("hdfs://host/x")) == [Path("/kafka.jar")]
    assert application_jars(_settings("s3a://b/x")) == [Path("/kafka.jar"), Path("/s3.jar")]
    assert session_conf(_settings("s3a://b"))["spark.driver.extraClassPath"] == "/kafka.jar:/s3.jar"
    assert session_conf(_settings("s3a://b", master="k8s://h"))["spark.jars"] == "/kafka.jar,/s3.jar"


def test_files_of_a_checkpoint_are_renamed_into_place_and_the_manager_that_hides_failures_is_refused() -> (
    None
):
    assert "FileSystemBased" in session_conf(_settings("/local"))[_MANAGER]
    assert "FileContextBased" in session_conf(_settings("s3a://b"))[_MANAGER]
    hiding = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
    with pytest.raises(ConfigError, match=r"AbortableStreamBased\w+ is refused"):
        session_conf(_settings("s3a://b", conf={_MANAGER: hiding}))


def test_a_web_identity_is_taken_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _PROVIDER not in store_conf(_settings("s3a://b"))
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/token")
    assert "WebIdentityTokenFile" in store_conf(_settings("s3a://b"))[_PROVIDER]
    assert not store_conf(_settings("/local"))


def test_a_scheme_that_hadoop_does_not_know_and_missing_jars_say_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigError, match="write s3a://b/x"):
        application_jars(_settings("s3://b/x"))

    def missing() -> list[Path]:
        raise ServiceError("the cache folder cannot be written")

    monkeypatch.setattr(object_store, "s3_jars", missing)
    with pytest.raises(ServiceError, match="CLOUD=s3"):
        application_jars(_settings("s3a://b/x"))
