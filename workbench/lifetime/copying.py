"""Copies a topic into another one, record by record: same partitions, order, keys, values,
headers and timestamps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaException, Message, Producer

from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings
from topics import clients, reader
from topics.admin import describe
from topics.records import Record


class Copier:
    """Copies committed records within one broker. progress: called with the number of records so far."""

    def __init__(self, kafka: KafkaSettings, *, progress: Callable[[int], None]) -> None:
        self._kafka = kafka
        self._producer: Producer = clients.producer(kafka)
        self._refused: list[str] = []
        self._progress = progress
        self._records = 0

    def copy(
        self, source: str, target: str, *, predicate: Callable[[Record], bool] = lambda message: True
    ) -> None:
        """Append the wanted records of `source` to the empty topic `target`, and check that all are there.

        Raises ServiceError if the broker refuses a record, or if the copy is not complete.
        """
        sent: Counter[int] = Counter()
        for messages in reader.read_range(self._kafka, source):
            for message in filter(predicate, messages):
                self._send(message, target)
                sent[message.partition()] += 1
            self._records += len(messages)
            self._progress(self._records)
        clients.flush(self._producer, self._kafka)
        if self._refused:
            raise ServiceError(f"a record of {source} was not accepted in {target}: {self._refused[0]}")
        ends = describe(self._kafka, [target])[target].end
        if any(end != sent[partition] for partition, end in ends.items()):
            raise ServiceError(
                f"{target} holds {sum(ends.values())} records, but {sent.total()} were copied from {source}",
                hint="does something else write to it? run it again",
            )

    def _send(self, message: Record, target: str) -> None:
        record: dict[str, Any] = {"value": message.value(), "key": message.key()}
        record |= {"headers": message.headers() or [], "partition": message.partition()}
        kind, stamp = message.timestamp()
        if kind != TIMESTAMP_NOT_AVAILABLE and stamp >= 0:
            record["timestamp"] = stamp  # without it librdkafka takes the clock's time
        while True:
            try:
                self._producer.produce(target, on_delivery=self._note, **record)
                break
            except BufferError:
                self._producer.poll(0.1)  # librdkafka's queue is full, and empties as records are delivered
            except KafkaException as error:
                raise clients.service_error(error, self._kafka, f"writing to {target}") from None
        self._producer.poll(0)

    def _note(self, error: Any, message: Message) -> None:
        if error is not None:
            self._refused.append(str(error))
