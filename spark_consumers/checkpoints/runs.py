"""The folders of a stage's runs: each driver works in a folder of its own,
so no two ever write the same file.

    <spark.checkpoint>/<query>/<stage>/run-<epoch>/     Spark's checkpoint and the note of `notes.py`
    <spark.checkpoint>/<query>/<stage>/run-<epoch>/complete

A run begins with all that the run before it had (`run_folder.py`). The file `complete` is written once all of
it is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

COMPLETE = "complete"
NOTE = "evenflow.json"
_NAME = re.compile(r"run-(\d{6,18})")


def run_name(epoch: int) -> str:
    """Name of the folder of the run that has this epoch."""
    return f"run-{epoch:06d}"


def epoch_of(name: str) -> int | None:
    """The epoch of the run whose folder has this name. None for any other name."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def newest_epoch(names: Iterable[str]) -> int:
    """The highest epoch of the runs among these names, whether complete or not. 0 if there is none."""
    return max((epoch_of(name) or 0 for name in names), default=0)


def newest_run(names: Collection[str], complete: Callable[[str], bool]) -> str | None:
    """Folder of the newest complete run, relative to the stage's folder. None if no run is complete.

    names: of all that lies in the stage's folder. complete: whether the run of this name is complete.
    """
    runs = sorted((epoch, name) for name in names if (epoch := epoch_of(name)) is not None)
    for _, name in reversed(runs):
        if complete(name):
            return name
    return None


def newest_local_run(stage: Path) -> Path:
    """As `newest_run`, of a stage's folder on this machine. The stage's folder itself if no run is
    complete.
    """
    names = [entry.name for entry in stage.iterdir()] if stage.is_dir() else []
    return stage / (newest_run(names, lambda name: (stage / name / COMPLETE).is_file()) or "")
