"""The package examples/plugin in the images that its Dockerfile makes: every service knows its names."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.containers.pipeline import Pipeline
from tests.ground.containers.engine import Engine
from tests.ground.containers.product import own_images

pytestmark = [pytest.mark.containers, pytest.mark.more, pytest.mark.timeout(600)]

SETTINGS = {
    "query__name": "own",
    "query__key": "key",
    "query__time": "time",
    "query__window": "20s",
    "query__slide": "5s",
    "query__aggregates": '{"n": "count", "spread": "spread(value, 900)", "middle": "geometric_mean(value)"}',
    "input__partitions": "2",
    "kafka__bootstrap_servers": "kafka:9092",
    "partitioner__name": "turnstile",
    "partitioner__options": '{"turns": 2}',
    "partitioner__workers": "3",
    "results__sink": "folders",
    "results__path": "/var/lib/evenflow/rows",
    "spark__checkpoint": "/var/lib/evenflow/checkpoint",
    "spark__driver_memory": "768m",
    "spark__buckets": "2",
    "control__policy": "patient",
}
STREAM = "zipf:z=1.2,keys=200,tuples=10000,rate=250,seed=1"
SERVICES = {"partitioner": "partition", "spark": "aggregate", "controller": "control"}


def test_a_partitioner_aggregates_a_policy_and_a_sink_of_a_package_are_exact_in_containers(
    docker_engine: Engine, product: Mapping[str, str], kafka_image: str
) -> None:
    images = own_images(docker_engine, product)
    # verify reads what the sink wrote, so it gets the volume, too.
    with Pipeline(docker_engine, images, SETTINGS, with_volume=("spark", "tools")) as pipeline:
        try:
            _exact(pipeline, kafka_image)
        finally:
            print(pipeline.logs())


def _exact(pipeline: Pipeline, kafka_image: str) -> None:
    pipeline.start_kafka(kafka_image)
    status, said = pipeline.run("tools", "replay", STREAM)
    assert status == 0, said
    for target, command in SERVICES.items():
        pipeline.start(target, target, command)
    for target in SERVICES:
        pipeline.parts[target].wait_healthy()
    pipeline.verify("--ended")
    _, listed = pipeline.run("tools", "policies")
    assert "patient" in listed
