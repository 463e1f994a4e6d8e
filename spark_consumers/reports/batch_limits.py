"""Limits of a micro-batch that the settings may leave open. The log says at the start what they are."""

from __future__ import annotations

import logging
from typing import NamedTuple

from evenflow.reporting import with_fields
from evenflow.reporting.words import span
from evenflow.settings import Settings
from evenflow.telemetry import Stage, parts_of

_LOG = logging.getLogger("evenflow.spark")


class BatchLimits(NamedTuple):
    """What bounds the micro-batches of a stage, as set or chosen."""

    frames_per_batch: int | None = None
    """Most frames (or blobs) that one reads. None if not known."""
    combine_tasks: int | None = None
    """Most tasks that combine them. None if not known, and for a stage that does not combine."""
    buckets: int | None = None
    """Buckets that reduce, so most tasks that do. None if not known, and for a stage that does not reduce."""

    @classmethod
    def of(cls, settings: Settings, stage: Stage, *, cores: int) -> BatchLimits:
        """cores: of this process, where it runs all tasks itself."""
        parts = parts_of(stage)
        tasks = settings.combine_tasks(cores) if "combine" in parts else None
        return cls(settings.frames_per_batch, tasks, settings.bucket_count if "reduce" in parts else None)


def say_limits(settings: Settings, stage: Stage, limits: BatchLimits) -> None:
    """Log the limits, and whether they are set or chosen."""
    spark, what = settings.spark, "blobs" if stage == "reduce" else "frames"
    routed = f"{settings.routed_partitions:,} routed partitions"
    why = f"chosen for {routed}, partitioner.instances = {settings.partitioner.instances} and micro-batches"
    why += f" of {span(spark.batch_interval)}"
    words = f"a micro-batch reads at most {limits.frames_per_batch:,} {what}"
    words += f" (spark.max_frames_per_batch, {why if spark.max_frames_per_batch is None else 'set'})"
    if limits.combine_tasks is not None:
        why = f"chosen for {routed} and spark.master = {spark.master}"
        words += f", and at most {limits.combine_tasks:,} tasks combine them"
        words += f" (spark.combine_tasks, {why if spark.combine_tasks is None else 'set'})"
    if limits.buckets is not None:
        why = f"chosen for {settings.max_workers:,} workers"
        words += f"; there are {limits.buckets:,} buckets"
        words += f" (spark.buckets, {why if spark.buckets is None else 'set'})"
    _LOG.info(
        "query %s, %s: %s",
        settings.query.name,
        stage,
        words,
        extra=with_fields(
            {"event": "limits", "query": settings.query.name, "stage": stage, **limits._asdict()}
        ),
    )
