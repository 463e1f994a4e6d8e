"""Batches of a partition as they stand in the log, compressed.
Kafka's clients hand out records only, decompressed.

Format: Kafka's record batch, version 2 (magic 2), which brokers write since Kafka 0.11. Of older formats
there are the offsets only.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError, OffsetOutOfRangeError, for_code
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME

from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings
from topics.batches.aiokafka_login import client_words
from topics.clients import seconds

_HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length of what follows it, leader epoch, magic, checksum, attributes, delta of the last
offset, first and largest timestamp, producer's id, epoch and sequence, number of records."""
_FRONT = struct.Struct(">qi")
_CHECKED = 21
"""Where that begins of which there is a checksum."""
_MAGIC = 16
_CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_CODEC, _APPENDED, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_FRONT = 16
_PIECE, _INPUT = 1_048_576, 65_536
_READ_COMMITTED = 1
_WAIT_MS = 100
_BETWEEN_QUESTIONS = 1_000
_MOST_HEADERS = 100_000
"""Headers of a record. librdkafka reads no record with more, and each would become an object here."""
_INT64 = range(-(1 << 63), 1 << 63)


class DamagedBatchError(Exception):
    """A batch that nobody can read. Its text says why."""


class RawRecord(NamedTuple):
    """A record of a batch."""

    offset: int
    """The record's place in its partition."""
    stamp: tuple[int, int]
    """The kind of its timestamp as confluent-kafka numbers them, and ms since 1970."""
    key: bytes | None
    """Bytes of the key. None if the record has none."""
    value: bytes | None
    """Bytes of the value. None if the record has none."""
    headers: list[tuple[str, bytes | str | None]]
    """Pairs (name, value), in the order of the record."""


