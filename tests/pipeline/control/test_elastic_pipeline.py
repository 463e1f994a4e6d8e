"""A live pipeline that is scaled while it runs: executors of their own, workers at slide boundaries, exact
results.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evenflow import plans, telemetry
from evenflow.settings import Settings
from evenflow.wire import decode_frame
from partitioner_service.begin.prepare import prepare
from partitioner_service.plane.data_plane import DataPlane
from tests.pipeline.end_to_end import (
    Pipeline,
    Stream,
    assert_exact,
    committed,
    evenflow,
    make_settings,
    owners,
)
from tests.pipeline.planes import start_thread
from tests.pipeline.routed import records
from topics.query.plan_topic import read_plans

pytestmark = [pytest.mark.pipeline, pytest.mark.long, pytest.mark.timeout(280)]


def published(pipeline: Pipeline, *, workers: int, reducers: int) -> plans.Plan:
    """By hand, as a person would."""
    words = ("plan", "--workers", str(workers), "--reducers", str(reducers))
    child = evenflow(pipeline.file, pipeline.folder / "plan.log", *words)
    assert child.wait(60) == 0, child.output()
    plan = read_plans(pipeline.settings)[-1]
    assert (plan.p, plan.r) == (workers, reducers)
    return plan


def newest(settings: Settings, kind: str) -> Any:
    """The newest record of a kind of part: a partitioner instance, or what Spark said last."""
    kinds = {"partitioner": ("partitioner",), "spark": ("batch", "heartbeat")}[kind]
    result = None
    for message in records(settings, "telemetry"):
        record = telemetry.parse(message.value())
        if record.kind in kinds:
            result = record
    return result


def test_executors_go_1_3_1_and_workers_4_8_4_while_one_of_two_instances_reads_the_plans_late(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        partitioner={"workers": 4, "routed_partitions": 8, "instances": 2},
        spark={
            "master": "local-cluster[3,1,1024]",
            "buckets": 3,
            "reducers": 1,
            "partitions_per_slot": 4,
            "batch_interval": 500,
        },
    )
    stream = Stream(settings)
    # The second instance lives here, without the agent that reads plans: it is told of them when this test
    # says so.
    late = settings.model_copy(
        update={"partitioner": settings.partitioner.model_copy(update={"instance": "1"})}
    )
    plane = DataPlane(prepare(late))
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("aggregate", "--until-ended")
        pipeline.start("partition", "--instance", "0")
        thread, errors = start_thread(plane)
        stream.write(40)
        pipeline.wait_until(lambda: committed(settings) > 0)
        pipeline.wait_until(lambda: owners(settings) == [2, 2])

        def executors() -> int | None:
            stream.write(40)
            assert not errors, errors
            return getattr(newest(settings, "spark"), "executors", None)

        pipeline.wait_until(lambda: executors() == 1)
        told = 0
        for workers, reducers, wanted in ((8, 3, 3), (4, 1, 1)):
            plan = published(pipeline, workers=workers, reducers=reducers)
            pipeline.wait_until(lambda wanted=wanted: executors() == wanted)  # type: ignore[misc]
            assert plane.status()["plan_epoch"] == told, "the late instance must not know yet"
            stream.write(300)
            record = records(settings, "plan")[-1]
            plane.offer(record.offset(), record.value())
            told = plan.epoch

            def followed(epoch: int = plan.epoch) -> bool:
                stream.write(40)
                assert not errors, errors
                return bool(plane.status()["plan_epoch"] == epoch)

            pipeline.wait_until(followed)
            stream.write(300)
        stream.end()
        pipeline.wait_until(lambda: all(s["ended"] for s in plane.status()["assignment"].values()))
        pipeline.wait_until(lambda: not pipeline.running["aggregate"].alive or errors, timeout=120)
        plane.stop()
        thread.join(30)
        assert not errors, errors
        pipeline.stop("partition")
        pipeline.finish()
    assert_exact(stream)
    by_epoch: dict[int, Counter[int]] = {}
    for message in records(settings, "routed"):
        frame = decode_frame(message.value(), fingerprint=settings.fingerprint)
        by_epoch.setdefault(frame.header.epoch, Counter())[message.partition()] += frame.batch.num_rows
    used = {epoch: {worker for worker, n in counts.items() if n} for epoch, counts in by_epoch.items()}
    assert used[0] <= set(range(4))
    assert used[1] == set(range(8))
    assert used[2] <= set(range(4))


def test_an_executor_in_reserve_is_there_though_no_plan_asks_for_it_and_results_are_exact(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        partitioner={"workers": 4, "routed_partitions": 8},
        spark={
            "master": "local-cluster[2,1,1024]",
            "buckets": 1,
            "partitions_per_slot": 4,
            "reserve_executors": 1,
            "batch_interval": 500,
        },
    )
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        application = pipeline.start("aggregate", "--until-ended")
        pipeline.start("partition")

        def executors() -> int | None:
            stream.write(40)
            return getattr(newest(settings, "spark"), "executors", None)

        pipeline.wait_until(lambda: executors() == 2)
        stream.end()
        pipeline.wait_until(lambda: not pipeline.running["aggregate"].alive, timeout=120)
        pipeline.stop("partition")
        pipeline.finish()
        assert "the settings want 2 executors of 1 cores, 1 of them in reserve" in application.output()
    assert_exact(stream)


@pytest.mark.timeout(560)  # on a slow machine a micro-batch of the overload alone takes a minute
def test_a_controller_scales_a_pipeline_that_a_spike_overloads_and_all_results_are_exact(
    tmp_path: Path,
) -> None:
    child = evenflow(
        None,
        tmp_path / "demo.log",
        *("demo", "--control", "prompt-plus:d=2,proportional=true,max_step=2", "--seconds", "75", "--json"),
        *("--profile", "spike:base=1000,peak=2200,at=15s,for=60s"),
    )
    assert child.wait(480) == 0, child.output()
    result = json.loads(child.output().splitlines()[-1])
    assert result["differences"] == 0
    assert result["actions"] >= 1
    assert result["plans"][0]["p"] > 2
    assert result["provenance"]["policy_options"]["proportional"] is True
    # Not by micro-batches: those that were under way when an executor came may last until the end.
    assert result["most_executors"] > 1
