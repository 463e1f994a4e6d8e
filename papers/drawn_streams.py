"""Streams that stand for data of the papers that is not at hand.

They are drawn from what the papers say of their data, and by the rules of TPC-H.

| name | what it stands for |
|---|---|
| `cashtags-sudden` | 002's tweets: keys and p1 of its table I. In each of ten periods the ranks are dealt anew |
| `cashtags-daily` | 002's tweets, too. On each of thirty days a tenth of the keys trade their ranks |
| `tpch-q1` | lineitem of TPC-H query 1: four groups |
| `tpch-q3` | lineitem of TPC-H query 3 at scale 10, in order of the orders: about 110,000 groups |
| `tpch-parts` | lineitem of TPC-H by its parts, as 001's query 1 groups it |
| `uniform+zipf`, `zipf+zipf` | 000's figures 13 to 15: two sources by turns, with two laws, or one law and other hot keys |
| `uniform+zipf-1.0`, `uniform+zipf-2.0` | the first of them with other exponents than 000's 1.5 |
| `uniform+dealt` | the first of them with a change: the hot keys are dealt anew six times |
| `mixture` | 000's figure 14a: each tuple is uniform or Zipf 1.5, whatever its source |
| `by-turns` | 000's figure 9a: uniform and Zipf 1.5 by turns, three times each |
| `random-zipf` | 000's figure 9d: eight periods, each with an exponent from 0.5 to 1.5 and other hot keys |

`evenflow/sources/formats/tpch.py` makes TPC-H itself. At the paper's scale 10 lineitem has 7.6 GB as text,
and query 3 keeps one row in 200. So only these rows are drawn here, by the rules of the specification
(4.2.3).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from evenflow.generation.rank_laws import zipf_cdf
from evenflow.numeric.arrays import Float64s, Int64s
from evenflow.simulation import KeyedStream, from_columns, generated

SUDDEN, DAILY = "cashtags-sudden", "cashtags-daily"
"""The paper does not say how the hot keys change, so there are two streams: one changes suddenly, one
little by little.
"""
TPCH_Q1, TPCH_Q3, TPCH_PARTS = "tpch-q1", "tpch-q3", "tpch-parts"
CASHTAG_P1 = 0.0329
_SUDDEN_PERIODS = 10
_DAYS, _TRADED = 30, 0.1
SKEW, TURNS, EXPONENTS = 1.5, 6, 8
SCALE = 10
_ORDERS_A_SCALE = 1_500_000
_SEGMENTS = 5
_LAST_ORDER_DAY = 2405
"""Days are counted from 1992-01-01. The last order is of 1998-08-02."""
_QUERY_3_DAY = 1169
"""1995-03-15. Query 3 keeps rows that were ordered before this day and shipped after it."""
_CURRENT_DAY = 1263
"""1995-06-17. Rows received by this day have been returned or accepted. Rows shipped after this day are
open.
"""
_QUERY_1_LAST_DAY = 2436
"""1998-09-02. Query 1 keeps rows that were shipped by this day."""
_MOST_LINES, _LONGEST_WAY, _LONGEST_RECEIPT = 7, 121, 30


def cashtags_sudden(tuples: int, keys: int, seed: int) -> KeyedStream:
    """Ten periods with one law. Which keys are hot in one period says nothing about the next."""
    random = np.random.default_rng([seed, 1])
    return _drifting(np.array([random.permutation(keys) for _ in range(_SUDDEN_PERIODS)]), tuples, random)


def cashtags_daily(tuples: int, keys: int, seed: int) -> KeyedStream:
    """Thirty days, each much like the one before."""
    random = np.random.default_rng([seed, 4])
    ranks = [random.permutation(keys)]
    for _ in range(_DAYS - 1):
        trading = random.choice(keys, int(_TRADED * keys), replace=False)
        ranks.append(ranks[-1].copy())
        ranks[-1][trading] = ranks[-1][random.permutation(trading)]
    return _drifting(np.array(ranks), tuples, random)


def _drifting(ranks: Int64s, tuples: int, random: np.random.Generator) -> KeyedStream:
    """A Zipf stream in each period. `ranks` has shape (periods, keys): the rank of each key in each period.

    The exponent is chosen so that the whole stream has the published p1.
    """
    periods, keys = ranks.shape
    cdf = zipf_cdf(keys, _exponent(ranks))
    codes = np.empty(tuples, np.int64)
    edges = np.linspace(0, tuples, periods + 1).astype(int).tolist()
    for of_key, (low, high) in zip(ranks, pairwise(edges), strict=True):
        drawn = np.searchsorted(cdf, random.random(high - low), side="right")
        # `argsort` inverts the permutation: it gives the key of each rank.
        codes[low:high] = np.argsort(of_key)[drawn]
    return _stream(codes)


def _exponent(ranks: Int64s) -> float:
    """The exponent at which the most frequent key of the whole stream has the share `CASHTAG_P1`, by
    bisection.
    """
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
    # Twice as many rows as are wanted: the query leaves some out.
    ordered = random.integers(0, _LAST_ORDER_DAY + 1, 2 * tuples)
    shipped = ordered + random.integers(1, _LONGEST_WAY + 1, len(ordered))
    received = shipped + random.integers(1, _LONGEST_RECEIPT + 1, len(ordered))
    returned = random.integers(0, 2, len(ordered))
    flag = np.where(received <= _CURRENT_DAY, returned, 2)
    # Rows are returned (R), accepted (A) or not received yet (N), and open (O) or filled (F). Four of the six
    # pairs occur.
    codes = 2 * flag + (shipped > _CURRENT_DAY)
    return _stream(codes[shipped <= _QUERY_1_LAST_DAY][:tuples])


def query_3(tuples: int, keys: int, seed: int) -> KeyedStream:
    """The order of each row of lineitem that query 3 keeps. `tuples` is the most to return, 0 for all."""
    random = np.random.default_rng([seed, 3])
    orders = SCALE * _ORDERS_A_SCALE
    days = random.integers(0, _LAST_ORDER_DAY + 1, orders).astype(np.int32)
    chosen = random.integers(0, _SEGMENTS, orders) == 0
    # Orders that are older than the longest way have been shipped in full by that day.
    chosen &= (days < _QUERY_3_DAY) & (days >= _QUERY_3_DAY - _LONGEST_WAY)
    number = np.flatnonzero(chosen)
    lines = random.integers(1, _MOST_LINES + 1, len(number))
    order = np.repeat(number, lines)
    late = days[order] + random.integers(1, _LONGEST_WAY + 1, len(order)) > _QUERY_3_DAY
    return _stream(order[late][: tuples or None])


def parts(tuples: int, keys: int, seed: int) -> KeyedStream:
    """The part of each row of lineitem. `keys` is the number of parts: 200,000 times the scale."""
    return _stream(np.random.default_rng([seed, 9]).integers(0, keys, tuples))


def _stream(codes: Int64s) -> KeyedStream:
    """A stream of the keys k0, k1, .... The row number is the time in ms."""
    distinct, numbered = np.unique(codes, return_inverse=True)
    labels = pa.array([f"k{code}" for code in distinct.tolist()])
    return from_columns(labels.take(pa.array(numbered)), None)


def uniform_and_zipf(tuples: int, keys: int, seed: int, exponent: float = SKEW) -> KeyedStream:
    """Even tuples are uniform, odd tuples are Zipf."""
    random = np.random.default_rng([seed, 5])
    flat = random.integers(0, keys, -(-tuples // 2))
    return _taking_turns(flat, _zipf(keys, tuples // 2, random, exponent), tuples)


def uniform_and_dealt(tuples: int, keys: int, seed: int) -> KeyedStream:
    """Even tuples are uniform, odd tuples are Zipf 1.5. In each sixth of the stream other keys are hot."""
    random = np.random.default_rng([seed, 10])
    edges = np.linspace(0, tuples // 2, TURNS + 1).astype(int).tolist()
    parts = [random.permutation(keys)[_zipf(keys, high - low, random)] for low, high in pairwise(edges)]
    return _taking_turns(random.integers(0, keys, -(-tuples // 2)), np.concatenate(parts), tuples)


def two_zipfs(tuples: int, keys: int, seed: int) -> KeyedStream:
    """Zipf 1.5 for both sources. The hottest key of one source is the coldest of the other."""
    random = np.random.default_rng([seed, 6])
    of_even, of_odd = _zipf(keys, -(-tuples // 2), random), keys - 1 - _zipf(keys, tuples // 2, random)
    return _taking_turns(of_even, of_odd, tuples)


def mixture(tuples: int, keys: int, seed: int) -> KeyedStream:
    """Each tuple is uniform or Zipf 1.5, with equal chances and whatever its source is."""
    random = np.random.default_rng([seed, 8])
    flat = random.random(tuples) < 0.5
    return _stream(np.where(flat, random.integers(0, keys, tuples), _zipf(keys, tuples, random)))


def by_turns(tuples: int, keys: int, seed: int) -> KeyedStream:
    """The generated stream `alternating`. Each period is a sixth of the stream."""
    return generated(
        "alternating", tuples=tuples, keys=keys, zipf=SKEW, seed=seed, period_ms=-(-tuples // TURNS)
    )


def random_zipf(tuples: int, keys: int, seed: int) -> KeyedStream:
    """A new exponent and new hot keys in each period."""
    random = np.random.default_rng([seed, 7])
    edges = np.linspace(0, tuples, EXPONENTS + 1).astype(int).tolist()
    parts = [
        random.permutation(keys)[_zipf(keys, high - low, random, random.uniform(0.5, 1.5))]
        for low, high in pairwise(edges)
    ]
    return _stream(np.concatenate(parts))


def _zipf(keys: int, tuples: int, random: np.random.Generator, exponent: float = SKEW) -> Int64s:
    return np.searchsorted(zipf_cdf(keys, exponent), random.random(tuples), side="right")


def _taking_turns(even: Int64s, odd: Int64s, tuples: int) -> KeyedStream:
    codes = np.empty(tuples, np.int64)
    codes[::2], codes[1::2] = even, odd
    return _stream(codes)


DRAWN: dict[str, Callable[[int, int, int], KeyedStream]] = {
    SUDDEN: cashtags_sudden,
    DAILY: cashtags_daily,
    TPCH_Q1: query_1,
    TPCH_Q3: query_3,
    TPCH_PARTS: parts,
    "uniform+zipf": uniform_and_zipf,
    "uniform+zipf-1.0": partial(uniform_and_zipf, exponent=1.0),
    "uniform+zipf-2.0": partial(uniform_and_zipf, exponent=2.0),
    "uniform+dealt": uniform_and_dealt,
    "zipf+zipf": two_zipfs,
    "mixture": mixture,
    "by-turns": by_turns,
    "random-zipf": random_zipf,
}
"""Streams by name. Each is drawn from the numbers of tuples and keys, and a seed."""
