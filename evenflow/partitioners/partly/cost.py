"""PartLy's cost model: how uneven data blocks are, and how many fragments they cost,
as one number without a unit.

    cost = (BSI / (N/P) + BCI / max(1, K/P) + (fragments - keys) / K) / 3

BSI and BCI are those of 001 eq. 2.2 and 2.3: the fullest data block above the mean, in tuples and in keys. N
tuples of K keys lie in P data blocks. 001's MPI (eq. 2.5) is a sum of the same three without the divisors. It
adds tuples to keys to a ratio, so tuples alone decide. A reward to learn from needs all three.
"""

from __future__ import annotations

from evenflow.numeric.arrays import Int64s, Whole
from evenflow.numeric.kernels import kernel


@kernel
def cost_of(sizes: Int64s, cardinalities: Int64s, tuples: Whole, keys: Whole, excess: float) -> float:
    """The cost of data blocks with so many tuples and keys each, both of shape (P,).

    tuples, keys: N and K, at least 1. excess: fragments less keys, per key.
    """
    data_blocks = sizes.shape[0]
    fullest, widest, size, cardinality = 0, 0, 0, 0
    for place in range(data_blocks):
        fullest, widest = max(fullest, sizes[place]), max(widest, cardinalities[place])
        size += sizes[place]
        cardinality += cardinalities[place]
    size_imbalance = fullest - size / data_blocks
    cardinality_imbalance = widest - cardinality / data_blocks
    return (
        size_imbalance / (tuples / data_blocks)
        + cardinality_imbalance / max(1.0, keys / data_blocks)
        + excess
    ) / 3.0
