"""The clusters of a micro-batch: the tuples of one key in one data block.
Its figures (001 eq. 2.2-2.5) count them.

A data block's map task makes one cluster of each of its keys. So clusters are what the reduce tasks get.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.keys import Buckets, first_slot
from evenflow.metrics.loads import absolute_imbalance
from evenflow.numeric.arrays import Int32s, Int64s, UInt64s, Whole
from evenflow.numeric.kernels import kernel


class Clusters(NamedTuple):
    """All clusters of a micro-batch, in the order of their first tuples."""

    keys: UInt64s
    """(clusters,): hash of each cluster's key."""
    data_blocks: Int32s
    """(clusters,): the data block of each cluster."""
    sizes: Int64s
    """(clusters,): tuples of each."""


class _ClusterTable(NamedTuple):
    """Clusters by (key, data block): what kernels take as one argument."""

    clusters: Clusters
    """The clusters, with room for every tuple."""
    place: Int32s
    """Hash table of their numbers, -1 in a free place."""


@kernel
def _gather(hashes: UInt64s, data_blocks: Int32s, table: _ClusterTable) -> int:
    """Count the tuples of each cluster. Returns the number of clusters."""
    clusters, place = table.clusters, table.place
    mask = np.int64(place.shape[0] - 1)
    count = 0
    for row in range(hashes.shape[0]):
        key, data_block = hashes[row], data_blocks[row]
        # Another data block is another place: without this, all clusters of a split key would begin at one
        # place.
        slot = (first_slot(key, mask) + np.int64(data_block) * 0x9E3779B1) & mask
        while True:
            at = place[slot]
            if at < 0:
                place[slot] = count
                clusters.keys[count] = key
                clusters.data_blocks[count] = data_block
                clusters.sizes[count] = 1
                count += 1
                break
            if clusters.keys[at] == key and clusters.data_blocks[at] == data_block:
                clusters.sizes[at] += 1
                break
            slot = (slot + 1) & mask
    return count


def clusters_of(hashes: UInt64s, data_blocks: Int32s) -> Clusters:
    """The clusters of a micro-batch. hashes, data_blocks: of each tuple, shape (tuples,).

    Cost: one access to a hash table a tuple, and 28 to 36 bytes a tuple while it runs.
    """
    size = len(hashes)
    room = Clusters(np.empty(size, np.uint64), np.empty(size, np.int32), np.empty(size, np.int64))
    # Twice the power of two at or above `size`, so that at least half of the slots stay free and probing
    # stays short.
    place = np.full(2 << max(0, size - 1).bit_length(), -1, np.int32)
    count = _gather(hashes, data_blocks, _ClusterTable(room, place))
    return Clusters(room.keys[:count].copy(), room.data_blocks[:count].copy(), room.sizes[:count].copy())


@kernel
def _fragments(ordered: UInt64s, out: Int64s) -> None:
    """Write how many equal keys each key of the ascending array has, itself included."""
    begin = 0
    for row in range(1, ordered.shape[0] + 1):
        if row == ordered.shape[0] or ordered[row] != ordered[begin]:
            for same in range(begin, row):
                out[same] = row - begin
            begin = row


class BatchFigures(NamedTuple):
    """The figures of a micro-batch for one stage: its data blocks, or the reduce buckets behind them."""

    bsi: float
    """Imbalance of sizes: the fullest less the mean. In tuples (data blocks) or clusters (reduce buckets)."""
    bci: float
    """Imbalance of cardinalities: the same in distinct keys."""
    ksr: float
    """Key split ratio: fragments / keys. 1 if no key is split, 0 without a key."""

    @property
    def mpi(self) -> float:
        """Micro-batch partitioning index: the mean of the three. BSI dominates it, because nothing is
        scaled.
        """
        return (self.bsi + self.bci + self.ksr) / 3


class BatchSummary(NamedTuple):
    """What a micro-batch is like after its planning."""

    tuples: int
    """How many tuples the batch has."""
    keys: int
    """Distinct keys of the batch."""
    split: UInt64s
    """Hashes of the keys that lie in several data blocks, ascending."""
    data_blocks: BatchFigures
    """Figures of the stage that combines: how even its data blocks are."""
    buckets: BatchFigures
    """Figures of the stage behind it: how even its reduce buckets are."""


def summary(hashes: UInt64s, data_blocks: Int32s, *, workers: Whole, buckets: Buckets) -> BatchSummary:
    """The summary of a micro-batch. hashes, data_blocks: of each tuple, shape (tuples,).

    workers: number of data blocks. buckets: the reduce buckets. A bucket's size is counted in clusters, which
    is what a reduce task gets after the map-side combining.
    """
    clusters = clusters_of(hashes, data_blocks)
    order = np.argsort(clusters.keys, kind="stable")
    ordered = clusters.keys[order]
    fragments = np.empty(len(ordered), np.int64)
    _fragments(ordered, fragments)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    keys = ordered[first]
    ratio = len(ordered) / len(keys) if len(keys) else 0.0
    sizes = np.bincount(clusters.data_blocks, weights=clusters.sizes, minlength=workers)
    cluster_counts = np.bincount(clusters.data_blocks, minlength=workers)
    reduced = np.bincount(buckets.of(clusters.keys), minlength=buckets.number)
    distinct = np.bincount(buckets.of(keys), minlength=buckets.number)
    return BatchSummary(
        tuples=len(hashes),
        keys=len(keys),
        split=keys[fragments[first] > 1],
        data_blocks=BatchFigures(absolute_imbalance(sizes), absolute_imbalance(cluster_counts), ratio),
        buckets=BatchFigures(absolute_imbalance(reduced), absolute_imbalance(distinct), float(len(keys) > 0)),
    )
