"""How far the Spark stages are, by Spark's own commit files, where the checkpoint can be reached without Spark."""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.settings import Settings
from workbench.status.facts import StageFacts
from workbench.stored import stored

_STAGES = ("fused", "combine", "reduce")


def stages(settings: Settings) -> Iterator[StageFacts]:
    """The stages that have a checkpoint there. Raises ServiceError when an object store does not answer."""
    place = stored(settings, settings.query_checkpoint)
    if place is None:
        return
    for stage in _STAGES:
        commits = {
            int(info.base_name): info
            for info in place.files(f"{stage}/commits")
            if info.base_name.isdecimal()
        }
        if commits:
            newest = max(commits)
            yield StageFacts(stage=stage, batches=newest + 1, last_at=commits[newest].mtime_ns // 1_000_000)
