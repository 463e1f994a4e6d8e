"""Bucket labels: integers that Spark's own hash sends one to one to the shuffle partitions.

Rule "labels map onto shuffle partitions".

`groupBy(label)` hashes the label once more. With the bucket numbers themselves some shuffle partitions would
get two buckets and others none. Label i is the smallest integer that Spark places in partition i of B.
"""

from __future__ import annotations

from functools import lru_cache

_MASK = 0xFFFFFFFF  # Python's integers do not overflow, so each step is cut to 32 bits
_SEED = 42  # Spark's seed for hash partitioning


def shuffle_partition(label: int, partitions: int) -> int:
    """Partition of an int column: pmod(Murmur3(label, 42), partitions), as HashPartitioning computes it."""
    hashed = _murmur3(label)
    # Java's int is signed. Python's % is never negative for a positive divisor, which is what pmod means.
    return (hashed - (1 << 32) if hashed >> 31 else hashed) % partitions


@lru_cache
def bucket_labels(buckets: int) -> tuple[int, ...]:
    """Label of bucket i: the smallest integer >= 0 that belongs to shuffle partition i of `buckets`."""
    labels: dict[int, int] = {}
    candidate = 0
    while len(labels) < buckets:
        labels.setdefault(shuffle_partition(candidate, buckets), candidate)
        candidate += 1
    return tuple(labels[bucket] for bucket in range(buckets))


def _murmur3(value: int) -> int:
    """Murmur3 (x86, 32 bits) of one int, as Spark's `Murmur3_x86_32.hashInt` computes it. Unsigned."""
    k = (value & _MASK) * 0xCC9E2D51 & _MASK
    k = _rotated(k, 15) * 0x1B873593 & _MASK
    h = _rotated(_SEED ^ k, 13) * 5 + 0xE6546B64 & _MASK
    h ^= 4  # the length of the input in bytes
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    return h ^ h >> 16


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _MASK
