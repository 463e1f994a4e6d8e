"""The two ways to hand records to Kafka's client: from arrays, or by one call a record.

Both hand records over in order and tell of each that is not delivered. They differ in what they cost.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from evenflow.numeric.arrays import Int32s, Int64s
from evenflow.settings import KafkaSettings
from topics import clients
from topics.librdkafka.loaded import NotProvenError
from topics.librdkafka.producer import Handover, OnFailure, array_producer

log = logging.getLogger(__name__)

Sending = Literal["arrays", "calls"]
"""How records are handed over."""


class Writer(Protocol):
    """Hands records of one topic to Kafka's client. `topics.librdkafka.producer.ArrayProducer` is one that
    takes them from arrays.
    """

    def hand_over(
        self, values: pa.LargeBinaryArray, keys: pa.LargeBinaryArray, partitions: Int32s, times: Int64s
    ) -> Handover:
        """Hand n records over in order, up to the first that is refused. A null is a record without a value,
        or without a key.

        partitions, times (ms since 1970): shape (n,). A full queue is a refusal, `KafkaError._QUEUE_FULL`.
        """

    def hand_over_headers(self, partition: int, time: int, headers: Sequence[tuple[str, bytes]]) -> None:
        """Hand over a record of headers alone. time: ms since 1970. Raises KafkaException if it is
        refused.
        """

    def poll(self, timeout: float) -> object:
        """Tell of records that were not delivered, and wait for up to `timeout` (s) for something to tell.

        Raises ServiceError after an error that no retry heals. `flush` does so, too.
        """

    def flush(self, timeout: float) -> int:
        """Wait up to `timeout` (s) until each record is delivered or failed. Returns how many are left."""

    def purge(self) -> None:
        """Let all records fail that are not delivered yet."""

    def close(self) -> None:
        """End the client. Call `flush` before."""

    def __len__(self) -> int:
        """How many records are neither delivered nor failed."""
        ...


class Calls:
    """Calls confluent-kafka's `produce` for each record."""

    def __init__(self, client: Producer, topic: str) -> None:
        self._client, self._topic = client, topic

    def hand_over(
        self, values: pa.LargeBinaryArray, keys: pa.LargeBinaryArray, partitions: Int32s, times: Int64s
    ) -> Handover:
        """As of `Writer`."""
        produce, topic, count = self._client.produce, self._topic, 0
        columns = _list(values), _list(keys), partitions.tolist(), times.tolist()
        try:
            for value, key, partition, time in zip(*columns, strict=True):
                # callback and on_delivery are one argument under two names: by position, both must be filled.
                produce(topic, value, key, partition, None, None, time)
                count += 1
        except BufferError:
            return Handover(count, KafkaError(KafkaError._QUEUE_FULL))
        except KafkaException as error:
            return Handover(count, error.args[0])
        return Handover(count, None)

    def hand_over_headers(self, partition: int, time: int, headers: Sequence[tuple[str, bytes]]) -> None:
        """As of `Writer`."""
        self._client.produce(self._topic, None, None, partition, timestamp=time, headers=list(headers))

    def poll(self, timeout: float) -> None:
        """As of `Writer`."""
        self._client.poll(timeout)

    def flush(self, timeout: float) -> int:
        """As of `Writer`."""
        return int(self._client.flush(timeout))

    def purge(self) -> None:
        """As of `Writer`."""
        self._client.purge()

    def close(self) -> None:
        """As of `Writer`. confluent-kafka's client ends with its last reference."""
        del self._client

    def __len__(self) -> int:
        return len(self._client)


def writer_of(
    kafka: KafkaSettings, topic: str, *, sending: Sending, failed: OnFailure, **config: Any
) -> Writer:
    """The writer that `sending` names, connected: an `ArrayProducer`, or `Calls`. It is `Calls` where arrays
    are not proven, and then the log says why.

    failed: is called by `poll` and `flush` for records that were not delivered. config: librdkafka settings
    with _ in place of dots. Raises ServiceError without a broker, ConfigError for refused settings.
    """
    if sending == "arrays":
        try:
            return array_producer(kafka, topic, failed=failed, **config)
        except NotProvenError as reason:
            log.warning(
                "records are sent by one call each, which takes more CPU time: %s; see 'Sending' in "
                "docs/operations/changing-settings.md",
                reason,
            )

    def report(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed(message.partition() or 0, 1, error)

    client = clients.producer(kafka, on_delivery=report, delivery_report_only_error=True, **config)
    return Calls(client, topic)


def _list(column: pa.LargeBinaryArray) -> list[Any]:
    objects: np.ndarray = column.to_numpy(zero_copy_only=False)
    return objects.tolist()
