"""A new run takes along what it needs of the run before it, while an older driver goes on writing there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ServiceError
from spark_consumers.checkpoints.run_folder import LocalFiles, remove_older, take_along
from spark_consumers.checkpoints.runs import COMPLETE, epoch_of, newest_epoch, newest_local_run, run_name

SST = "state/0/1/SSTs/9c5b.sst"


def write(top: Path, *names: str) -> None:
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(name)


def micro_batch(top: Path, number: int, *, committed: bool) -> None:
    """What Spark writes for a micro-batch, in its order."""
    write(top, f"offsets/{number}", f"offsets/.{number}.crc", f"state/0/1/{number + 1}.changelog")
    if committed:
        write(top, f"commits/{number}")


def files_in(top: Path) -> set[str]:
    return {str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A run whose micro-batches 0 and 1 are committed, and which is within micro-batch 2."""
    top = tmp_path / run_name(1)
    write(
        top,
        "metadata",
        "evenflow.json",
        "sources/0/0",
        "state/0/_metadata/v2/0",
        "state/0/1/2.zip",
        SST,
        COMPLETE,
    )
    for number in range(3):
        micro_batch(top, number, committed=number < 2)
    write(top, "offsets/.3.5f3c.tmp", "state/0/1/.4.changelog.77.tmp")
    return top


def test_the_planned_micro_batch_comes_along_and_what_it_has_done_to_the_state_does_not(old: Path) -> None:
    take_along(LocalFiles(old.parent), old.name, run_name(2))
    new = files_in(old.parent / run_name(2))
    assert {
        "offsets/2",
        "offsets/.2.crc",
        "commits/1",
        "state/0/1/2.changelog",
        "state/0/1/2.zip",
        SST,
    } <= new
    assert new == files_in(old) - {
        "state/0/1/3.changelog", "offsets/.3.5f3c.tmp", "state/0/1/.4.changelog.77.tmp", COMPLETE
    }  # fmt: skip


def test_on_one_disk_nothing_is_written_twice_and_a_file_that_is_replaced_stays_what_it_was_for_the_other(
    old: Path,
) -> None:
    take_along(LocalFiles(old.parent), old.name, run_name(2))
    new = old.parent / run_name(2)
    assert os.path.samefile(old / SST, new / SST)
    (new / "draft").write_text("new")
    (new / "draft").replace(new / "state/0/_metadata/v2/0")  # as Spark and `relocation.py` write
    assert (old / "state/0/_metadata/v2/0").read_text() == "state/0/_metadata/v2/0"


class Moving(LocalFiles):
    """An older driver that does something whenever the new one has listed a folder."""

    def __init__(self, stage: Path, does: list[Callable[[], None]]) -> None:
        super().__init__(stage)
        object.__setattr__(self, "does", does)

    def listed(self, folder: str) -> list[str]:
        result = super().listed(folder)
        if self.does:  # type: ignore[attr-defined]
            self.does.pop(0)()  # type: ignore[attr-defined]
        return result


@given(when=st.integers(0, 4), last=st.integers(2, 4))
def test_whatever_an_older_driver_commits_meanwhile_the_new_one_repeats_its_micro_batch(
    tmp_path_factory: pytest.TempPathFactory, when: int, last: int
) -> None:
    old = tmp_path_factory.mktemp("stage") / run_name(1)
    write(old, "metadata")
    for number in range(3):
        micro_batch(old, number, committed=number < 2)

    def goes_on() -> None:
        write(old, "commits/2")
        for number in range(3, last + 1):
            micro_batch(old, number, committed=True)

    take_along(Moving(old.parent, [lambda: None] * when + [goes_on]), old.name, run_name(2))
    new = files_in(old.parent / run_name(2))
    committed = max(int(Path(name).name) for name in new if name.startswith("commits/"))
    planned = max(int(Path(name).name) for name in new if name.startswith("offsets/") and ".crc" not in name)
    assert (committed, planned) == (1, 2), (
        "the micro-batch that may be final is repeated from its own offsets"
    )
    assert f"state/0/1/{committed + 1}.changelog" in new
    assert f"state/0/1/{committed + 2}.changelog" not in new


def test_when_maintenance_puts_a_snapshot_in_the_place_of_files_the_folder_is_looked_at_again(
    old: Path,
) -> None:
    def maintenance() -> None:
        (old / "state/0/1/1.changelog").unlink()
        write(old, "state/0/2/2.zip", "state/0/2/SSTs/77.sst")

    take_along(Moving(old.parent, [lambda: None, maintenance]), old.name, run_name(2))
    new = files_in(old.parent / run_name(2))
    assert {SST, "state/0/2/2.zip", "state/0/2/SSTs/77.sst"} <= new
    assert "state/0/1/1.changelog" not in new


def test_a_folder_that_never_stands_still_is_given_up(old: Path) -> None:
    class Vanishing(LocalFiles):
        def take(self, source: str, target: str) -> bool:
            return False

    with pytest.raises(ServiceError, match="vanish while they are taken along"):
        take_along(Vanishing(old.parent), old.name, run_name(2))


def test_only_a_complete_run_is_gone_on_from(tmp_path: Path) -> None:
    assert newest_local_run(tmp_path / "none") == tmp_path / "none"
    write(tmp_path, f"{run_name(7)}/{COMPLETE}", f"{run_name(12)}/offsets/1", "fused.log")
    assert newest_local_run(tmp_path) == tmp_path / run_name(7)
    assert newest_epoch(os.listdir(tmp_path)) == 12, "an epoch is never used twice"
    assert (epoch_of(run_name(1_234_567)), epoch_of("run-1"), epoch_of("offsets")) == (1_234_567, None, None)


class Disk:
    """The stage's folder as `remove_older` needs it."""

    def __init__(self, top: Path) -> None:
        self._top = top

    def names(self) -> list[str]:
        return sorted(os.listdir(self._top))

    def delete(self, name: str) -> None:
        path = self._top / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_what_a_run_began_with_stays_until_it_has_committed_and_starts_that_failed_leave_nothing(
    tmp_path: Path,
) -> None:
    write(
        tmp_path,
        "combine.log",
        *(f"{run_name(epoch)}/x" for epoch in (2, 3, 4, 5, 6)),
    )
    disk: Any = Disk(tmp_path)
    remove_older(disk, 5, keep=run_name(3))
    assert disk.names() == ["combine.log", run_name(3), run_name(5), run_name(6)], (
        "never what a newer driver has"
    )
    remove_older(disk, 5)
    assert disk.names() == ["combine.log", run_name(5), run_name(6)]
