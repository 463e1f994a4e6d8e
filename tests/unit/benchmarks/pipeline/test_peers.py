"""The peers' environment is made once, and says why when it cannot be made."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.pipeline.rivals import flink
from evenflow.errors import ServiceError


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that were run: nothing is installed."""
    made: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        made.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir(parents=True)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", run)
    return made


def test_flink_is_installed_once_below_the_cache(calls: list[list[str]], tmp_path: Path) -> None:
    python = flink.flink_python()
    assert python == tmp_path / "evenflow" / "peers" / f"flink-{flink.VERSION}" / "bin" / "python"
    assert calls[-1][-1] == f"apache-flink=={flink.VERSION}"
    before = len(calls)
    assert flink.flink_python() == python
    assert len(calls) == before


def test_an_installation_that_broke_off_is_made_again(calls: list[list[str]], tmp_path: Path) -> None:
    half = tmp_path / "evenflow" / "peers" / f"flink-{flink.VERSION}"
    (half / "lib").mkdir(parents=True)
    flink.flink_python()
    assert not (half / "lib").exists()


def test_a_failed_installation_is_an_error_with_the_reason(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "no matching distribution")

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(ServiceError, match="no matching distribution"):
        flink.flink_python()
