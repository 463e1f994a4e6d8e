"""How far the Spark stages are, by Spark's own commit files, where the checkpoint is a folder of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evenflow.settings import Settings
from evenflow.settings.places import local_folder
from workbench.status.facts import StageFacts

_STAGES = ("fused", "combine", "reduce")


def stages(settings: Settings) -> Iterator[StageFacts]:
    """The stages that have a checkpoint here."""
    folder = local_folder(settings.query_checkpoint)
    if folder is None:
        return
    for stage in _STAGES:
        commits = folder / stage / "commits"
        numbers = [int(name) for name in _names(commits) if name.isdecimal()]
        if numbers:
            newest = commits / str(max(numbers))
            yield StageFacts(stage=stage, batches=max(numbers) + 1, last_at=_written_at(newest))


def _names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []


def _written_at(file: Path) -> int | None:
    try:
        return round(file.stat().st_mtime * 1000)
    except FileNotFoundError:  # Spark has just tidied up
        return None
