"""Delivers records. Records are counted per partition, no failure is ignored, and a full queue is waited for.

librdkafka reports only failures here (`delivery.report.only.error`), so that Python is not called for every
record. After a flush that leaves nothing in the queue, delivered = sent - failed. How records come to
librdkafka is for `writers`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from evenflow.errors import ServiceError
from evenflow.numeric.arrays import Int32s, Int64s
from evenflow.settings import KafkaSettings
from producers.writers import Calls, Sending, writer_of
from topics.clients import seconds

_REASONS = 3  # different reasons for failures that are kept
_CHUNK = 5_000  # records between two looks at failures
_WAIT = 0.05
"""Seconds until the next try while the queue is full."""


class Delivery:
    """Writes to one topic. After a failure `stopped` is true, and `send` ends after the present chunk.

    partitions: of the topic. sending: how records are handed over; the attribute says how they are. sent:
    records handed over, per partition, markers included.
    """

    def __init__(
        self, kafka: KafkaSettings, topic: str, partitions: int, *, sending: Sending = "arrays"
    ) -> None:
        self.topic = topic
        self.sent = np.zeros(partitions, np.int64)
        self._failed = np.zeros(partitions, np.int64)
        self._reasons: Counter[str] = Counter()
        self._patience = seconds(kafka)
        self._broken: ServiceError | None = None
        self._writer = writer_of(
            kafka,
            topic,
            sending=sending,
            failed=self._refused,
            linger_ms=20,
            message_timeout_ms=max(kafka.request_timeout, 1_000),
            queue_buffering_max_messages=500_000,
        )
        self.sending: Sending = "calls" if isinstance(self._writer, Calls) else "arrays"

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
        self, values: pa.LargeBinaryArray, keys: pa.LargeBinaryArray, partitions: Int32s, times: Int64s
    ) -> int:
        """Hand over n records in order. Returns how many were taken, which is fewer only if something failed.

        values, keys: null for none. partitions, times (record timestamps, ms since 1970): shape (n,).
        """
        total = 0
        for low in range(0, len(values), _CHUNK):
            chunk = slice(low, low + _CHUNK)
            part = partitions[chunk]
            count = self._hand_over(values[chunk], keys[chunk], part, times[chunk])
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
            self._writer.hand_over_headers(partition, time, headers)
        except KafkaException as error:
            self._refused(partition, 1, error.args[0])

    def poll(self) -> None:
        """Take in reports of failures that have come meanwhile."""
        try:
            self._writer.poll(0)
        except ServiceError as error:
            self._broken = error

    def flush(self) -> None:
        """Wait until the queue is empty. Each record is delivered or fails within request_timeout.

        After a failure, records that are still queued are given up and count as failed.
        """
        if self.stopped:
            self._flush(self._patience / 4)
            self._writer.purge()
        left = self._flush(self._patience + 5)
        if left and self._broken is None:
            self._broken = ServiceError(f"{left:,} records got no answer from the broker")

    def close(self) -> None:
        """End the client. Call `flush` before."""
        self._writer.close()

    def _flush(self, patience: float) -> int:
        deadline = time.monotonic() + patience
        while True:
            try:
                return self._writer.flush(max(0.0, deadline - time.monotonic()))
            except ServiceError as error:
                # Failures of records may stand behind the error, and count.
                self._broken = error
                if time.monotonic() >= deadline:
                    return len(self._writer)

    def _hand_over(
        self, values: pa.LargeBinaryArray, keys: pa.LargeBinaryArray, partitions: Int32s, times: Int64s
    ) -> int:
        """Hand over records in order, and wait while the queue is full. Returns how many count as sent."""
        count = 0
        # This loop ends: librdkafka fails queued records after message.timeout.ms, which frees their places.
        while True:
            taken, refusal = self._writer.hand_over(
                values[count:], keys[count:], partitions[count:], times[count:]
            )
            count += taken
            if refusal is None:
                return count
            if refusal.code() != KafkaError._QUEUE_FULL:
                # The refused record counts as sent, too, so that delivered = sent - failed stays right.
                self._refused(int(partitions[count]), 1, refusal)
                return count + 1
            try:
                self._writer.poll(_WAIT)
            except ServiceError as error:
                self._broken = error
                return count

    def _refused(self, partition: int, count: int, error: Any) -> None:
        self._failed[partition] += count
        reason = f"{error.name()}: {error.str()}" if isinstance(error, KafkaError) else str(error)
        # Bounded, as the texts of errors may differ from record to record.
        if reason in self._reasons or len(self._reasons) < _REASONS:
            self._reasons[reason] += count
