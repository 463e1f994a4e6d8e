"""How many partitions the routed topic has, and how many reduce buckets there are, where the settings do not
say.
"""

from __future__ import annotations

MOST_ALONE = 128
"""Most workers of which each has a routed partition of its own."""
MOST_SHARED = 64
"""Most routed partitions of more workers than that."""


def chosen_partitions(workers: int) -> int:
    """Partitions of the routed topic for this largest number of workers, about the same number for each.

    A frame, a marker and a lane cost as much as a hundred tuples or more (docs/scale.md), and each is one of
    a partition. So with many workers a partition for each costs more than it brings.
    """
    together = 1 if workers <= MOST_ALONE else -(-workers // MOST_SHARED)
    return -(-workers // together)


LEAST_BUCKETS, MOST_BUCKETS = 2, 64
"""Bounds of the reduce buckets that are chosen."""
_WORKERS_OF_A_BUCKET = 16


def chosen_buckets(workers: int) -> int:
    """Reduce buckets for this largest number of workers: one for 16 of them.

    A task of the combiner writes a blob for each bucket, and the driver starts a task for each. So a bucket
    for each worker costs more than it brings (docs/scale.md).
    """
    return max(LEAST_BUCKETS, min(-(-workers // _WORKERS_OF_A_BUCKET), MOST_BUCKETS))
