"""Where checkpoints are: a place that does not depend on where a command was started."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from spark_consumers.application import run
from spark_consumers.checkpoints import refuse_unwritable


def test_the_default_is_in_the_users_state_folder_from_wherever_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    for state, folder in (
        ("/state", "/state"),
        ("", "/home/ann/.local/state"),
        (None, "/home/ann/.local/state"),
    ):
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        if state is not None:
            monkeypatch.setenv("XDG_STATE_HOME", state)
        for where in (tmp_path, Path("/")):
            monkeypatch.chdir(where)
            assert Settings().spark.checkpoint_folder == f"{folder}/evenflow/checkpoint"
    assert Settings(spark={"checkpoint": "s3a://b/c"}).spark.checkpoint_folder == "s3a://b/c"


def test_a_home_that_cannot_be_written_is_said_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="cannot be written") as caught:
        run(Settings())
    assert "spark.checkpoint" in (caught.value.hint or "")
    refuse_unwritable("s3a://bucket/folder")
    refuse_unwritable(str(tmp_path / "new" / "folder"))
    assert not list((tmp_path / "new" / "folder").iterdir())
