"""How many partitions the routed topic has, where the settings do not say."""

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
