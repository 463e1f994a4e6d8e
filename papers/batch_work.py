"""The work of a micro-batch: what each of its map tasks and reduce tasks does, priced with the kept costs.

    map task      a tuple costs `tuple`, a key of the data block `make` and `send`
    reduce task   a partial result costs `receive`, a key of the batch `hold` and `emit`

A partial result is that of one key in one data block. The reduce tasks keep the window. They take in the keys
of the batch and make the rows that change. Rows of other keys are left out: they are the same work, however
the batch is cut.

Costs are those of `unit_costs`. Sections of 000 and 001 price their batches with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenflow.keys import bucket_of
from evenflow.numeric.arrays import Bools, Float64s, Int32s, Int64s, UInt64s
from evenflow.partitioners.prompt.reduce_buckets import MapOutput, allocate_all
from papers.unit_costs import Costs

_NO_TUPLE = np.empty(0, np.int64)


class Tasks(NamedTuple):
    """The tasks of a micro-batch."""

    maps: int
    """Map tasks. Each has one data block."""
    reduces: int
    """Reduce tasks. Each has one bucket."""
    allocated: bool = False
    """Whether the map tasks place their keys by 001's Alg. 3. Otherwise a key's hash names its bucket."""


@dataclass(frozen=True, eq=False)
class BatchWork:
    """What every task of a micro-batch takes."""

    tuples: int
    """Tuples of the micro-batch."""
    keys: int
    """Distinct keys among them."""
    partials: int
    """Pairs of key and data block."""
    maps: Float64s
    """Nanoseconds of each map task, shape (map tasks,)."""
    reduces: Float64s
    """Nanoseconds of each reduce task, shape (reduce tasks,)."""

    @property
    def stages(self) -> float:
        """Nanoseconds of the batch if its reduce tasks begin when its last map task has ended (001,
        1.2.1).
        """
        return float(self.maps.max() + self.reduces.max())


def batch_work(
    data_blocks: Int32s, codes: Int32s, hashes: UInt64s, *, tasks: Tasks, costs: Costs
) -> BatchWork:
    """The work of one micro-batch.

    data_blocks, codes: the data block and the key number of each tuple, shape (tuples,). hashes: of each key
    number, shape (keys,).
    """
    place, key, sizes = _partials(data_blocks, codes, len(hashes))
    fragments = np.bincount(key, minlength=len(hashes))
    if tasks.allocated:
        clusters = MapOutput(place, hashes[key], sizes, fragments[key] > 1, _NO_TUPLE)
        bucket = allocate_all(clusters, tasks.reduces)
    else:
        bucket = bucket_of(hashes[key], tasks.reduces)
    tuples = np.bincount(place, sizes, minlength=tasks.maps)
    partials = np.bincount(place, minlength=tasks.maps)
    received = np.bincount(bucket, minlength=tasks.reduces)
    # All partial results of a key are in one bucket, so each of them counts for its share of the key.
    keys = np.bincount(bucket, 1 / fragments[key], minlength=tasks.reduces).round()
    return BatchWork(
        tuples=len(codes),
        keys=int(np.count_nonzero(fragments)),
        partials=len(key),
        maps=costs.tuple * tuples + (costs.make + costs.send) * partials,
        reduces=costs.receive * received + (costs.hold + costs.emit) * keys,
    )


def _partials(data_blocks: Int32s, codes: Int32s, keys: int) -> tuple[Int32s, Int64s, Int64s]:
    """Data block, key number and tuples of each partial result, ascending, shape (partials,) each."""
    pairs = data_blocks.astype(np.int64) * keys + codes
    pairs.sort()
    first: Bools = np.ones(len(pairs), np.bool_)
    first[1:] = pairs[1:] != pairs[:-1]
    begins = np.flatnonzero(first)
    place, key = np.divmod(pairs[begins], max(1, keys))
    return place.astype(np.int32), key, np.diff(begins, append=len(pairs))
