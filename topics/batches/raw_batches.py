"""Batches of a partition as they stand in the log, compressed.
Kafka's clients hand out records only, decompressed.

Format: Kafka's record batch, version 2 (magic 2), which brokers write since Kafka 0.11. Of older formats
there are the offsets only.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
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
_MARKER = struct.Struct(">hh")
"""The key of a record that ends a transaction: version and kind."""
_ABORT = (0, 0)
_MOST_MARKER = 65_536
_SIGN = 1 << 63


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

    @property
    def producer(self) -> int:
        """Id of the producer that wrote it, -1 for one without an id."""
        return self._header[9]

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction, as its records or as the mark of its end."""
        return bool(self._header[5] & _TRANSACTIONAL)

    @property
    def is_abort(self) -> bool:
        """Whether it marks that its producer's transaction was aborted."""
        if not self._header[5] & _CONTROL:
            return False
        try:
            fields = _Fields(self._plain(_MOST_MARKER))
            self._front(fields, self.first)
            return _MARKER.unpack_from(fields.text() or b"") == _ABORT
        except (DamagedBatchError, struct.error):
            return False

    def records(
        self,
        most: int,
        *,
        aborted: bool = False,
        begin: int = 0,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Iterator[RawRecord]:
        """Its records from the offset `begin` on, none if it marks the end of a transaction.

        most: bytes that it may grow into. aborted: whether its transaction was (`RawFetch.verdicts`): then
        nothing comes. stopping: whether to leave it at that, asked every thousand records, also where none
        comes out. Raises DamagedBatchError, possibly behind some records.
        """
        fields = self._fields(most, aborted=aborted)
        if fields is not None:
            yield from self._read(fields, range(self.count), begin, stopping)

    def checked_records(
        self,
        most: int,
        *,
        aborted: bool = False,
        begin: int = 0,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Iterator[RawRecord]:
        """As `records`. It is decompressed, and all its offsets are looked at, before this returns.

        So the first record comes as fast as any other, even if millions stand before it. stopping: whether
        nobody wants the records any more, asked every thousand records. Then none comes. Raises
        DamagedBatchError if the offsets are in no order. The records raise it where anything else is damaged.
        """
        fields = self._fields(most, aborted=aborted)
        if fields is None:
            return iter(())
        place, number = None, 0
        next_offset = self.first
        for number_of_record in range(self.count):
            if number_of_record % _BETWEEN_QUESTIONS == _BETWEEN_QUESTIONS - 1 and stopping():
                return iter(())
            at = fields.at
            end, _, offset = self._front(fields, next_offset)
            if place is None and offset >= begin:
                place, number = at, number_of_record
            next_offset = offset + 1
            fields.skip_to(end)
        if place is None:
            return iter(())
        # Not `stopping`: whoever takes the records must not take an early end for that of the batch.
        return self._read(fields.again(place), range(number, self.count), begin, lambda: False)

    def _fields(self, most: int, *, aborted: bool) -> _Fields | None:
        """The fields of its records. None if nobody sees its records. Raises DamagedBatchError."""
        if not self.is_version_2:
            raise DamagedBatchError("written in a format of before Kafka 0.11")
        if calc_crc32c(self.data[_CHECKED:]) != self._header[4]:
            raise DamagedBatchError("its checksum is wrong")
        return None if aborted or self._header[5] & _CONTROL else _Fields(self._plain(most))

    def _front(self, fields: _Fields, least: int) -> tuple[int, int, int]:
        """What stands first in a record: where it ends, ms since the first timestamp, and its offset."""
        end = fields.varint() + fields.at
        fields.byte()  # attributes, which mean nothing
        after = fields.varint()
        offset = self.first + fields.varint()
        # A broker does not look at the offsets in a batch that is not compressed.
        if not least <= offset <= self.last:
            raise DamagedBatchError("an offset is out of its order or range")
        return end, after, offset

    def _read(
        self, fields: _Fields, numbers: range, begin: int, stopping: Callable[[], bool]
    ) -> Iterator[RawRecord]:
        """The records with these numbers, of which the first stands next."""
        first_stamp, largest_stamp = self._header[7], self._header[8]
        appended = (TIMESTAMP_LOG_APPEND_TIME, largest_stamp) if self._header[5] & _APPENDED else None
        next_offset = self.first
        for number_of_record in numbers:
            if number_of_record % _BETWEEN_QUESTIONS == 0 and stopping():
                return
            end, after, offset = self._front(fields, next_offset)
            next_offset = offset + 1
            if offset >= begin:
                key, value = fields.text(), fields.text()
                number = fields.varint()
                if number > _MOST_HEADERS:
                    raise DamagedBatchError(f"a record has {number:,} headers, more than {_MOST_HEADERS:,}")
                headers = [fields.header() for _ in range(number)]
                # As in librdkafka, a sum of more than 64 bits begins again at the other end.
                stamp = (first_stamp + after + _SIGN) % (2 * _SIGN) - _SIGN
                yield RawRecord(offset, appended or (TIMESTAMP_CREATE_TIME, stamp), key, value, headers)
            fields.skip_to(end)  # as in librdkafka, there may be bytes behind the last header

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

    def again(self, place: int) -> _Fields:
        """The same fields from there on."""
        fields = _Fields(self._data)
        fields._at = place
        return fields

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
        at = self._at
        if at < len(self._data) and (byte := self._data[at]) < 0x80:  # most have one byte
            self._at = at + 1
            return (byte >> 1) ^ -(byte & 1)
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

    @property
    def verdicts(self) -> Iterator[tuple[RawBatch, bool]]:
        """Each batch, and whether its transaction was aborted.

        As Kafka's own consumers see it: what a producer writes is aborted from the first offset of an aborted
        transaction up to the batch that marks its end. Behind that another transaction of it may begin.
        """
        ahead = deque(sorted(self.aborted, key=itemgetter(1)))
        aborting: set[int] = set()
        for batch in self.batches:
            while ahead and ahead[0][1] <= batch.last:
                aborting.add(ahead.popleft()[0])
            if not batch.is_version_2 or not batch.is_transactional:
                yield batch, False
                continue
            if batch.is_abort:
                aborting.discard(batch.producer)
            yield batch, batch.producer in aborting


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
