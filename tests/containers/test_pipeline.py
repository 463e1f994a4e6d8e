"""The pipeline's images against Kafka in a container, while containers are killed, paused, cut off and
slowed.

One pipeline takes all faults in a row, on a stream that runs meanwhile. Behind each fault every window that
is due is compared with a direct aggregation; behind the last one the stream ends, and all are.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.containers.pipeline import KILLED, PATIENCE, Part, Pipeline
from tests.ground.containers.engine import Engine
from tests.ground.containers.wires import cut, slowed
from tests.ground.waiting import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

SETTINGS = {
    "query__name": "faults",
    "query__key": "key",
    "query__time": "time",
    "query__window": "20s",
    "query__slide": "5s",
    "query__out_of_orderness": "2s",
    "input__partitions": "4",
    "kafka__bootstrap_servers": "kafka:9092",
    "kafka__startup_wait": "10m",
    "partitioner__workers": "4",
    "partitioner__routed_partitions": "12",
    "partitioner__instances": "2",
    "spark__wiring": "split",
    "spark__checkpoint": "/var/lib/evenflow/checkpoint",
    "spark__driver_memory": "768m",
    "control__group": "5",
}
SERVICES = ("partitioner-0", "partitioner-1", "spark", "controller")
STREAM = ("--rate", "500", "zipf:z=1.4,keys=2000,tuples=10000000,rate=500,seed=1,disorder=100ms")
SLOW = "1mbit"
LAST_OF_IT = ("--rate", "1000", "zipf:z=1.4,keys=2000,tuples=5000,rate=1000,seed=2")


@pytest.fixture(scope="module")
def whole(docker_engine: Engine, product: dict[str, str], kafka_image: str) -> Iterator[Pipeline]:
    """All parts are healthy, and a stream runs."""
    with Pipeline(docker_engine, product, SETTINGS) as made:
        made.start_kafka(kafka_image)
        made.start("replay", "tools", "replay", "--live", *STREAM)
        for number in ("partitioner-0", "partitioner-1"):
            made.start(number, "partitioner", "partition", partitioner__instance=number)
        made.start("spark", "spark", "aggregate")
        made.start("controller", "controller", "control")
        yield made


@pytest.fixture
def pipeline(whole: Pipeline) -> Iterator[Pipeline]:
    """Before and behind each test all parts are healthy, and the stream runs. A test that fails shows
    their logs.
    """
    _wait_until_healthy(whole)
    yield whole
    print(whole.logs())


def _wait_until_healthy(pipeline: Pipeline) -> None:
    for name in SERVICES:
        pipeline.parts[name].wait_healthy()
    assert pipeline.parts["replay"].state["Running"], "the stream has ended too early to show anything"


def _still_exact(pipeline: Pipeline) -> None:
    _wait_until_healthy(pipeline)
    pipeline.verify()


def _owned(part: Part) -> int:
    """Input partitions that an instance reads."""
    return len(part.page("/status/").get("assignment", {}))


def _wait_for_the_takeover(part: Part) -> None:
    wait_until(lambda: _owned(part) == 4, f"{part.name} does not take over", patience=PATIENCE)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("partitioner-0", marks=pytest.mark.more),
        "spark",
        "controller",
        "kafka",
    ],
)
def test_a_container_that_is_killed_goes_on_where_it_was(pipeline: Pipeline, name: str) -> None:
    part = pipeline.parts[name]
    part.kill()
    assert part.exit_status == KILLED
    part.container.start()
    _still_exact(pipeline)


def test_a_partitioner_that_is_paused_for_longer_than_its_session_routes_nothing_twice(
    pipeline: Pipeline,
) -> None:
    with pipeline.parts["partitioner-0"].paused():
        _wait_for_the_takeover(pipeline.parts["partitioner-1"])
    wait_until(
        lambda: _owned(pipeline.parts["partitioner-0"]) > 0,
        "who was paused gets no input any more",
        patience=PATIENCE,
    )
    _still_exact(pipeline)


def test_a_paused_broker_holds_all_up_and_nothing_is_lost(pipeline: Pipeline) -> None:
    partitioner, kafka = pipeline.parts["partitioner-0"], pipeline.parts["kafka"]
    with kafka.paused():
        wait_until(
            lambda: partitioner.page("/status/").get("seconds_since_progress", 0) > 12,
            "nobody waits for the broker",
            patience=PATIENCE,
        )
    _still_exact(pipeline)


def test_a_partitioner_without_network_leaves_its_input_to_the_other_one(pipeline: Pipeline) -> None:
    with cut(pipeline.engine, pipeline.parts["partitioner-0"].container.id):
        _wait_for_the_takeover(pipeline.parts["partitioner-1"])
    _still_exact(pipeline)


@pytest.mark.parametrize("name", ["spark", "kafka"])
def test_a_container_whose_network_is_cut_goes_on_once_it_is_whole(pipeline: Pipeline, name: str) -> None:
    asked = pipeline.parts["spark" if name == "spark" else "partitioner-0"]
    assert asked.reaches("kafka", 9092)
    with cut(pipeline.engine, pipeline.parts[name].container.id):
        for _ in range(5):
            assert not asked.reaches("kafka", 9092)
    _still_exact(pipeline)


def test_a_slow_network_in_both_directions_makes_nothing_wrong(pipeline: Pipeline) -> None:
    spark, kafka = (pipeline.parts[name].container.id for name in ("spark", "kafka"))
    with slowed(pipeline.engine, spark, SLOW) as to_spark, slowed(pipeline.engine, kafka, SLOW) as to_kafka:
        for waits in (to_spark, to_kafka):
            wait_until(lambda waits=waits: waits() > 20, "nothing had to wait", patience=PATIENCE)
        pipeline.verify()
    _still_exact(pipeline)


def test_every_service_stops_in_mid_stream_with_status_0_and_goes_on(pipeline: Pipeline) -> None:
    for name in SERVICES:
        pipeline.parts[name].container.stop(timeout=60)
    assert {name: pipeline.parts[name].exit_status for name in SERVICES} == dict.fromkeys(SERVICES, 0)
    for name in SERVICES:
        pipeline.parts[name].container.start()
    _still_exact(pipeline)


@pytest.mark.more
def test_behind_all_faults_every_window_of_the_stream_is_exact(pipeline: Pipeline) -> None:
    pipeline.parts["replay"].container.stop(timeout=60)
    status, said = pipeline.run("tools", "replay", "--live", *LAST_OF_IT)
    assert status == 0, said
    pipeline.verify("--ended")
