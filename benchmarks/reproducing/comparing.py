"""When a figure is lower than another: seed by seed, so that a difference inside the spread is none."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import median

SHARE = 0.9
"""Of the seeds that must agree."""
MARGIN = 0.01
"""By which the medians must differ, as a share of the higher one."""


def lower(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """In at least 9 of 10 seeds, and the median by more than 1 %. ValueError when the seeds are not as many."""
    wins = sum(a < b for a, b in zip(ours, theirs, strict=True))
    return wins >= ceil(SHARE * len(ours)) and median(ours) < (1 - MARGIN) * median(theirs)


def no_higher(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Lower, or no difference."""
    return not lower(theirs, ours)


def same(some: Sequence[Sequence[float]]) -> bool:
    """No two of them differ."""
    return not any(lower(a, b) for a in some for b in some)
