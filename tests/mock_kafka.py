"""librdkafka's own mock of a broker, in this process: real consumers and producers, without a real Kafka."""

from __future__ import annotations

import ctypes
import time
from itertools import count
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from partitioner_service.fetch.librdkafka import Librdkafka
from topics.librdkafka.loaded import library_path

TOPIC = "in"
CLIENT = "me-1"
PATIENCE = 20.0
_HEADER = 16
_PRODUCE = 0
"""Kafka's number of the request that brings records."""


class MockKafka:
    """A broker with the topic `TOPIC`. Close `producer` last: the broker lives in it."""

    def __init__(self, partitions: int) -> None:
        self._groups = count()
        self.producer = Producer({"bootstrap.servers": "none:1", "test.mock.num.brokers": 1, "log_level": 0})
        library: Any = ctypes.CDLL(str(library_path()))
        pointer, number = ctypes.c_void_p, ctypes.c_int
        library.rd_kafka_handle_mock_cluster.restype = pointer
        library.rd_kafka_handle_mock_cluster.argtypes = [pointer]
        library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        library.rd_kafka_mock_cluster_bootstraps.argtypes = [pointer]
        library.rd_kafka_mock_topic_create.argtypes = [pointer, ctypes.c_char_p, number, number]
        handle = pointer.from_address(id(self.producer) + _HEADER).value
        cluster = library.rd_kafka_handle_mock_cluster(handle)
        self.servers = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()
        assert not library.rd_kafka_mock_topic_create(cluster, TOPIC.encode(), partitions, 1)
        library.rd_kafka_mock_push_request_errors_array.argtypes = [pointer, number, ctypes.c_size_t, pointer]
        library.rd_kafka_mock_topic_set_error.argtypes = [pointer, ctypes.c_char_p, number]
        library.rd_kafka_mock_broker_set_down.argtypes = [pointer, ctypes.c_int32]
        self._library, self._cluster = library, cluster

    def refuse(self, code: int, *, times: int) -> None:
        """Answer the next requests that bring records with this error of Kafka's."""
        errors = (ctypes.c_int * times)(*[code] * times)
        self._library.rd_kafka_mock_push_request_errors_array(self._cluster, _PRODUCE, times, errors)

    def lose_topic(self) -> None:
        """Know nothing of the topic any more."""
        code = KafkaError.UNKNOWN_TOPIC_OR_PART
        self._library.rd_kafka_mock_topic_set_error(self._cluster, TOPIC.encode(), code)

    def stand_still(self) -> None:
        """Take no connection any more, for good."""
        assert not self._library.rd_kafka_mock_broker_set_down(self._cluster, 1)

    def consumer(self, **more: Any) -> Consumer:
        """A consumer with the settings of the data plane's that matter here."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.servers,
            "group.id": f"g{next(self._groups)}",  # the mock takes long to forget a member of a group
            "client.id": CLIENT,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
            "partition.assignment.strategy": "range",
        }
        return Consumer(config | more)


class TopicReader:
    """Reads what comes to the topic from now on."""

    def __init__(self, kafka: MockKafka, partitions: int) -> None:
        self._partitions = partitions
        self._consumer = kafka.consumer(**{"enable.partition.eof": False})
        places = [TopicPartition(TOPIC, partition) for partition in range(partitions)]
        for place in places:
            place.offset = self._consumer.get_watermark_offsets(place, timeout=PATIENCE)[1]
        self._consumer.assign(places)

    def read(self, count: int) -> dict[int, list[Any]]:
        """So many records by partition: value, key, timestamp and headers."""
        deadline, result = time.monotonic() + PATIENCE, 0
        rows: dict[int, list[Any]] = {partition: [] for partition in range(self._partitions)}
        while result < count:
            assert time.monotonic() < deadline, rows
            for record in self._consumer.consume(count - result, 0.1):
                assert record.error() is None
                stamp = record.timestamp()[1]
                rows[record.partition()].append((record.value(), record.key(), stamp, record.headers()))
                result += 1
        assert not self._consumer.consume(1, 0), "more records than were handed over"
        return rows

    def close(self) -> None:
        """Let go of the consumer."""
        self._consumer.close()


def library_of(consumer: Consumer) -> Librdkafka:
    """The library with the handle of this consumer."""
    return Librdkafka(consumer, CLIENT)
