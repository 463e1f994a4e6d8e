"""Batches of a partition as they stand in the log, compressed. Kafka's clients hand out records only, decompressed.

Format: Kafka's record batch, version 2 (magic 2). Older formats have no batches here: they are passed over.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.errors import CorruptRecordException, KafkaError, OffsetOutOfRangeError, for_code
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import ConsumerRecord, TopicPartition

from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings
from topics.aiokafka_login import client_words

_HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length of what follows it, leader epoch, magic, checksum, attributes, last offset's delta, ..., records."""
_FRONT = struct.Struct(">qi")
_CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_WAIT_MS = 100


@dataclass(frozen=True)
class RawBatch:
    """A batch. first, last: its offsets. codec: name of its compression, None for none. data: the whole batch."""

    first: int
    last: int
    codec: str | None
    data: bytes

    @property
    def compressed(self) -> memoryview:
        """Its records, compressed by `codec`."""
        return memoryview(self.data)[_HEADER.size :]


@dataclass(frozen=True)
class RawFetch:
    """What one fetch brought. aborted: (producer id, first offset) of aborted transactions among the batches."""

    batches: Sequence[RawBatch]
    aborted: Sequence[tuple[int, int]]

    def records(self, batch: RawBatch, topic: str, partition: int) -> Iterator[ConsumerRecord]:
        """The records of a batch, none if they were aborted or mark the end of a transaction.

        Decompresses the batch, whatever it grows into. Raises CorruptRecordException if its checksum is wrong.
        """
        yield from PartitionRecords(
            TopicPartition(topic, partition), MemoryRecords(batch.data), list(self.aborted), batch.first,
            key_deserializer=None, value_deserializer=None, check_crcs=True, isolation_level=READ_COMMITTED,
        )  # fmt: skip


class RawReader:
    """Fetches batches of a topic, as a context manager.

    Entering and fetching raise ServiceError if Kafka does not answer.
    """

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._kafka, self._topic = kafka, topic

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        try:
            self._client = self._runner.run(self._open())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._runner.run(self._client.close())
        finally:
            self._runner.close()

    def fetch(self, partition: int, offset: int, *, most: int = 1) -> RawFetch | None:
        """The batches from the one on that holds this offset, committed ones alone. None if the offset is gone.

        most: bytes. The first batch comes whole, however large it is.
        """
        try:
            return self._runner.run(asyncio.wait_for(self._fetch(partition, offset, most), self._seconds))
        except OffsetOutOfRangeError:
            return None
        except (KafkaError, OSError, TimeoutError) as error:
            raise self._refused(error) from None

    @property
    def _seconds(self) -> float:
        return self._kafka.request_timeout / 1000

    async def _open(self) -> Any:
        try:
            client = AIOKafkaClient(
                **client_words(self._kafka),
                client_id="evenflow-raw",
                request_timeout_ms=self._kafka.request_timeout,
            )
            await asyncio.wait_for(client.bootstrap(), self._seconds)
            await asyncio.wait_for(client.set_topics([self._topic]), self._seconds)
        except (KafkaError, OSError, TimeoutError) as error:
            raise self._refused(error) from None
        return client

    async def _fetch(self, partition: int, offset: int, most: int) -> RawFetch:
        place = TopicPartition(self._topic, partition)
        node = self._client.cluster.leader_for_partition(place)
        while node is None or node == -1 or not await self._client.ready(node):
            await asyncio.sleep(0.1)  # an election, or a leader that has moved
            await self._client.force_metadata_update()
            node = self._client.cluster.leader_for_partition(place)
        request = FetchRequest(
            _WAIT_MS, 1, max(most, 1), READ_COMMITTED, [(self._topic, [(partition, offset, max(most, 1))])]
        )
        answer = await self._client.send(node, request)
        ((_, ((_, code, *rest),)),) = answer.topics
        if code:
            raise for_code(code)()
        # From version 4 of the protocol on: what is stable, what is aborted; the batches come last.
        aborted = next((part for part in rest if isinstance(part, list)), [])
        return RawFetch(tuple(batches_of(rest[-1] or b"")), tuple((p, first) for p, first in aborted))

    def _refused(self, error: BaseException) -> ServiceError:
        return ServiceError(
            f"fetching batches of {self._topic} at {self._kafka.bootstrap_servers}: {type(error).__name__}: {error}",
            hint="is it running? see `evenflow doctor`",
        )


def batches_of(data: bytes) -> Iterator[RawBatch]:
    """The whole batches in what a broker sent. A last one that was cut off is left out."""
    at = 0
    while at + _HEADER.size <= len(data):
        first, length = _FRONT.unpack_from(data, at)
        end = at + _FRONT.size + length
        if length <= 0 or end > len(data):
            return
        _, _, _, magic, _, attributes, delta, *_ = _HEADER.unpack_from(data, at)
        if magic == 2:
            yield RawBatch(first, first + delta, _CODECS.get(attributes & 7), data[at:end])
        at = end


__all__ = ["CorruptRecordException", "RawBatch", "RawFetch", "RawReader", "batches_of"]