@dataclass(frozen=True)
class RawBatch:
    """A batch as it lies in the broker's log."""

    first: int
    """First offset of the batch."""
    last: int
    """Last offset of the batch."""
    data: bytes
    """All bytes of the batch, its header included."""

    @property
    def is_version_2(self) -> bool:
        """Whether its format is that of version 2."""
        return self.data[_MAGIC] == 2 and len(self.data) >= _HEADER.size

    @property
    def codec(self) -> str | None:
        """Name of its compression, None for none. Raises DamagedBatchError if nobody knows it."""
        number = self._header[5] & _CODEC
        if number and number not in _CODECS:
            raise DamagedBatchError(f"compressed in an unknown way ({number})")
        return _CODECS.get(number)

    @property
    def compressed(self) -> memoryview:
        """Its records, compressed by `codec`."""
        return memoryview(self.data)[_HEADER.size :]

    def grown(self, most: int) -> int:
        """Into how many bytes it grows, counted up to a little more than `most`, within little memory.

        Raises DamagedBatchError.
        """
        codec = self.codec
        if codec is None:
            return len(self.compressed)
        if codec == "snappy":
            return sum(_snappy_length(block) for block in _snappy_blocks(self.compressed))
        size = 0
        for piece in _pieces(codec, self.compressed):
            size += len(piece)
            if size > most:
                break
        return size

    @property
    def count(self) -> int:
        """How many records it says that it has."""
        return self._header[-1]

    def records(
        self,
        aborted: Sequence[tuple[int, int]],
        most: int,
        *,
        begin: int = 0,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Iterator[RawRecord]:
        """Its records from the offset `begin` on, none if they were aborted or mark the end of a transaction.

        aborted: (producer's id, first offset) of aborted transactions that reach into the fetch. most: bytes
        that it may grow into. stopping: whether to leave it at that, asked every thousand records, also where
        none comes out. Raises DamagedBatchError, possibly behind some records.
        """
        if not self.is_version_2:
            raise DamagedBatchError("written in a format of before Kafka 0.11")
        *_, checksum, attributes, _, first_stamp, largest_stamp, producer, _, _, count = self._header
        if calc_crc32c(self.data[_CHECKED:]) != checksum:
            raise DamagedBatchError("its checksum is wrong")
        in_aborted_transaction = any(producer == writer and first <= self.first for writer, first in aborted)
        if attributes & _CONTROL or (attributes & _TRANSACTIONAL and in_aborted_transaction):
            return
        appended = (TIMESTAMP_LOG_APPEND_TIME, largest_stamp) if attributes & _APPENDED else None
        reader = _Fields(self._plain(most))
        next_offset = self.first
        for number_of_record in range(count):
            if number_of_record % _BETWEEN_QUESTIONS == 0 and stopping():
                return
            end = reader.varint() + reader.at
            reader.byte()  # attributes, which mean nothing
            after = reader.varint()
            offset = self.first + reader.varint()
            # A broker does not look at the offsets in a batch that is not compressed.
            if not next_offset <= offset <= self.last:
                raise DamagedBatchError("an offset is out of its order or range")
            next_offset = offset + 1
            if offset < begin:
                reader.skip_to(end)
                continue
            key, value = reader.text(), reader.text()
            number = reader.varint()
            if number > _MOST_HEADERS:
                raise DamagedBatchError(f"a record has {number:,} headers, more than {_MOST_HEADERS:,}")
            headers = [reader.header() for _ in range(number)]
            stamp = appended or (TIMESTAMP_CREATE_TIME, first_stamp + after)
            if stamp[1] not in _INT64:
                raise DamagedBatchError("a timestamp is out of its range")
            yield RawRecord(offset, stamp, key, value, headers)

    def _plain(self, most: int) -> bytes:
        """Its records, decompressed to at most so many bytes."""
        too_large = DamagedBatchError(f"it grows into more than {most:,} bytes")
        # A block of snappy takes the memory that it says, whatever is in it.
        if self.codec == "snappy" and self.grown(most) > most:
            raise too_large
        pieces, size = [], 0
        for piece in _pieces(self.codec, self.compressed):
            size += len(piece)
            if size > most:
                raise too_large
            pieces.append(piece)
        return b"".join(pieces)

    @property
    def _header(self) -> tuple[int, ...]:
        return _HEADER.unpack_from(self.data)


class _Fields:
    """Reads the fields of records one by one. Each method raises DamagedBatchError where they are no
    records.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def at(self) -> int:
        """Bytes that were read so far."""
        return self._at

    def skip_to(self, place: int) -> None:
        """Go on there, which is not before what was read."""
        if not self._at <= place <= len(self._data):
            raise DamagedBatchError("it ends within a record")
        self._at = place

    def byte(self) -> int:
        if self._at >= len(self._data):
            raise DamagedBatchError("it ends within a record")
        self._at += 1
        return self._data[self._at - 1]

    def varint(self) -> int:
        """A signed number, as protobuf's sint64."""
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7
            if shift > 63:
                raise DamagedBatchError("it has a number of more than 64 bits")

    def text(self) -> bytes | None:
        length = self.varint()
        if length < 0:
            return None
        self._at += length
        if self._at > len(self._data):
            raise DamagedBatchError("it ends within a record")
        return self._data[self._at - length : self._at]

    def header(self) -> tuple[str, bytes | str | None]:
        # A name that is no UTF-8 is read as `fetch.kept` reads it.
        return (self.text() or b"").decode(errors="replace"), self.text()


class RawFetch(NamedTuple):
    """What one fetch brought."""

    batches: Sequence[RawBatch]
    """Batches in the order of their offsets."""
    aborted: Sequence[tuple[int, int]]
    """(producer's id, first offset) of aborted transactions that reach into the fetch."""
    end: int
    """The offset behind the last record of the partition."""
    stable: int
    """The offset before which all transactions have ended."""


class RawReader:
    """Fetches batches of a topic, in one thread at a time. It connects when it is first asked.

    patience: seconds that Kafka may take to answer, `kafka.request_timeout` by default. As a context manager
    it is closed at the end.
    """

    def __init__(self, kafka: KafkaSettings, topic: str, *, patience: float | None = None) -> None:
        self._kafka, self._topic = kafka, topic
        self._patience = seconds(kafka) if patience is None else patience
        self._runner: asyncio.Runner | None = None
        self._client: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fetch(self, partition: int, offset: int, *, most: int = 1) -> RawFetch | None:
        """The batches from the one on that holds this offset, committed ones alone.
        None if the offset is gone.

        most: bytes. The first batch comes whole, however large it is. Raises ServiceError if Kafka does not
        answer, or refuses us.
        """
        self._runner = self._runner or asyncio.Runner()
        try:
            return self._runner.run(self._answer(partition, offset, most))
        except OffsetOutOfRangeError:
            return None
        except (KafkaError, OSError, TimeoutError) as error:
            raise ServiceError(
                f"fetching batches of {self._topic} at {self._kafka.bootstrap_servers}:"
                f" {type(error).__name__}: {error}",
                hint="is it running? see `evenflow doctor`",
            ) from None

    def close(self) -> None:
        """Let go of the connection, if there is one."""
        runner, self._runner = self._runner, None
        client, self._client = self._client, None
        if runner is not None:
            with runner:
                if client is not None:
                    runner.run(client.close())

    async def _answer(self, partition: int, offset: int, most: int) -> RawFetch:
        if self._client is None:
            self._client = await self._connected()
        return await asyncio.wait_for(self._fetch(partition, offset, most), self._patience)

    async def _connected(self) -> Any:
        client = AIOKafkaClient(
            **client_words(self._kafka),
            client_id="evenflow-raw",
            request_timeout_ms=self._kafka.request_timeout,
        )
        try:
            await asyncio.wait_for(client.bootstrap(), self._patience)
            await asyncio.wait_for(client.set_topics([self._topic]), self._patience)
        except BaseException:
            await client.close()
            raise
        return client

    async def _fetch(self, partition: int, offset: int, most: int) -> RawFetch:
        place = TopicPartition(self._topic, partition)
        node = self._client.cluster.leader_for_partition(place)
        while node is None or node == -1 or not await self._client.ready(node):
            await asyncio.sleep(0.1)  # an election, or a leader that has moved
            await self._client.force_metadata_update()
            node = self._client.cluster.leader_for_partition(place)
        requests = [(self._topic, [(partition, offset, most)])]
        answer = await self._client.send(node, FetchRequest(_WAIT_MS, 1, most, _READ_COMMITTED, requests))
        if not answer.topics:
            raise KafkaError("an answer without a topic")
        ((_, ((_, code, end, *rest),)),) = answer.topics
        if code:
            await self._client.force_metadata_update()  # most often another broker leads the partition now
            raise for_code(code)()
        # From version 4 of the protocol on: what is stable, and what was aborted. The batches come last.
        aborted = next((part for part in rest if isinstance(part, list)), [])
        stable = rest[0] if len(rest) > 1 and rest[0] >= 0 else end
        batches = tuple(batches_of(rest[-1] or b""))
        return RawFetch(batches, tuple((p, first) for p, first in aborted), end, stable)


def batches_of(data: bytes) -> Iterator[RawBatch]:
    """The whole batches in what a broker sent. A last one that was cut off is left out."""
    at = 0
    while at + _MAGIC < len(data):
        first, length = _FRONT.unpack_from(data, at)
        end = at + _FRONT.size + length
        if end <= at + _MAGIC or end > len(data):
            return
        batch = RawBatch(first, first, data[at:end])
        if batch.is_version_2:
            batch = RawBatch(first, first + _HEADER.unpack_from(data, at)[6], batch.data)
        yield batch
        at = end


def _pieces(codec: str | None, data: memoryview) -> Iterator[bytes]:
    """What the data decompresses to, in pieces. Raises DamagedBatchError."""
    if codec is None:
        yield bytes(data)
        return
    if codec == "snappy":
        for block in _snappy_blocks(data):
            try:
                yield pa.decompress(pa.py_buffer(block), _snappy_length(block), codec="snappy", asbytes=True)
            except OSError as error:
                raise DamagedBatchError(f"{codec}: {error}") from None
        return
    if codec == "gzip":
        yield from _gunzipped(data)
        return
    stream = pa.CompressedInputStream(pa.BufferReader(data), codec)
    while True:
        try:
            piece = stream.read(_PIECE)
        except OSError as error:
            raise DamagedBatchError(f"{codec}: {error}") from None
        if not piece:
            return
        yield piece


def _gunzipped(data: memoryview) -> Iterator[bytes]:
    """The first member, as librdkafka reads it, in pieces."""
    member = zlib.decompressobj(wbits=31)
    for at in range(0, len(data), _INPUT):
        rest = bytes(data[at : at + _INPUT])
        while True:
            try:
                piece = member.decompress(rest, _PIECE)
            except zlib.error as error:
                raise DamagedBatchError(f"gzip: {error}") from None
            rest = member.unconsumed_tail
            if piece:
                yield piece
            if member.eof:
                return
            if not rest and len(piece) < _PIECE:
                break
    raise DamagedBatchError("gzip: it ends early")


def _snappy_blocks(data: memoryview) -> Iterator[memoryview]:
    """The blocks of the framing that Java's clients use,
    or the one block without a frame that librdkafka writes.
    """
    if bytes(data[: len(_XERIAL)]) != _XERIAL:
        yield data
        return
    at = _XERIAL_FRONT
    while at + 4 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        yield data[at + 4 : at + 4 + length]
        at += 4 + length


def _snappy_length(block: memoryview) -> int:
    """Bytes that the block says it decompresses to: so much memory a client takes."""
    length = 0
    for at, byte in enumerate(block[:5]):
        length |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            break
    return length
