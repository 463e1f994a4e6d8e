"""Prompt's reduce bucket allocator: which reduce bucket each key cluster of a map task goes to.

Idea: a cluster is the output of one map task for one key. The data block's reference table says which keys
are split, which means that their tuples lie in several data blocks. The parts of a split key must meet, so a
split key goes to bucket hash(k) mod r in every task. All other keys are a task's own, and the task places
them freely. It takes them in descending order of size, and puts each into the bucket with the most capacity
left. That bucket then stands back until every other bucket has had a cluster too. So all buckets get equally
many clusters and nearly equally many tuples, and the tasks need not talk to each other.

Capacity is |I| / r, less the tuples of split keys and of the clusters placed so far. It may be negative.
Buckets in order of capacity are in order of load. `bucket_of` is the hash. Ties: among keys the smaller key
is first. Among buckets the lowest is first, counted from `first`, which differs from task to task. If every
task counted from bucket 0, each would begin there with its largest cluster (hashed data blocks of Zipf 1.0:
the fullest of 16 buckets then had 216 thousand tuples above the mean instead of 74 thousand).
Laws: each key is in exactly one bucket over all map tasks of a batch. The numbers of a task's own clusters in
two buckets differ by at most one.

`spark.reduce = "prompt"` runs this in the pipeline, where a bucket is called a reduce task
(docs/architecture.md).

Cost: O(c log c) to sort c clusters, then O(c) and, while sizes still differ much, O(r^2) per r clusters.
Paper: Abdelhamid, PhD thesis 2021 (001), Algorithm 3 and section 2.5.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from evenflow.keys import bucket_of
from evenflow.numeric.arrays import Bools, Int32s, Int64s, UInt64s
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.prompt.accumulator import descending


class MapOutput(NamedTuple):
    """The output of the map tasks: one row per (data block, key), ascending by data block and then by key."""

    data_block: Int32s
    """The data block of each cluster: the map task that puts it out."""
    keys: UInt64s
    """The key of each cluster."""
    sizes: Int64s
    """Tuples of each cluster."""
    split: Bools
    """The reference table: whether the key is in other data blocks too."""
    of_tuple: Int64s
    """(tuples,): the row of each tuple's cluster."""


def clusters_of(data_blocks: Int32s, keys: UInt64s) -> MapOutput:
    """Clusters and reference tables of a micro-batch, from the data block and key of each tuple."""
    distinct, index = np.unique(keys, return_inverse=True)
    # One number per (data block, key). max: without keys the division below would be by 0.
    pair = data_blocks.astype(np.int64) * max(1, len(distinct)) + index
    present, of_tuple, sizes = np.unique(pair, return_inverse=True, return_counts=True)
    key_index = present % max(1, len(distinct))
    fragments = np.bincount(key_index, minlength=len(distinct))
    data_block = (present // max(1, len(distinct))).astype(np.int32)
    return MapOutput(
        data_block, distinct[key_index], sizes.astype(np.int64), fragments[key_index] > 1, of_tuple
    )


@kernel
def _worst_fit(sizes: Int64s, loads: Int64s, turn: Int64s, out: Int32s) -> None:
    """Place the clusters of these `sizes`: write the bucket of each to `out`.

    `turn` holds the buckets in order of (load, number). Within a pass the loads of buckets still to come do
    not change, so worst fit is to take the buckets in this order. Between passes the order is mended.
    """
    buckets = loads.shape[0]
    for begin in range(0, sizes.shape[0], buckets):
        many = min(buckets, sizes.shape[0] - begin)
        for i in range(many):
            bucket = turn[i]
            out[begin + i] = bucket
            loads[bucket] += sizes[begin + i]
        # Insertion sort: the order is nearly right once sizes differ little.
        for i in range(1, buckets):
            bucket = turn[i]
            at = i
            while at > 0 and (
                loads[turn[at - 1]] > loads[bucket]
                or (loads[turn[at - 1]] == loads[bucket] and turn[at - 1] > bucket)
            ):
                turn[at] = turn[at - 1]
                at -= 1
            turn[at] = bucket


def allocate(keys: UInt64s, sizes: Int64s, split: Bools, buckets: int, *, first: int = 0) -> Int32s:
    """The reduce bucket of each cluster of one map task, shape (clusters,).

    keys: distinct keys. sizes: tuples of each. split: whether each is split. first: bucket to count from on a
    tie.
    """
    out = bucket_of(keys, buckets)
    loads = np.zeros(buckets, np.int64)
    np.add.at(loads, out[split], sizes[split])
    own = np.flatnonzero(~split)
    own = own[descending(keys[own], sizes[own])]
    placed = np.empty(len(own), np.int32)
    loads = np.roll(loads, -first)
    _worst_fit(sizes[own], loads, np.argsort(loads, kind="stable"), placed)
    out[own] = (placed + first) % buckets
    return out


def allocate_all(clusters: MapOutput, buckets: int) -> Int32s:
    """The reduce bucket of each cluster. Every map task (data block) decides alone.
    Task i counts from bucket i.
    """
    out = np.empty(len(clusters.keys), np.int32)
    borders = [*np.flatnonzero(np.diff(clusters.data_block, prepend=-1)), len(out)]
    for begin, end in pairwise(borders):
        task = slice(begin, end)
        first = int(clusters.data_block[begin]) % buckets
        out[task] = allocate(
            clusters.keys[task], clusters.sizes[task], clusters.split[task], buckets, first=first
        )
    return out
