import hashlib
import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evenflow.errors import ConfigError, ServiceError
from spark_consumers.jars import fetch as jars
from spark_consumers.jars import hashes
from spark_consumers.jars.fetch import Coordinate, cache_dir, java_command, resolve
from workbench.local.broker_jars import kafka_broker_jars

FAKE_JAVA = """#!{python} -S
import pathlib, sys
counter = pathlib.Path({counter!r})
counter.open("a").write("run\\n")
if {fails}:
    print(":: unresolved dependency: a#b;1: not found")
    sys.exit(1)
pattern = sys.argv[sys.argv.index("-retrieve") + 1]
folder = pathlib.Path(pattern.split("/[")[0])
folder.mkdir(parents=True)
(folder / "b-1.jar").write_text("jar")
(folder / "c-2.jar").write_text("other")
"""


class Home:
    """A JAVA_HOME whose java plays Ivy, a cache of its own, and a list of what that Ivy brings."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, *, fails: bool = False) -> None:
        self.counter = folder / "runs"
        java = folder / "java" / "bin" / "java"
        java.parent.mkdir(parents=True, exist_ok=True)
        java.write_text(FAKE_JAVA.format(python=sys.executable, counter=str(self.counter), fails=fails))
        java.chmod(java.stat().st_mode | stat.S_IXUSR)
        patch.setenv("JAVA_HOME", str(folder / "java"))
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        (folder / "jars.sha256").write_text(
            "".join(
                f"{hashlib.sha256(text).hexdigest()}  {name}/{jar}\n"
                for name in ("a_b_1", "a_b_1+x_y_2")
                for jar, text in (("b-1.jar", b"jar"), ("c-2.jar", b"other"))
            )
        )
        patch.setattr(hashes, "LIST", folder / "jars.sha256")

    @property
    def runs(self) -> int:
        return len(self.counter.read_text().splitlines()) if self.counter.exists() else 0


def test_jars_are_resolved_once_and_then_come_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path, monkeypatch)
    first = resolve("a", "b", "1", "x:y:2")
    assert [jar.name for jar in first] == ["b-1.jar", "c-2.jar"]
    assert first[0].parent == cache_dir() / "jars" / "a_b_1+x_y_2"
    assert resolve("a", "b", "1", "x:y:2") == first
    assert home.runs == 1


def test_an_earlier_resolve_that_broke_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path, monkeypatch)
    folder = cache_dir() / "jars" / "a_b_1"
    (folder.parent / "a_b_1.partial-dead").mkdir(parents=True)
    folder.mkdir()
    (folder / "b-1.jar").write_text("ja")
    (folder / "resolved.json").write_text(json.dumps({"b-1.jar": 3, "c-2.jar": 5}))
    assert [jar.read_text() for jar in resolve("a", "b", "1")] == ["jar", "other"]
    assert home.runs == 1
    assert not list(folder.parent.glob("*.partial-*"))


def test_concurrent_first_uses_resolve_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path, monkeypatch)
    with ThreadPoolExecutor(6) as pool:
        result = list(pool.map(lambda _: resolve("a", "b", "1"), range(6)))
    assert all(one == result[0] for one in result)
    assert home.runs == 1


def test_what_cannot_be_resolved_says_what_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Home(tmp_path, monkeypatch, fails=True)
    with pytest.raises(ServiceError, match="unresolved dependency: a#b;1") as caught:
        resolve("a", "b", "1")
    assert "network" in (caught.value.hint or "")
    assert [path.name for path in (cache_dir() / "jars").iterdir()] == ["a_b_1.lock"]


def test_no_java_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ServiceError, match="Java is missing") as caught:
        java_command()
    assert "Java 17" in (caught.value.hint or "")


def test_a_cache_that_cannot_be_written_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Home(tmp_path, monkeypatch)
    (tmp_path / "cache").touch()
    with pytest.raises(ServiceError, match="cannot be written"):
        resolve("a", "b", "1")


def test_a_coordinate_has_three_parts() -> None:
    assert str(Coordinate.parse("a.b:c-d_2.13:1.0")) == "a.b:c-d_2.13:1.0"
    for text in ("a:b", "a:b:c:d", "a::c", 'a:b:"'):
        with pytest.raises(ConfigError):
            Coordinate.parse(text)


def test_the_connector_is_that_of_the_installed_pyspark_and_brings_nothing_that_it_ships() -> None:
    names = [jar.name for jar in jars.spark_kafka_jars()]
    assert f"spark-sql-kafka-0-10_2.13-{jars.spark_version()}.jar" in names
    assert any(name.startswith("kafka-clients-") for name in names)
    assert not any(name.startswith(("scala-library", "snappy-java", "slf4j")) for name in names)


def test_each_set_has_the_continued_lz4_in_place_of_the_old_one() -> None:
    _, name, version = jars.LZ4.split(":")
    for result in (jars.spark_kafka_jars(), kafka_broker_jars()):
        assert [jar.name for jar in result if "lz4" in jar.name] == [f"{name}-{version}.jar"]


def test_a_dependency_of_a_fixed_version_is_asked_for_in_this_version() -> None:
    text = jars._ivy_module([Coordinate("a", "b", "1")], ["org.old"], [Coordinate("c", "d", "2")])
    assert '<exclude org="org.old" module="*"/><override org="c" module="d" rev="2"/></dependencies>' in text


def test_the_broker_has_every_codec_and_a_logger() -> None:
    names = [jar.name for jar in kafka_broker_jars()]
    for wanted in ("kafka_2.13-", "snappy-java-", "lz4-java-", "zstd-jni-", "slf4j-simple-"):
        assert any(name.startswith(wanted) for name in names), wanted
    assert not any("sources" in name or "javadoc" in name for name in names)


def test_resolving_by_hand_reports_to_standard_error(tmp_path: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "spark_consumers.jars.fetch"],
        env=environment,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[4],
    )
    assert done.returncode == 2
    assert "Java is missing" in done.stderr


def test_an_unknown_set_of_jars_is_refused_with_the_sets_that_there_are() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "spark_consumers.jars.fetch", "connectors"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[4],
    )
    assert done.returncode == 2
    assert "no set of jars is called 'connectors'; did you mean 'connector'" in done.stderr
    assert "python -m workbench.local.broker_jars" in done.stderr
