"""Batches as a hostile producer writes them, byte by byte, and a way to hand them to a broker."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition

from evenflow.settings import KafkaSettings
from topics.batches.aiokafka_login import client_words

_HEADER = struct.Struct(">qiibIhiqqqhii")
_CHECKED = 21


def varint(number: int) -> bytes:
    """A signed number as records have it."""
    number = (number << 1) ^ (number >> 63)
    digits = bytearray()
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


def record(delta: int, value: bytes = b"x", *, key: bytes | None = None, behind: bytes = b"") -> bytes:
    """A record with this offset delta. behind: bytes that it counts as its own behind its fields."""
    key_part = varint(-1) if key is None else varint(len(key)) + key
    body = b"\0" + varint(0) + varint(delta) + key_part + varint(len(value)) + value + varint(0) + behind
    return varint(len(body)) + body


def batch(
    records: Sequence[bytes],
    *,
    first: int = 0,
    producer: int = -1,
    attributes: int = 0,
    last: int | None = None,
) -> bytes:
    """A batch of these records, not compressed. last: its last offset, as its records say by default."""
    data = b"".join(records)
    delta = len(records) - 1 if last is None else last - first
    length = _HEADER.size + len(data) - 12
    header = _HEADER.pack(
        *(first, length, -1, 2, 0, attributes, delta, 1_000, 1_000, producer, -1, -1, len(records))
    )
    whole = bytearray(header + data)
    whole[17:21] = calc_crc32c(bytes(whole[_CHECKED:])).to_bytes(4, "big")
    return bytes(whole)


def produce(kafka: KafkaSettings, topic: str, partition: int, data: bytes) -> int:
    """Write this batch as it is. Returns the offset that the broker gave it."""

    async def written() -> Any:
        client = AIOKafkaClient(**client_words(kafka), client_id="forger")
        try:
            await client.bootstrap()
            await client.set_topics([topic])
            node = client.cluster.leader_for_partition(TopicPartition(topic, partition))
            assert await client.ready(node)
            return await client.send(node, ProduceRequest(None, -1, 30_000, [(topic, [(partition, data)])]))
        finally:
            await client.close()

    ((_, ((_, code, offset, *_),)),) = asyncio.run(written()).topics
    assert code == 0, f"the broker refuses the batch: error {code}"
    return int(offset)
