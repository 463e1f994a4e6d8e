"""Brings the records before a decompression bomb without Kafka's client, and then says that the bomb cannot be fetched.

librdkafka fetches ahead, so it would decompress the bomb while the records before it are still being read. A partition
with a bomb is therefore not assigned to it before the bomb is behind us. Its batches come one by one from aiokafka, which
decompresses a batch only when it is asked for its records.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack

from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError

from evenflow.errors import ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import KafkaSettings
from partitioner_service.fetch.fetched import Fetched
from partitioner_service.fetch.kept import KeptRecord
from topics.bombs import Bomb, bomb_in, most_grown
from topics.raw_batches import CorruptRecordException, RawBatch, RawFetch, RawReader

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 0.5
"""How long a partition rests of which nothing has come."""
_OUTAGE_SECONDS = 5.0
"""The same where Kafka does not answer."""


class Detour:
    """The partitions of this instance that lead to a bomb. bombs: by partition, whoever owns it."""

    def __init__(
        self, kafka: KafkaSettings, topic: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.bombs: Mapping[int, Bomb] = {}
        self._kafka, self._topic, self._clock = kafka, topic, clock
        self._next: dict[int, int] = {}
        self._rests: dict[int, float] = {}
        self._reader: RawReader | None = None
        self._closing = ExitStack()

    def leads(self, states: Mapping[int, PartitionState]) -> frozenset[int]:
        """Go on from these states. Returns the partitions of which librdkafka must fetch nothing."""
        around = {
            partition: state.offset
            for partition, state in states.items()
            if partition in self.bombs and state.offset <= self.bombs[partition].last
        }
        self._next, self._rests = around, {}
        if not around:
            self.close()
        return frozenset(around)

    def again(self, partitions: Collection[int], states: Mapping[int, PartitionState]) -> None:
        """Look again at what stands before these partitions."""
        for partition in partitions & self.bombs.keys():
            self._next[partition] = states[partition].offset
            self._rests.pop(partition, None)

    def fetch(self, paused: Collection[int]) -> Fetched | None:
        """The records of one batch, or the report of a bomb. None if there is nothing to read. paused: are left alone."""
        for partition, offset in self._next.items():
            if partition in paused or self._rests.get(partition, 0.0) > self._clock():
                continue
            try:
                if self._reader is None:
                    self._reader = self._closing.enter_context(RawReader(self._kafka, self._topic))
                fetched = self._reader.fetch(partition, offset)
            except ServiceError as error:  # as librdkafka does it: a broker may come back
                log.warning("%s[%d] is asked for again: %s", self._topic, partition, error)
                self.close()
                self._rests[partition] = self._clock() + _OUTAGE_SECONDS
                continue
            if fetched is None:
                return self._stopped(partition, offset, KafkaError.OFFSET_OUT_OF_RANGE, "the offset is gone")
            if fetched.batches:
                return self._taken(fetched, fetched.batches[0], partition)
            self._rests[partition] = self._clock() + _AGAIN_SECONDS
        return None

    def close(self) -> None:
        """Let go of the connection."""
        self._reader = None
        self._closing.close()

    def _taken(self, fetched: RawFetch, batch: RawBatch, partition: int) -> Fetched:
        bomb = bomb_in(batch, most_grown(self._kafka))
        if bomb is not None:
            return self._stopped(partition, bomb.first, KafkaError._BAD_COMPRESSION, bomb.why)
        try:
            records: Sequence[KeptRecord] = [
                KeptRecord(
                    place=(self._topic, partition, record.offset),
                    stamp=(TIMESTAMP_CREATE_TIME + record.timestamp_type, record.timestamp),
                    named=record.key,
                    held=record.value,
                    beside=list(record.headers) or None,
                )
                for record in fetched.records(batch, self._topic, partition)
            ]
        except CorruptRecordException as error:
            return self._stopped(partition, batch.first, KafkaError._BAD_MSG, str(error))
        self._next[partition] = batch.last + 1
        return Fetched.of(records)

    def _stopped(self, partition: int, offset: int, code: int, why: str) -> Fetched:
        """The report that nothing more can be fetched of this partition."""
        del self._next[partition]
        error = KafkaError(code, why)
        return Fetched.of([KeptRecord((self._topic, partition, offset), (0, -1), None, None, failure=error)])
