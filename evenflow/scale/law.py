"""Zipf's law as a pipeline on paper needs it: shares of keys,
and how many distinct keys a number of tuples has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from evenflow.numeric.arrays import Float64s
from evenflow.scale.shape import StreamLoad

_EXACT = 10_000
"""Ranks that are reckoned one by one. Those behind them are taken in blocks that grow by `_GROWTH`."""
_GROWTH = 1.001


@dataclass(frozen=True)
class ZipfLaw:
    """A law of Zipf: the key of rank i is as frequent as i to the power of -zipf."""

    name: str
    """How tables and bills call the law."""
    zipf: float
    """Exponent. 0: all keys are equally frequent."""
    keys: int
    """How many keys may come."""
    like: str = ""
    """The data sets that the exponent was fitted to."""

    @property
    def shares(self) -> Float64s:
        """The share of each key, most frequent first. Shape (keys,)."""
        weights = np.arange(1, self.keys + 1, dtype=np.float64) ** -self.zipf
        return weights / weights.sum()

    def distinct(self, tuples: float) -> float:
        """Expected number of distinct keys among `tuples` tuples."""
        shares, counts = _shares(self.keys, self.zipf)
        # The sum of 1 - (1 - p)^tuples, in logarithms. Shares below 1 keep the logarithm finite where one key
        # is all.
        return float((-np.expm1(tuples * np.log1p(-np.minimum(shares, 1 - 1e-12))) * counts).sum())

    def hot(self, workers: int) -> int:
        """Number of keys that have a worker's fair share or more."""
        shares, counts = _shares(self.keys, self.zipf)
        return int(counts[shares * workers >= 1].sum())

    def load(
        self, *, rate: float, slide: float, window: float, workers: int, ksr: float, imbalance: float
    ) -> StreamLoad:
        """The load at this rate (tuples/s), slide and window (s).
        ksr, imbalance: how a partitioner routes this law.
        """
        return StreamLoad(
            law=self.name,
            slide_keys=self.distinct(rate * slide),
            window_keys=self.distinct(rate * window),
            ksr=ksr,
            imbalance=imbalance,
            hot=self.hot(workers),
            top=float(_shares(self.keys, self.zipf)[0][0]),
        )


@cache
def _shares(keys: int, zipf: float) -> tuple[Float64s, Float64s]:
    """The share of a key of each block of ranks, and how many keys the block has. Shapes (blocks,)."""
    exact = np.arange(1, min(keys, _EXACT) + 1, dtype=np.float64)
    edges = [min(keys, _EXACT)]
    while edges[-1] < keys:
        edges.append(min(keys, max(edges[-1] + 1, int(edges[-1] * _GROWTH))))
    # All keys of a block are as frequent as the one in its middle.
    bounds = np.array(edges, np.float64)
    ranks = np.concatenate([exact, (bounds[:-1] + 1 + bounds[1:]) / 2])
    counts = np.concatenate([np.ones(len(exact)), np.diff(bounds)])
    weights = ranks**-zipf
    return weights / (weights * counts).sum(), counts


LAWS = (
    ZipfLaw("routes", 0.57, 1_000_000, "debs-routes, retail-stock"),
    ZipfLaw("words", 0.95, 1_000_000, "words"),
    ZipfLaw("Zipf 1.4", 1.4, 1_000_000, "the other benchmarks' stream"),
    ZipfLaw("countries", 3.82, 38, "retail-country"),
)
"""The laws whose routing at 1,000 workers is measured."""
