"""What stands in the way of a start, for the images: each service says what is wrong, and what it waits
for it waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.containers.pipeline import Pipeline
from tests.ground.containers.engine import Engine
from tests.ground.waiting import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]

SERVICES = {"partitioner": "partition", "spark": "aggregate", "controller": "control"}
SETTINGS = {
    "query__name": "starts",
    "query__key": "key",
    "query__time": "time",
    "query__window": "20s",
    "query__slide": "5s",
    "input__partitions": "2",
    "kafka__bootstrap_servers": "kafka:9092",
    "spark__checkpoint": "/var/lib/evenflow/checkpoint",
    "spark__driver_memory": "768m",
}
STREAM = "zipf:z=1.2,keys=500,tuples=20000,rate=500,seed=1"
USER_ERROR = 2


@pytest.fixture
def pipeline(docker_engine: Engine, product: Mapping[str, str]) -> Iterator[Pipeline]:
    """Nothing runs yet."""
    with Pipeline(docker_engine, product, SETTINGS) as made:
        yield made
        print(made.logs())


def test_services_that_start_before_kafka_say_so_wait_and_then_become_healthy(
    pipeline: Pipeline, kafka_image: str
) -> None:
    started = [
        pipeline.start(target, target, command, kafka__startup_wait="10m", kafka__request_timeout="3s")
        for target, command in SERVICES.items()
    ]
    for service in started:
        wait_until(
            lambda service=service: service.said().count("not ready to start, trying again") >= 2,
            f"{service.name} does not say that it waits",
            patience=120,
        )
        assert service.health != "healthy"
    pipeline.start_kafka(kafka_image)
    status, said = pipeline.run("tools", "replay", STREAM)
    assert status == 0, said
    for service in started:
        service.wait_healthy()
        assert service.restarts == 0
    pipeline.verify()


@pytest.mark.parametrize("target", SERVICES)
def test_a_broker_that_nobody_knows_is_named_at_the_end_of_the_wait(pipeline: Pipeline, target: str) -> None:
    wrong = {"kafka__bootstrap_servers": "kafak:9092", "kafka__request_timeout": "2s"}
    status, said = pipeline.run(target, SERVICES[target], **wrong)
    assert status == USER_ERROR
    assert "no broker answers within 2 s at kafak:9092" in said


@pytest.mark.parametrize("target", SERVICES)
def test_a_settings_file_that_was_not_mounted_is_named(pipeline: Pipeline, target: str) -> None:
    status, said = pipeline.run(target, "--config", "/etc/evenflow/evenflow.toml", SERVICES[target])
    assert status == USER_ERROR
    assert "there is no settings file /etc/evenflow/evenflow.toml" in said


def test_a_folder_that_docker_made_for_a_missing_file_is_named(pipeline: Pipeline) -> None:
    status, said = pipeline.run("partitioner", "--config", "/etc/evenflow", "partition")
    assert status == USER_ERROR
    assert "the settings file /etc/evenflow is a folder" in said


@pytest.mark.parametrize("target", SERVICES)
def test_a_password_that_is_missing_is_named(pipeline: Pipeline, target: str) -> None:
    login = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "ann"}
    given = {f"kafka__{name}": value for name, value in login.items()}
    status, said = pipeline.run(target, SERVICES[target], **given)
    assert status == USER_ERROR
    assert "SASL_SSL lacks sasl_password" in said


@pytest.mark.parametrize("target", SERVICES)
def test_a_certificate_that_is_missing_is_named_and_not_waited_for(pipeline: Pipeline, target: str) -> None:
    given = {"security_protocol": "SSL", "ssl_ca": "/run/secrets/ca.pem", "startup_wait": "10m"}
    status, said = pipeline.run(
        target, SERVICES[target], **{f"kafka__{name}": value for name, value in given.items()}
    )
    assert status == USER_ERROR
    assert "kafka.ssl_ca: /run/secrets/ca.pem cannot be read" in said
