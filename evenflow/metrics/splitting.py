"""The cost of splitting keys: every worker that holds a key sends one partial for it.

    Gamma = sum over workers of the distinct keys at that worker      (004 eq. 2/4), |K| <= Gamma <= n|K|
    replication factor (KSR) = Gamma / |K|                            1 = no key is split
    fragmentation of a key = number of workers that hold it
    cardinality imbalance = max - mean of distinct keys per worker    (004 eq. 6)

The functions take the tuples of one window, so select these tuples by their pane first. Keys are any integers
(hashes).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenflow.metrics.loads import Integers, worker_loads
from evenflow.numeric.arrays import Float64s, Int64s


def _holdings(workers: Integers, keys: Integers) -> tuple[npt.NDArray[Any], Int64s, Int64s]:
    """(distinct keys ascending; of each distinct (key, worker) pair the index of the key; its worker)."""
    if len(workers) != len(keys):
        raise ValueError(f"{len(workers)} workers but {len(keys)} keys")
    distinct, index = np.unique(keys, return_inverse=True)
    # A pair as one number, so that `unique` sorts numbers and not rows.
    span = int(workers.max()) + 1 if len(workers) else 1
    pairs = np.unique(index.astype(np.int64) * span + workers)
    return distinct, pairs // span, pairs % span


def distinct_keys(keys: Integers) -> int:
    """|K|: the number of distinct keys."""
    return len(np.unique(keys))


def fragmentation(workers: Integers, keys: Integers) -> tuple[npt.NDArray[Any], Int64s]:
    """(distinct keys ascending, number of workers that hold each key)."""
    distinct, key_index, _ = _holdings(workers, keys)
    return distinct, np.bincount(key_index, minlength=len(distinct)).astype(np.int64)


def worker_cardinalities(workers: Integers, keys: Integers, n: int) -> Int64s:
    """Distinct keys at each of n workers, shape (n,)."""
    _, _, holders = _holdings(workers, keys)
    return worker_loads(holders, n)


def aggregation_cost(workers: Integers, keys: Integers) -> int:
    """Gamma: the number of partials that the reducers receive."""
    return len(_holdings(workers, keys)[1])


def replication_factor(workers: Integers, keys: Integers) -> float:
    """KSR: Gamma / |K|. Without tuples it is 1, as no key is split."""
    distinct, pairs, _ = _holdings(workers, keys)
    return len(pairs) / len(distinct) if len(distinct) else 1.0


def max_holders(workers: Integers, keys: Integers) -> int:
    """Number of workers that hold the most split key. 0 without tuples."""
    return int(fragmentation(workers, keys)[1].max(initial=0))


def cardinality_imbalance(workers: Integers, keys: Integers, n: int) -> float:
    """The largest number of distinct keys at a worker, less the mean number."""
    cardinalities = worker_cardinalities(workers, keys, n)
    return float(cardinalities.max() - cardinalities.mean())


def memory_against(frequencies: Integers | Float64s, choices: int) -> float:
    """Most (key, worker) pairs when a key may go to `choices` workers: the sum over keys of min(f, choices).

    frequencies: f, the tuples of each key, or how many are expected. choices: 2 for PKG, n for shuffle (002,
    IV-B).
    """
    return float(np.minimum(frequencies, choices).sum())
