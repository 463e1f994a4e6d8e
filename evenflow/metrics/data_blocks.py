"""Figures of one micro-batch that is cut into data blocks (001 eq. 2.2-2.5).
A data block is a worker or a bucket.

    BSI = max|B| - avg|B| over the data blocks B   BCI = the same with distinct keys
    KSR = fragments / keys                 MPI = p1*BSI + p2*BCI + p3*KSR, each 1/3

MPI adds tuples, keys and a ratio without scaling, so BSI dominates it. Report the three figures separately
too.
"""

from __future__ import annotations

from evenflow.metrics.loads import Integers, absolute_imbalance, worker_loads
from evenflow.metrics.splitting import cardinality_imbalance, replication_factor


def block_size_imbalance(data_blocks: Integers, n: int) -> float:
    """BSI of a micro-batch, in tuples. data_blocks: the data block of each tuple, 0 .. n-1."""
    return absolute_imbalance(worker_loads(data_blocks, n))


def block_cardinality_imbalance(data_blocks: Integers, keys: Integers, n: int) -> float:
    """BCI of a micro-batch, in keys. data_blocks, keys: the data block (0 .. n-1) and the key of each
    tuple.
    """
    return cardinality_imbalance(data_blocks, keys, n)


def micro_batch_index(
    data_blocks: Integers,
    keys: Integers,
    n: int,
    *,
    weights: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3),
) -> float:
    """MPI of a micro-batch. weights: of BSI, BCI and KSR, in this order."""
    size, cardinality, splitting = weights
    return (
        size * block_size_imbalance(data_blocks, n)
        + cardinality * block_cardinality_imbalance(data_blocks, keys, n)
        + splitting * replication_factor(data_blocks, keys)
    )
