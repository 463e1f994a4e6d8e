"""How far a batch reaches that cannot be fetched, as a plain consumer of this machine finds out.

A consumer is told where such a batch begins, and not where it ends. It is asked for later offsets until it
gets something else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings
from topics.clients import consumer, seconds, service_error
from topics.records import UNFETCHABLE, Record

_STEP_SECONDS = 0.2
_NOTHING_THERE = frozenset(
    {KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}
)
_PASSING = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT})


@dataclass(frozen=True)
class BadBatch:
    """A batch that cannot be fetched."""

    first: int
    """First offset of the batch, as Kafka's client reports it."""
    last: int
    """Last offset of the batch, or of the partition's records if that is earlier."""
    why: str
    """What Kafka's client says."""


def bad_batch(kafka: KafkaSettings, topic: str, partition: int, offset: int, *, end: int) -> BadBatch | None:
    """The batch that holds this offset and cannot be fetched, from its first offset on.
    None if nothing is wrong.

    end: offset behind the last record of the partition. Raises ServiceError if the broker does not answer.
    """
    with _probe(kafka, topic, partition) as probe:
        error = probe.at(offset)
        if error is None or error.first > offset:
            return None
        low, high, step = offset, end, 1  # `low` is in the batch, `high` is behind it
        while low + step < high:
            if probe.within(error, low + step):
                low, step = low + step, 2 * step
            else:
                high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if probe.within(error, middle) else (low, middle)
        return BadBatch(error.first, low, error.why)


@contextmanager
def _probe(kafka: KafkaSettings, topic: str, partition: int) -> Iterator[_Probe]:
    reader = consumer(
        kafka,
        group=f"evenflow-probe-{uuid4()}",
        enable_partition_eof=True,
        queued_min_messages=1,
        fetch_error_backoff_ms=50,
    )
    try:
        yield _Probe(reader, kafka, topic, partition)
    finally:
        reader.close()


@dataclass(frozen=True)
class _Report:
    first: int
    """First offset of the batch that cannot be fetched."""
    code: int
    """Kafka's error code."""
    why: str
    """What Kafka's client says."""


class _Probe:
    """Asks for single offsets of a partition."""

    def __init__(self, reader: Consumer, kafka: KafkaSettings, topic: str, partition: int) -> None:
        self._reader, self._kafka, self._topic, self._partition = reader, kafka, topic, partition

    def within(self, error: _Report, offset: int) -> bool:
        """Whether this offset cannot be fetched because of the same batch."""
        now = self.at(offset)
        return now is not None and now.code == error.code and now.first == error.first

    def at(self, offset: int) -> _Report | None:
        """Why the record at this offset, or the next one behind it, cannot be fetched. None if it can."""
        deadline = time.monotonic() + seconds(self._kafka)
        self._reader.assign([TopicPartition(self._topic, self._partition, offset)])
        while time.monotonic() < deadline:
            try:
                messages = cast(list[Record], self._reader.consume(1, timeout=_STEP_SECONDS))
            except KafkaException as error:
                raise service_error(error, self._kafka, f"reading {self._topic}") from None
            for message in messages:
                report = message.error()
                if report is None or report.code() in _NOTHING_THERE:
                    return None
                if report.code() in UNFETCHABLE:
                    return _Report(message.offset(), report.code(), report.str())
                if not report.retriable() and report.code() not in _PASSING:
                    raise service_error(report, self._kafka, f"reading {self._topic}")
        raise ServiceError(
            f"offset {offset} of {self._topic}[{self._partition}] was not answered within"
            f" {seconds(self._kafka):g} s",
            hint="is the broker up?",
        )
