"""Streams for the partitioner tests: seeded, with the shapes that break partitioners."""

import numpy as np

from evenflow.arrays import Int64s, UInt64s

Stream = tuple[UInt64s, Int64s]
SPREAD = np.uint64(0x9E3779B97F4A7C15)


def zipf(tuples: int, *, keys: int = 2000, z: float = 1.2, seed: int = 1) -> Stream:
    """Keys Zipf(z), one tuple per ms."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, keys + 1) ** -z
    ranks = rng.choice(keys, size=tuples, p=shares / shares.sum())
    return ranks.astype(np.uint64) * SPREAD, np.arange(tuples, dtype=np.int64)


def one_key(tuples: int) -> Stream:
    return np.full(tuples, 12345, np.uint64), np.arange(tuples, dtype=np.int64)


def all_distinct(tuples: int) -> Stream:
    return np.arange(tuples, dtype=np.uint64) * SPREAD, np.arange(tuples, dtype=np.int64)


def with_gaps(tuples: int) -> Stream:
    """Pauses longer than any window, and times before 1970."""
    keys, times = zipf(tuples)
    return keys, times + (times // 500) * 10_000_000 - 20_000_000


def backwards(tuples: int) -> Stream:
    """The clock jumps back by up to five seconds again and again."""
    keys, times = zipf(tuples)
    return keys, times * 20 - np.random.default_rng(3).integers(0, 5000, tuples)


STREAMS = {
    "zipf": zipf(6000),
    "one key": one_key(2000),
    "all distinct": all_distinct(6000),
    "gaps": with_gaps(4000),
    "clock going backwards": backwards(4000),
    "empty": zipf(0),
}
