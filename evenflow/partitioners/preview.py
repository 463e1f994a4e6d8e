"""Where the next tuples of a key would go, by a copy of the partitioner."""

from __future__ import annotations

import numpy as np

from evenflow.partitioners.base import Partitioner
from evenflow.partitioners.registry import restore

TUPLES = 100
"""Tuples that are tried."""
MOST_BYTES = 8_000_000
"""Largest state that is copied. Copying it takes some ten milliseconds, for which nothing is routed."""


def preview(
    partitioner: Partitioner, key: int, now: int, *, most_bytes: int = MOST_BYTES
) -> dict[int, int] | None:
    """How many of the key's next `TUPLES` tuples each worker would get, the worker with most of them first.

    key: the key's hash. now: event time of all these tuples, ms. They come one after the other, without
    tuples of other keys between them. None if the state is larger than `most_bytes`, and for an algorithm
    that decides on whole batches, as a batch of this key alone says nothing.
    """
    if partitioner.micro_batch or partitioner.observe().state_bytes > most_bytes:
        return None
    copy = restore(partitioner.snapshot())
    workers = copy.assign(np.full(TUPLES, key, np.uint64), np.full(TUPLES, now, np.int64))
    distinct, counts = np.unique(workers, return_counts=True)
    # Stable: of equal counts the lower worker comes first, as `unique` has them ascending.
    order = np.argsort(-counts, kind="stable")
    return dict(zip(distinct[order].tolist(), counts[order].tolist(), strict=True))
