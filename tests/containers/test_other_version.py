"""An image of another version than the one that began the query: it says so, and touches nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from evenflow import progress
from spark_consumers.checkpoints import notes as checkpoints
from tests.containers.pipeline import Pipeline
from tests.containers.test_bad_starts import SERVICES, SETTINGS, USER_ERROR
from tests.ground.containers.engine import Engine
from tests.ground.containers.product import other_version

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]

STREAM = "zipf:z=1.2,keys=500,tuples=20000,rate=500,seed=1"
REFUSALS = {
    "partitioner": f"has version {progress.STATE_VERSION}, this evenflow reads 999",
    "spark": f"has version {checkpoints.NOTE_VERSION}, this evenflow reads 999",
}


def test_another_version_is_refused_or_ignores_the_plan_and_the_one_that_began_goes_on_exactly(
    docker_engine: Engine, product: Mapping[str, str], kafka_image: str
) -> None:
    others = {f"other-{target}": other_version(docker_engine, product[target]) for target in SERVICES}
    with Pipeline(docker_engine, {**product, **others}, SETTINGS) as pipeline:
        try:
            _exchanged(pipeline, kafka_image)
        finally:
            print(pipeline.logs())


def _exchanged(pipeline: Pipeline, kafka_image: str) -> None:
    pipeline.start_kafka(kafka_image)
    _replayed(pipeline, "--no-end", STREAM)
    for target, command in SERVICES.items():
        pipeline.start(target, target, command)
    for target in SERVICES:
        pipeline.parts[target].wait_healthy()
    pipeline.verify()
    status, said = pipeline.parts["partitioner"].inside("evenflow", "plan", "--workers", "3")
    assert status == 0, said
    for target in SERVICES:
        pipeline.parts[target].container.stop(timeout=60)

    for target, refusal in REFUSALS.items():
        status, said = pipeline.run(f"other-{target}", SERVICES[target])
        assert status == USER_ERROR, said
        assert refusal in said
    other = pipeline.start("other-controller", "other-controller", "control")
    other.wait_said("this evenflow reads version 999: run one evenflow everywhere")
    other.container.stop(timeout=60)

    for target in SERVICES:
        pipeline.parts[target].container.start()
    _replayed(pipeline, STREAM)
    pipeline.verify()


def _replayed(pipeline: Pipeline, *words: str) -> None:
    status, said = pipeline.run("tools", "replay", "--live", *words)
    assert status == 0, said
