"""How large the buffers of an Arrow record batch claim to be. This is asked before Arrow allocates them.

A compressed buffer begins with its uncompressed length, which is only a claim. Arrow's reader allocates
whatever is claimed. So this module reads the message's table of buffers itself. The table is a flatbuffer
(Message.header -> RecordBatch.buffers). A flatbuffer table begins with the distance back to its vtable, which
says where each field lies.
"""

from __future__ import annotations

import struct

_BATCH = 3
"""Number of RecordBatch in the union MessageHeader of Arrow's Message.fbs."""


def claimed_bytes(metadata: bytes, body: memoryview) -> int:
    """Sum of the uncompressed lengths that the buffers claim, in bytes.

    metadata: flatbuffer of an IPC message that is a record batch. body: the bytes that hold its buffers.
    Raises ValueError for anything else, and struct.error for offsets that lead out of the bytes.
    """
    # Numbers of fields in Arrow's schema. Message: 1 header type, 2 header. RecordBatch: 2 buffers, 3
    # compression.
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
    # A vector is its length (4 bytes), then its entries. A Buffer is two int64: offset and length in the
    # body.
    for number in range(_int32(metadata, vector)):
        offset, length = struct.unpack_from("<qq", metadata, vector + 4 + 16 * number)
        if offset < 0 or length < 0 or offset + length > len(body):
            raise ValueError("a buffer lies outside of the message")
        claimed = struct.unpack_from("<q", body, offset)[0] if compressed and length else length
        total += length if claimed == -1 else claimed  # -1: this buffer is not compressed
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
    """Position of field `number` of the table at position `table`. None if the field is absent."""
    vtable = table - _int32(data, table)
    place = 4 + 2 * number  # a vtable begins with two uint16, its own length and the table's
    if vtable < 0 or place >= struct.unpack_from("<H", data, vtable)[0]:
        return None
    offset = struct.unpack_from("<H", data, vtable + place)[0]
    return table + offset if offset else None


def _int32(data: bytes, at: int) -> int:
    """The int32 at this position.
    Raises ValueError for a negative position, which Python would count from the end.
    """
    if at < 0:
        raise ValueError("an offset before the beginning")
    return int(struct.unpack_from("<i", data, at)[0])
