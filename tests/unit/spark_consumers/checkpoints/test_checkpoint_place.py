"""Where checkpoints are: a place that does not depend on where a command was started."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from evenflow.errors import ConfigError, ServiceError
from evenflow.settings import Settings
from spark_consumers.application import run
from spark_consumers.checkpoints import notes as checkpoints
from spark_consumers.checkpoints.notes import wait_for_room


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
    wait_for_room(Settings(spark={"checkpoint": "s3a://bucket/folder"}))
    wait_for_room(Settings(spark={"checkpoint": str(tmp_path / "new" / "folder")}))
    assert not list((tmp_path / "new" / "folder").iterdir())


def test_a_full_disk_is_waited_for_and_then_told_with_the_room_that_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = Settings(spark={"checkpoint": str(tmp_path)})

    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoints.tempfile, "TemporaryFile", full)
    with pytest.raises(ServiceError, match=rf"no space is left on a disk: .*spark.checkpoint {tmp_path} has"):
        wait_for_room(settings)
