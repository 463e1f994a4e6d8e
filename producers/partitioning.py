"""Which input partition a tuple goes to. Vectorised, and a function of the tuple's key and number only.

Partitioning by key uses Kafka's murmur2, as librdkafka's `murmur2` partitioner does. A null key hashes like
an empty one.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.errors import ConfigError
from evenflow.numeric.kernels import kernel

PartitionBy = Literal["round-robin", "key", "sticky"]
STICKY_RUN = 1_000
"""Consecutive tuples that `sticky` puts into one partition before it takes the next."""


def partitions_of(keys: pa.Array, first: int, partitions: int, by: PartitionBy) -> np.ndarray:
    """Partition (int32) of each of the tuples first, first+1, ... with these record keys (large binary).

    Raises ConfigError for an unknown `by`.
    """
    if by == "key":
        return _by_key(keys, partitions)
    if by not in get_args(PartitionBy):
        raise ConfigError(f"unknown partitioning {by!r}", hint=f"known: {', '.join(get_args(PartitionBy))}")
    index = np.arange(first, first + len(keys))
    return ((index if by == "round-robin" else index // STICKY_RUN) % partitions).astype(np.int32)


def _by_key(keys: pa.Array, partitions: int) -> np.ndarray:
    filled = pc.fill_null(keys.cast(pa.large_binary()), b"")
    if not len(filled):
        return np.empty(0, np.int32)
    _, offsets, data = filled.buffers()
    # A slice of an Arrow array has the buffers of the whole array, so its offsets are only a part of them.
    bounds = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + len(filled) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    chosen = np.empty(len(filled), np.int32)
    _murmur2_partitions(content, bounds, partitions, chosen)
    return chosen


@kernel
def _murmur2_partitions(content: np.ndarray, bounds: np.ndarray, partitions: int, chosen: np.ndarray) -> None:
    # 32-bit arithmetic in uint64: each product is cut to 32 bits. The constants are Kafka's.
    mask, factor = np.uint64(0xFFFFFFFF), np.uint64(0x5BD1E995)
    shifts = np.uint64(24)
    for row in range(len(chosen)):
        low, length = bounds[row], bounds[row + 1] - bounds[row]
        value = (np.uint64(0x9747B28C) ^ np.uint64(length)) & mask
        whole = length - length % 4
        for at in range(low, low + whole, 4):
            word = np.uint64(content[at]) | (np.uint64(content[at + 1]) << np.uint64(8))
            word |= (np.uint64(content[at + 2]) << np.uint64(16)) | (
                np.uint64(content[at + 3]) << np.uint64(24)
            )
            word = (word * factor) & mask
            word = ((word ^ (word >> shifts)) * factor) & mask
            value = ((value * factor) & mask) ^ word
        rest = length - whole
        if rest:
            for place in range(rest):
                value ^= np.uint64(content[low + whole + place]) << np.uint64(8 * place)
            value = (value * factor) & mask
        value = ((value ^ (value >> np.uint64(13))) * factor) & mask
        value ^= value >> np.uint64(15)
        # The sign bit is cleared, as Kafka's toPositive does. abs() would give another partition.
        chosen[row] = np.int32((value & np.uint64(0x7FFFFFFF)) % np.uint64(partitions))
