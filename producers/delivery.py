"""Delivers records. Records are counted per partition, no failure is ignored, and a full queue is waited for.

librdkafka reports only failures here (`delivery.report.only.error`), so that Python is not called for every
record. After a flush that leaves nothing in the queue, delivered = sent - failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message

from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings
from topics.clients import producer, seconds

_REASONS = 3  # different reasons for failures that are kept
_CHUNK = 5_000  # records between two looks at failures


class Delivery:
    """Writes to one topic. After a failure `stopped` is true, and `send` ends after the present chunk.

    partitions: of the topic. sent: records handed over, per partition, markers included.
    """

    def __init__(self, kafka: KafkaSettings, topic: str, partitions: int) -> None:
        self.topic = topic
        self.sent = np.zeros(partitions, np.int64)
        self._failed = np.zeros(partitions, np.int64)
        self._reasons: Counter[str] = Counter()
        self._patience = seconds(kafka)
        self._broken: ServiceError | None = None
        self._producer = producer(
            kafka,
            linger_ms=20,
            message_timeout_ms=max(kafka.request_timeout, 1_000),
            queue_buffering_max_messages=500_000,
            on_delivery=self._report,
            delivery_report_only_error=True,
        )

    @property
    def failed(self) -> int:
        """How many records were not delivered, as far as known."""
        return int(self._failed.sum())

    @property
    def stopped(self) -> bool:
        """Whether anything has gone wrong."""
        return self._broken is not None or bool(self._reasons)

    @property
    def reasons(self) -> list[str]:
        """The first few different reasons for failures, each with its number of records."""
        reasons = [f"{reason} ({count:,} times)" for reason, count in self._reasons.items()]
        return reasons + ([self._broken.message] if self._broken is not None else [])

    def delivered(self) -> np.ndarray:
        """Delivered records per partition (int64). Right only if the queue is empty (`flush`)."""
        return self.sent - self._failed

    def send(
        self, values: list[bytes], keys: list[bytes | None], partitions: np.ndarray, times: np.ndarray
    ) -> int:
        """Hand over records in order. Returns how many were taken, which is fewer only if something failed.

        partitions: int32. times: record timestamps (int64, ms since 1970).
        """
        produce, topic = self._producer.produce, self.topic
        total = 0
        for low in range(0, len(values), _CHUNK):
            high = min(low + _CHUNK, len(values))
            part = partitions[low:high]
            rows = zip(values[low:high], keys[low:high], part.tolist(), times[low:high].tolist(), strict=True)
            count = 0
            try:
                for value, key, partition, time in rows:
                    try:
                        # callback and on_delivery are one argument under
                        # two names: by position, both must be filled.
                        produce(topic, value, key, partition, None, None, time)
                    except BufferError:
                        self._produce_when_free(value, key, partition, time)
                    count += 1
            except KafkaException as error:
                # The refused record counts as sent, too, so that delivered = sent - failed stays right.
                self._refused(int(part[count]), error.args[0])
                count += 1
            except ServiceError as error:
                self._broken = error
            self.sent += np.bincount(part[:count], minlength=len(self.sent))
            total += count
            self.poll()
            if self.stopped:
                break
        return total

    def send_marker(self, partition: int, headers: Sequence[tuple[str, bytes]], time: int) -> None:
        """Hand over an end-of-stream marker, which counts like a record.

        time: record timestamp (ms since 1970).
        """
        self.sent[partition] += 1
        try:
            self._producer.produce(self.topic, None, None, partition, timestamp=time, headers=list(headers))
        except KafkaException as error:
            self._refused(partition, error.args[0])

    def poll(self) -> None:
        """Take in reports of failures that have come meanwhile."""
        try:
            self._producer.poll(0)
        except ServiceError as error:
            self._broken = error

    def flush(self) -> None:
        """Wait until the queue is empty. Each record is delivered or fails within request_timeout.

        After a failure, records that are still queued are given up and count as failed.
        """
        if self.stopped:
            self._flush(self._patience / 4)
            self._producer.purge()
        left = self._flush(self._patience + 5)
        if left and self._broken is None:
            self._broken = ServiceError(f"{left:,} records got no answer from the broker")

    def _flush(self, patience: float) -> int:
        try:
            return int(self._producer.flush(patience))
        except ServiceError as error:
            self._broken = error
            return len(self._producer)

    def _produce_when_free(self, value: bytes, key: bytes | None, partition: int, time: int) -> None:
        # This loop ends: librdkafka fails queued records after message.timeout.ms, which frees their places.
        while True:
            self._producer.poll(0.05)
            try:
                self._producer.produce(self.topic, value, key, partition, timestamp=time)
                return
            except BufferError:
                continue

    def _report(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._refused(message.partition() or 0, error)

    def _refused(self, partition: int, error: Any) -> None:
        self._failed[partition] += 1
        reason = f"{error.name()}: {error.str()}" if isinstance(error, KafkaError) else str(error)
        # Bounded, as the texts of errors may differ from record to record.
        if reason in self._reasons or len(self._reasons) < _REASONS:
            self._reasons[reason] += 1
