"""A bit of stored state that flips on the disk."""

from __future__ import annotations

import json
import struct
from random import Random

import pyarrow as pa

from evenflow.errors import DataLossError
from evenflow.twostep.reducing.state_blobs import table_of, unpacked

_UNREADABLE = (ValueError, OSError, MemoryError, struct.error, pa.ArrowException, DataLossError)
_TRIES = 60
_ENVELOPE = 8
"""Bytes before the value in the first piece: its checksum and the number of pieces."""


def flipped(piece: bytes, draw: Random) -> bytes:
    """The piece with another bit. Mostly one that can be read all the same, so that only a checksum shows
    the damage.
    """
    result = piece
    for _ in range(_TRIES if draw.random() < 0.8 else 1):
        damaged = bytearray(piece)
        damaged[draw.randrange(len(piece))] ^= 1 << draw.randrange(8)
        result = bytes(damaged)
        if _can_be_read(result[_ENVELOPE:], piece[_ENVELOPE:]):
            break
    return result


def _can_be_read(value: bytes, before: bytes) -> bool:
    """Whether this is another value, and nothing but a checksum shows it."""
    for read in (_table, unpacked, json.loads):
        try:
            old = read(before)
        except _UNREADABLE:
            continue  # it is not what such a value is written as
        try:
            new = read(value)
        except _UNREADABLE:
            return False
        return bool(new.tolist() != old.tolist()) if read is unpacked else bool(new != old)
    return False


def _table(value: bytes) -> pa.Table:
    table = table_of(value)
    table.validate(full=True)
    return table
