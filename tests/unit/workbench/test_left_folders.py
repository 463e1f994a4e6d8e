"""Folders of killed processes go. Those of living ones, of others and what is none stay, and nobody waits."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from workbench.left_folders import remove_left_folders, working_folder

PROGRAM = """
import signal, sys
from pathlib import Path
from workbench.left_folders import working_folder
with working_folder(Path(sys.argv[1]), "work-") as folder:
    print(folder, flush=True)
    signal.pause()
"""


def left(parent: Path, name: str) -> Path:
    """A folder as a killed process leaves it, long ago."""
    folder = parent / name
    folder.mkdir()
    (folder / "lock").touch()
    os.utime(folder / "lock", (0, 0))
    return folder


def names(parent: Path) -> set[str]:
    return {path.name for path in parent.iterdir()}


def test_a_working_folder_is_its_owner_s_alone_and_goes_at_the_end(tmp_path: Path) -> None:
    with working_folder(tmp_path, "work-") as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "rows.db").touch()
    assert names(tmp_path) == set()


def test_what_a_killed_process_left_goes_and_what_a_living_one_holds_stays(tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    with owner.stdout:
        folder = Path(owner.stdout.readline().strip())
    os.utime(folder / "lock", (0, 0))
    with working_folder(tmp_path, "work-"):
        assert folder.is_dir()
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    with working_folder(tmp_path, "work-"):
        assert not folder.exists()


def test_other_names_folders_without_a_lock_and_locks_that_are_new_stay(tmp_path: Path) -> None:
    left(tmp_path, "other-1")
    (tmp_path / "work-bare").mkdir()
    os.utime(left(tmp_path, "work-new") / "lock")
    remove_left_folders(tmp_path, "work-", lock="lock")
    assert names(tmp_path) == {"other-1", "work-bare", "work-new"}


def test_a_lock_that_somebody_holds_keeps_its_folder(tmp_path: Path) -> None:
    with (left(tmp_path, "work-1") / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        remove_left_folders(tmp_path, "work-", lock="lock")
        assert names(tmp_path) == {"work-1"}


def test_a_folder_of_another_user_is_not_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left(tmp_path, "work-1")
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    remove_left_folders(tmp_path, "work-", lock="lock")
    assert names(tmp_path) == {"work-1"}


def test_links_lead_nowhere(tmp_path: Path) -> None:
    outside = left(tmp_path, "mine")
    (tmp_path / "work-folder").symlink_to(outside)
    linked = tmp_path / "work-lock"
    linked.mkdir()
    (linked / "lock").symlink_to(outside / "lock")
    remove_left_folders(tmp_path, "work-", lock="lock")
    assert names(tmp_path) == {"mine", "work-folder", "work-lock"}


def test_a_pipe_in_place_of_a_lock_makes_nobody_wait(tmp_path: Path) -> None:
    (tmp_path / "work-1").mkdir()
    os.mkfifo(tmp_path / "work-1" / "lock")
    os.utime(tmp_path / "work-1" / "lock", (0, 0))
    removal = threading.Thread(
        target=remove_left_folders, args=(tmp_path, "work-"), kwargs={"lock": "lock"}, daemon=True
    )
    removal.start()
    removal.join(30)
    assert not removal.is_alive()
    assert names(tmp_path) == {"work-1"}
