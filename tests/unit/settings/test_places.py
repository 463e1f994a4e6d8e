"""Folders and files that services make are for their owner alone."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenflow.settings.places import private_file, private_folder
from spark_consumers.reports.java_log import JavaLog
from workbench.local.processes import ChildProcess


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def open_mask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A user whose files everybody may read and write."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    before = os.umask(0)
    yield
    os.umask(before)


def test_missing_folders_are_made_for_their_owner_alone_and_others_stay(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    private_folder(shared / "a" / "b")
    assert [mode(one) for one in (shared, shared / "a", shared / "a" / "b")] == [0o755, 0o700, 0o700]


def test_the_state_folder_is_closed_even_if_an_older_evenflow_left_it_open(tmp_path: Path) -> None:
    own = tmp_path / "state" / "evenflow"
    own.mkdir(parents=True)
    own.chmod(0o755)
    private_folder(own / "checkpoint")
    assert mode(own) == 0o700


def test_a_state_folder_of_another_user_such_as_the_root_of_a_volume_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "state" / "evenflow"
    own.mkdir(parents=True)
    own.chmod(0o775)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    private_folder(own / "checkpoint")
    assert (mode(own), mode(own / "checkpoint")) == (0o775, 0o700)


def test_a_log_that_was_open_to_others_is_closed_and_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text("before\n")
    file.chmod(0o644)
    with open(file, "a", opener=private_file) as log:
        log.write("after\n")
    assert (mode(file), file.read_text()) == (0o600, "before\nafter\n")


def test_sparks_log_and_its_older_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    log = JavaLog(tmp_path / "log" / "q-aggregate.log")
    assert (mode(log.path.parent), mode(log.path)) == (0o700, 0o600)
    log._handler.emit(logging.makeLogRecord({"msg": "a line"}))
    log._handler.doRollover()
    assert {mode(file) for file in log.path.parent.iterdir()} == {0o600}
    log._handler.close()


def test_the_log_of_a_child_is_for_its_owner_alone(tmp_path: Path) -> None:
    child = ChildProcess(["true"], log=tmp_path / "log" / "child.log")
    assert child.wait(30) == 0
    assert (mode(child.log.parent), mode(child.log)) == (0o700, 0o600)
