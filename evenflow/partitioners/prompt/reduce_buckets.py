"""Prompt's reduce bucket allocator: which reduce bucket each key cluster of a map task goes to.

Idea: a cluster is the output of one map task for one key. A split key (its tuples lie in several data blocks,
says the data block's reference table) must meet its other parts, so it goes to hash(k) mod r, the same in
every task. All other keys are this task's own, and it may place them freely: in descending order of size,
each into the bucket with the most capacity left, which then stands back until every other bucket has had
one too. So buckets get equally many clusters and nearly equally many tuples, without any talk among tasks.

Capacity is |I| / r, less the split keys' tuples and what was assigned. It may be negative, and the order
of buckets by it is that by load. `bucket_of` is the hash. Ties: the smaller key first. The lowest bucket,
counted from `first`, which is another one for each task: from bucket 0 on, every task would begin there
with its largest cluster (hashed data blocks of Zipf 1.0: the fullest of 16 buckets had 216 instead of 74
thousand tuples above the mean).
Laws: each key is in exactly one bucket over all map tasks of a batch. The own clusters of two buckets
differ by at most one in number.

Cost: O(c log c) to sort c clusters, then O(c) and, while sizes still differ much, O(r^2) per r clusters.
Paper: Abdelhamid, PhD thesis 2021 (001), Algorithm 3 and section 2.5.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from evenflow.arrays import Bools, Int32s, Int64s, UInt64s
from evenflow.kernels import kernel
from evenflow.keys import bucket_of
from evenflow.partitioners.prompt.accumulator import descending


class Clusters(NamedTuple):
    """The map tasks' output, one row per (data block, key), ascending by both."""

    data_block: Int32s
    keys: UInt64s
    sizes: Int64s
    """Tuples of each cluster."""
    split: Bools
    """Reference table: the key is in other data blocks too."""
    of_tuple: Int64s
    """Row of each tuple's cluster."""


def clusters_of(data_blocks: Int32s, keys: UInt64s) -> Clusters:
    """Clusters and reference tables of a micro-batch, from the data block and key of each tuple."""
    distinct, index = np.unique(keys, return_inverse=True)
    pair = data_blocks.astype(np.int64) * max(1, len(distinct)) + index
    present, of_tuple, sizes = np.unique(pair, return_inverse=True, return_counts=True)
    key_index = present % max(1, len(distinct))
    fragments = np.bincount(key_index, minlength=len(distinct))
    data_block = (present // max(1, len(distinct))).astype(np.int32)
    return Clusters(
        data_block, distinct[key_index], sizes.astype(np.int64), fragments[key_index] > 1, of_tuple
    )


@kernel
def _worst_fit(sizes: Int64s, loads: Int64s, turn: Int64s, out: Int32s) -> None:
    """`turn` holds the buckets by (load, number). Loads of buckets still to come in a pass do not change,
    so worst fit within a pass is to go through them in order. Between passes only those that moved do."""
    buckets = loads.shape[0]
    for begin in range(0, sizes.shape[0], buckets):
        many = min(buckets, sizes.shape[0] - begin)
        for i in range(many):
            bucket = turn[i]
            out[begin + i] = bucket
            loads[bucket] += sizes[begin + i]
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
    """Reduce bucket of each cluster of one map task: its distinct keys, their sizes, which are split."""
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


def allocate_all(clusters: Clusters, buckets: int) -> Int32s:
    """Reduce bucket of each cluster, every map task (data block) deciding alone. Task i counts from bucket i."""
    out = np.empty(len(clusters.keys), np.int32)
    borders = [*np.flatnonzero(np.diff(clusters.data_block, prepend=-1)), len(out)]
    for begin, end in pairwise(borders):
        task = slice(begin, end)
        _, keys, sizes, split, _ = clusters
        first = int(clusters.data_block[begin]) % buckets
        out[task] = allocate(keys[task], sizes[task], split[task], buckets, first=first)
    return out
