"""Decides whether a figure is lower than another.

The seeds are compared one by one, so a difference inside their spread counts as none.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import median

SHARE = 0.9
"""Share of the seeds that must agree."""
MARGIN = 0.01
"""How far the medians must be apart, as a share of the higher one."""


def lower(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether `ours` is lower in at least 9 of 10 seeds, and its median by more than 1 %.

    The lists have one value per seed, in the same order. ValueError if their lengths differ.
    """
    wins = sum(a < b for a, b in zip(ours, theirs, strict=True))
    return wins >= ceil(SHARE * len(ours)) and median(ours) < (1 - MARGIN) * median(theirs)


def no_higher(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether `ours` is lower, or there is no difference."""
    return not lower(theirs, ours)


def same(some: Sequence[Sequence[float]]) -> bool:
    """Whether no two of the figures differ."""
    return not any(lower(a, b) for a in some for b in some)
