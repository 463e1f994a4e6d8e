"""Records that Kafka has and has not acknowledged when their transaction is aborted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from evenflow.settings import KafkaSettings
from tests.chaos.proxy import HOST, Proxy
from tests.ground.waiting import wait_until
from topics.admin import ensure_topics
from topics.reader import read_all, read_range
from topics.state import TopicSpec
from topics.transactional import Transactional
from workbench.local.broker import EmbeddedBroker

pytestmark = pytest.mark.pipeline

PATIENCE = 20.0
BACKOFF_MS = 3_000


class Way:
    """The way to a broker, on which answers can be lost."""

    def __init__(self, proxy: Proxy, kafka: KafkaSettings) -> None:
        self.kafka = kafka
        self._proxy = proxy

    def count(self, topic: str) -> int:
        """How many records the topic has, whatever became of their transactions."""
        return sum(map(len, read_range(self.kafka, topic, isolation="read_uncommitted")))

    def bring_without_an_answer(self, producer: Producer, topic: str, value: bytes) -> None:
        """Write a record. Kafka has it, and its answer is lost."""
        before = self.count(topic)
        self._proxy.silent = True
        producer.produce(topic, value, partition=0)
        wait_until(lambda: self.count(topic) > before, "Kafka did not get the record")
        taken = self._proxy.taken
        self._proxy.cut(with_records=True)
        wait_until(lambda: self._proxy.taken > taken, "the client did not notice that it was cut off")
        self._proxy.silent = False


@pytest.fixture(scope="module")
def way() -> Iterator[Way]:
    with Proxy() as proxy:
        address = f"{HOST}:{proxy.port}"
        with EmbeddedBroker(properties={"advertised.listeners": f"CLIENT://{address}"}) as broker:
            proxy.target = broker.port
            yield Way(proxy, broker.settings(bootstrap_servers=address))


def values_after_an_abort(way: Way, topic: str, *, renew: bool) -> list[bytes | None]:
    """The committed values of a topic: one of before the abort, and one of after it."""
    ensure_topics(way.kafka, [TopicSpec(topic, 1, {})])
    client = Transactional(
        way.kafka,
        lambda: PATIENCE,
        transactional_id=topic,
        linger_ms=0,
        # So long a record waits until it is sent again, which leaves time for the abort.
        retry_backoff_ms=BACKOFF_MS,
        retry_backoff_max_ms=BACKOFF_MS,
    )
    client.producer.begin_transaction()
    client.producer.produce(topic, b"before", partition=0)
    client.producer.commit_transaction(PATIENCE)
    client.producer.begin_transaction()
    way.bring_without_an_answer(client.producer, topic, b"aborted")
    client.abort(PATIENCE)
    if renew:
        assert client.renew()
    client.producer.begin_transaction()
    client.producer.produce(topic, b"after", partition=0)
    client.producer.commit_transaction(PATIENCE)
    return [record.value() for record in read_all(way.kafka, topic)]


def test_a_record_after_an_abort_is_written_although_kafka_had_one_that_it_did_not_acknowledge(
    way: Way,
) -> None:
    assert values_after_an_abort(way, "renewed", renew=True) == [b"before", b"after"]


def test_kafkas_client_still_loses_that_record_if_it_is_used_again(way: Way) -> None:
    """If this fails, librdkafka has mended it, and `topics.transactional` may go. Or the machine was so slow
    that the client sent the record again before the abort (`BACKOFF_MS`).
    """
    assert values_after_an_abort(way, "used-again", renew=False) == [b"before"]


def test_a_client_is_replaced_after_an_abort_alone(way: Way) -> None:
    client = Transactional(way.kafka, lambda: PATIENCE, transactional_id="twice")
    first = client.producer
    assert not client.renew()
    client.producer.begin_transaction()
    client.abort(PATIENCE)
    assert client.renew()
    assert client.producer is not first
    assert not client.renew()
