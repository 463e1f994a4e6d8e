"""Transactional clients, none of which is used again after an abort.

A producer numbers the records of each partition. Kafka takes a record with the number of one that it has for
a repetition: it acknowledges the record and does not write it. An abort throws away what the client has not
delivered, and librdkafka (2.16, `rd_kafka_toppar_purge_queues`) then counts all of that as never sent. But
some of it may have been sent. If the connection broke before Kafka's answer, a record waits to be sent again,
and Kafka has it already. The first record of the next transaction gets its number, and is lost although its
transaction commits. Kafka compares numbers within an epoch only, and each new client of a transactional id
has a new epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer

from evenflow.settings import KafkaSettings
from topics import clients


class Transactional:
    """The client of a transactional id, and its successor after each abort.

    patience: seconds that taking over from the client before may take. config: librdkafka settings, as in
    `clients.producer`, with the transactional id. Raises what `clients.producer` raises, and KafkaException.
    """

    def __init__(self, kafka: KafkaSettings, patience: Callable[[], float], **config: Any) -> None:
        self._kafka = kafka
        self._patience = patience
        self._config = config
        self.spent = False
        """Whether the last transaction was aborted."""
        self.producer = self._successor()

    def renew(self) -> bool:
        """Replace the client if its last transaction was aborted. Returns whether it was.

        To be called before each transaction. Raises as a new object does, and may then be called again.
        """
        spent = self.spent
        if spent:
            self.producer = self._successor()
            self.spent = False
        return spent

    def abort(self, timeout: float) -> None:
        """Abort the open transaction within `timeout` s. Raises KafkaException, and then the client stays.

        A client that was fenced must not be replaced: that would take the id back.
        """
        self.producer.abort_transaction(timeout)
        self.spent = True

    def _successor(self) -> Producer:
        producer = clients.producer(self._kafka, **self._config)
        producer.init_transactions(self._patience())
        return producer
