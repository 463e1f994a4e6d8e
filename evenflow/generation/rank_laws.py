"""Which key each tuple of a generated stream has: laws over ranks (0 = hottest), drawn by inverse CDF.

The inverse CDF makes Zipf exact for every exponent. Every tuple takes exactly one uniform draw, so neither
the cut into batches nor the law of another period changes a draw. `evenflow replay` and `evenflow simulate`
share these laws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Float64s, Int64s

RANKS, VALUES, DISORDER, LABELS, EXPONENTS, LEVELS, RUNS = range(7)
"""The random quantities of a stream. Each has a generator of its own, `default_rng([seed, role])`."""

_RUNS = 1024
"""Runs in a stretch."""
_TIMES = 2.0**63
"""The first time, ms, that int64 cannot hold."""


def labels(ranks: Int64s) -> pa.Array:
    """The keys of these ranks as texts: k0, k1, ..."""
    return pc.binary_join_element_wise("k", pa.array(ranks).cast(pa.string()), "")


class RankLaw(ABC):
    """Says which rank (0 = hottest) a uniform draw in [0, 1) stands for in a given period."""

    extra_keys: int = 0
    """How many keys the law has besides those it was asked for."""
    has_costs: bool = False
    """Whether tuples cost differently (`costs`)."""

    @abstractmethod
    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        """The ranks of the draws, shape (m,). All draws are of tuples in this period.

        first: how many tuples of the stream come before the first draw.
        """

    def costs(self, ranks: Int64s) -> Int64s:
        """What a tuple of each of these ranks costs, shape (m,). 1 for each, unless the law `has_costs`."""
        return np.ones(len(ranks), np.int64)


@dataclass(frozen=True)
class Uniform(RankLaw):
    """Every key is equally likely."""

    keys: int
    """Number of keys: ranks are 0 .. keys-1."""

    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        # The product may round up to `keys` for a draw close to 1.
        return np.minimum((draws * self.keys).astype(np.int64), self.keys - 1)


class Zipf(RankLaw):
    """P(rank r) is proportional to (r+1)^-exponent, exactly, for any exponent of 0 or more."""

    def __init__(self, keys: int, exponent: float) -> None:
        self._cdf = zipf_cdf(keys, exponent)

    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        return np.searchsorted(self._cdf, draws, side="right").astype(np.int64)


class Alternating(RankLaw):
    """Uniform in even periods, Zipf in odd ones."""

    def __init__(self, keys: int, exponent: float) -> None:
        self._laws: tuple[RankLaw, RankLaw] = (Uniform(keys), Zipf(keys, exponent))

    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        return self._laws[period % 2].ranks(draws, period, first)


class RandomExponent(RankLaw):
    """Zipf with an exponent that is drawn anew for each period, uniformly from [low, high]."""

    def __init__(self, keys: int, low: float, high: float, seed: int) -> None:
        self._keys, self._low, self._high, self._seed = keys, low, high, seed
        self._latest: tuple[int, Zipf] | None = None

    def exponent(self, period: int) -> float:
        """The exponent of a period. It depends on seed and period only."""
        draw = np.random.default_rng([self._seed, EXPONENTS, period]).random()
        return self._low + draw * (self._high - self._low)

    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        if self._latest is None or self._latest[0] != period:
            self._latest = (period, Zipf(self._keys, self.exponent(period)))
        return self._latest[1].ranks(draws, period)


class Drift(RankLaw):
    """Zipf whose hot keys change: in period j, rank r is the key r + j*step (modulo the keys)."""

    def __init__(self, keys: int, exponent: float, step: int) -> None:
        self._zipf, self._keys, self._step = Zipf(keys, exponent), keys, step

    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        return (self._zipf.ranks(draws, period) + period * self._step) % self._keys


class ReplacedHotKeys(RankLaw):
    """Zipf with other hot keys in each period: the `hot` hottest ranks are keys that no other period has.

    After `generations` periods the same hot keys come again.
    """

    def __init__(self, keys: int, exponent: float, *, hot: int, generations: int) -> None:
        self._zipf, self._keys, self._generations = Zipf(keys, exponent), keys, generations
        self._hot = min(hot, keys)
        self.extra_keys = self._hot * generations

    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        ranks = self._zipf.ranks(draws, period)
        # Keys from `keys` on are the replacements: `hot` of them for each generation.
        now = self._keys + period % self._generations * self._hot
        return np.where(ranks < self._hot, now + ranks, ranks).astype(np.int64)


class WanderingExponent(RankLaw):
    """Zipf with an exponent that walks between two bounds. Each period it takes a normal step, reflected
    at the bounds.
    """

    def __init__(self, keys: int, start: float, *, low: float, high: float, step: float, seed: int) -> None:
        self._keys, self._start, self._low, self._high = keys, start, low, high
        self._step, self._seed = step, seed
        self._latest: tuple[int, Zipf] | None = None

    def exponent(self, period: int) -> float:
        """The exponent of a period. It depends on seed and period only."""
        # All steps from the start on, so that a period has the same exponent wherever a stream begins.
        steps = np.random.default_rng([self._seed, EXPONENTS]).normal(0.0, self._step, period)
        return float(folded(self._start + steps.sum(), self._low, self._high))

    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        if self._latest is None or self._latest[0] != period:
            self._latest = (period, Zipf(self._keys, self.exponent(period)))
        return self._latest[1].ranks(draws, period)


class FlashCrowd(RankLaw):
    """Zipf, but in the periods first .. last the coldest key has this share of the tuples."""

    def __init__(self, keys: int, exponent: float, *, share: float, first: int, last: int) -> None:
        self._zipf, self._coldest, self._share = Zipf(keys, exponent), keys - 1, share
        self._periods = range(first, last + 1)

    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        if period not in self._periods:
            return self._zipf.ranks(draws, period)
        return crowded(self._zipf, draws, self._share, self._coldest)


class Runs(RankLaw):
    """Tuples of one key in a row: each run is of a key drawn from all,
    and as long as drawn from [length, longest].
    """

    def __init__(self, keys: int, *, length: int, longest: int, seed: int) -> None:
        self._keys, self._length, self._longest, self._seed = keys, length, longest, seed
        self._latest: tuple[int, Int64s, Int64s] | None = None

    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        parts, end = [], first + len(draws)
        while first < end:
            keys, edges = self._stretch(first)
            indices = np.arange(first, min(end, int(edges[-1])))
            parts.append(keys[np.searchsorted(edges, indices, side="right") - 1])
            first = int(edges[-1])
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _stretch(self, index: int) -> tuple[Int64s, Int64s]:
        """The keys of the runs around this tuple, and the edges of these runs: one more than keys."""
        # Runs are drawn in stretches, so that a tuple of an endless stream needs only the stretch before it.
        number, start = 0, 0
        if self._latest is not None and self._latest[2][0] <= index:
            number, start = self._latest[0], int(self._latest[2][0])
        while True:
            if self._latest is None or self._latest[0] != number or self._latest[2][0] != start:
                rng = np.random.default_rng([self._seed, RUNS, number])
                keys = rng.integers(0, self._keys, _RUNS)
                lengths = rng.integers(self._length, self._longest + 1, _RUNS)
                self._latest = (number, keys, start + np.concatenate([[0], np.cumsum(lengths)]))
            _, keys, edges = self._latest
            if index < edges[-1]:
                return keys, edges
            number, start = number + 1, int(edges[-1])


class Flash(RankLaw):
    """Zipf, but every so many periods another key has `share` of the tuples, for one period."""

    def __init__(self, keys: int, exponent: float, *, share: float, every: int) -> None:
        self._zipf, self._keys, self._share, self._every = Zipf(keys, exponent), keys, share, every

    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        if period % self._every != self._every - 1:
            return self._zipf.ranks(draws, period, first)
        # The coldest key first, then the one before it.
        key = self._keys - 1 - period // self._every % self._keys
        return crowded(self._zipf, draws, self._share, key)


@dataclass(frozen=True)
class SessionKeys(RankLaw):
    """Keys that live for some periods and do not come again before all other keys have had their turn."""

    keys: int
    """Number of keys, living or not: ranks are 0 .. keys-1."""
    alive: int
    """How many keys live at a time. All are equally likely."""
    life: int
    """Periods that a key lives."""

    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        among = np.minimum((draws * self.alive).astype(np.int64), self.alive - 1)
        # The key of place p is followed by another one in the periods p, p + life, p + 2 life, ... (mod
        # life).
        generation = (period + self.life - 1 - among % self.life) // self.life
        return (generation * self.alive + among) % self.keys


class Disjoint(RankLaw):
    """Tuple t belongs to source t mod `sources`, and each source has keys of its own:
    Zipf over a share of the keys.
    """

    def __init__(self, keys: int, exponent: float, *, sources: int) -> None:
        self._zipf, self._sources = Zipf(keys // sources, exponent), sources

    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        source = (first + np.arange(len(draws))) % self._sources
        return self._zipf.ranks(draws, period, first) * self._sources + source


class Costly(RankLaw):
    """A hot key whose tuples are cheap, a rare key whose tuples are dear, and Zipf over all other keys.

    Rank 0 is the hot key, and the last rank is the rare one. A tuple of the rare key costs `dearer`, and any
    other one costs 1.
    """

    has_costs = True

    def __init__(self, keys: int, exponent: float, *, share: float, rare: float, dearer: int) -> None:
        self._zipf, self._last, self._dearer = Zipf(keys - 2, exponent), keys - 1, dearer
        self._share, self._both = share, share + rare

    def ranks(self, draws: Float64s, period: int, first: int = 0) -> Int64s:
        # The draws beyond both shares are stretched to [0, 1) again.
        rest = np.where(draws < self._both, 0.0, (draws - self._both) / (1 - self._both))
        others = 1 + self._zipf.ranks(rest, period, first)
        ranks = np.where(draws < self._share, 0, np.where(draws < self._both, self._last, others))
        return ranks.astype(np.int64)

    def costs(self, ranks: Int64s) -> Int64s:
        return np.where(ranks == self._last, self._dearer, 1).astype(np.int64)


def crowded(zipf: Zipf, draws: Float64s, share: float, key: int) -> Int64s:
    """The ranks of these draws, shape (m,), where `key` has this share of the tuples and the rest is Zipf."""
    # One draw serves both questions: below `share` it says "the crowd", and the rest is stretched to [0, 1)
    # again.
    crowd = draws < share
    others = zipf.ranks(np.where(crowd, 0.0, (draws - share) / (1 - share)), 0)
    return np.where(crowd, key, others).astype(np.int64)


def folded(values: Any, low: float, high: float) -> Any:
    """A walk, reflected at walls at `low` and `high`. Scalar or array."""
    span = high - low
    return low + span - np.abs((values - low) % (2 * span) - span)


def zipf_cdf(keys: int, exponent: float) -> Float64s:
    """The cumulative probabilities of ranks 0 .. keys-1, shape (keys,). The last is exactly 1."""
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -exponent
    cdf: Float64s = np.cumsum(weights)
    cdf /= cdf[-1]
    cdf[-1] = 1.0  # so that every draw in [0, 1) finds a rank
    return cdf


def ranks_by_period(law: RankLaw, draws: Float64s, periods: Int64s, first: int = 0) -> Int64s:
    """The ranks of consecutive tuples, shape (m,).

    periods: the period of each tuple, non-decreasing. first: how many tuples of the stream come before them.
    """
    if not len(draws) or periods[0] == periods[-1]:
        return law.ranks(draws, int(periods[0]) if len(periods) else 0, first)
    cuts = [0, *(np.flatnonzero(np.diff(periods)) + 1).tolist(), len(draws)]
    return np.concatenate(
        [law.ranks(draws[low:high], int(periods[low]), first + low) for low, high in pairwise(cuts)]
    )


def numbered_times(first: int, count: int, *, rate: float, start: int = 0) -> Int64s:
    """Event times (ms) of tuples first .. first+count-1 at `rate` tuples per second, from `start` (ms) on.

    Shape (count,). ConfigError if the last time is past int64.
    """
    latest = max(0, first + count - 1) * 1000.0 / rate
    if latest >= _TIMES - max(0, start):
        raise ConfigError(
            f"at {rate:g} tuples per second the event time of tuple {first + count:,} is past int64 ms",
            hint="give a higher rate, or fewer tuples",
        )
    index = np.arange(first, first + count, dtype=np.float64)
    return start + np.floor(index * 1000.0 / rate).astype(np.int64)


def wandering_times(
    first: int, count: int, *, rate: float, period_ms: int, seed: int, most: float = 5.0
) -> Int64s:
    """Event times (ms) of tuples first .. first+count-1 at a rate that walks between rate/most and rate*most.

    The rate (tuples per second) takes a step each period, and is steady within a period. Shape (count,).
    ConfigError if the last time is past int64.
    """
    rng = np.random.default_rng([seed, LEVELS])
    # The logarithm of the rate walks, so that it rises and falls by the same factors. `counts[j]` is the
    # number of tuples before period j.
    wall, level, counts = float(np.log(most)), 0.0, [0]
    while counts[-1] < first + count:
        mean_count = rate * period_ms / 1000.0 * np.exp(folded(level, -wall, wall))
        counts.append(counts[-1] + max(1, round(float(mean_count))))
        level += float(rng.normal(0.0, 0.3))
    if len(counts) * period_ms >= _TIMES:
        raise ConfigError("the event time of the last tuple is past int64 ms", hint="give a shorter period")
    edges, index = np.array(counts), np.arange(first, first + count)
    period = np.searchsorted(edges, index, side="right") - 1
    within = (index - edges[period]) * period_ms // np.diff(edges)[period]
    return (period * period_ms + within).astype(np.int64)
