"""Whether the hot keys of a sample stay the same."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from evenflow.advice.sample import squares_by_key, work_by_key
from evenflow.numeric.arrays import Float64s, Int64s
from evenflow.simulation import KeyedStream

PARTS = 10
"""Most parts into which a sample is cut."""
_CHANCE = 3.0
"""Standard deviations up to which a difference counts as chance."""
FEWEST = 20
"""Least tuples in a part for a key at the threshold, so that chance does not look like change."""


def hot_turnover(stream: KeyedStream, *, least: float) -> float | None:
    """The share of the tuples of hot keys that these keys have gained since an earlier part of the sample.

    The sample is cut into ten consecutive parts with equally many tuples, or into fewer if the parts would be
    too small. A key is hot in a part if it has at least the share `least` of the part's tuples. It has gained
    the tuples that it has beyond its number in an earlier part, unless three standard deviations of chance
    explain the difference.

    The figure is a mean over the parts. Each part is compared with the part before it, and with the first
    part. The larger of the two means counts, because hot keys may be replaced at once or change slowly. None
    if the sample is too small, or if no key is hot. If tuples have costs, all shares are of work, and not of
    tuples.
    """
    # Then a key at the threshold has at least FEWEST tuples in each part.
    parts = min(PARTS, int(len(stream) * least / FEWEST))
    if parts < 2:
        return None
    edges = np.linspace(0, len(stream), parts + 1).astype(np.int64).tolist()
    pieces = [slice(begin, end) for begin, end in pairwise(edges)]
    found_in = [_SamplePart(work_by_key(stream, piece), squares_by_key(stream, piece)) for piece in pieces]
    since_before = [_come(now, before, least) for before, now in pairwise(found_in)]
    since_first = [_come(now, found_in[0], least) for now in found_in[1:]]
    means = [float(np.mean(values)) for some in (since_before, since_first) if (values := _known_of(some))]
    return max(means, default=None)


class _SamplePart(NamedTuple):
    """A part of the sample, shape (keys,) each."""

    work: Int64s
    """Tuples of each key, or the sum of their costs."""
    squares: Float64s
    """Sum of the squares of these costs: the variance of the work, if the number of tuples is Poisson."""


def _known_of(some: list[float | None]) -> list[float]:
    return [value for value in some if value is not None]


def _come(now: _SamplePart, before: _SamplePart, least: float) -> float | None:
    """The share of the work of hot keys that these keys have gained since `before`. None if no key is hot."""
    hot = now.work >= least * now.work.sum()
    if not hot.any():
        return None
    # The parts have equally many tuples, so their counts can be subtracted.
    more = now.work[hot] - before.work[hot]
    # The difference of two independent sums has the sum of their variances as its variance.
    beyond_chance = more > _CHANCE * np.sqrt(now.squares[hot] + before.squares[hot])
    return float(more[beyond_chance].sum() / now.work[hot].sum())
