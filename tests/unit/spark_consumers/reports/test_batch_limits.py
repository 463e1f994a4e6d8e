"""What bounds a micro-batch: chosen where the settings leave it open, and said at the start."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.settings import Settings, load_settings
from evenflow.telemetry import Stage
from spark_consumers.reports.batch_limits import BatchLimits, say_limits

CORES = 3


def settings(**spark: Any) -> Settings:
    return load_settings(
        query={"name": "q"},
        input={"partitions": 2},
        partitioner={"workers": 8, "instances": 2},
        spark={"batch_interval": "5s", **spark},
    )


def said(of: Settings, stage: Stage, caplog: pytest.LogCaptureFixture) -> tuple[str, dict[str, Any]]:
    """The line of this stage, and its fields."""
    caplog.clear()
    with caplog.at_level("INFO", logger="evenflow.spark"):
        say_limits(of, stage, BatchLimits.of(of, stage, cores=CORES))
    (record,) = caplog.records
    return record.getMessage(), record.__dict__["evenflow_fields"]


def test_limits_are_those_of_the_settings_and_only_a_stage_that_combines_has_tasks_for_it() -> None:
    chosen = settings(master="local[3]")
    assert BatchLimits.of(chosen, "fused", cores=CORES) == (chosen.frames_per_batch, CORES, 2)
    assert BatchLimits.of(chosen, "combine", cores=CORES) == (chosen.frames_per_batch, CORES, None)
    assert BatchLimits.of(chosen, "reduce", cores=CORES) == (chosen.frames_per_batch, None, 2)


def test_the_start_of_a_stage_says_what_was_chosen_and_for_what(caplog: pytest.LogCaptureFixture) -> None:
    chosen = settings(master="local[3]")
    most = chosen.frames_per_batch
    line, fields = said(chosen, "fused", caplog)
    assert line == (
        f"query q, fused: a micro-batch reads at most {most:,} frames (spark.max_frames_per_batch, chosen for"
        " 8 routed partitions, partitioner.instances = 2 and micro-batches of 5 s), and at most 3 tasks"
        " combine them (spark.combine_tasks, chosen for 8 routed partitions and spark.master = local[3]);"
        " there are 2 buckets (spark.buckets, chosen for 8 workers)"
    )
    assert fields == {
        "event": "limits",
        "query": "q",
        "stage": "fused",
        "frames_per_batch": most,
        "combine_tasks": 3,
        "buckets": 2,
    }


def test_what_is_set_is_said_as_set(caplog: pytest.LogCaptureFixture) -> None:
    line, fields = said(settings(max_frames_per_batch=7_000, combine_tasks=5), "combine", caplog)
    assert line == (
        "query q, combine: a micro-batch reads at most 7,000 frames (spark.max_frames_per_batch, set), and at"
        " most 5 tasks combine them (spark.combine_tasks, set)"
    )
    assert (fields["frames_per_batch"], fields["combine_tasks"]) == (7_000, 5)


def test_a_reducer_of_its_own_says_how_many_blobs_it_reads(caplog: pytest.LogCaptureFixture) -> None:
    line, fields = said(settings(max_frames_per_batch=90, buckets=3), "reduce", caplog)
    assert line == (
        "query q, reduce: a micro-batch reads at most 90 blobs (spark.max_frames_per_batch, set); there are 3"
        " buckets (spark.buckets, set)"
    )
    assert fields["combine_tasks"] is None
