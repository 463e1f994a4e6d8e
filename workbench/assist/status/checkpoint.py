"""How far the Spark stages are, by Spark's own commit files.
It needs a checkpoint that can be reached without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.settings import Settings
from spark_consumers.checkpoints.runs import COMPLETE, newest_run
from workbench.assist.status.facts import StageFacts
from workbench.query_folders import folder_at

_STAGES = ("fused", "combine", "reduce")


def stages(settings: Settings) -> Iterator[StageFacts]:
    """The stages that have a checkpoint. Raises ServiceError if an object store does not answer."""
    place = folder_at(settings, settings.query_checkpoint)
    if place is None:
        return
    for stage in _STAGES:
        names = place.names(stage)
        run = newest_run(names, lambda name, stage=stage: COMPLETE in place.names(f"{stage}/{name}"))  # type: ignore[misc]
        if run is None:
            continue
        # Spark writes the file `commits/N` once micro-batch N is done.
        commits = {
            int(info.base_name): info
            for info in place.files(f"{stage}/{run}/commits")
            if info.base_name.isdecimal()
        }
        if commits:
            newest = max(commits)
            yield StageFacts(stage=stage, batches=newest + 1, last_at=commits[newest].mtime_ns // 1_000_000)
