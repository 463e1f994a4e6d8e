"""Streams drawn here because the papers' own data is not at hand: from what they say of it, and from TPC-H's rules.

| name | what it stands for |
|---|---|
| `cashtags` | 002's tweets: the tuples, keys and p1 of its table I; ten periods, each with other hot keys |
| `tpch-q1` | lineitem of TPC-H query 1: four groups |
| `tpch-q3` | lineitem of TPC-H query 3 at scale 10, in order of the orders: about 110,000 groups |

`evenflow/sources/formats/tpch.py` makes TPC-H itself. At the paper's scale 10 its lineitem has 7.6 GB as text, of which
query 3 keeps one row in 200; so only those are drawn here, by the rules of the specification (4.2.3).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa

from evenflow.arrays import Float64s, Int64s
from evenflow.rank_laws import zipf_cdf
from evenflow.simulation import KeyedStream, from_columns

CASHTAGS, TPCH_Q1, TPCH_Q3 = "cashtags", "tpch-q1", "tpch-q3"
CASHTAG_P1 = 0.0329
CASHTAG_PERIODS = 10
"""The paper does not say how often the hot keys change."""
SCALE = 10
_ORDERS_A_SCALE = 1_500_000
_SEGMENTS = 5
_LAST_ORDER_DAY = 2405
"""Days from 1992-01-01 on: orders until 1998-08-02."""
_QUERY_3_DAY = 1169
"""1995-03-15: ordered before it, shipped after it."""
_CURRENT_DAY = 1263
"""1995-06-17: what is received by then has been returned or accepted, what is shipped later is open."""
_QUERY_1_LAST_DAY = 2436
"""1998-09-02."""
_MOST_LINES, _LONGEST_WAY, _LONGEST_RECEIPT = 7, 121, 30


def cashtags(tuples: int, keys: int, seed: int) -> KeyedStream:
    """Zipf in each period, over ranks that are dealt anew; its exponent gives the whole stream the published p1."""
    random = np.random.default_rng([seed, 1])
    ranks = np.array([random.permutation(keys) for _ in range(CASHTAG_PERIODS)])
    cdf = zipf_cdf(keys, _exponent(ranks))
    edges = np.linspace(0, tuples, CASHTAG_PERIODS + 1).astype(int).tolist()
    codes = np.empty(tuples, np.int64)
    for key_ranks, (low, high) in zip(ranks, pairwise(edges), strict=True):
        drawn = np.searchsorted(cdf, random.random(high - low), side="right")
        codes[low:high] = np.argsort(key_ranks)[drawn]
    return _stream(codes)


def _exponent(ranks: Int64s) -> float:
    """By bisection, so that the most frequent key of all periods together has `CASHTAG_P1`."""
    low, high = 0.1, 4.0
    for _ in range(40):
        middle = (low + high) / 2
        shares: Float64s = np.diff(zipf_cdf(ranks.shape[1], middle), prepend=0.0)
        if shares[ranks].mean(axis=0).max() < CASHTAG_P1:
            low = middle
        else:
            high = middle
    return low


def query_1(tuples: int, keys: int, seed: int) -> KeyedStream:
    """Return flag and line status of rows that were shipped in time, in the order of the orders."""
    random = np.random.default_rng([seed, 2])
    ordered = random.integers(0, _LAST_ORDER_DAY + 1, 2 * tuples)
    shipped = ordered + random.integers(1, _LONGEST_WAY + 1, len(ordered))
    received = shipped + random.integers(1, _LONGEST_RECEIPT + 1, len(ordered))
    returned = random.integers(0, 2, len(ordered))
    flag = np.where(received <= _CURRENT_DAY, returned, 2)
    codes = 2 * flag + (shipped > _CURRENT_DAY)
    return _stream(codes[shipped <= _QUERY_1_LAST_DAY][:tuples])


def query_3(tuples: int, keys: int, seed: int) -> KeyedStream:
    """The order of each row of lineitem that query 3 keeps; `tuples` is the most there are, 0 for all."""
    random = np.random.default_rng([seed, 3])
    orders = SCALE * _ORDERS_A_SCALE
    days = random.integers(0, _LAST_ORDER_DAY + 1, orders).astype(np.int32)
    chosen = random.integers(0, _SEGMENTS, orders) == 0
    # Older orders have been shipped in full by then.
    chosen &= (days < _QUERY_3_DAY) & (days >= _QUERY_3_DAY - _LONGEST_WAY)
    number = np.flatnonzero(chosen)
    lines = random.integers(1, _MOST_LINES + 1, len(number))
    order = np.repeat(number, lines)
    late = days[order] + random.integers(1, _LONGEST_WAY + 1, len(order)) > _QUERY_3_DAY
    return _stream(order[late][: tuples or None])


def _stream(codes: Int64s) -> KeyedStream:
    """Keys k0, k1, ...; the index is the time in ms."""
    found, numbered = np.unique(codes, return_inverse=True)
    labels = pa.array([f"k{code}" for code in found.tolist()])
    return from_columns(labels.take(pa.array(numbered)), None)


DRAWN: dict[str, Callable[[int, int, int], KeyedStream]] = {
    CASHTAGS: cashtags,
    TPCH_Q1: query_1,
    TPCH_Q3: query_3,
}
"""By name: from tuples, keys and seed."""
