"""Batches to train on, drawn by a seed: how many data blocks, keys and tuples there are,
and how skewed they are.

Three of four batches are Zipf's. In the fourth the keys' shares are log-normal, so that a policy does not
learn one law by heart. Numbers are drawn uniformly in their logarithm, and exponents uniformly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Float64s, Int64s

_LOG_NORMAL = 0.25
"""Share of the batches whose keys' shares are log-normal."""


class TrainingBatch(NamedTuple):
    """A batch to train on."""

    counts: Int64s
    """(keys,): tuples of each key, at least 1 and descending."""
    data_blocks: int
    """The number of data blocks to plan."""


@dataclass(frozen=True, kw_only=True)
class BatchLaw:
    """What batches to draw: the least and the greatest of each number. ConfigError for a range that is
    none.
    """

    data_blocks: tuple[int, int] = (2, 32)
    """How many data blocks a batch is planned for."""
    keys: tuple[int, int] = (40, 4000)
    """Keys that may occur. Some may get no tuple, and are then no keys of the batch."""
    tuples_each: tuple[float, float] = (2, 100)
    """Mean tuples of a key."""
    exponent: tuple[float, float] = (0, 2)
    """Of Zipf's law. For log-normal shares it is the standard deviation of their logarithm."""

    def __post_init__(self) -> None:
        for name in ("data_blocks", "keys", "tuples_each", "exponent"):
            low, high = getattr(self, name)
            if not (0 if name == "exponent" else 1) <= low <= high:
                raise ConfigError(f"{name} from {low} to {high} is no range to draw from")

    def draw(self, rng: np.random.Generator) -> TrainingBatch:
        """A batch of at least one tuple."""
        keys = int(_between(rng, *self.keys))
        exponent = rng.uniform(*self.exponent)
        if rng.random() < _LOG_NORMAL:
            shares = np.exp(exponent * rng.standard_normal(keys))
        else:
            shares = np.arange(1, keys + 1) ** -exponent
        tuples = max(1, int(keys * _between(rng, *self.tuples_each)))
        return TrainingBatch(drawn_counts(rng, shares, tuples), int(_between(rng, *self.data_blocks)))


def drawn_counts(rng: np.random.Generator, shares: Float64s, tuples: int) -> Int64s:
    """The counts of so many tuples, each with a key by these shares. Descending, without zeros."""
    counts = rng.multinomial(tuples, shares / shares.sum())
    return np.sort(counts[counts > 0])[::-1].astype(np.int64)


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """Uniform in the logarithm, both ends included where whole numbers are made of it."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high + 1e-9))))
