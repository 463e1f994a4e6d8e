"""What a session is made with, without making one."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from evenflow.settings import Settings
from spark_consumers.jars import archive
from spark_consumers.jars.archive import archive_path, driver_class_path
from spark_consumers.session import GARBAGE_COLLECTOR, launch_conf, session_conf

_CLASS_PATH = "spark.driver.extraClassPath"


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache whose jars are not resolved anew, without any archive."""
    jars = [tmp_path / "a.jar", tmp_path / "b.jar"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(archive, "spark_kafka_jars", lambda: jars)
    monkeypatch.setattr("spark_consumers.jars.object_store.spark_kafka_jars", lambda: jars)
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


def test_executors_map_the_archive_where_their_class_path_is_the_drivers(cache: Path) -> None:
    archive_path().parent.mkdir(parents=True)
    archive_path().touch()

    def java_options(**spark: object) -> str:
        return session_conf(Settings.model_validate({"spark": spark}))["spark.executor.extraJavaOptions"]

    assert f"-XX:SharedArchiveFile={archive_path()} " in java_options(master="local-cluster[2,1,1024]")
    assert java_options(master="local-cluster[2,1,1024]", executor_jars="/jars/*") == GARBAGE_COLLECTOR
    assert java_options(master="spark://127.0.0.1:7077") == GARBAGE_COLLECTOR


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
        assert not {name for name in _conf(master=master) if "jars" in name or "spark.executor.c" in name}
    for master in ("spark://host:7077", "k8s://host"):
        assert _conf(master=master)["spark.jars"] == f"{cache}/a.jar,{cache}/b.jar"
    assert "spark.jars" not in _conf(master="local-cluster[2,1,1024]"), "its executors see the driver's files"
    assert _conf(master="local-cluster[2,1,1024]")["spark.executor.extraClassPath"] == jars
    given = _conf(master="k8s://host", executor_jars="/opt/jars/*")
    assert given["spark.executor.extraClassPath"] == "/opt/jars/*"
    assert "spark.jars" not in given


def test_what_assumes_one_machine_is_a_setting(cache: Path) -> None:
    assert _conf()["spark.driver.host"] == _conf()["spark.driver.bindAddress"] == "127.0.0.1"
    assert _conf(master="k8s://host")["spark.pyspark.python"] == sys.executable
    assert _conf()["spark.python.daemon.module"] == "spark_consumers.workers.daemon"
    conf = _conf(
        driver_host="driver.example",
        driver_bind_address="0.0.0.0",
        executor_python="/opt/python",
        preloading_daemon=False,
    )
    assert (conf["spark.driver.host"], conf["spark.driver.bindAddress"]) == ("driver.example", "0.0.0.0")
    assert conf["spark.pyspark.python"] == "/opt/python"
    assert conf["spark.pyspark.driver.python"] == sys.executable
    assert "spark.python.daemon.module" not in conf


def test_an_application_begins_with_what_the_settings_ask_for_and_takes_no_more_than_a_plan_could(
    cache: Path,
) -> None:
    conf = _conf(master="spark://host:7077", buckets=4, reducers=2, executor_cores=2, executor_memory="3g")
    assert conf["spark.executor.instances"] == "1"
    assert conf["spark.cores.max"] == "4"
    assert (conf["spark.executor.cores"], conf["spark.executor.memory"]) == ("2", "3g")
    assert _conf(master="spark://host:7077", conf={"spark.cores.max": "9"})["spark.cores.max"] == "9"


def _conf(**spark: Any) -> dict[str, str]:
    return session_conf(Settings(spark=spark))


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local-cluster[2,1,1024]"])
def test_a_driver_without_a_cluster_lets_nobody_speak_to_it_without_a_secret(master: str) -> None:
    conf = _conf(master=master)
    assert conf["spark.authenticate"] == "true"
    assert "spark.network.crypto.enabled" not in conf


@pytest.mark.parametrize("master", ["k8s://https://api:6443", "yarn"])
def test_where_spark_hands_its_secret_to_executors_all_authenticate_and_encrypt(
    cache: Path, master: str
) -> None:
    conf = _conf(master=master)
    assert {name: value for name, value in conf.items() if "auth" in name or "crypto" in name} == {
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.authEngineVersion": "2",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    }
    unencrypted = _conf(master=master, conf={"spark.network.crypto.enabled": "false"})
    assert unencrypted["spark.authenticate"] == "true"
    assert unencrypted["spark.network.crypto.enabled"] == "false"
    # Spark would refuse to encrypt without.
    open_to_all = _conf(master=master, conf={"spark.authenticate": " False "})
    assert "spark.network.crypto.enabled" not in open_to_all


def test_a_standalone_cluster_has_the_secret_that_its_operator_gives_to_all_or_none(cache: Path) -> None:
    # Spark makes none there, and would not start without one.
    assert "spark.authenticate" not in _conf(master="spark://host:7077")
    theirs = {"spark.authenticate": "true", "spark.authenticate.secret": "x"}
    assert theirs.items() <= _conf(master="spark://host:7077", conf=theirs).items()


def test_executors_of_the_drivers_own_get_another_secret_each_time_and_none_by_their_command_line() -> None:
    confs = [_conf(master="local-cluster[2,1,1024]") for _ in range(2)]
    secrets = {conf["spark.authenticate.secret"] for conf in confs}
    assert len(secrets) == 2
    assert "spark.authenticate.secret" not in launch_conf(confs[0])


@pytest.mark.parametrize(
    ("name", "ours", "users"),
    [("authEngineVersion", "2", "1"), ("cipher", "AES/GCM/NoPadding", "AES/CTR/NoPadding")],
)
def test_connections_have_the_newer_exchange_of_keys_and_a_cipher_that_notices_changes_unless_told_otherwise(
    name: str, ours: str, users: str
) -> None:
    name = f"spark.network.crypto.{name}"
    assert session_conf(Settings())[name] == ours
    assert session_conf(Settings(spark={"conf": {name: users}}))[name] == users


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.session.token",
        "spark.hadoop.fs.azure.account.key.x.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.fixed.token.x",
        "spark.hadoop.fs.azure.sas.container.x.blob.core.windows.net",
        "spark.hadoop.fs.gs.auth.service.account.private.key",
        "spark.hadoop.javax.jdo.option.ConnectionPassword",
        "spark.hadoop.hadoop.security.credential.provider.path",
        "spark.ssl.keyPassword",
        "spark.ssl.keyStorePassword",
        "spark.authenticate.secret",
        "spark.kafka.sasl.jaas.config",
        "spark.hadoop.passwd",
        "spark.hadoop.pwd",
        "spark.hadoop.mail.auth.pass",
        "spark.hadoop.fs.s3a.encryption.key",
        "spark.hadoop.fs.s3a.server-side-encryption.key",
        "spark.hadoop.fs.s3a.bucket.b.encryption.key",
        "spark.hadoop.fs.s3a.bucket.b.server-side-encryption.key",
        "spark.hadoop.fs.gs.encryption.key",
        "spark.hadoop.fs.azure.encryption.encoded.client-provided-key",
        "spark.hadoop.fs.azure.encryption.encoded.client-provided-key.x.dfs.core.windows.net",
        "spark.hadoop.parquet.encryption.key.list",
    ],
)
def test_no_setting_that_may_hold_a_secret_is_a_word_of_a_command_line(name: str) -> None:
    assert launch_conf({name: "canary", "spark.master": "local"}) == {"spark.master": "local"}
    fetching = {"spark.master": "local", "spark.jars": "s3a://b/a.jar"}
    assert launch_conf({name: "canary"} | fetching) == fetching
    assert re.search(session_conf(Settings())["spark.redaction.regex"], name)


