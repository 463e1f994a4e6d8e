"""Jars are those of the list, or they are refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from benchmarks.pipeline.rivals.flink import CONNECTOR
from evenflow.errors import ServiceError
from spark_consumers.jars import hashes as jar_hashes
from spark_consumers.jars.fetch import cache_dir, resolve, spark_kafka_jars
from spark_consumers.jars.hashes import check, folder_hashes, listed_hashes
from tests.ground.kubernetes.definitions import STRIMZI
from tests.unit.spark_consumers.jars.test_jars import Home
from workbench.local.broker_jars import kafka_broker_jars


def _listed(files: dict[str, bytes]) -> str:
    return "".join(f"{hashlib.sha256(text).hexdigest()}  a_b_1/{name}\n" for name, text in files.items())


@pytest.mark.parametrize(
    ("files", "wrong"),
    [
        ({"b-1.jar": b"jar", "c-2.jar": b"changed"}, "c-2.jar"),
        ({"b-1.jar": b"jar"}, "c-2.jar"),
        ({"b-1.jar": b"jar", "c-2.jar": b"other", "d-3.jar": b""}, "d-3.jar"),
    ],
)
def test_a_set_with_a_changed_a_further_or_a_missing_jar_is_refused_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], wrong: str
) -> None:
    Home(tmp_path, monkeypatch)
    (tmp_path / "list").write_text(_listed(files))
    monkeypatch.setattr(jar_hashes, "LIST", tmp_path / "list")
    with pytest.raises(ServiceError, match=rf"SHA-256: {wrong}\n"):
        resolve("a", "b", "1")
    assert not (cache_dir() / "jars" / "a_b_1").exists()


def test_a_set_that_is_as_listed_is_taken_and_one_that_is_not_listed_only_if_somebody_asks_for_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Home(tmp_path, monkeypatch)
    (tmp_path / "list").write_text(_listed({"b-1.jar": b"jar", "c-2.jar": b"other"}))
    monkeypatch.setattr(jar_hashes, "LIST", tmp_path / "list")
    assert len(resolve("a", "b", "1")) == 2
    assert capsys.readouterr().err == ""
    with pytest.raises(ServiceError, match="no SHA-256 of the jars of a_b_2 is known") as refused:
        resolve("a", "b", "2")
    assert "EVENFLOW_UNLISTED_JARS=1" in (refused.value.hint or "")
    assert not (cache_dir() / "jars" / "a_b_2").exists()
    monkeypatch.setenv("EVENFLOW_UNLISTED_JARS", "1")
    assert len(resolve("a", "b", "2")) == 2
    assert "no SHA-256 of a_b_2 is known" in capsys.readouterr().err


def test_a_caller_with_sets_of_its_own_lists_them_in_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Home(tmp_path, monkeypatch)
    own = tmp_path / "own"
    own.write_text(_listed({"b-1.jar": b"jar", "c-2.jar": b"other"}))
    assert len(resolve("a", "b", "1", manifest=own)) == 2
    own.write_text(_listed({"b-1.jar": b"jar", "c-2.jar": b"changed"}).replace("a_b_1", "a_b_2"))
    with pytest.raises(ServiceError, match=r"SHA-256: c-2\.jar\n"):
        resolve("a", "b", "2", manifest=own)


def test_the_sets_of_benchmarks_and_tests_are_listed() -> None:
    root = Path(__file__).parents[4]
    flink = listed_hashes(root / "benchmarks/pipeline/rivals/jars.sha256")
    assert list(flink) == ["_".join(CONNECTOR)]
    (strimzi,) = listed_hashes(root / "tests/ground/jars.sha256")
    version = STRIMZI.version
    assert strimzi == f"io.strimzi_api_{version}+io.strimzi_crd-generator_{version}"


def test_every_jar_of_the_set_up_is_listed_with_its_hash() -> None:
    known = listed_hashes()
    for one in (spark_kafka_jars()[0].parent, kafka_broker_jars()[0].parent):
        assert check(one, one.name, known), "run `python -m spark_consumers.jars.hashes --write`"
        assert folder_hashes(one) == known[one.name]
