"""Whether the hot keys of a sample stay the same."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from evenflow.arrays import Int64s
from evenflow.simulation import KeyedStream

PARTS = 10
_CHANCE = 3.0
FEWEST = 20
"""Tuples that a key at the threshold must have in a part, so that chance does not look like change."""


def hot_turnover(stream: KeyedStream, *, least: float) -> float | None:
    """Of the tuples of hot keys, those that have come to these keys since. None where that cannot be seen.

    The sample is cut into ten consecutive parts of equally many tuples, fewer where a part would be too small to tell.
    A key is hot in a part with at least this share (`least`) of its tuples. What it has there beyond its share of an
    earlier part has come to it since, unless three standard deviations of chance explain it. The figure is the mean over
    the parts, against the part before or against the first one, whichever is more: keys may be replaced, or move on slowly.
    """
    parts = min(PARTS, int(len(stream) * least / FEWEST))
    if parts < 2:
        return None
    edges = np.linspace(0, len(stream), parts + 1).astype(np.int64).tolist()
    counts = [
        np.bincount(stream.codes[begin:end], minlength=stream.key_count) for begin, end in pairwise(edges)
    ]
    since_before = [_come(now, before, least) for before, now in pairwise(counts)]
    since_first = [_come(now, counts[0], least) for now in counts[1:]]
    means = [float(np.mean(found)) for some in (since_before, since_first) if (found := _known(some))]
    return max(means, default=None)


def _known(some: list[float | None]) -> list[float]:
    return [one for one in some if one is not None]


def _come(now: Int64s, before: Int64s, least: float) -> float | None:
    """Share of the tuples of hot keys that were not theirs before. None when no key is hot. Counts of two parts."""
    hot = now >= least * now.sum()
    if not hot.any():
        return None
    more = now[hot] - before[hot]
    beyond_chance = more > _CHANCE * np.sqrt(now[hot] + before[hot])
    return float(more[beyond_chance].sum() / now[hot].sum())
