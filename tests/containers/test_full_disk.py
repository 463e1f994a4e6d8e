"""The volume of the checkpoint is full: the Spark container says so, and goes on exactly once there is
room.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.containers.pipeline import CHECKPOINTS, Pipeline
from tests.containers.test_bad_starts import SETTINGS
from tests.ground.containers.engine import Engine

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]

STREAM = ("--live", "--rate", "300", "zipf:z=1.2,keys=2000,tuples=10000000,rate=300,seed=1")
LAST_OF_IT = ("--live", "zipf:z=1.2,keys=2000,tuples=1000,rate=300,seed=2")
BALLAST = f"{CHECKPOINTS}/ballast"


def test_a_checkpoint_without_room_stops_spark_with_the_reason_and_it_goes_on_exactly(
    docker_engine: Engine, product: Mapping[str, str], kafka_image: str
) -> None:
    with Pipeline(docker_engine, product, SETTINGS, room="40m") as pipeline:
        try:
            _fill_and_empty(pipeline, kafka_image)
        finally:
            print(pipeline.logs())


def _fill_and_empty(pipeline: Pipeline, kafka_image: str) -> None:
    holder = pipeline.hold_volume()
    pipeline.start_kafka(kafka_image)
    pipeline.start("replay", "tools", "replay", *STREAM)
    pipeline.start("partitioner", "partitioner", "partition")
    spark = pipeline.start("spark", "spark", "aggregate")
    spark.wait_healthy()
    pipeline.verify()

    holder.inside("sh", "-c", f"cat /dev/zero > {BALLAST}")
    spark.wait_said("fused stopped: no space is left on a disk")
    spark.wait_said("the checkpoint: no space is left on a disk")
    assert "Logging error" not in spark.said()
    holder.inside("rm", BALLAST)

    spark.wait_healthy()
    pipeline.verify()
    pipeline.parts["replay"].container.stop(timeout=60)
    status, said = pipeline.run("tools", "replay", *LAST_OF_IT)
    assert status == 0, said
    pipeline.verify("--ended")
