"""How large the buffers of an Arrow record batch claim to be, asked before Arrow allocates them.

A compressed buffer begins with its uncompressed length, which is only a claim. Arrow's reader has no bound for
it, so this reads the message's table of buffers (a flatbuffer: Message.header -> RecordBatch.buffers) itself.
"""

from __future__ import annotations

import struct

_BATCH = 3
"""MessageHeader.RecordBatch."""


def claimed_bytes(metadata: bytes, body: memoryview) -> int:
    """Sum of the buffers' uncompressed lengths as they are claimed.

    metadata: flatbuffer of an IPC message that is a record batch. Raises ValueError for anything else, struct.error
    for offsets that lead out of the bytes.
    """
    message = _int32(metadata, 0)
    kind = _field(metadata, message, 1)
    table = _field(metadata, message, 2)
    if kind is None or table is None or metadata[kind] != _BATCH:
        raise ValueError("no record batch")
    batch = table + _int32(metadata, table)
    buffers = _field(metadata, batch, 2)
    if buffers is None:
        return 0
    compressed = _field(metadata, batch, 3) is not None
    vector = buffers + _int32(metadata, buffers)
    total = 0
    for number in range(_int32(metadata, vector)):
        offset, length = struct.unpack_from("<qq", metadata, vector + 4 + 16 * number)
        if offset < 0 or length < 0 or offset + length > len(body):
            raise ValueError("a buffer lies outside of the message")
        claimed = struct.unpack_from("<q", body, offset)[0] if compressed and length else length
        total += length if claimed == -1 else claimed  # -1: not compressed after all
        if claimed < -1:
            raise ValueError("a buffer of negative length")
    return total


def is_compressed(metadata: bytes) -> bool:
    """Whether the buffers of this record batch message are compressed. Raises as `claimed_bytes` does."""
    message = _int32(metadata, 0)
    kind, table = _field(metadata, message, 1), _field(metadata, message, 2)
    if kind is None or table is None or metadata[kind] != _BATCH:
        raise ValueError("no record batch")
    return _field(metadata, table + _int32(metadata, table), 3) is not None


def _field(data: bytes, table: int, number: int) -> int | None:
    """Where field `number` of the table at this place lies. None if it is absent."""
    vtable = table - _int32(data, table)
    place = 4 + 2 * number
    if vtable < 0 or place >= struct.unpack_from("<H", data, vtable)[0]:
        return None
    offset = struct.unpack_from("<H", data, vtable + place)[0]
    return table + offset if offset else None


def _int32(data: bytes, at: int) -> int:
    """The int32 there. A negative place would count from the end."""
    if at < 0:
        raise ValueError("an offset before the beginning")
    return int(struct.unpack_from("<i", data, at)[0])
