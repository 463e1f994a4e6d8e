"""Decompression bombs: batches that grow into more than a consumer can hold.

`max.message.bytes` counts compressed bytes. For zstd, Kafka's client (librdkafka) stops at `receive.message.max.bytes` and
reports the batch. For gzip, lz4 and snappy it has no bound: it takes the memory, and a container that has less is killed.
Here the size is found out without the memory.
"""

from __future__ import annotations

import logging
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from evenflow.errors import ServiceError
from evenflow.limits import MAX_RECORD_BYTES
from evenflow.settings import KafkaSettings
from topics.clients import seconds
from topics.offsets import log_ends
from topics.raw_batches import RawBatch, RawReader

log = logging.getLogger(__name__)

_FETCH_BYTES = 4_194_304
_AHEAD_BYTES = 268_435_456
"""Compressed bytes that are looked through in each partition: more than a run had read and not committed when it ended."""
_AHEAD_SECONDS = 60.0
_STEP = 1_048_576
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_FRONT = 16
_LZ4_RATIO = 255
"""An LZ4 block grows at most so many times."""
_LZ4_WHOLE = 0x8000_0000
"""The bit of a block's size that says that the block is not compressed."""


@dataclass(frozen=True)
class Bomb:
    """A batch that grows into more than `most` bytes. first, last: its offsets."""

    first: int
    last: int
    codec: str
    compressed: int
    most: int

    @property
    def why(self) -> str:
        """What is wrong with it, for a person."""
        return (
            f"Decompression bomb ({self.codec}): a batch of {self.compressed:,} bytes grows into more than {self.most:,}, "
            "which is receive.message.max.bytes"
        )


def most_grown(kafka: KafkaSettings) -> int:
    """Into how many bytes a batch may grow: the bound that librdkafka keeps for zstd, here for every codec."""
    return int(kafka.extras.librdkafka.get("receive.message.max.bytes", 4 * MAX_RECORD_BYTES))


def bomb_in(batch: RawBatch, most: int) -> Bomb | None:
    """The batch as a bomb. None if it grows into at most `most` bytes, or if the client itself keeps the bound (zstd)."""
    if (
        batch.codec is None
        or batch.codec not in _SIZES
        or _SIZES[batch.codec](batch.compressed, most) <= most
    ):
        return None
    return Bomb(batch.first, batch.last, batch.codec, len(batch.compressed), most)


def bomb_at(kafka: KafkaSettings, topic: str, partition: int, offset: int) -> Bomb | None:
    """The bomb that holds this offset. None if its batch is none. Raises ServiceError if Kafka does not answer."""
    with RawReader(kafka, topic) as reader:
        fetched = reader.fetch(partition, offset)
    for batch in () if fetched is None else fetched.batches:
        if batch.first <= offset <= batch.last:
            return bomb_in(batch, most_grown(kafka))
    return None


def bombs_ahead(
    kafka: KafkaSettings,
    topic: str,
    offsets: Mapping[int, int],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> dict[int, Bomb]:
    """By partition, the first bomb at or behind this offset, as far as a run may have come that ended there.

    A broker that does not answer is a warning: then nothing is known.
    """
    bombs: dict[int, Bomb] = {}
    deadline = clock() + _AHEAD_SECONDS
    try:
        ends = log_ends(kafka, topic, offsets, timeout=seconds(kafka))
        with RawReader(kafka, topic) as reader:
            for partition, offset in sorted(offsets.items()):
                batches = _ahead(
                    reader, partition, offset, ends.get(partition, 0), lambda: clock() < deadline
                )
                bomb = _first(batches, most_grown(kafka))
                if bomb is not None:
                    bombs[partition] = bomb
    except ServiceError as error:
        log.warning("decompression bombs were not looked for: %s", error)
    if clock() >= deadline:
        log.warning("decompression bombs were looked for during %g s only", _AHEAD_SECONDS)
    return bombs


def _ahead(
    reader: RawReader, partition: int, offset: int, end: int, time_left: Callable[[], bool]
) -> Iterable[RawBatch]:
    seen = 0
    while offset < end and seen < _AHEAD_BYTES and time_left():
        fetched = reader.fetch(partition, offset, most=_FETCH_BYTES)
        if fetched is None or not fetched.batches:
            return
        yield from fetched.batches
        seen += sum(len(batch.data) for batch in fetched.batches)
        offset = fetched.batches[-1].last + 1


def _first(batches: Iterable[RawBatch], most: int) -> Bomb | None:
    return next(filter(None, (bomb_in(batch, most) for batch in batches)), None)


def _gzip_size(data: memoryview, most: int) -> int:
    """Bytes that this grows into, counted up to a little more than `most`."""
    size, rest = 0, bytes(data)
    while rest and size <= most:
        member = zlib.decompressobj(wbits=31)
        while rest and size <= most and not member.eof:
            try:
                size += len(member.decompress(rest, _STEP))
            except zlib.error:  # the client will say that it is damaged
                return size
            rest = member.unconsumed_tail
        rest = member.unused_data
    return size


def _snappy_size(data: memoryview, most: int) -> int:
    """Bytes that this says it grows into, which is what the client asks for."""
    if bytes(data[: len(_XERIAL)]) != _XERIAL:
        return _snappy_length(data)
    size, at = 0, _XERIAL_FRONT
    while at + 4 <= len(data) and size <= most:
        (length,) = struct.unpack_from(">I", data, at)
        size += _snappy_length(data[at + 4 : at + 4 + length])
        at += 4 + length
    return size


def _snappy_length(block: memoryview) -> int:
    length = 0
    for at, byte in enumerate(block[:5]):
        length |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            break
    return length


def _lz4_size(data: memoryview, most: int) -> int:
    """Bytes that this can grow into at most, by the sizes of its blocks."""
    if len(data) < 7:
        return 0
    flags, largest = data[4], 1 << (8 + 2 * (data[5] >> 4 & 7))
    at = 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    size = 0
    while at + 4 <= len(data) and size <= most:
        (length,) = struct.unpack_from("<I", data, at)
        if not length:
            break
        bytes_of = length & ~_LZ4_WHOLE
        size += bytes_of if length & _LZ4_WHOLE else min(largest, _LZ4_RATIO * bytes_of)
        at += 4 + bytes_of + (4 if flags & 0x10 else 0)
    return size


_SIZES: Mapping[str, Callable[[memoryview, int], int]] = {
    "gzip": _gzip_size,
    "snappy": _snappy_size,
    "lz4": _lz4_size,
}
