"""What a session is made with, without making one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evenflow.settings import Settings
from spark_consumers import archive
from spark_consumers.archive import archive_path, driver_class_path
from spark_consumers.session import GARBAGE_COLLECTOR, session_conf

_CLASS_PATH = "spark.driver.extraClassPath"


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache whose jars are not resolved anew, without any archive."""
    jars = [tmp_path / "a.jar", tmp_path / "b.jar"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(archive, "spark_kafka_jars", lambda: jars)
    monkeypatch.setattr("spark_consumers.session.spark_kafka_jars", lambda: jars)
    return tmp_path


def test_a_driver_maps_the_archive_where_there_is_one_and_starts_without_where_there_is_none(
    cache: Path,
) -> None:
    assert session_conf(Settings())["spark.driver.extraJavaOptions"] == GARBAGE_COLLECTOR
    archive_path().parent.mkdir(parents=True)
    archive_path().touch()
    assert (
        f"-XX:SharedArchiveFile={archive_path()} "
        in session_conf(Settings())["spark.driver.extraJavaOptions"]
    )


def test_another_version_of_anything_has_an_archive_of_its_own(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = {archive_path()}
    monkeypatch.setattr(archive, "spark_version", lambda: "9.9")
    paths.add(archive_path())
    monkeypatch.setattr(archive, "spark_kafka_jars", lambda: [cache / "c.jar"])
    paths.add(archive_path())
    assert len(paths) == 3


def test_the_connector_is_on_the_drivers_class_path_whatever_else_is_and_executors_elsewhere_get_it_too(
    cache: Path,
) -> None:
    jars = f"{cache}/a.jar{os.pathsep}{cache}/b.jar"
    assert driver_class_path() == jars
    conf = session_conf(Settings(spark={"conf": {_CLASS_PATH: "/mine.jar"}}))
    assert conf[_CLASS_PATH] == f"{jars}{os.pathsep}/mine.jar"
    for master in ("local", "local[2]", "local[*]"):
        assert "spark.jars" not in session_conf(Settings(spark={"master": master}))
    for master in ("local-cluster[2,1,1024]", "spark://host:7077", "k8s://host"):
        assert (
            session_conf(Settings(spark={"master": master}))["spark.jars"] == f"{cache}/a.jar,{cache}/b.jar"
        )
