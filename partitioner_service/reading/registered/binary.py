"""What the scans of Avro and Protobuf share: the records that they walk through, and encoded numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import Int64s, UInt8s
from evenflow.numeric.kernels import inlined
from partitioner_service.reading.registered.leaves import Raw

_CONTINUES = 0x80
"""This bit is set in every byte of a varint except the last."""
_MOST_BYTES = 10
"""Bytes of a varint of 64 bits."""


class Walk(NamedTuple):
    """Records of one schema, and what is found in them."""

    data: UInt8s
    """The bytes of the block."""
    starts: Int64s
    """Where each record begins in the block, shape (n,)."""
    stops: Int64s
    """Where each record ends, shape (n,)."""
    rows: Int64s
    """Numbers of the records within the block, shape (n,)."""
    raw: Raw
    """Takes the values of the needed cells."""
    stack: Int64s
    """Where a scan notes what it comes back to. Shape (STACK,), with the STACK of the scan."""
    word: Int64s
    """Shape (1,), a place where the bits of a whole number are read as a number of IEEE 754."""


@inlined
def low_bits(data: UInt8s, at: int, stop: int) -> tuple[int, int]:
    """The lowest 64 bits of a number of ten bytes at most and where it ends, -1 if there is none.

    A byte holds 7 bits, the lowest first.
    """
    value = np.uint64(0)
    shift = 0
    while at < stop and shift < 70:  # 64 bits need ten bytes at most
        byte = data[at]
        at += 1
        if shift < 64:
            value |= np.uint64(byte & 0x7F) << np.uint64(shift)
        if byte < _CONTINUES:
            return int(np.int64(value)), at
        shift += 7
    return 0, -1


@inlined
def varint(data: UInt8s, at: int, stop: int) -> tuple[int, int]:
    """A number of 64 bits and where it ends, -1 if there is no such number."""
    value, end = low_bits(data, at, stop)
    if end - at == _MOST_BYTES and data[end - 1] > 1:  # the tenth byte has room for one bit
        return 0, -1
    return value, end


@inlined
def zigzag(value: int) -> int:
    """The signed number that Avro and Protobuf's sint write as this one.

    0, 1, 2, 3 stand for 0, -1, 1, -2.
    """
    half = np.int64(np.uint64(value) >> np.uint64(1))
    return int(half ^ -(value & 1))


@inlined
def little(data: UInt8s, at: int, size: int) -> int:
    """The whole number in `size` bytes (4 or 8), the lowest byte first.

    Four bytes are read without a sign.
    """
    value = np.uint64(0)
    for byte in range(size):
        value |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
    return int(np.int64(value))


@inlined
def double(walk: Walk, at: int) -> float:
    """The number of IEEE 754 in the next 8 bytes."""
    # A kernel has no cast of bits, so a whole number goes through an array that is viewed as floats.
    walk.word[0] = little(walk.data, at, 8)
    return float(walk.word.view(np.float64)[0])


@inlined
def single(walk: Walk, at: int) -> float:
    """The number of IEEE 754 in the next 4 bytes."""
    # The low half of the word, which is first on little-endian machines.
    walk.word[0] = little(walk.data, at, 4)
    return float(walk.word.view(np.float32)[0])
