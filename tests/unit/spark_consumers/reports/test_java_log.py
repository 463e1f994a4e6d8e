"""Where Spark's own log lies, and that it stays small."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from pyspark import SparkContext

from evenflow.errors import ServiceError
from evenflow.settings import load_settings
from spark_consumers.reports import java_log
from spark_consumers.reports.java_log import JavaLog, log_file, open_log


def test_it_lies_in_the_users_state_folder_or_with_the_checkpoints(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    for checkpoint, place in (
        (None, "/state/evenflow/log/q-reduce.log"),
        ("hdfs://name/here", "/state/evenflow/log/q-reduce.log"),
        ("/volume/checkpoint", "/volume/checkpoint/q/reduce.log"),
    ):
        settings = load_settings(query={"name": "q"}, spark={"checkpoint": checkpoint})
        assert str(log_file(settings, "reduce")) == place


def test_what_java_prints_is_turned_over_before_it_is_large(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(java_log, "_MOST_BYTES", 10_000)
    log = JavaLog(tmp_path / "deep" / "q.log")
    read, write = os.pipe()
    with os.fdopen(write, "wb") as java:
        java.write(b"WARN \xff again\n" * 4_000)
    log._copy(read)
    sizes = [file.stat().st_size for file in (tmp_path / "deep").iterdir()]
    assert len(sizes) == 3
    assert max(sizes) <= 10_000
    assert "WARN \ufffd again" in log.path.read_text()


def test_a_folder_that_cannot_be_written_is_said_and_all_goes_to_the_terminal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        assert open_log(tmp_path / "file" / "q.log") is None
    assert "cannot be written" in caplog.text


def test_a_java_that_does_not_start_is_an_error_that_says_what_java_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    monkeypatch.setattr(JavaLog, "_take_warnings", lambda self: None)
    log = JavaLog(tmp_path / "q.log")
    with pytest.raises(ServiceError, match="no-java/bin/java") as caught:
        log.launch({"spark.app.name": "none"})
    assert str(log.path) in (caught.value.hint or "")
    assert capfd.readouterr().err == "", "it went to the file"