@pytest.mark.parametrize("jars", ["hdfs:/x.jar", "/a.jar, s3a://b/x.jar", "https://host/x.jar"])
def test_a_store_from_which_jars_come_is_known_when_java_starts(jars: str) -> None:
    store = {"spark.hadoop.fs.defaultFS": "hdfs://host"}
    assert launch_conf({"spark.jars": jars} | store) == {"spark.jars": jars} | store
    for own in ("/a.jar,local:/b.jar", "file:///a.jar", "file:/a.jar"):
        assert launch_conf({"spark.jars": own} | store) == {"spark.jars": own}


def test_a_setting_that_java_does_not_need_at_its_start_is_no_word_of_a_command_line() -> None:
    late = {"spark.hadoop.of.mine": "canary", "spark.mine": "canary", "spark.executorEnv.MINE": "canary"}
    conf = {
        "spark.master": "yarn",
        "spark.app.name": "evenflow q",
        "spark.driver.memory": "1g",
        "spark.driver.extraClassPath": "/a.jar",
        "spark.jars": "/a.jar",
        "spark.jars.packages": "a:b:1",
        "spark.submit.deployMode": "client",
        "spark.kerberos.keytab": "/keytab",
        "spark.hadoop.hadoop.security.authentication": "kerberos",
        "spark.hadoop.fs.file.impl": "a.Class",
    }
    assert launch_conf(conf | late) == conf


@pytest.mark.parametrize(
    ("jars", "needed"), [("/a.jar,file:///b.jar", False), ("/a.jar,s3a://b/c.jar", True)]
)
def test_java_knows_the_store_from_which_it_fetches_jars(jars: str, needed: bool) -> None:
    conf = {"spark.jars": jars, "spark.hadoop.fs.s3a.endpoint": "http://store"}
    assert ("spark.hadoop.fs.s3a.endpoint" in launch_conf(conf)) is needed


def test_modes_are_set_without_a_process_where_everybody_has_the_drivers_class_path(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "spark.hadoop.fs.file.impl"
    own = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
    assert [_conf(master=master).get(name) for master in ("local[2]", "local-cluster[2,1,1024]")] == [own] * 2
    assert name not in _conf(master="local-cluster[2,1,1024]", executor_jars="/jars/*")
    assert name not in _conf(master="spark://host:7077")
    assert name not in _conf(master="local[2]", checkpoint="s3a://bucket/x")
    assert _conf(master="local[2]", conf={name: "mine"})[name] == "mine"
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # as with spark-submit
    assert name not in _conf(master="local[2]")
