"""Kafka in a container, through testcontainers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from testcontainers.community.kafka import KafkaContainer

from tests.ground.containers.engine import Engine
from tests.ground.containers.wires import cut, slowed

pytestmark = pytest.mark.containers
_PATIENCE = 60


@pytest.fixture(scope="module")
def kafka(kafka_image: str) -> Iterator[KafkaContainer]:
    with KafkaContainer(kafka_image).with_kraft() as started:
        yield started


@pytest.fixture(scope="module")
def bootstrap(kafka: KafkaContainer) -> str:
    return str(kafka.get_bootstrap_server())


@pytest.fixture
def topic(bootstrap: str, query_name: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(query_name, 2, 1)])[query_name].result(_PATIENCE)
    return query_name


def test_a_kafka_container_takes_and_gives_a_record(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, key=b"k", value=b"v", partition=1, timestamp=7, headers=[("h", b"x")])
    assert producer.flush(_PATIENCE) == 0
    record = _first(bootstrap, topic)
    assert (record.key(), record.value(), record.partition()) == (b"k", b"v", 1)
    assert (record.timestamp()[1], record.headers()) == (7, [("h", b"x")])


def test_only_a_committed_transaction_is_read(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(_PATIENCE)
    for value, end in ((b"aborted", producer.abort_transaction), (b"kept", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value=value, partition=0)
        producer.flush(_PATIENCE)
        end(_PATIENCE)
    assert _first(bootstrap, topic).value() == b"kept"


def test_a_container_whose_cable_is_cut_does_not_answer_until_it_is_whole(
    docker_engine: Engine, kafka: KafkaContainer, bootstrap: str
) -> None:
    container = kafka.get_wrapped_container().id
    with cut(docker_engine, container), pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=3)
    assert AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=_PATIENCE).brokers


def test_a_container_whose_cable_is_slow_still_answers(
    docker_engine: Engine, kafka: KafkaContainer, bootstrap: str
) -> None:
    with slowed(docker_engine, kafka.get_wrapped_container().id, "256kbit"):
        assert AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=_PATIENCE).brokers


def _first(bootstrap: str, topic: str) -> Message:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        record = consumer.poll(_PATIENCE)
        assert record is not None, "no record came"
        assert record.error() is None
        return record
    finally:
        consumer.close()
